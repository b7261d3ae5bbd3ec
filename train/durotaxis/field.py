"""Measured ground from a file: an array of stiffness, or the grey values of an image."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from train.durotaxis import greys
from train.host.files import array_files
from train.host.machine.progress import print_once
from train.host.numbers import quantity

LARGEST_STIFFNESS = 1e6
LARGEST_GROUND = 10**8
"""px: more are refused before they are allocated."""
IMAGES = (".png", ".tif", ".tiff")


class Flags(NamedTuple):
    """What messages say of the flags of the command that reads a file."""

    range: str = "--env.field-range"  # stiffness of black and white
    fewer_px: str = "a larger --env.pixel-size"  # of ground that is too large


OF_TRAINING = Flags()
OF_TRACKS = Flags("--field-range", "a smaller --field-pixel-size")


def read_field(
    path: str,
    scale: float | None = None,
    stiffness: tuple[float, float] | None = None,
    flags: Flags = OF_TRAINING,
) -> np.ndarray:
    """Stiffness `[height, width]` in cells of 1 px, float32; `[0, 0]` without a path.

    A pixel of the file is `scale` px wide and high, None: 1. Greys of an image are stiffness from
    that of black to that of white, linearly; an image of floats (mode F) and an .npy file hold
    stiffness itself. Says once what was read. Raises ValueError, in one line, for any other file,
    and for stiffness that is not finite, above `LARGEST_STIFFNESS`, negative anywhere, or 0
    everywhere.
    """
    if not path:
        return np.zeros((0, 0), np.float32)
    is_image = Path(path).suffix.lower() in IMAGES
    values = (_read_image if is_image else _read_array)(path, stiffness, flags)
    refuse_stiffness(path, values)
    ground = resample(values, scale, path, flags)
    print_once(_line(path, values, scale or 1.0, ground))
    return ground


def refuse_stiffness(path: str, values: np.ndarray) -> None:
    """Raises ValueError for numbers of a file that are no stiffness of any ground."""
    gaps = int(np.sum(~np.isfinite(values)))
    if gaps:
        verb = "is" if gaps == 1 else "are"
        raise ValueError(
            f"{path} has {quantity(gaps, 'values')} that {verb} not finite; expected stiffness, at "
            f"most {LARGEST_STIFFNESS:g}: fill the gaps"
        )
    if values.size and (values.min() < 0 or values.max() == 0):
        raise ValueError(
            f"{path} has stiffness from {values.min():g} to {values.max():g}; expected none below "
            "0 and some above: raise negative values to 0"
        )
    if np.any(values > LARGEST_STIFFNESS):
        raise ValueError(
            f"{path} has values up to {values.max():g}; expected stiffness, at most "
            f"{LARGEST_STIFFNESS:g}: divide, or give it in another unit"
        )


def has_greys(path: str) -> bool:
    """Whether a file holds greys, whose stiffness has to be said; not if it cannot be read."""
    if Path(path).suffix.lower() not in IMAGES:
        return False
    try:
        return greys.read(path).white is not None
    except ValueError:
        return False


def resample(
    values: np.ndarray,
    scale: float | None,
    name: str = "the field",
    flags: Flags = OF_TRAINING,
) -> np.ndarray:
    """Values of pixels that are `scale` px wide and high, at cells of 1 px; float32.

    Bilinear between the middles of pixels; where several fall into a cell, their weighted mean.
    """
    values = values.astype(np.float32)
    if scale is None or scale == 1.0:
        return values
    height, width = (round(size * scale) for size in values.shape)
    if height * width > LARGEST_GROUND:
        raise ValueError(
            f"{name} makes ground of {width} x {height} px at {scale:g} px for each of its pixels; "
            f"expected at most {LARGEST_GROUND:,} px: cut it, or give {flags.fewer_px}"
        )
    if min(height, width) < 1:
        raise ValueError(f"{name} makes ground of {width} x {height} px; expected 1 px at least")
    image = Image.fromarray(np.ascontiguousarray(values))
    return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR), np.float32)


def _read_array(path: str, stiffness: tuple[float, float] | None, flags: Flags) -> np.ndarray:
    try:
        values = array_files.read_npy(path)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; expected one of numpy.save") from None
    except ValueError as error:
        is_other = Path(path).suffix.lower() != ".npy"
        reason = f"it ends in {Path(path).suffix or 'nothing'}" if is_other else error
        raise ValueError(
            f"{path} is not an .npy file of numbers ({reason}): write it with numpy.save, or give "
            f"an image ({', '.join(IMAGES)})"
        ) from None
    if stiffness is not None:
        raise ValueError(
            f"{flags.range} tells the stiffness of black and white, but {path} is no image: "
            f"its numbers are stiffness; leave it out, or give an image ({', '.join(IMAGES)})"
        )
    if values.ndim != 2:
        raise ValueError(f"{path} has the shape {values.shape}; expected float [height, width]")
    return values.astype(np.result_type(values, np.float32))  # of whole numbers and booleans, too


def _read_image(path: str, stiffness: tuple[float, float] | None, flags: Flags) -> np.ndarray:
    values, white = greys.read(path)
    if white is None:
        if stiffness is not None:
            raise ValueError(
                f"{flags.range} tells the stiffness of black and white, but the floats of {path} "
                "are stiffness already: leave it out"
            )
        return values
    if stiffness is None:
        raise ValueError(
            f"{path} has grey values; say what stiffness black and white are with "
            f"{flags.range} BLACK WHITE"
        )
    print_once(
        f"{path}: its greys are {values.min():,.0f} to {values.max():,.0f}, white is {white:,}"
    )
    black, most = stiffness
    return black + (most - black) * values / white


def _line(path: str, values: np.ndarray, scale: float, ground: np.ndarray) -> str:
    """How the pixels of a file relate to the ground, and its stiffness."""
    height, width = ground.shape
    is_flat = ground.size > 0 and float(np.ptp(ground)) == 0
    flat = "; it is the same everywhere, so nothing leads the colony to the goal" * is_flat
    size = f"{width} px wide and {height} px high"
    each = "one px" if scale == 1.0 else f"{scale:g} px"
    span = f"stiffness from {values.min():g} to {values.max():g}" if values.size else "no stiffness"
    return f"{path}: every pixel is {each}, so the ground is {size}, {span}{flat}"
