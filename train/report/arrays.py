"""Arrays inside a page: many in one compressed block of text, which the browser unpacks.

Rows of integers are stored as differences from the row before, and numbers with a fraction as 16
bits over their own range, NaN apart: from one moment of a game to the next little changes, so both
compress to a few bytes. `train/report/page/arrays.js` reverses it.
"""

import base64
import gzip
from typing import Any

import numpy as np

STEPS = 2**16 - 2
"""Steps of the range of numbers with a fraction: their error is at most half of one."""
NAN = 2**16 - 1
ALIGNMENT = 4
"""Bytes to whose multiples arrays begin: a browser reads 32-bit numbers only there."""


class Arrays:
    """Collects arrays; `add` returns what the page needs to find one again."""

    def __init__(self):
        self._pieces: dict[bytes, int] = {}  # and where they begin; equal ones are stored once
        self._size = 0

    def add(self, values: Any) -> dict[str, Any]:
        """Stores an array `[M, ...]` of numbers or bools; the reference is plain data.

        Raises ValueError for whole numbers that do not fit 32 bits.
        """
        array = np.asarray(values)
        shape, value_range = list(array.shape), {}
        if np.issubdtype(array.dtype, np.floating):
            array, value_range = _quantise(array)
        elif array.dtype != bool and array.size and abs(array.astype(float)).max() > 2**31:
            raise ValueError("a page holds whole numbers of 32 bits; got a larger one")
        unsigned = array.astype(_width(array))
        if unsigned.ndim:
            unsigned = np.diff(unsigned, axis=0, prepend=np.zeros_like(unsigned[:1]))
        data = np.ascontiguousarray(unsigned).tobytes()
        data += bytes(-len(data) % ALIGNMENT)
        if data not in self._pieces:
            self._pieces[data] = self._size
            self._size += len(data)
        place = {"offset": self._pieces[data], "bits": 8 * unsigned.dtype.itemsize, "shape": shape}
        return place | value_range

    def text(self) -> str:
        """All arrays, as gzip in base 64."""
        archive = gzip.compress(b"".join(self._pieces), 9, mtime=0)
        return base64.b64encode(archive).decode()


def _quantise(values: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    """Steps from the smallest number, and the range that they divide."""
    is_finite = np.isfinite(values)
    low = float(values[is_finite].min()) if is_finite.any() else 0.0
    high = float(values[is_finite].max()) if is_finite.any() else 0.0
    # of float64, in halves: the range of two float32 may not fit a float32
    share = (values.astype(np.float64) / 2 - low / 2) / max(high / 2 - low / 2, 1e-300)
    steps = np.where(is_finite, np.round(np.where(is_finite, share, 0.0) * STEPS), NAN)
    return steps.astype(np.uint16), {"low": low, "high": high}


def _width(values: np.ndarray) -> type:
    """The narrowest type that holds the values, modulo its range if any is negative."""
    if values.dtype in (np.uint8, np.uint16):
        return values.dtype.type
    if not values.size or values.dtype == bool or 0 <= values.min() <= values.max() < 2**8:
        return np.uint8
    return np.uint16 if 0 <= values.min() <= values.max() < 2**16 else np.uint32
