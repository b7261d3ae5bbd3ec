"""Whole episodes, step by step, with what the agent saw and thought: for reports and tables.

Axis letters: S steps, M = S + 1 moments (before each step, and after the last), A actions.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrl import acting, evaluate
from jaxrl.types import Agent, AgentState, Environment, PyTree

CHUNK = 64
"""Steps between two checks which episodes have ended."""


class Recording(NamedTuple):
    """One episode, or its first S steps, as NumPy arrays."""

    state: PyTree  # [M, ...] of the environment
    obs: PyTree  # [S, ...]
    action: PyTree  # [S, ...]
    reward: np.ndarray  # [S], or [S, K] of its components
    explained: dict[str, np.ndarray]  # [S, ...] `Agent.explain`
    outcome: dict[str, np.ndarray]  # scalars at the end: return, length, the environment's outcome
    terminated: bool
    truncated: bool  # both False: it went on after these steps

    @property
    def steps(self) -> int:
        return len(self.reward)


class Bars(NamedTuple):
    """Named numbers at each moment, such as the probabilities of actions."""

    values: np.ndarray  # [M, B], NaN where there are none
    labels: Sequence[str]  # B
    chosen: np.ndarray | None = None  # int [M] of the one that was chosen, -1 for none
    limits: Sequence[tuple[float, float]] | None = None  # B ranges; None: one range for all


class Episode(NamedTuple):
    """M moments to be looked at."""

    title: str
    frames: Mapping[str, np.ndarray]  # [M, ...] what the scene draws
    lines: Mapping[str, np.ndarray] = {}  # [M] numbers over time, NaN where there are none
    bars: Mapping[str, Bars] = {}
    constants: Mapping[str, Any] = {}
    """What does not change within the episode, as plain data or arrays."""


class Scene(NamedTuple):
    """Episodes, and who draws them."""

    scripts: Sequence[Path]
    """JavaScript. The last adds a drawing to `scenes`, under the name of its file; see
    `train/report/page/player.js`. Those before hold what it uses."""
    episodes: Sequence[Episode]
    constants: Mapping[str, Any] = {}
    """What is the same in all episodes, as plain data or arrays."""


def record(
    env: Environment,
    env_params: PyTree,
    agent: Agent,
    agent_state: AgentState,
    key: jax.Array,
    count: int,
    limit: int,
) -> list[Recording]:
    """Plays `count` episodes side by side and returns all of each, or its first `limit` steps.

    Equal keys give equal starts, whoever plays. Consumes the key.
    """
    game = env, agent
    playing = _begin(*game, env_params, key, count)
    pieces: list[list[Any]] = [[] for _ in range(count)]
    running, done = set(range(count)), 0
    while running and done < limit:
        playing, rows = _advance(*game, env_params, agent_state, playing)
        rows = jax.device_get(rows)
        for k in sorted(running):
            is_done = rows.done[:, k]
            steps = min(int(np.argmax(is_done)) + 1 if is_done.any() else CHUNK, limit - done)
            pieces[k].append(jax.tree.map(lambda x, k=k, s=steps: x[:s, k].copy(), rows))
            running -= {k} if is_done[:steps].any() else set()
        done += CHUNK
    episode_rows = [jax.tree.map(lambda *x: np.concatenate(x), *piece) for piece in pieces]
    last = jax.tree.map(lambda *x: np.stack([y[-1] for y in x]), *episode_rows)
    final = jax.device_get(_final_states(env, env_params, last.state, last.action))
    return [
        _recording(row, jax.tree.map(lambda x, k=k: x[k], final))
        for k, row in enumerate(episode_rows)
    ]


class _Row(NamedTuple):
    """One step of all environments, `[T, N, ...]`."""

    state: PyTree
    obs: PyTree
    action: PyTree
    reward: jax.Array
    explained: dict[str, jax.Array]
    outcome: dict[str, jax.Array]
    terminated: jax.Array
    truncated: jax.Array

    @property
    def done(self) -> Any:
        return self.terminated | self.truncated


@partial(jax.jit, static_argnums=(0, 1, 4))
def _begin(
    env: Environment, agent: Agent, env_params: PyTree, key: jax.Array, count: int
) -> acting.World:
    return evaluate.begin(env, env_params, agent, key, count).world


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=4)
def _advance(
    env: Environment, agent: Agent, env_params: PyTree, agent_state: AgentState, world: acting.World
) -> tuple[acting.World, _Row]:
    """`CHUNK` steps of all environments."""

    def step(world: acting.World, _) -> tuple[acting.World, _Row]:
        thoughts = jax.vmap(agent.explain, (None, 0, 0))(agent_state, world.memory, world.obs)
        after, (transition, outcome) = acting.step(env, env_params, agent, agent_state, world)
        fields = world.env, transition.obs, transition.action, transition.reward, thoughts
        return after, _Row(*fields, outcome, transition.terminated, transition.truncated)

    return jax.lax.scan(step, world, length=CHUNK)


@partial(jax.jit, static_argnums=0)
def _final_states(env: Any, env_params: PyTree, state: PyTree, action: PyTree) -> PyTree:
    """The states after a step, without reset; what is up to chance may differ from the game's."""
    step = lambda state, action: env.step_env(jax.random.key(0), state, action, env_params)[1]
    return jax.vmap(step)(state, action)


def _recording(row: Any, final: PyTree) -> Recording:
    return Recording(
        state=jax.tree.map(lambda x, y: np.append(x, np.asarray(y)[None], 0), row.state, final),
        obs=row.obs,
        action=row.action,
        reward=row.reward,
        explained=row.explained,
        outcome={name: x[-1] for name, x in row.outcome.items()},
        terminated=bool(row.terminated[-1]),
        truncated=bool(row.truncated[-1]),
    )


def lines(recording: Any, components: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Value, reward and return so far over time, each `[M]`, from `explained` and `reward`.

    `components` are the names of the K components of the reward; those that are 0 throughout are
    left out.
    """
    reward = np.asarray(recording.reward, np.float32)
    total = reward if reward.ndim == 1 else reward.sum(-1)
    series = {}
    if "value" in recording.explained:
        value = recording.explained["value"]
        series["value"] = with_last(value if value.ndim == 1 else value.sum(-1))
    series["reward"] = with_first(total)
    series["return so far"] = with_first(np.cumsum(total), 0.0)
    for k, name in enumerate(components):
        if reward[:, k].any():
            series[f"reward: {name.replace('_', ' ')}"] = with_first(reward[:, k])
    return series


def bars(recording: Recording, actions: Sequence[str]) -> dict[str, Bars]:
    """What an agent with A named actions makes of each of them: probabilities, Q, or means."""
    bars_by_title, taken_actions = {}, np.asarray(recording.action)
    is_discrete = np.issubdtype(taken_actions.dtype, np.integer) and taken_actions.ndim == 1
    chosen = np.append(taken_actions.astype(np.int32), -1) if is_discrete else None
    names = {"probabilities": "probability", "q": "Q", "mean": "action"}
    for name, title in names.items():
        values = recording.explained.get(name)
        if values is not None and values.shape[1:] == (len(actions),):
            bars_by_title[title] = Bars(with_last(values), actions, chosen)
    return bars_by_title


def observation_bars(recording: Recording, labels: Sequence[str]) -> Bars:
    """The first numbers of the observation, by name."""
    values = np.asarray(recording.obs, np.float32)[:, : len(labels)]
    return Bars(with_last(values), labels)


def with_last(x: np.ndarray) -> np.ndarray:
    """`[S, ...] -> [M, ...]`: nothing is known after the last step."""
    return np.append(np.asarray(x, np.float32), np.full((1, *x.shape[1:]), np.nan, np.float32), 0)


def with_first(x: np.ndarray, first: float = float("nan")) -> np.ndarray:
    """`[S] -> [M]`: what a step brought belongs to the moment after it."""
    return np.append(np.array([first], np.float32), np.asarray(x, np.float32))
