"""Plays episodes of colonies and records them in full.

config = PRESETS["linear"]
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
from train.durotaxis.episodes.record import NUMBERS, Episode, Moment, finished, joined
from train.host.scoring import limits

CHUNK = 32
"""Steps between two checks which episodes have ended."""


class Watched(Durotaxis):
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
    watched = Watched(**{k: v for k, v in vars(env).items() if k != "default_params"})
    which = np.arange(count) if keep is None else np.asarray(keep)
    world = _begin(watched, params, agent, key, count).world
    pieces: list[list[Moment]] = [[] for _ in which]
    running, done, most = set(range(len(which))), 0, limits.most_steps(params.max_steps_in_episode)
    while running and done < most:
        world, moments = _advance(watched, agent, params, agent_state, world, which)
        moments = jax.device_get(moments)
        for k in sorted(running):
            over = moments.ended.complete[:, k]
            steps = min(int(np.argmax(over)) + 1 if over.any() else CHUNK, most - done)
            pieces[k].append(jax.tree.map(lambda x, k=k, s=steps: x[:s, k].copy(), moments))
            running -= {k} if over.any() else set()
        done += CHUNK
    return finished([joined(piece) for piece in pieces], params)


def ended(episodes: Sequence[Episode]) -> evaluate.Episodes:
    """What `evaluate.evaluate` returns for these episodes, `[K, 1]`."""
    return jax.tree.map(lambda *leaves: np.stack(leaves)[:, None], *[e.ended for e in episodes])


def chosen(episodes: evaluate.Episodes) -> int:
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
    env: Watched,
    agent: Agent,
    params: Params,
    agent_state: AgentState,
    world: World,
    which: jax.Array,
) -> tuple[World, Moment]:
    """`CHUNK` steps of all environments, and the recorded steps of those in `which` `[K]`."""

    def step(world: World, _) -> tuple[World, Moment]:
        thoughts = jax.vmap(agent.explain, (None, 0, 0))(agent_state, world.memory, world.obs)
        after, (now, outcome) = acting.step(env, params, agent, agent_state, world)
        growth: Any = outcome.pop("growth")
        numbers = jax.vmap(partial(numbers_of, env, params))(now.action)
        totals = outcome.pop("return"), outcome.pop("length")
        done = now.terminated | now.truncated
        ended = evaluate.Episodes(*totals, now.terminated, now.truncated, outcome, done)
        moment = Moment(growth, numbers, world.env.law, now.reward, thoughts, ended)
        return after, jax.tree.map(lambda x: x[which], moment)

    return jax.lax.scan(step, world, length=CHUNK)


def numbers_of(env: Durotaxis, params: Params, action: Any) -> dict[str, jax.Array]:
    """The numbers of one action, whether chosen or fixed, by `NUMBERS`."""
    numbers = action[1] if env.action == "nodes" else action
    values = actions.bounded(env.action, env.spawning, numbers, params.bounds)
    given = dict(zip(actions.names(env.action, env.spawning), values, strict=True))
    fixed = {name: getattr(params.spawn, name) for name in actions.PARAMETERS[env.spawning]}
    known = {"delete_ratio": jnp.nan, "theta": jnp.nan, **fixed, **given}
    return {name: jnp.float32(known[name]) for name in NUMBERS}
