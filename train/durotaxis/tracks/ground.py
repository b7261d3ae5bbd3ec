"""The ground under recorded cells: a law, or stiffness from an array, an image or a table."""

from dataclasses import dataclass
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from envs.durotaxis import placement, rules, substrate
from envs.durotaxis.substrate import Law
from envs.durotaxis.tracks.simulation import Ground
from jaxrl.checks import NonNegative, Positive
from train.durotaxis.config import Height, Stiffness, Width
from train.durotaxis.field import OF_TRACKS, read_field
from train.durotaxis.tracks import scattered
from train.durotaxis.tracks.tracks import Tracks
from train.host.machine.progress import print_once

DESCRIPTION = ("ground", "slope", "base", "field_file", "field_pixel_size", "field_range")
"""The flags that say how stiff it is."""


@dataclass(frozen=True)
class OwnGround:
    """Flags: a law, or a file of measured stiffness."""

    ground: Literal["linear", "exponential"] = "linear"
    """Stiffness m x + b, or b exp(m x)."""
    slope: Annotated[Stiffness | None, tyro.conf.arg(metavar="FLOAT")] = None
    """m, per px."""
    base: Annotated[Stiffness | None, tyro.conf.arg(metavar="FLOAT")] = None
    """b."""
    field_file: Annotated[str, tyro.conf.arg(metavar="FILE")] = ""
    """Measured stiffness instead: an .npy file, [height, width], an image in grey, or a CSV table
    with columns x and stiffness, or x, y and stiffness."""
    field_pixel_size: Annotated[Positive | None, tyro.conf.arg(metavar="FLOAT")] = None
    """How many px of the ground (not µm) a pixel of that file is wide, or a unit of x and y of a
    table. None: a pixel is a px, and x and y of a table are in the unit of the tracks' places: µm,
    which --pixel-size divides, or px."""
    field_range: Annotated[
        tuple[NonNegative, NonNegative] | None, tyro.conf.arg(metavar="BLACK WHITE")
    ] = None
    """Stiffness of black and of white in an image."""
    width: Width = 600
    """Width of the ground, px; arrays and images have their own."""
    height: Height = 400
    """Height of the ground, px."""


def refuse_flags(options: OwnGround) -> None:
    """Raises ValueError for flags that describe no ground, and for those of two."""
    has_law = options.slope is not None or options.base is not None
    if options.field_file:
        if has_law:
            raise ValueError("--slope and --base have no effect with --field-file: leave them out")
        return
    if options.field_pixel_size is not None or options.field_range is not None:
        raise ValueError("--field-pixel-size and --field-range have no effect without --field-file")
    if options.slope is None or options.base is None:
        raise ValueError(
            "the stiffness of the ground is not known: give --slope and --base of its law, or "
            "--field-file"
        )


def ground_of(options: OwnGround, goal: str = "right", tracks: Tracks | None = None) -> Ground:
    """The ground that flags describe, which `refuse_flags` has let pass. Raises ValueError for a
    table that does not reach all cells of the tracks, whose unit it has."""
    if options.field_file:
        size = (options.width, options.height)
        file, scale = options.field_file, options.field_pixel_size
        return measured_ground(file, scale, options.field_range, size, goal, tracks)
    assert options.slope is not None
    assert options.base is not None
    law = (options.ground == "exponential", options.slope, options.base)
    return law_ground(*law, options.width, options.height, goal)


def law_ground(
    exponential: bool, slope: float, base: float, width: int, height: int, goal: str = "right"
) -> Ground:
    """Ground by a law. Raises ValueError for one that float32 cannot hold."""
    law = Law(exponential=np.bool_(exponential), slope=jnp.float32(slope), base=jnp.float32(base))
    field = np.zeros((0, 0), np.float32)
    substrate.check(law, width, height, field)
    return Ground(law, field, jnp.float32(width), jnp.float32(height), direction(goal))


def measured_ground(
    path: str,
    scale: float | None,
    greys: tuple[float, float] | None,
    size: tuple[int, int],
    goal: str = "right",
    tracks: Tracks | None = None,
) -> Ground:
    """Ground from a file; of a table of points, which has no size, `size` is width and height, px.

    Without `scale` a table is in the unit of the tracks. Says once what was read. Raises ValueError
    for any other file, and for a table that does not reach all cells of the tracks.
    """
    if scattered.is_table(path):
        if greys is not None:
            raise ValueError(
                f"--field-range belongs to images, and {path} is a table: leave it out"
            )
        points = scattered.read_points(path, scale, tracks)
        print_once(scattered.line(points))
        if tracks is not None:
            scattered.refuse_beyond(tracks, points)
        field = scattered.fill(points, *size)
    else:
        field = read_field(path, scale, greys, OF_TRACKS)
    height, width = field.shape
    law = Law(exponential=np.bool_(False), slope=jnp.float32(0), base=jnp.float32(1))
    return Ground(law, field, jnp.float32(width), jnp.float32(height), direction(goal))


def direction(goal: str) -> jax.Array:
    """Radians from x towards y of the way to a goal, told counter-clockwise in pictures."""
    return jnp.float32(-np.deg2rad(placement.degrees_of(goal)))


def refuse_outside(tracks: Tracks, ground: Ground) -> None:
    """Raises ValueError for cells that are not on the ground.

    Errors of places may put one beyond it, by the margin that children keep at most.
    """
    sides = (("x", tracks.x, ground.width, "width"), ("y", tracks.y, ground.height, "height"))
    for name, values, size, flag in sides:
        slack = float(rules.margin(size))
        if values.min() < -slack or values.max() > size + slack:
            raise ValueError(
                f"cells have {name} from {values.min():.4g} to {values.max():.4g} px, and the "
                f"ground goes from 0 to {size:.4g}: give its size with --{flag}, or shift {name}"
            )


def inner(ground: Ground, x: np.ndarray, y: np.ndarray, reach: float) -> np.ndarray:
    """Which points lie farther than `reach` px from where children are held back, bool `[n]`."""
    ends = [float(rules.margin(size)) + reach for size in (ground.width, ground.height)]
    is_inside = [
        (v > end) & (v < size - end)
        for v, end, size in zip((x, y), ends, (ground.width, ground.height), strict=True)
    ]
    return is_inside[0] & is_inside[1]
