"""The score of trained agents: complete games played, `eval.json`, and the table of it."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.table import Table

from jaxrl import evaluate
from jaxrl.evaluate import Episodes
from jaxrl.loop import TrainState
from jaxrl.types import AgentState
from train.programs import keys_of
from train.records import finite_or_null, write_whole
from train.settings import Config, Training


class Played(NamedTuple):
    """The games of some agents."""

    episodes: list[Episodes]  # NumPy arrays [N, G], for each agent
    compile_seconds: float
    seconds: float


def evaluate_run(training: Training, settings: Config, state: TrainState) -> Played:
    """Plays the games of every seed in `state`, always the same ones."""
    keys = [keys_of(seed)[1] for seed in settings.seeds]
    return play(training.evaluate, agents_of(state.agent, settings.num_seeds), keys)


def agents_of(agent_state: AgentState, num_seeds: int) -> list[AgentState]:
    """The agent of each seed, from the state of a run."""
    if num_seeds == 1:
        return [agent_state]
    return [jax.tree.map(lambda x, s=s: x[s], agent_state) for s in range(num_seeds)]


def play(
    games: Callable[[AgentState, jax.Array], Episodes],
    agents: list[AgentState],
    keys: list[jax.Array],
) -> Played:
    """Compiles `games` once and plays them with each agent."""
    started = time.perf_counter()
    compiled = jax.jit(games).lower(agents[0], keys[0]).compile()
    ready = time.perf_counter()
    episodes = [jax.device_get(compiled(*pair)) for pair in zip(agents, keys, strict=True)]
    return Played(episodes, ready - started, time.perf_counter() - ready)


def write_evaluation(
    directory: Path, seeds: list[int], played: Played, score: str, **extra: Any
) -> dict[str, Any]:
    """Summarises the games of each seed into `eval.json`; returns what it wrote.

    `score` names the measure that counts: "return", "length" or one of the outcome. `extra` is
    written beside it.
    """
    content = {
        "score": score,
        "compile_seconds": played.compile_seconds,
        "seconds": played.seconds,
        **extra,
        "seeds": [
            {"seed": seed, **summaries(episodes)}
            for seed, episodes in zip(seeds, played.episodes, strict=True)
        ],
    }
    write_whole(directory / "eval.json", json.dumps(finite_or_null(content), indent=1) + "\n")
    return content


def read_evaluation(directory: Path) -> dict[str, Any] | None:
    """What `write_evaluation` wrote into a run directory, if it did."""
    path = directory / "eval.json"
    return json.loads(path.read_text()) if path.is_file() else None


def summaries(episodes: Episodes) -> dict[str, Any]:
    """Games and steps, and a summary of each measure over the games that came to an end."""
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
    """Rate and Wilson interval of what is true or false; mean and bootstrap interval of numbers."""
    if values.size == 0:
        return {"mean": None}
    if values.dtype == bool:
        low, high = evaluate.wilson(int(values.sum()), values.size)
        return {"mean": float(values.mean()), "low": low, "high": high}
    if values.size == 1:  # no interval from one number
        return {"mean": float(values[0]), "median": float(values[0]), "max": float(values[0])}
    return {
        name: float(x) for name, x in evaluate.summary(values)._asdict().items() if name != "count"
    }


def evaluation_table(evaluation: dict[str, Any]) -> Table:
    """The score of each seed, from what `write_evaluation` returned."""
    score = evaluation["score"]
    table = Table(title=f"{score} of complete games")
    for heading in ("seed", "games", "mean", "95 % interval", "median", "max"):
        table.add_column(heading, justify="right")
    for row in evaluation["seeds"]:
        value = row[score]
        number = {name: "" if x is None else f"{x:.4g}" for name, x in value.items()}
        interval = f"{number['low']} to {number['high']}" if "low" in number else ""
        rest = (number.get("median", ""), number.get("max", ""))
        table.add_row(str(row["seed"]), f"{row['games']:,}", number["mean"], interval, *rest)
    return table
