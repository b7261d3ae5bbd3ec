"""The best configuration on seeds that had no part in choosing it.

The best of many is also lucky: its score on the seeds that chose it is too good on average.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from train.host.numbers import quantity
from train.sweep.results.labels import plain_names, written
from train.sweep.results.summary import Configuration, Member, summarise


class Confirmation(NamedTuple):
    """A configuration on the seeds that chose it, and on fresh ones."""

    chosen: Configuration
    fresh: Configuration

    @property
    def flattered(self) -> float | None:
        """By how much choosing made the score larger; None where fresh seeds have none."""
        if self.chosen.iqm is None or self.fresh.iqm is None:
            return None
        return self.chosen.iqm - self.fresh.iqm


def confirmed(chosen: Configuration, members: Sequence[Member], better: str) -> Confirmation:
    """`members` are of the same configuration, with fresh seeds."""
    return Confirmation(chosen, summarise(members, better)[0])


def content(found: Confirmation, score: str) -> dict[str, Any]:
    """For JSON."""
    parts = {"chosen": found.chosen, "fresh": found.fresh}
    about = {"score": score, "configuration": found.chosen.index, "values": found.chosen.values}
    fields = ("seeds", "scores", "failed", "iqm", "interval")
    of_each = {
        name: {field: getattr(part, field) for field in fields} for name, part in parts.items()
    }
    return {**about, **of_each, "flattered": found.flattered}


def sentence(found: Confirmation, score: str) -> str:
    """A line for the terminal."""
    names = plain_names(found.chosen.values)
    values = ", ".join(f"{names[name]} {written(x)}" for name, x in found.chosen.values.items())
    if found.fresh.iqm is None:
        seeds = quantity(len(found.fresh.seeds), "fresh seeds")
        if found.fresh.num_unscored:
            return f"the best, {values}, has no score on {seeds}: no game came to its end"
        return f"the best, {values}, failed on all of {seeds}"
    fresh = (
        f"{score} {written(found.fresh.iqm)} on {quantity(len(found.fresh.seeds), 'fresh seeds')}"
    )
    if found.fresh.interval:
        fresh += f" ({' to '.join(map(written, found.fresh.interval))})"
    known = "those" if len(found.chosen.seeds) > 1 else "the one"
    return f"the best, {values}: {fresh}, {written(found.chosen.iqm)} on {known} that chose it"
