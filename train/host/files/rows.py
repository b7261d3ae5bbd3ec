"""What a chunk reported, as counts and as the rows of `metrics.jsonl`."""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from train.host.compilation.compiled import Report
from train.host.machine.members import Members
from train.host.training import Latest, Quotient, Training

EXTREMES = {"min": np.min, "max": np.max}
"""What the last part of a measure's name makes of its values in a chunk; others have a mean."""


class Counters(NamedTuple):
    """How far a run is; on the host, where integers do not overflow."""

    updates: int
    episodes: list[int]  # [S] finished
    skipped: list[int]  # [S] updates undone
    restores: int  # returns to a checkpoint
    seconds: float  # spent in chunks
    rows: int  # of the record
    settled: bool = False  # every seed has converged, or none goes on


def trim_report(report: Report, count: int) -> Report:
    """The first `count` updates of a report, always with the axes `[U, S]`."""
    has_seeds = report.finite.ndim == 2
    return jax.tree.map(lambda x: x[:count] if has_seeds else x[:count, None], report)


def updated_counters(
    counters: Counters,
    report: Report,
    seconds: float,
    converged_metric: str = "",
    ended: Collection[int] = (),
) -> Counters:
    """The counters after a chunk that took `seconds`; for `converged_metric` see `Training`.

    Members at the places `ended` have no rows.
    """
    updates, _ = report.finite.shape
    episodes = np.sum(report.metrics.episodes, axis=0, dtype=np.int64)
    skipped = np.sum(~report.finite, axis=0)
    return Counters(
        updates=counters.updates + updates,
        episodes=(np.array(counters.episodes) + episodes).tolist(),
        skipped=(np.array(counters.skipped) + skipped).tolist(),
        restores=counters.restores,
        seconds=counters.seconds + seconds,
        rows=counters.rows + len(counters.episodes) - len(ended),
        settled=bool(converged_metric)
        and bool(np.all(report.metrics.agent[converged_metric][-1] > 0)),
    )


def chunk_rows(
    report: Report,
    counters: Counters,
    members: Members,
    training: Training,
    steps_per_second: float,
    ended: Collection[int] = (),
) -> list[dict[str, Any]]:
    """One row per member, but for those at the places `ended`; `counters` are after the chunk."""
    return [
        {
            **members.label(s),
            "updates": counters.updates,
            "steps": counters.updates * training.steps_per_update,
            "episodes": counters.episodes[s],
            "seconds": round(counters.seconds, 3),
            "steps_per_second": rounded_rate(steps_per_second),
            "finished": episode_means(report, s),
            "agent": agent_means(report, s, training.after_warmup),
            "skipped": counters.skipped[s],
            "restores": counters.restores,
        }
        for s in range(len(members.seeds))
        if s not in ended
    ]


def rounded_rate(rate: float) -> float:
    """A whole number, or three digits where it is below 100: a slow update is no 0 a second."""
    return round(rate) if rate >= 100 else float(f"{rate:.3g}")


def episode_means(report: Report, s: int) -> dict[str, Any]:
    """Means over the episodes that ended in the chunk; None where none did.

    Of each measure those of updates in which it is not finite are left out: a broken environment
    would hide all others.
    """
    episodes = np.asarray(report.metrics.episodes[:, s], np.int64)
    return {
        name: _mean_of_finite(np.asarray(x[:, s], np.float64), episodes)
        for name, x in report.metrics.finished.items()
    }


def _mean_of_finite(sums: np.ndarray, episodes: np.ndarray) -> Any:
    """The mean of a measure whose sums over the episodes `[U]` of each update are `[U, ...]`."""
    is_finite = np.isfinite(sums).reshape(len(sums), -1).all(axis=1)
    count = int(episodes[is_finite].sum())
    return (sums[is_finite].sum(axis=0) / count).tolist() if count else None


def agent_means(report: Report, s: int, after_warmup: Sequence[str] = ()) -> dict[str, Any]:
    """Means over the updates that were kept; of minima, `*_min`, and maxima, `*_max`, the
    smallest and the largest; quotients of sums, or the latest, where `training.Quotient` and
    `training.Latest` ask for them. For `after_warmup` see `Training`."""
    is_finite = report.finite[:, s]
    has_learned = is_finite.copy()
    if after_warmup:
        has_learned &= np.asarray(report.metrics.agent["updates"][:, s]) > 0
    means = {}
    for name, x in report.metrics.agent.items():
        is_part = has_learned if name in after_warmup else is_finite
        values = jax.tree.map(lambda x, is_part=is_part: np.asarray(x[is_part, s], np.float64), x)
        means[name] = _reduce_updates(name, values) if is_part.any() else None
    return means


def _reduce_updates(name: str, values: np.ndarray | Quotient | Latest) -> Any:
    """The mean, smallest, largest or latest value of a measure `[U, ...]` over its updates, as
    numbers and lists; None where it is a quotient of which nothing was measured."""
    if isinstance(values, Latest):
        return values.value[-1].tolist()
    if isinstance(values, Quotient):
        part, whole = values.part.sum(axis=0), values.whole.sum(axis=0)
        count = np.sum(whole > 0, axis=-1)
        quotients = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
        mean = np.asarray(quotients.sum(axis=-1) / np.maximum(count, 1), object)
        mean[count == 0] = None
        return mean.tolist()
    return EXTREMES.get(name.rpartition("_")[2], np.mean)(values, axis=0).tolist()


def scalars(row: dict[str, Any]) -> dict[str, float | None]:
    """The measures of a row that are single numbers, and so can be scores; None: unknown.

    If an agent's measure and one of the episodes share a name, the latter is taken.
    """
    measures = row["agent"] | row["finished"]
    return {name: value for name, value in measures.items() if not isinstance(value, list)}


def mean_score(rows: list[dict[str, Any]], score: str) -> float | None:
    """The mean over seeds; without those in which no episode ended, for a measure of episodes."""
    values = [value for row in rows if (value := scalars(row)[score]) is not None]
    values = [value for value in values if math.isfinite(value)]  # of members that go on
    return float(np.mean(values)) if values else None
