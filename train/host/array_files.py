"""NumPy files of strangers: what they hold is known, and refused, before anything is allocated."""

import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from train.host.errors import in_one_line

MAX_BYTES = 2 * 2**30
"""Of one array."""
MAX_HEADER = 10_000  # bytes; that of a plain array has about a hundred


def read_npz(
    path: str | Path, names: Collection[str] | None = None, booleans: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """Those of the arrays `names` that an .npz file holds; None: all of them.

    Raises FileNotFoundError, and ValueError in one line for a file that cannot be read, arrays of
    anything but real numbers or, of the names in `booleans`, booleans, and arrays of more than
    `MAX_BYTES`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {x.filename.removesuffix(".npy"): x for x in archive.infolist()}
            found = {}
            for name in members if names is None else names:
                if name in members:
                    with archive.open(members[name]) as file:
                        found[name] = _read(file, name, "fiub" if name in booleans else "fiu")
            return found
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged archive makes zipfile and numpy raise almost anything
        raise ValueError(_reason(error)) from None


def read_npy(path: str | Path) -> np.ndarray:
    """The array in an .npy file; raises as `read_npz` does."""
    try:
        with Path(path).open("rb") as file:
            return _read(file, "the array")
    except FileNotFoundError:
        raise
    except Exception as error:  # as above
        raise ValueError(_reason(error)) from None


def _read(file: IO[bytes], name: str, kinds: str = "fiu") -> np.ndarray:
    """The array of an open file, of a dtype of `kinds`; its header says how large it is."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name} has the format {version}; expected 1.0 or 2.0")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, in_columns, dtype = read(file, max_header_size=MAX_HEADER)
    if dtype.kind not in kinds:
        raise ValueError(f"{name} holds {dtype}; expected real numbers")
    if not all(isinstance(x, int) and x >= 0 for x in shape):
        raise ValueError(f"{name} has the shape {shape}; expected sizes of at least 0")
    count = 1
    for size in shape:
        count *= size
    if count * dtype.itemsize > MAX_BYTES:
        raise ValueError(
            f"{name} has shape {shape} of {dtype}, more than {MAX_BYTES:,} bytes: cut it up"
        )
    content = file.read(count * dtype.itemsize)
    if len(content) < count * dtype.itemsize:
        raise ValueError(f"{name} is cut short: its header promises shape {shape} of {dtype}")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if in_columns else "C")


def _reason(error: Exception) -> str:
    return in_one_line(error)[:200] or type(error).__name__
