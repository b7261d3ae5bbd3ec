"""All pictures that a sweep allows, in its folder."""

from collections.abc import Sequence
from pathlib import Path

from train.host.showing.pictures import Row
from train.sweep.results.comparisons import probabilities, profiles
from train.sweep.results.curves import curves
from train.sweep.results.effects import effects
from train.sweep.results.parallel_coordinates import parallel
from train.sweep.results.summary import Configuration, Member, varied_names


def draw(
    directory: Path,
    rows: Sequence[Row],
    members: Sequence[Member],
    configurations: Sequence[Configuration],
    score: str,
    title: str,
    better: str = "higher",
    unit: str = "environment steps",
    measure: str = "",
) -> list[Path]:
    """Writes those pictures that can show something.

    The curves always; the others where numbers were varied, three of them for `parallel.png`, where
    there are two seeds, and where there is a default to compare with. `measure` is the score in the
    `rows`, if it has another name there. Returns what was written.
    """
    paths = {name: directory / f"{name}.png" for name in ("curves", "effects", "parallel")}
    paths |= {name: directory / f"{name}.png" for name in ("profiles", "probabilities")}
    numbers = len(varied_names(configurations))
    curves(rows, members, configurations, paths["curves"], measure or score, title, unit)
    names = ["curves"]
    if numbers:
        effects(configurations, paths["effects"], score, title)
        names.append("effects")
    if numbers > 2:
        parallel(configurations, paths["parallel"], score, title, better)
        names.append("parallel")
    if any(x.scores and len(x.scores) + x.failed > 1 for x in configurations):
        profiles(configurations, paths["profiles"], score, title, better)
        names.append("profiles")
    if any(x.improvement for x in configurations):
        probabilities(configurations, paths["probabilities"], title)
        names.append("probabilities")
    return [paths[name] for name in names]
