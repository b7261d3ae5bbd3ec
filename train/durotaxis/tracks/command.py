"""`python -m train.durotaxis fit TRACKS.csv`: the parameters of the model from a microscope.

Writes `fit.json`, `spawning.png`, `profiles.png`, `events.png` and `check.png`.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jax
import numpy as np
import tyro
from rich.console import Console

from envs.durotaxis.actions import Spawning
from envs.durotaxis.substrate import LEAST_INTENSITY
from envs.durotaxis.tracks.simulation import Ground
from envs.durotaxis.units import PIXELS, Units, physical
from jaxrl.checks import Count, Positive, Seed
from train.durotaxis.tracks import fitting, goodness, pictures, recording, tables
from train.durotaxis.tracks.check import Check, check
from train.durotaxis.tracks.files import formats
from train.durotaxis.tracks.fitting import Fit
from train.durotaxis.tracks.goodness import Test
from train.durotaxis.tracks.ground import (
    DESCRIPTION,
    OwnGround,
    ground_of,
    refuse_flags,
    refuse_outside,
)
from train.durotaxis.tracks.report import cautions, summary
from train.durotaxis.tracks.tables import Table
from train.durotaxis.tracks.tracks import Tracks
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.errors import UsageError, in_one_line
from train.host.files.provenance import provenance
from train.host.files.run_directory import RUNS, create_dated
from train.host.files.whole_files import finite_or_null, refuse_unwritable, write_whole
from train.host.machine.progress import print_line, show_activity
from train.host.plain_config import check_options

COMMAND = "python -m train.durotaxis fit"
EXAMPLE = "example"
Cause = Literal["rear", "age", "crowding", "stiffness"]


@dataclass(frozen=True)
class Options(OwnGround):
    """Fits where children land, who dies and who divides to tracks of cells, with 95 % intervals.

    TRACKS.csv has the columns frame, cell, parent, x, y, or is an export of TrackMate's spots, or a
    table L B E P of the Cell Tracking Challenge; `example` is a simulated recording that is
    included. Writes fit.json, spawning.png, profiles.png, events.png and check.png into a new
    folder, and says what the model cannot explain.
    """

    tracks: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TRACKS.csv")] = ""
    """Table of tracks, or `example`."""
    edges: Annotated[str, tyro.conf.arg(metavar="FILE")] = ""
    """TrackMate's table of edges, which says where cells divide."""
    pixel_size: Annotated[Positive | None, tyro.conf.arg(metavar="FLOAT")] = None
    """µm of a px of the ground: places in µm are divided by it, of tracks and of a table of
    stiffness beside them, and results are told in µm. With tracks in px it changes the unit of
    results alone."""
    stiffness_unit: Annotated[Positive, tyro.conf.arg(metavar="FLOAT")] = 1.0
    """kPa of a unit of stiffness, for results in µm and kPa, which --pixel-size asks for."""
    goal: str = "right"
    """The way on which rear and front are told: right, left, up, down, or degrees counter-clockwise
    from right."""
    spawning: Spawning = "directed"
    """directed: children at the Hill distance, in a preferred direction. isotropic: anywhere
    around."""
    deaths: tuple[Cause, ...] = ("rear", "age", "crowding")
    """What the odds of dying depend on."""
    births: tuple[Cause, ...] = ("stiffness", "crowding")
    """What the odds of having a child depend on."""
    simulations: Count = 400
    """Colonies that are simulated from the fit, to check it."""
    key: Seed = 0
    """Root of the random numbers of that check."""
    out: str = ""
    """Directory to write to; default: a new one, runs/durotaxis-fit-DATE."""


class Result(NamedTuple):
    """A fit, and how far it explains the tracks."""

    tracks: Tracks
    table: Table
    fit: Fit
    check: Check
    tests: list[Test]
    warnings: list[str]
    units: Units


def main(arguments: Sequence[str]) -> int:
    def run(arguments: list[str]) -> None:
        options = parse_flags(COMMAND, Options, arguments)
        check_options(options)
        refuse_directory(options.out)
        try:
            result = analyse(options)
        except ValueError as error:
            raise UsageError(in_one_line(error)) from error
        for path in write(result, options):
            print(path)
        Console().print(summary.text_table(result.fit, result.units))
        for line in (*result.warnings, *summary.test_lines(result.tests)):
            print_line(line)

    return command(run, arguments)


def analyse(options: Options) -> Result:
    """Reads, fits, simulates and tests. Raises ValueError, in one line, for unusable input."""
    options = with_example(options)
    refuse_flags(options)
    if options.pixel_size is None and options.stiffness_unit != Options.stiffness_unit:
        raise ValueError(
            "--stiffness-unit has no effect without --pixel-size: give that, too, for results in "
            "µm and kPa"
        )
    tracks = formats.read(options.tracks, options.edges, options.pixel_size)
    ground = ground_of(options, options.goal, tracks)
    refuse_outside(tracks, ground)
    for note in tracks.notes:
        print_line(note)
    units = units_of(options)
    with show_activity("fitting") as tell:
        table = tables.tabulate(tracks, ground)
        fit = fitting.fit(table, options.spawning, options.deaths, options.births)
        tell(f"simulating {options.simulations} colonies")
        key = jax.random.key(options.key)
        outcome = check(tracks, ground, fit.laws, options.spawning, options.simulations, key)
        tell("testing")
        rng = np.random.default_rng(options.key)
        tests = [*goodness.all_tests(tracks, table, fit, ground, rng), *outcome.tests]
    warnings = cautions.warnings(table, fit, outcome, steepness(tracks, ground), units)
    warnings += cautions.colonies_lines(options.simulations, len(tests))
    return Result(tracks, table, fit, outcome, tests, warnings, units)


def with_example(options: Options) -> Options:
    """The options, with file and ground of the example if that is asked for. Raises ValueError."""
    if not options.tracks:
        raise ValueError("expected a table of tracks: give TRACKS.csv, or example")
    default = Options()
    if options.tracks == EXAMPLE and not Path(EXAMPLE).exists():
        if any(getattr(options, name) != getattr(default, name) for name in DESCRIPTION):
            raise ValueError("the example has a ground of its own: leave out what describes it")
        own = dict(recording.EXAMPLE_GROUND)
        kind = "exponential" if own.pop("exponential") else "linear"
        return replace(options, tracks=str(recording.EXAMPLE), ground=kind, **own)
    return options


def units_of(options: Options) -> Units:
    """px, or µm and kPa if a px has a size."""
    if options.pixel_size is None:
        return PIXELS
    return physical(options.pixel_size, options.stiffness_unit)


def steepness(tracks: Tracks, ground: Ground) -> float:
    """The median relative change of stiffness over a px, under the cells that stand on some."""
    x, y = (v.astype(np.float32) for v in tracks.places)
    here = np.asarray(ground.stiffness(x, y))
    ahead = [np.asarray(ground.stiffness(x + 4 * dx, y + 4 * dy)) for dx, dy in ((1, 0), (0, 1))]
    change, is_stiff = np.hypot(*((a - here) / 4 for a in ahead)), here > LEAST_INTENSITY
    return float(np.median(change[is_stiff] / here[is_stiff])) if is_stiff.any() else 0.0


def refuse_directory(out: str) -> None:
    """Raises UsageError for an `--out` in which there is something, or that cannot be written."""
    path = Path(out or RUNS)
    if out and path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{out} exists already: name another folder with --out")
    refuse_unwritable(path, "name a folder that can with --out")


def write(result: Result, options: Options) -> list[Path]:
    """Writes pictures and `fit.json`, which comes last, into a folder."""
    directory = Path(options.out) if options.out else create_dated(Path(RUNS), "durotaxis-fit")
    directory.mkdir(parents=True, exist_ok=True)
    _, table, fit, outcome, tests, warnings, units = result
    paths = pictures.draw(directory, table, fit, outcome, units)
    content: dict[str, Any] = {
        "tracks": Path(with_example(options).tracks).name,
        "notes": list(result.tracks.notes),
        "options": asdict(options),
        **summary.content(fit, table, tests, warnings, units),
        **provenance(),
    }
    text = json.dumps(finite_or_null(content), indent=1, ensure_ascii=False)
    write_whole(directory / "fit.json", text + "\n")
    return [*paths, directory / "fit.json"]
