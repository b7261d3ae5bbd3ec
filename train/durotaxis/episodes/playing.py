"""Plays episodes of colonies and records them in full.

config = PRESETS["linear"].config
parts = training.make_parts(config, greedy=True)
episodes = play(*parts, agent_state, jax.random.key(0), 20)
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.durotaxis import actions
from envs.durotaxis.env import Durotaxis, Params, State
from envs.durotaxis.rewards.registry import Ending
from envs.durotaxis.rules import Growth
from jaxrl import acting, evaluate
from jaxrl.acting import World
from jaxrl.types import Agent, AgentState
from train.durotaxis.episodes.chances import with_delete_chances
from train.durotaxis.episodes.record import NUMBERS, Episode, Moment, add_intensities, join_moments
from train.host.scoring import limits

CHUNK = 32
"""Steps between two checks which episodes have ended."""


class RecordedDurotaxis(Durotaxis):
    """The same environment; the outcome of a step also holds its `Growth`."""

    def outcome(
        self, after: State, growth: Growth, ending: Ending, params: Params
    ) -> dict[str, Any]:
        return super().outcome(after, growth, ending, params) | {"growth": growth}


def play(
    env: Durotaxis,
    params: Params,
    agent: Agent,
    agent_state: AgentState,
    key: jax.Array,
    count: int,
    keep: Sequence[int] | None = None,
) -> list[Episode]:
    """Plays the `count` episodes that `evaluate.evaluate` plays with the same key.

    Returns all of them, or those whose numbers are in `keep`. One that is not over after
    `limits.most_steps` is cut. Consumes the key. Raises ValueError for a count below 1.
    """
    if count < 1:
        raise ValueError(f"the number of episodes is {count}; expected at least 1")
    recorded_env = RecordedDurotaxis(
        **{k: v for k, v in vars(env).items() if k != "default_params"}
    )
    indices = np.arange(count) if keep is None else np.asarray(keep)
    world = _begin(recorded_env, params, agent, key, count).world
    pieces: list[list[Moment]] = [[] for _ in indices]
    running, steps_done, step_limit = (
        set(range(len(indices))),
        0,
        limits.most_steps(params.max_steps_in_episode),
    )
    while running and steps_done < step_limit:
        world, moments = _advance(recorded_env, agent, params, agent_state, world, indices)
        moments = jax.device_get(moments)
        for k in sorted(running):
            is_over = moments.ended.complete[:, k]
            steps = min(
                int(np.argmax(is_over)) + 1 if is_over.any() else CHUNK, step_limit - steps_done
            )
            pieces[k].append(jax.tree.map(lambda x, k=k, s=steps: x[:s, k].copy(), moments))
            running -= {k} if is_over.any() else set()
        steps_done += CHUNK
    episodes = add_intensities([join_moments(piece) for piece in pieces], params)
    return [with_delete_chances(episode) for episode in episodes]


def episode_results(episodes: Sequence[Episode]) -> evaluate.Episodes:
    """What `evaluate.evaluate` returns for these episodes, `[K, 1]`."""
    return jax.tree.map(lambda *leaves: np.stack(leaves)[:, None], *[e.ended for e in episodes])


def typical_index(episodes: evaluate.Episodes) -> int:
    """The index of the episode to show: of median length among those that arrived, `[K, 1]`.

    If none arrived, the one that came farthest.
    """
    arrived = np.flatnonzero(episodes.outcome["arrived"])
    if not arrived.size:
        return int(np.argmax(episodes.outcome["progress"]))
    by_length = np.argsort(np.ravel(episodes.length)[arrived], kind="stable")
    return int(arrived[by_length[(arrived.size - 1) // 2]])


_begin = jax.jit(evaluate.begin, static_argnums=(0, 2, 4))


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=4)
def _advance(
    env: RecordedDurotaxis,
    agent: Agent,
    params: Params,
    agent_state: AgentState,
    world: World,
    indices: jax.Array,
) -> tuple[World, Moment]:
    """`CHUNK` steps of all environments, and the recorded steps of those in `indices` `[K]`."""

    def step(world: World, _) -> tuple[World, Moment]:
        explanations = jax.vmap(agent.explain, (None, 0, 0))(agent_state, world.memory, world.obs)
        after, (now, outcome) = acting.step(env, params, agent, agent_state, world)
        growth: Any = outcome.pop("growth")
        numbers = jax.vmap(partial(numbers_of, env, params))(now.action)
        totals = outcome.pop("return"), outcome.pop("length")
        done = now.terminated | now.truncated
        result = evaluate.Episodes(*totals, now.terminated, now.truncated, outcome, done)
        moment = Moment(growth, numbers, world.env.law, now.reward, explanations, result)
        return after, jax.tree.map(lambda x: x[indices], moment)

    return jax.lax.scan(step, world, length=CHUNK)


def numbers_of(env: Durotaxis, params: Params, action: Any) -> dict[str, jax.Array]:
    """The numbers of one action, whether chosen or fixed, by `NUMBERS`."""
    numbers = action[1] if env.action == "nodes" else action
    values = actions.clip_numbers(env.action, env.spawning, numbers, params.bounds)
    action_numbers = dict(zip(actions.names(env.action, env.spawning), values, strict=True))
    fixed = {name: getattr(params.spawn, name) for name in actions.PARAMETERS[env.spawning]}
    all_numbers = {"delete_ratio": jnp.nan, "theta": jnp.nan, **fixed, **action_numbers}
    return {name: jnp.float32(all_numbers[name]) for name in NUMBERS}
