"""The score of trained agents: `eval.json`, and for games how they are played and summarised."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import RenderableType
from rich.table import Table

from jaxrl import outcomes
from jaxrl.evaluate import Episodes
from jaxrl.numerics import statistics
from jaxrl.numerics.trees import take
from jaxrl.types import AgentState, RunState
from train.host.compilation.compiled import keys_of
from train.host.errors import UsageError
from train.host.files.run_directory import RunDirectory
from train.host.numbers import digits_text, quantity
from train.host.scoring.scores_file import write_scores
from train.host.training import Config, Evaluation, Training

APART = 2**31 - 1
"""Folded into a key for a stream of its own: no `split` gives so many keys."""


def evaluate_run(training: Training, settings: Config, state: RunState) -> Evaluation:
    """The evaluation of every seed in `state`; the keys depend on the seeds alone."""
    keys = [keys_of(seed)[1] for seed in settings.seeds]
    return training.evaluate(agents_of(state.agent, settings.num_seeds), settings.seeds, keys)


def agents_of(agent_state: AgentState, num_seeds: int) -> list[AgentState]:
    """The agent of each seed, from the state of a run."""
    if num_seeds == 1:
        return [agent_state]
    return [take(agent_state, s) for s in range(num_seeds)]


def evaluation_keys(root: int, seeds: list[int]) -> list[jax.Array]:
    """A key for each seed, for an evaluation whose random numbers come from `root`.

    Not one of those that the seed has trained with and been evaluated with at its end: these are
    from `split` of its key, which gives what `fold_in` with 0 and 1 does.
    """
    keys = [jax.random.fold_in(jax.random.key(root), seed) for seed in seeds]
    apart = lambda key: jax.random.fold_in(key, APART)
    return [apart(key) if seed == root else key for seed, key in zip(seeds, keys, strict=True)]


def evaluate_by_measure(
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
    start_time = time.perf_counter()
    rows = [
        {"seed": seed, **measure(agent, key)}
        for agent, seed, key in zip(agents, seeds, keys, strict=True)
    ]
    seconds = time.perf_counter() - start_time
    content = {"score": score, "compile_seconds": compile_seconds, "seconds": seconds, **about}
    content["seeds"] = rows
    return Evaluation(content, table(content))


def write_evaluation(
    directory: Path, evaluation: Evaluation, out: Path | None = None, **extra: Any
) -> None:
    """Writes `eval.json` into a directory, made if needed, and the same to `out`, if there is one.

    `extra` entries are of all seeds.
    """
    content = {**evaluation.content, **extra}
    content["seeds"] = content.pop("seeds")  # last: they are long
    directory.mkdir(parents=True, exist_ok=True)
    write_scores(content, RunDirectory(directory).evaluation, out)


def read_evaluation(directory: Path) -> dict[str, Any] | None:
    """The content of `eval.json` in a run directory; None if there is none.

    Raises UsageError, in one line, for a file that no evaluation has written.
    """
    path = RunDirectory(directory).evaluation
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("seeds"), list):
        raise UsageError(f"{path} is not an evaluation: delete it, or write it with train.evaluate")
    return content


def summaries(episodes: Episodes) -> dict[str, Any]:
    """Games and steps, and a summary of each measure over the games that have a score.

    `nonfinite`, how many have none as their return is NaN or infinite, is there if any has not.
    """
    scored_episodes = scored_games(episodes)
    values: dict[str, Any] = {
        "return": scored_episodes.return_,
        "length": scored_episodes.length,
        "terminated": scored_episodes.terminated,
        "truncated": scored_episodes.truncated,
        **scored_episodes.outcome,
    }
    games, complete = len(scored_episodes.length), int(np.sum(episodes.complete))
    return {
        "games": games,
        "incomplete": np.size(episodes.length) - complete,
        **({"nonfinite": complete - games} if complete > games else {}),
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
    measures = statistics.summary(values)._asdict()
    return {name: float(x) for name, x in measures.items() if name != "count"}


def number_text(
    value: dict[str, float | None], form: str = "", scale: float = 1.0, name: str = "mean"
) -> str:
    """A number of a summary as text; empty where it is not known, as no game was finished.

    Without `form` it has four digits.
    """
    number = value.get(name)
    if number is None:
        return ""
    return f"{scale * number:{form}}" if form else digits_text(scale * number)


def scored_games(episodes: Episodes) -> Any:
    """Leaves out the episodes `[N, G]` that have no score: Episodes of NumPy arrays `[K]`."""
    is_scored = have_score(episodes)
    return jax.tree.map(lambda x: np.ravel(x)[is_scored], episodes)


def have_score(episodes: Episodes) -> np.ndarray:
    """Whether each of N·G episodes is complete and its return finite: `[N * G]`."""
    return np.ravel(episodes.complete) & np.isfinite(np.ravel(episodes.return_))


def evaluation_table(evaluation: dict[str, Any]) -> Table:
    """A row with the score of each seed; `evaluation` is what `evaluation_content` returned.

    Below it stands how many games have no score.
    """
    score = evaluation["score"]
    games = f"{'at the end ' if outcomes.is_value_of_last_step(score) else ''}of complete games"
    table = Table(title=f"{score} {games}", caption=missing_score_note(evaluation))
    for heading in ("seed", "games", "mean", "95 % interval", "median", "max"):
        table.add_column(heading, justify="right")
    for row in evaluation["seeds"]:
        value = row[score]
        low, high, mean, *others = (
            number_text(value, name=name) for name in ("low", "high", "mean", "median", "max")
        )
        interval = f"{low} to {high}" if low else ""
        table.add_row(str(row["seed"]), f"{row['games']:,}", mean, interval, *others)
    return table


def missing_score_note(evaluation: dict[str, Any]) -> str | None:
    """How many games have no score, and why; None if all have one."""
    rows = evaluation["seeds"]
    missing, nonfinite, scored = (
        sum(row.get(name, 0) for row in rows) for name in ("incomplete", "nonfinite", "games")
    )
    total, lines = missing + nonfinite + scored, []
    if missing:
        limit = "" if evaluation.get("max_steps") is None else " (--run.evaluation-steps)"
        line = f"{missing:,} of {quantity(total, 'games')} not finished{limit_text(evaluation)}"
        lines.append(f"{line}: they have no score{limit}")
    if nonfinite:
        line = f"{nonfinite:,} of {quantity(total, 'games')} had a return that is not finite"
        lines.append(f"{line}: they have no score")
    return "; ".join(lines) or None


def limit_text(evaluation: dict[str, Any]) -> str:
    """ " within 10,000 steps": after how many a game counts as not finished, if that is known."""
    limit = evaluation.get("max_steps")
    return "" if limit is None else f" within {quantity(limit, 'steps')}"
