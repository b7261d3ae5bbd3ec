"""`python -m train.durotaxis simulate TRACKS.csv`: tracks of a colony whose laws are known.

What `fit` estimates is given, by the same names and in the same units. Without flags these are the
laws and the ground of `example`.
"""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import jax
import numpy as np
import tyro

from envs.durotaxis.actions import Spawning
from envs.durotaxis.tracks import events, spawning
from envs.durotaxis.tracks.simulation import Ground, Laws, Register
from jaxrl.checks import Count, NonNegative, Positive, Seed, TwoOrMore
from train.durotaxis.config import Height, Width
from train.durotaxis.tracks import recording
from train.durotaxis.tracks.ground import DESCRIPTION, OwnGround, ground_of, refuse_flags
from train.durotaxis.tracks.tracks import Rows, assemble
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.errors import UsageError, in_one_line
from train.host.machine.progress import print_line, show_activity
from train.host.numbers import quantity
from train.host.plain_config import check_options, flag

COMMAND = "python -m train.durotaxis simulate"
MOST_CELLS = 2**15
"""Of a colony, the dead included."""
MOST_PLACES = 10**7
"""Rows of a file, which `fit` can read."""


@dataclass(frozen=True)
class Odds:
    """Log-odds of an event: the constant and what is added by each cause."""

    constant: float = 0.0
    """Log-odds of a young cell in the middle of 32, on ground of stiffness 1."""
    rear: float = 0.0
    """Added from the foremost cell to the rearmost."""
    age: float = 0.0
    """Added for every 10 frames of age."""
    crowding: float = 0.0
    """Added for every doubling of the number of cells."""
    stiffness: float = 0.0
    """Added for every doubling of the stiffness."""

    @property
    def coefficients(self) -> np.ndarray:
        """The coefficients of a law of `events`, float32 `[K]`."""
        return np.array([getattr(self, name) for name in events.NAMES], np.float32)


@dataclass(frozen=True)
class Options(OwnGround):
    """Simulates a colony by known laws and writes its tracks, as a microscope would give them.

    TRACKS.csv has the columns frame, cell, parent, x, y and can be fitted: whether an experiment
    with so many cells and frames would tell what it should is seen before it is done. Ground that
    is not described has the stiffness 0.05 x + 0.5.
    """

    tracks: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TRACKS.csv")] = ""
    """File to write; it must not exist."""
    width: Width = recording.EXAMPLE_GROUND["width"]
    """Width of the ground, px; arrays and images have their own."""
    height: Height = recording.EXAMPLE_GROUND["height"]
    """Height of the ground, px."""
    frames: TwoOrMore = recording.FRAMES
    """Frames of the recording."""
    founders: Count = recording.FOUNDERS
    """Cells in the first frame."""
    spawning: Spawning = "directed"
    """directed: children at the Hill distance, in a preferred direction. isotropic: anywhere
    around."""
    gamma: Positive = recording.TRUTH.spawning.gamma
    """Distance of children on very stiff ground, px; isotropic: their reach R there, by which they
    lie about the parent with a deviation of 1 + 2 R on each axis."""
    alpha: Positive = recording.TRUTH.spawning.alpha
    """Stiffness at which that is half."""
    noise: float = recording.TRUTH.spawning.noise
    """Added to the distance, or to the reach, px; isotropic: times a normal deviate."""
    theta: float = math.degrees(recording.TRUTH.spawning.theta)
    """Mean direction of children, degrees from x towards y."""
    kappa: NonNegative = recording.TRUTH.spawning.kappa
    """Concentration around that direction; 0: any direction."""
    error: NonNegative = recording.TRUTH.spawning.error
    """Standard deviation of a coordinate as observed, px; what it puts beyond the ground is at the
    edge."""
    scatter: NonNegative = recording.TRUTH.spawning.scatter
    """Standard deviation of where children land about the law, px."""
    deaths: Odds = field(default_factory=lambda: Odds(*recording.DEATHS))
    """Who dies before the next frame."""
    births: Odds = field(default_factory=lambda: Odds(*recording.BIRTHS))
    """Who of the others has a child."""
    seed: Seed = 0
    """Root of all random numbers."""


def main(arguments: Sequence[str]) -> int:
    def run(arguments: list[str]) -> None:
        options = parse_flags(COMMAND, Options, arguments)
        check_options(options)
        refuse_file(options.tracks)
        try:
            with show_activity("simulating"):
                options = with_ground(options)
                rows = simulate(options)
                tracks = assemble("the simulated colony", rows)
        except ValueError as error:
            raise UsageError(in_one_line(error)) from error
        recording.write(rows, Path(options.tracks))
        sizes = quantity(len(tracks.parent), "cells"), quantity(tracks.frames, "frames")
        happened = quantity(tracks.num_births, "births"), quantity(tracks.num_deaths, "deaths")
        print_line(f"{options.tracks}: {' in '.join(sizes)}, {', '.join(happened)}")
        if tracks.frames < options.frames:
            print_line(f"the colony had died out after frame {tracks.frames - 1}")
        fit = f"python -m train.durotaxis fit {shlex.quote(options.tracks)}"
        print_line(f"{fit} {fit_flags(options)}")

    return command(run, arguments)


def refuse_file(path: str) -> None:
    """Raises UsageError unless the file can be written, and nothing be lost."""
    if not path:
        raise UsageError("expected a file to write: give TRACKS.csv")
    if Path(path).exists():
        raise UsageError(f"{path} exists already: name another file")
    if not Path(path).parent.is_dir():
        raise UsageError(f"there is no folder {Path(path).parent}: make it, or name another file")


def with_ground(options: Options) -> Options:
    """The options, with the ground of the example if none is described."""
    if any(getattr(options, name) != getattr(OwnGround, name) for name in DESCRIPTION):
        return options
    example = recording.EXAMPLE_GROUND
    return replace(options, slope=example["slope"], base=example["base"])


def laws_of(options: Options) -> Laws:
    """The laws that flags describe. Raises ValueError for numbers that a law does not have."""
    for name in spawning.NAMES:
        unused = name not in spawning.PARAMETERS[options.spawning]
        if unused and getattr(options, name) != getattr(Options, name):
            raise ValueError(f"{flag(name)} has no effect with --spawning {options.spawning}")
    numbers = {name: getattr(options, name) for name in spawning.NAMES}
    numbers["theta"] = math.radians(options.theta)
    law = spawning.Spawning(**numbers)
    return Laws(law, options.deaths.coefficients, options.births.coefficients)


def simulate(options: Options) -> Rows:
    """What a microscope sees of the colony. Raises ValueError if that is too much for a file."""
    refuse_flags(options)
    laws, ground, key = laws_of(options), ground_of(options), jax.random.key(options.seed)
    register = roomy_register(options, laws, ground, key)
    last = np.minimum(np.asarray(register.last), options.frames - 1)
    places = np.sum(np.maximum(last.astype(float) - np.asarray(register.first) + 1, 0))
    if places > MOST_PLACES:
        raise ValueError(
            f"the file would have {places:,.0f} rows; expected {MOST_PLACES:,} at most: simulate "
            "fewer frames, fewer births or more deaths"
        )
    rng = np.random.default_rng(options.seed)
    return on_ground(recording.observe(register, options.frames, options.error, rng), ground)


def on_ground(rows: Rows, ground: Ground) -> Rows:
    """The rows with the places that errors put beyond the ground at its edge, as `fit` wants."""
    x, y = np.clip(rows.x, 0, float(ground.width)), np.clip(rows.y, 0, float(ground.height))
    return rows._replace(x=x, y=y)


def roomy_register(options: Options, laws: Laws, ground: Ground, key: jax.Array) -> Register:
    """The cells of a colony, in a register of the least size, by factors of 4, that holds them.

    Raises ValueError for more than `MOST_CELLS`; consumes the key.
    """
    capacity, count = recording.CAPACITY, options.founders
    while count <= MOST_CELLS:
        if count <= capacity:
            register = recording.simulate_founded(
                *(jax.random.clone(key), laws, ground, options.founders, options.frames),
                *(capacity, options.spawning),
            )
            count = int(register.count)
            if count <= capacity:
                return register
        capacity *= 4
    raise ValueError(
        f"the colony would have more than {MOST_CELLS:,} cells: simulate fewer frames, fewer "
        "founders, fewer births or more deaths"
    )


def fit_flags(options: Options) -> str:
    """The flags by which `fit` has the same ground and law, without those at their defaults."""
    words = []
    for name in (*DESCRIPTION, "width", "height"):
        value = getattr(options, name)
        if value != getattr(OwnGround, name):
            words += [flag(name), *map(str, value if isinstance(value, tuple) else (value,))]
    if options.spawning != Options.spawning:
        words += [flag("spawning"), options.spawning]
    return shlex.join(words)
