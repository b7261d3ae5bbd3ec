"""Images of measured ground: the number that white is in each kind of file, and what has none."""

from typing import Any, NamedTuple

import numpy as np
from PIL import Image, TiffImagePlugin, UnidentifiedImageError

from train.host.errors import in_one_line

LARGEST = 10**8
"""Pixels of an image: more are refused before they are allocated."""
WHITE = {"1": 1, "L": 255, "I;16": 65535, "I;16B": 65535, "I;16L": 65535, "I": 65535}
"""The grey value of white by Pillow's mode; `I` is how it may read a PNG of 16 bits."""
FLOATS = "F"
EXPECTED = "expected one picture in grey, of unsigned numbers up to 16 bits or of 32-bit floats"
BITS, WHITE_IS_ZERO, DESCRIPTION, SAMPLE_FORMAT = 258, 262, 270, 339
"""Tags of a TIFF."""
UNSIGNED, FLOATING = 1, 3
"""Sample formats."""
# As ImageJ writes an inverted image; Pillow knows it in the other order of bytes alone.
_INVERTED = (TiffImagePlugin.MM, 0, (UNSIGNED,), 1, (16,), ())
TiffImagePlugin.OPEN_INFO.setdefault(_INVERTED, ("I;16B", "I;16B"))


class Greys(NamedTuple):
    """The numbers of an image, 0 for black."""

    values: np.ndarray  # float64 [height, width]
    white: int | None  # None: the numbers are no greys but floats, whatever they mean


def read(path: str) -> Greys:
    """The greys, or floats, of an image. Raises ValueError, in one line, for others."""
    try:
        # Pillow maps a file that it knows by its path into memory, and then leaves it unturned.
        with open(path, "rb") as file, Image.open(file) as image:
            tags = getattr(image, "tag_v2", {})  # of a TIFF
            _refuse(image, tags)
            values = np.asarray(image, np.float64)
            if image.mode == FLOATS:
                return Greys(values, None)
            white = 2 ** tags[BITS][0] - 1 if image.mode[:2] == "I;" and tags else WHITE[image.mode]
            if tags.get(WHITE_IS_ZERO) == 0 and white > WHITE["L"]:  # Pillow inverts up to 8 bits
                values = white - values
            return Greys(values, white)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; expected an image or an .npy file") from None
    except Exception as error:  # Pillow raises many kinds for damaged files
        is_known = not isinstance(error, UnidentifiedImageError)
        reason = in_one_line(error)[:200] if is_known else "damaged, or of an unusual kind"
        raise ValueError(f"{path} is no image of stiffness ({reason}); {EXPECTED}") from None


def _refuse(image: Image.Image, tags: Any) -> None:
    """Raises ValueError for an image whose numbers are not one grey, or float, for each pixel."""
    frames, metadata = getattr(image, "n_frames", 1), _imagej_metadata(tags)
    frames = max(frames, int(metadata.get("images", 1)))
    if frames > 1 or image.width * image.height > LARGEST:
        raise ValueError(
            f"it has {frames} pictures of {image.width} x {image.height}; at most {LARGEST:,} "
            "pixels are read: save one by itself"
        )
    if image.mode not in (*WHITE, FLOATS):
        raise ValueError(f"its mode is {image.mode}: save it in grey, without transparency")
    if image.has_transparency_data:
        raise ValueError("some of it is transparent: fill the gaps")
    if "cf" in metadata:
        raise ValueError("ImageJ has calibrated its numbers: convert it to 32 bits there")
    formats = {*tags.get(SAMPLE_FORMAT, (UNSIGNED,))}
    if tags and (image.mode == "I" or not formats <= {UNSIGNED, FLOATING}):
        raise ValueError(
            "its whole numbers have a sign or 32 bits, so none of them is white: save them as "
            "floats, which are stiffness itself"
        )


def _imagej_metadata(tags: Any) -> dict[str, str]:
    """What ImageJ has written about a TIFF: `images`, of which only one may look like one, `cf`, if
    its numbers are calibrated, and more."""
    lines = str(tags.get(DESCRIPTION, "")).splitlines()
    if not (lines and lines[0].startswith("ImageJ=")):
        return {}
    return {name: value for name, _, value in (line.partition("=") for line in lines)}
