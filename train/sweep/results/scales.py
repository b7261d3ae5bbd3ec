"""How values are placed along the axes of pictures."""

from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator

from train.sweep.results.labels import distinct_values, text_of

WIDE = 20
"""Ratio of the largest to the smallest value beyond which an axis is logarithmic."""
TICKS = 8
"""Values that are all written at an axis, at most."""


class Scale(NamedTuple):
    """How the values of a number are placed along an axis."""

    kind: str  # "linear", "log", "even": numbers at equal distances, or "words", switches too
    places: dict[str, float]  # of distinct values, by how each is written

    def place(self, value: Any) -> float:
        """Where a value lies: itself, or its index where distances mean nothing."""
        if self.kind in ("linear", "log"):
            return float(value)
        return next(
            self.places[text] for text in (text_of(value), str(value)) if text in self.places
        )

    def share(self, place: float) -> float:
        """The same from 0 to 1."""
        bend = np.log if self.kind == "log" else float
        low, high = bend(min(self.places.values())), bend(max(self.places.values()))
        return float((bend(place) - low) / (high - low)) if high > low else 0.5

    def ticks(self) -> dict[str, float]:
        """All values, or round numbers between them where they are many."""
        if len(self.places) <= TICKS:
            return self.places
        if self.kind in ("words", "even"):
            return dict(list(self.places.items())[:: -(-len(self.places) // TICKS)])
        low, high = min(self.places.values()), max(self.places.values())
        locator = LogLocator(subs=(1, 3), numticks=TICKS) if self.kind == "log" else MaxNLocator(5)
        round_numbers = [x for x in locator.tick_values(low, high) if low <= x <= high]
        return {text_of(float(x)): float(x) for x in round_numbers}


def scale_of(values: Sequence[Any]) -> Scale:
    """A logarithmic axis for positive numbers of wide range; words and switches one by one.

    A few numbers of wide range with zero or negative ones among them lie at equal distances, and so
    do any with infinity among them.
    """
    unique = distinct_values(values)
    if not all(isinstance(x, Real) and not isinstance(x, bool | np.bool_) for x in unique.values()):
        return Scale("words", {text: float(i) for i, text in enumerate(sorted(unique))})
    numbers = dict(sorted(unique.items(), key=lambda item: item[1]))
    evenly = {text: float(i) for i, text in enumerate(numbers)}
    if not np.isfinite(list(numbers.values())).all():
        return Scale("even", evenly)
    sizes = np.abs([x for x in numbers.values() if x])
    is_wide = sizes.size > 0 and sizes.max() > WIDE * sizes.min()
    if is_wide and min(numbers.values()) <= 0 and len(numbers) <= TICKS:
        return Scale("even", evenly)
    kind = "log" if is_wide and min(numbers.values()) > 0 else "linear"
    return Scale(kind, {text: float(x) for text, x in numbers.items()})


def fence(values: np.ndarray) -> tuple[float, float]:
    """The range of values without those far out: three interquartile ranges off the quartiles."""
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    first, third = np.percentile(values, [25, 75])
    reach = 3 * (third - first)
    inside = values[(first - reach <= values) & (values <= third + reach)]
    return float(inside.min()), float(inside.max())
