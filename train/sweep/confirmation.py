"""The best configuration on seeds that had no part in choosing it.

The best of many is also lucky: its score on the seeds that chose it is too good on average.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from train.host.numbers import quantity
from train.sweep.results.labels import plain_names, text_of
from train.sweep.results.summary import Configuration, Member, summarise, values_content


class Confirmation(NamedTuple):
    """A configuration on the seeds that chose it, and on fresh ones."""

    chosen: Configuration
    fresh: Configuration
    better: str = "higher"

    @property
    def selection_bias(self) -> float | None:
        """By how much choosing made the score better; None where fresh seeds have none."""
        if self.chosen.iqm is None or self.fresh.iqm is None:
            return None
        difference = self.chosen.iqm - self.fresh.iqm
        return difference if self.better == "higher" else -difference


def confirm(chosen: Configuration, members: Sequence[Member], better: str) -> Confirmation:
    """Summarises `members` of the same configuration, with fresh seeds."""
    return Confirmation(chosen, summarise(members, better)[0], better)


def content(result: Confirmation, score: str) -> dict[str, Any]:
    """The confirmation as plain data for JSON."""
    parts = {"chosen": result.chosen, "fresh": result.fresh}
    values = values_content(result.chosen.values)
    header = {"score": score, "configuration": result.chosen.index, "values": values}
    fields = ("seeds", "scores", "failed", "iqm", "interval")
    summaries = {
        name: {field: getattr(part, field) for field in fields} for name, part in parts.items()
    }
    return {**header, **summaries, "flattered": result.selection_bias}


def sentence(result: Confirmation, score: str) -> str:
    """A line for the terminal."""
    names = plain_names(result.chosen.values)
    values = ", ".join(f"{names[name]} {text_of(x)}" for name, x in result.chosen.values.items())
    if result.fresh.iqm is None:
        seeds = quantity(len(result.fresh.seeds), "fresh seeds")
        if result.fresh.num_unscored:
            return f"the best, {values}, has no score on {seeds}: no game came to its end"
        return f"the best, {values}, failed on all of {seeds}"
    fresh = (
        f"{score} {text_of(result.fresh.iqm)} on {quantity(len(result.fresh.seeds), 'fresh seeds')}"
    )
    if result.fresh.interval:
        fresh += f" ({' to '.join(map(text_of, result.fresh.interval))})"
    pronoun = "those" if len(result.chosen.seeds) > 1 else "the one"
    return f"the best, {values}: {fresh}, {text_of(result.chosen.iqm)} on {pronoun} that chose it"
