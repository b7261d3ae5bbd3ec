"""Games that trained agents play for a score: how many, side by side, and one of them watched."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrl import evaluate
from jaxrl.evaluate import Episodes, Trajectory, Watch
from jaxrl.types import Agent, AgentState, Environment, PyTree
from train.host import memory
from train.host.progress import busy
from train.host.scores import evaluation_table, summaries
from train.host.settings import EpisodesOf, Evaluation

ROWS, BYTES = 4_096, 2**24
"""A game is watched in pieces of at most so many steps, and bytes."""


Watcher = Callable[[AgentState, jax.Array, Watch], tuple[Episodes, Trajectory]]


class Played(NamedTuple):
    """The games of some agents."""

    episodes: list[Episodes]  # NumPy arrays [N, G], for each agent
    compile_seconds: float
    seconds: float
    replay: Callable[[AgentState, jax.Array, int, int], Trajectory] | None = None
    """`(agent_state, key, which, num_steps) -> trajectory`: plays the games with `key` again and
    returns the first steps of one environment, NumPy `[num_steps, ...]`; None: not watched."""


@dataclass(frozen=True)
class GamesEvaluation:
    """A `Training.evaluate` that plays games; `Evaluation.detail` is `Played`."""

    episodes_of: EpisodesOf
    """`(agent_state, key) -> episodes`, a pure function."""
    watch: Watcher | None = None
    """The same games, one of them watched; None: they cannot be watched."""
    of_size: Callable[[int], EpisodesOf] | None = None
    """`count -> episodes_of` of another number of games, where that can be chosen."""
    score: str = "return"
    """"return", "length" or a name in the environment's outcome. `Training` puts its own here."""
    limit: Any = None
    """Steps after which a game counts as not finished, if known."""
    place: str = ""
    """Where the games are played, for the progress: " on 8×8"."""

    def __call__(
        self, agents: list[AgentState], seeds: list[int], keys: list[jax.Array]
    ) -> Evaluation:
        doing = [f"playing games to the end{self.place}, seed {x}" for x in seeds]
        played = play(self.episodes_of, agents, keys, doing, self.watch, self.limit)
        content = summarised(seeds, played, self.score)
        return Evaluation(content, evaluation_table(content, self.limit), played)

    def with_score(self, score: str) -> "GamesEvaluation":
        """The same with another score; `Training` calls it with its own."""
        return replace(self, score=score)


def of_player(
    env: Environment,
    env_params: PyTree,
    player: Agent,
    games_each: int,
    limit: int | None = None,
    place: str = "",
    deterministic: bool = False,
) -> GamesEvaluation:
    """The `Training.evaluate` in which `player` plays `games_each` complete games.

    A game of more than `limit` steps is left out and reported; None: `max_steps_in_episode` of
    `env_params`, which every game keeps. `place`, such as " on 8×8", is shown as progress. A player
    that draws no random numbers is `deterministic`: its endless rounds are left out. Raises
    ValueError without a limit.
    """
    longest = getattr(env_params, "max_steps_in_episode", None) if limit is None else limit
    if longest is None:
        raise ValueError("the parameters of the environment have no max_steps_in_episode: give it")

    def of_size(games: int) -> EpisodesOf:
        return lambda agent_state, key: evaluate.evaluate(
            env, env_params, player, agent_state, key, games, 1, longest, deterministic
        )

    def watch(agent_state: AgentState, key: jax.Array, seen: Watch) -> tuple[Episodes, Trajectory]:
        rows = watched_rows(env, env_params, longest)
        sizes = games_each, 1, rows
        game = env, env_params, player, agent_state, key
        return evaluate.watch(*game, *sizes, seen, deterministic)

    return GamesEvaluation(of_size(games_each), watch, of_size, limit=longest, place=place)


def watched_rows(env: Environment, env_params: PyTree, limit: int) -> int:
    """Steps of a game that are kept at a time."""
    _, state = jax.eval_shape(env.reset, jax.random.key(0), env_params)
    size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))
    return max(1, min(int(limit), ROWS, BYTES // max(size, 1)))


def of_episodes(episodes_of: EpisodesOf) -> GamesEvaluation:
    """The `Training.evaluate` that plays `episodes_of(agent_state, key)`, a pure function."""
    return GamesEvaluation(episodes_of)


def play(
    episodes_of: EpisodesOf,
    agents: list[AgentState],
    keys: list[jax.Array],
    doing: list[str],
    watch: Watcher | None = None,
    limit: Any = None,
) -> Played:
    """Compiles `episodes_of` once and plays its games with each agent; `doing` is the progress.

    Raises UsageError if so many games need more memory than there is.

    With `watch`, which plays the same games, that is what is compiled; `limit` is then their
    longest.
    """
    function, whole = (
        (episodes_of, ()) if watch is None else (watch, (Watch(0, 0, int(limit), True),))
    )
    started = time.perf_counter()
    with busy("compiling the games"):
        compiled = jax.jit(function).lower(agents[0], keys[0], *whole).compile()
    memory.refuse_games(compiled)
    ready, episodes = time.perf_counter(), []
    for agent, key, text in zip(agents, keys, doing, strict=True):
        with busy(text):
            found = jax.device_get(compiled(agent, key, *whole))
        episodes.append(found if watch is None else found[0])
    replay = None if watch is None else partial(watched, compiled)
    return Played(episodes, ready - started, time.perf_counter() - ready, replay)


def watched(
    play: Callable[..., tuple[Episodes, Trajectory]],
    agent_state: Any,
    key: jax.Array,
    which: int,
    num_steps: int,
) -> Trajectory:
    """The first steps of one environment, NumPy `[num_steps, ...]`, from as many replays as needed.

    `play(agent_state, key, watch)` is compiled and returns the same number of steps each time.
    """
    pieces, done = [], 0
    while done < num_steps:
        seen = Watch(which, done, num_steps, False)
        _, piece = jax.device_get(play(agent_state, key, seen))
        rows = min(len(jax.tree.leaves(piece)[0]), num_steps - done)
        pieces.append(jax.tree.map(lambda x, rows=rows: x[:rows], piece))
        done += rows
    return jax.tree.map(lambda *x: np.concatenate(x), *pieces)


def summarised(seeds: list[int], played: Played, score: str) -> dict[str, Any]:
    """The `Evaluation.content` of games."""
    return {
        "score": score,
        "compile_seconds": played.compile_seconds,
        "seconds": played.seconds,
        "seeds": [
            {"seed": seed, **summaries(episodes)}
            for seed, episodes in zip(seeds, played.episodes, strict=True)
        ],
    }
