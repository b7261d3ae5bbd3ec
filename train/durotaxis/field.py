"""Measured ground from a file: an array of stiffness, or the grey values of an image."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from train.host import array_files
from train.host.errors import in_one_line

LARGEST_STIFFNESS = 1e6
LARGEST_GROUND = 10**8
"""px: more are refused before they are allocated."""
IMAGES = (".png", ".tif", ".tiff")
WHITE = {"1": 1, "L": 255, "I;16": 65535, "I;16B": 65535, "I;16L": 65535, "I": 65535}
"""The grey value of white by Pillow's mode; `I` is how it reads some files of 16 bits."""


def read_field(
    path: str, scale: float | None = None, stiffness: tuple[float, float] | None = None
) -> np.ndarray:
    """Stiffness `[height, width]` in cells of 1 px, float32; `[0, 0]` without a path.

    A pixel of the file is `scale` px wide and high, None: 1. Greys of an image are stiffness from
    that of black to that of white, linearly; an image of floats (mode F) and an .npy file hold
    stiffness itself. Says once what was read. Raises ValueError, in one line, for any other file,
    and for stiffness that is not finite, that float32 cannot hold, or that is negative or 0
    everywhere.
    """
    if not path:
        return np.zeros((0, 0), np.float32)
    is_image = Path(path).suffix.lower() in IMAGES
    values = _read_image(path, stiffness) if is_image else _read_array(path, stiffness)
    if not (np.isfinite(values).all() and np.all(np.abs(values) <= LARGEST_STIFFNESS)):
        raise ValueError(
            f"{path} has values that are not finite or beyond {LARGEST_STIFFNESS:g}; expected "
            "stiffness: fill the gaps, or divide"
        )
    if values.size and (values.min() < 0 or values.max() == 0):
        raise ValueError(
            f"{path} has stiffness from {values.min():g} to {values.max():g}; expected none below "
            "0 and some above: raise negative values to 0"
        )
    ground = resampled(values, scale, path)
    _tell(path, scale or 1.0, *ground.shape, ground.size > 0 and float(np.ptp(ground)) == 0)
    return ground


def resampled(values: np.ndarray, scale: float | None, name: str = "the field") -> np.ndarray:
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
            f"expected at most {LARGEST_GROUND:,} px: cut it, or give a larger --env.pixel-size"
        )
    if min(height, width) < 1:
        raise ValueError(f"{name} makes ground of {width} x {height} px; expected 1 px at least")
    image = Image.fromarray(np.ascontiguousarray(values))
    return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR), np.float32)


def _read_array(path: str, stiffness: tuple[float, float] | None) -> np.ndarray:
    if stiffness is not None:
        raise ValueError(
            f"--env.field-range tells the stiffness of black and white, but {path} is no image: "
            "its numbers are stiffness; leave it out"
        )
    try:
        values = array_files.read_npy(path)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; expected one of numpy.save") from None
    except ValueError as error:
        raise ValueError(
            f"{path} is not an .npy file of numbers ({error}): write it with numpy.save, or give "
            f"an image ({', '.join(IMAGES)})"
        ) from None
    if values.ndim != 2:
        raise ValueError(f"{path} has the shape {values.shape}; expected float [height, width]")
    return values.astype(np.result_type(values, np.float32))  # of whole numbers and booleans, too


def _read_image(path: str, stiffness: tuple[float, float] | None) -> np.ndarray:
    try:
        with Image.open(path) as image:
            mode, frames = image.mode, getattr(image, "n_frames", 1)
            size = image.size
            if frames > 1 or size[0] * size[1] > LARGEST_GROUND:
                raise ValueError(
                    f"it has {frames} pictures of {size[0]} x {size[1]}; expected one of at most "
                    f"{LARGEST_GROUND:,} pixels: save one by itself"
                )
            if mode not in WHITE and mode != "F":
                raise ValueError(f"its mode is {mode}; expected grey values: save it in grey")
            values = np.asarray(image, np.float64)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; expected an image or an .npy file") from None
    except Exception as error:  # Pillow raises many kinds for damaged files
        raise ValueError(f"{path} is no image of stiffness ({in_one_line(error)[:200]})") from None
    if mode == "F":
        if stiffness is not None:
            raise ValueError(
                f"--env.field-range tells the stiffness of black and white, but the floats of "
                f"{path} are stiffness already: leave it out"
            )
        return values
    if stiffness is None:
        raise ValueError(
            f"{path} has grey values; say what stiffness black and white are with "
            "--env.field-range BLACK WHITE"
        )
    black, white = stiffness
    return black + (white - black) * values / WHITE[mode]


@cache
def _tell(path: str, scale: float, height: int, width: int, is_constant: bool) -> None:
    """Says, once for each file, how its pixels relate to the ground."""
    flat = "; it is the same everywhere, so nothing leads the colony to the goal" * is_constant
    size = f"{width} px wide and {height} px high"
    each = "one px" if scale == 1.0 else f"{scale:g} px"
    print(f"{path}: every cell is {each}, so the ground is {size}{flat}", file=sys.stderr)
