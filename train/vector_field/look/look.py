"""`python -m train.vector_field recordings --data FILE --look`: what is in files, before a fit.

Prints channels, inputs, gaps and what looks broken, and writes `look.png` and `look.json` into
`runs/look-FILE` (`--run.directory`). Other flags are those of the fit: what a fit would see is
shown. Files that do not fit together are shown one by one.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table as PrintedTable

from jaxrl.dynamics.phase_portrait.summary import percentage
from train.host.command_line.command import command, parse
from train.host.errors import UsageError, in_one_line
from train.host.files.whole_files import finite_or_null, write_whole
from train.host.machine.progress import print_line
from train.host.numbers import quantity
from train.host.program import Program
from train.vector_field.config import Config
from train.vector_field.data.files.loading import inputs_by_file
from train.vector_field.data.reading import read_data, step_time_of
from train.vector_field.data.recordings import Data
from train.vector_field.data.step_time import StepTime
from train.vector_field.look import facts, picture
from train.vector_field.look.facts import Channels, Gaps, Inputs, Spectrum, Table
from train.vector_field.look.faults import SECONDS, faults
from train.vector_field.recorded import dynamics_problem, state_space

FLAG = "--look"
USUAL_RATE = 5.0
"""Events a second of a usual unit of cortex, by which the width of bins is guessed."""


class Look(NamedTuple):
    """What one set of files holds."""

    files: tuple[str, ...]
    data: Data
    table: Table
    channels: Channels
    inputs: Inputs
    gaps: Gaps
    standard: np.ndarray  # [N, n] channels of mean 0 and variance 1
    spectrum: Spectrum | None
    time: StepTime
    faults: list[str]

    @property
    def name(self) -> str:
        """The names of the files, without folders."""
        return ", ".join(Path(x).name for x in self.files)


def main(program: Program, arguments: Sequence[str]) -> int:
    """Looks at the files of a command line that would fit them; returns the exit code."""

    def look(arguments: list[str]) -> None:
        config, _ = parse(program, [x for x in arguments if x != FLAG], refuses_idle=False)
        if not config.data:
            raise UsageError(f"{FLAG} shows what is in files: give --data FILE")
        looks, errors = looks_at(config)
        *others, last = errors or [""]
        for error in errors if looks else others:
            print_line(f"cannot be read together: {error}" if looks else error)
        if not looks:
            raise UsageError(last)
        folders = folders_of([x.files[0] for x in looks])
        for each, folder in zip(looks, folders, strict=True):
            tell(config, each)
            for path in write(directory_of(config, folder, len(looks)), each):
                print(path)

    return command(look, arguments)


def looks_at(config: Config) -> tuple[list[Look], list[str]]:
    """A look at all files together, or at each that can be read, and the errors of the others.

    Sessions of different channels are looked at one by one.
    """
    try:  # or a file would be shown without its inputs, or with those of another
        each = inputs_by_file(config.data, config.inputs)
    except ValueError as error:
        return [], [str(error)]
    errors = []
    if not config.sessions:
        try:
            return [look_at(config)], []
        except ValueError as error:
            errors = [in_one_line(error)]
    looks = []
    several = len(config.data) > 1 or config.sessions
    for path, own_inputs in each if several else ():
        inputs = (own_inputs,) if own_inputs else ()
        alone = replace(config, data=(path,), inputs=inputs, sessions=False)
        try:
            looks.append(look_at(alone))
        except ValueError as error:
            errors.append(in_one_line(error))
    return looks, list(dict.fromkeys(errors))  # that of all together may be that of a single file


def look_at(config: Config) -> Look:
    """A look at the files of a configuration. Raises ValueError for those that cannot be read."""
    data, time = read_data(config), step_time_of(config)
    table = facts.table_of(data, state_space.count_channels(data, config.env.noise))
    channels = facts.channels_of(table)
    standard = facts.standardise(table, channels)
    spectrum = facts.spectrum_of(table, standard)
    lines = faults(table, channels, standard, spectrum, time)
    inputs, gaps = facts.inputs_of(table), facts.gaps_of(table)
    return Look(config.data, data, table, channels, inputs, gaps, standard, spectrum, time, lines)


def tell(config: Config, look: Look) -> None:
    """Prints what was seen."""
    print_line("\n".join(sentences(look)))
    Console().print(input_table(look))
    for line in look.faults:
        print_line(f"looks broken: {line}")
    if not look.faults:
        print_line("nothing looks broken")
    try:
        dynamics_problem.split(config, look.data)
    except ValueError as error:
        print_line(f"cannot be fitted like this: {in_one_line(error)}")


def _lengths_text(lengths: np.ndarray) -> str:
    """How many steps episodes have."""
    least, most = int(lengths.min()), int(lengths.max())
    return quantity(least, "steps") if least == most else f"{least:,} to {most:,} steps"


def sentences(look: Look) -> list[str]:
    """Steps, channels and gaps, and what their units may be."""
    steps, lengths = len(look.table.y), look.table.lengths
    lines = [
        f"{look.name}: {quantity(steps, 'steps')} of "
        f"{quantity(look.table.y.shape[1], 'channels')} and "
        f"{quantity(look.table.u.shape[1], 'inputs')}, {quantity(len(lengths), 'episodes')}"
        + (f" of {_lengths_text(lengths)}" if len(lengths) > 1 else "")
    ]
    if look.time == StepTime():
        lines.append("time of a step: not given (--step-time 0.02 --time-unit s)")
    else:
        lines.append(f"time of a step: {look.time.text()}, {look.time.text(steps)} in all")
    is_count, numbers = look.table.is_count, ~look.table.is_count
    if is_count.any():
        lines.append(count_sentence(look))
    if numbers.any():
        low, high = (x[numbers] for x in (look.channels.smallest, look.channels.largest))
        lines.append(
            f"{quantity(int(numbers.sum()), 'channels')} of numbers from {np.nanmin(low):.4g} to "
            f"{np.nanmax(high):.4g}, standard deviations {span(look.channels.deviation[numbers])}"
        )
    if look.gaps.count:
        lines.append(
            f"{quantity(look.gaps.count, 'gaps')} without any value, the longest of "
            f"{look.time.text(look.gaps.longest)}, {percentage(look.gaps.share)} of all steps"
        )
    if look.channels.missing.max() > look.gaps.share:
        lines.append(
            f"missing values: up to {percentage(look.channels.missing.max())} of a channel "
            f"(channel {int(look.channels.missing.argmax())})"
        )
    return lines


def count_sentence(look: Look) -> str:
    """Rates and spread of channels that count, in the unit of time or with a guess of it."""
    mean = look.channels.mean[look.table.is_count]
    fano = (look.channels.deviation[look.table.is_count] ** 2)[mean > 0] / mean[mean > 0]
    text = f"{quantity(len(mean), 'channels')} of counts, {span(mean)} a step"
    if seconds := SECONDS.get(look.time.unit.lower()):
        text += f" ({span(mean / (look.time.length * seconds))} a second)"
    elif look.time == StepTime() and np.nanmedian(mean) > 0:
        guess = 1000 * np.nanmedian(mean) / USUAL_RATE
        width = float(f"{guess:.2g}")  # two digits, and no 1.6e+02
        text += f" (at {USUAL_RATE:g} a second, as in cortex, bins of {width:,g} ms)"
    return f"{text}, largest {np.nanmax(look.channels.largest[look.table.is_count]):g}" + (
        f", variance over mean {span(fano)}" if len(fano) else ""
    )


def span(numbers: np.ndarray) -> str:
    """`0.1 to 3.2, median 0.8`."""
    if np.isnan(numbers).all():
        return "unknown"
    low, middle, high = np.nanmin(numbers), np.nanmedian(numbers), np.nanmax(numbers)
    return f"{low:.3g} to {high:.3g}, median {middle:.3g}" if high > low else f"{low:.3g}"


def input_table(look: Look) -> PrintedTable:
    """A row for each input."""
    table = PrintedTable(title="inputs")
    for heading in ("input", "smallest", "largest", "steps not 0", "held for"):
        table.add_column(heading, justify="right")
    for k, numbers in enumerate(zip(*look.inputs, strict=True)):
        smallest, largest, active, hold = (float(x) for x in numbers)
        number = f"{hold:.3g}"
        holds = "always" if np.isinf(hold) else f"{number} step{'s' * (number != '1')}"
        row = (f"{smallest:.4g}", f"{largest:.4g}", percentage(active, 3), holds)
        table.add_row(str(k), *row)
    return table


def folders_of(paths: Sequence[str]) -> list[str]:
    """A name for the folder of each look: that of its file.

    Where files of several folders are called alike, those of the folders stand before it, and where
    these are alike once joined, as of `a-b/x.npz` and `a/b/x.npz`, a number before them.
    """
    stems = [Path(x).stem for x in paths]
    if len(set(stems)) == len(stems):
        return stems
    whole = [Path(x).absolute() for x in paths]
    common = os.path.commonpath([x.parent for x in whole])
    names = ["-".join(x.relative_to(common).parts) for x in whole]
    if len(set(names)) == len(names):
        return names
    return [f"{i}-{name}" for i, name in enumerate(names)]


def directory_of(config: Config, folder: str, count: int) -> Path:
    """Where a look is written to; each of several, so many, has a `folder` of its own."""
    if config.run.directory:
        return Path(config.run.directory) / (folder if count > 1 else "")
    return Path("runs") / f"look-{folder}"


def write(directory: Path, look: Look) -> list[Path]:
    """Writes `look.png` and `look.json`."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / "look.png", directory / "look.json"]
    picture.draw(paths[0], look.name, look.table, look.standard, look.spectrum, look.time)
    write_whole(paths[1], json.dumps(finite_or_null(as_json(look)), indent=1) + "\n")
    return paths


def as_json(look: Look) -> dict[str, Any]:
    """All that was seen, as JSON can hold it."""
    lists = lambda numbers: {name: x.tolist() for name, x in numbers._asdict().items()}
    return {
        "files": look.name,
        "steps": len(look.table.y),
        "lengths": look.table.lengths.tolist(),
        "step_time": None if look.time == StepTime() else look.time.length,
        "time_unit": look.time.unit,
        "counts": look.table.is_count.tolist(),
        "channels": lists(look.channels),
        "inputs": lists(look.inputs),
        "gaps": look.gaps._asdict(),
        "faults": look.faults,
    }
