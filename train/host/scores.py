"""The score of trained agents: `eval.json`, and for games how they are played and summarised."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import RenderableType
from rich.table import Table

from jaxrl import evaluate, statistics
from jaxrl.evaluate import Episodes, Trajectory, Watch
from jaxrl.types import Agent, AgentState, Environment, PyTree, RunState
from train.host.compiled import keys_of
from train.host.errors import UsageError
from train.host.progress import busy
from train.host.records import finite_or_null, write_whole
from train.host.settings import Config, EpisodesOf, Evaluation, Training

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


def evaluate_run(training: Training, settings: Config, state: RunState) -> Evaluation:
    """The evaluation of every seed in `state`; the keys depend on the seeds alone."""
    keys = [keys_of(seed)[1] for seed in settings.seeds]
    return training.evaluate(agents_of(state.agent, settings.num_seeds), settings.seeds, keys)


def agents_of(agent_state: AgentState, num_seeds: int) -> list[AgentState]:
    """The agent of each seed, from the state of a run."""
    if num_seeds == 1:
        return [agent_state]
    return [jax.tree.map(lambda x, s=s: x[s], agent_state) for s in range(num_seeds)]


def evaluation_keys(root: int, seeds: list[int]) -> list[jax.Array]:
    """A key for each seed, for an evaluation whose random numbers come from `root`."""
    return [jax.random.fold_in(jax.random.key(root), seed) for seed in seeds]


def measured(
    agents: list[AgentState],
    seeds: list[int],
    keys: list[jax.Array],
    score: str,
    measure: Callable[[AgentState, jax.Array], dict[str, Any]],
    table: Callable[[dict[str, Any]], RenderableType],
    compile_seconds: float = 0.0,
    **about: Any,
) -> Evaluation:
    """The evaluation of agents that play no games, by `measure(agent, key)`, a dict, of each seed.

    `about` is what `eval.json` says of all seeds together; `table` makes a table of its content.
    """
    started = time.perf_counter()
    rows = [
        {"seed": seed, **measure(agent, key)}
        for agent, seed, key in zip(agents, seeds, keys, strict=True)
    ]
    seconds = time.perf_counter() - started
    content = {"score": score, "compile_seconds": compile_seconds, "seconds": seconds, **about}
    content["seeds"] = rows
    return Evaluation(content, table(content))


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
) -> GamesEvaluation:
    """The `Training.evaluate` in which `player` plays `games_each` complete games.

    A game of more than `limit` steps is left out and reported; None: `max_steps_in_episode` of
    `env_params`, which every game keeps. `place`, such as " on 8×8", is shown as progress. Raises
    ValueError without a limit.
    """
    longest = getattr(env_params, "max_steps_in_episode", None) if limit is None else limit
    if longest is None:
        raise ValueError("the parameters of the environment have no max_steps_in_episode: give it")

    def of_size(games: int) -> EpisodesOf:
        return lambda agent_state, key: evaluate.evaluate(
            env, env_params, player, agent_state, key, games, 1, longest
        )

    def watch(agent_state: AgentState, key: jax.Array, seen: Watch) -> tuple[Episodes, Trajectory]:
        rows = watched_rows(env, env_params, longest)
        sizes = games_each, 1, rows
        return evaluate.watch(env, env_params, player, agent_state, key, *sizes, seen)

    return GamesEvaluation(of_size(games_each), watch, of_size, limit=longest, place=place)


def watched_rows(env: Environment, env_params: PyTree, limit: int) -> int:
    """Steps of a game that are kept at a time."""
    _, state = jax.eval_shape(env.reset, jax.random.key(0), env_params)
    size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))
    return max(1, min(int(limit), ROWS, BYTES // max(size, 1)))


def games(episodes_of: EpisodesOf) -> GamesEvaluation:
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

    With `watch`, which plays the same games, that is what is compiled; `limit` is then their
    longest.
    """
    function, whole = (episodes_of, ()) if watch is None else (watch, (Watch(0, 0, int(limit)),))
    started = time.perf_counter()
    with busy("compiling the games"):
        compiled = jax.jit(function).lower(agents[0], keys[0], *whole).compile()
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
        _, piece = jax.device_get(play(agent_state, key, Watch(which, done, num_steps)))
        rows = min(len(jax.tree.leaves(piece)[0]), num_steps - done)
        pieces.append(jax.tree.map(lambda x, rows=rows: x[:rows], piece))
        done += rows
    return jax.tree.map(lambda *x: np.concatenate(x), *pieces)


def write_evaluation(directory: Path, evaluation: Evaluation, **extra: Any) -> None:
    """Writes `eval.json` into a directory, made if needed; `extra` entries are of all seeds."""
    content = {**evaluation.content, **extra}
    content["seeds"] = content.pop("seeds")  # last: they are long
    directory.mkdir(parents=True, exist_ok=True)
    write_whole(directory / "eval.json", json.dumps(finite_or_null(content), indent=1) + "\n")


def read_evaluation(directory: Path) -> dict[str, Any] | None:
    """The content of `eval.json` in a run directory; None if there is none.

    Raises UsageError, in one line, for a file that no evaluation has written.
    """
    path = directory / "eval.json"
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("seeds"), list):
        raise UsageError(f"{path} is not an evaluation: delete it, or write it with train.evaluate")
    return content


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


def summaries(episodes: Episodes) -> dict[str, Any]:
    """Games and steps, and a summary of each measure over the complete games."""
    complete = np.asarray(episodes.complete).ravel()
    measures = {
        "return": episodes.return_,
        "length": episodes.length,
        "terminated": episodes.terminated,
        "truncated": episodes.truncated,
        **episodes.outcome,
    }
    values = {name: np.asarray(x).ravel()[complete] for name, x in measures.items()}
    return {
        "games": int(complete.sum()),
        "incomplete": int((~complete).sum()),
        "steps": int(values["length"].sum()),
        **{name: summary(x) for name, x in values.items()},
    }


def summary(values: np.ndarray) -> dict[str, float | None]:
    """Rate and Wilson interval of booleans; mean and bootstrap interval of numbers."""
    if values.size == 0:
        return {"mean": None}
    if values.dtype == bool:
        low, high = statistics.wilson(int(values.sum()), values.size)
        return {"mean": float(values.mean()), "low": low, "high": high}
    if values.size == 1:  # no interval from one number
        return dict.fromkeys(("mean", "median", "max"), float(values[0]))
    found = statistics.summary(values)._asdict()
    return {name: float(x) for name, x in found.items() if name != "count"}


def evaluation_table(evaluation: dict[str, Any], limit: Any = None) -> Table:
    """A row with the score of each seed; `evaluation` is what `summarised` returned.

    Below it stands how many games were not finished, within `limit` steps if that is known.
    """
    score = evaluation["score"]
    table = Table(title=f"{score} of complete games", caption=unfinished(evaluation, limit))
    for heading in ("seed", "games", "mean", "95 % interval", "median", "max"):
        table.add_column(heading, justify="right")
    for row in evaluation["seeds"]:
        value = row[score]
        number = {name: "" if x is None else f"{x:.4g}" for name, x in value.items()}
        interval = f"{number['low']} to {number['high']}" if "low" in number else ""
        rest = (number.get("median", ""), number.get("max", ""))
        table.add_row(str(row["seed"]), f"{row['games']:,}", number["mean"], interval, *rest)
    return table


def unfinished(evaluation: dict[str, Any], limit: Any = None) -> str | None:
    """How many games have no score, as they were not finished; None if all were."""
    missing = sum(row["incomplete"] for row in evaluation["seeds"])
    if not missing:
        return None
    total = missing + sum(row["games"] for row in evaluation["seeds"])
    within = "" if limit is None else f" within {int(limit):,} steps"
    return f"{missing:,} of {total:,} games not finished{within}: they have no score"
