"""NumPy files of strangers: what they hold is known, and refused, before anything is allocated."""

import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from train.host.command_line.suggestions import suggestion_text
from train.host.errors import in_one_line
from train.host.numbers import listing

MAX_BYTES = 2 * 2**30
"""Size of one array, at most."""
MAX_HEADER = 10_000  # bytes; that of a plain array has about a hundred


def read_npz(path: str | Path, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Reads the arrays `names` of an .npz file, as far as it holds them; None: all of them.

    Raises FileNotFoundError, and ValueError in one line for a file that cannot be read, arrays of
    anything but real numbers and booleans, and arrays of more than `MAX_BYTES`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {x.filename.removesuffix(".npy"): x for x in archive.infolist()}
            arrays = {}
            for name in members if names is None else names:
                if name in members:
                    with archive.open(members[name]) as file:
                        arrays[name] = _read(file, name)
            return arrays
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged archive makes zipfile and numpy raise almost anything
        raise ValueError(_reason(error)) from None


def npz_headers(path: str | Path) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Shape and kind of each array of an .npz file that can be read; others are objects."""
    headers: dict[str, tuple[tuple[int, ...], np.dtype]] = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            headers[name] = (), np.dtype(object)
            with suppress(Exception), archive.open(member) as file:  # as above
                shape, _, dtype = _read_header(file, name)
                headers[name] = shape, dtype
    return headers


def unread_note(names: Sequence[str], readable: str, candidates: Collection[str] = ()) -> str:
    """What is said of arrays that nobody reads; `readable` tells in words which are read.

    Which of the `candidates` may have been meant is said, too.
    """
    unread = listing([f"{name}{suggestion_text(name, candidates)}" for name in names])
    return f"not read: {unread}; read are {readable}"


def read_npy(path: str | Path) -> np.ndarray:
    """The array in an .npy file; raises as `read_npz` does."""
    try:
        with Path(path).open("rb") as file:
            return _read(file, "the array")
    except FileNotFoundError:
        raise
    except Exception as error:  # as above
        raise ValueError(_reason(error)) from None


@contextmanager
def value_errors_with_path(path: str) -> Iterator[None]:
    """Begins the message of a ValueError with the file that it is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {in_one_line(error)}") from None


def to_vector(array: np.ndarray) -> np.ndarray:
    """`[N]` of an array `[N, 1]` or `[1, N]`, as MATLAB saves it; others as they are."""
    return array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array


def reshape_unit_axes(array: np.ndarray, shape: Sequence[int]) -> np.ndarray | None:
    """The array in a shape that differs from its own in axes of length 1 at most, else None."""
    same = [n for n in array.shape if n != 1] == [n for n in shape if n != 1]
    return array.reshape(shape) if same else None


def to_integers(array: np.ndarray) -> np.ndarray | None:
    """int64 of whole numbers, which may be floats, as of pandas or MATLAB; None of others.

    Booleans are none: they are a mask, where sizes or ids are expected.
    """
    if array.dtype.kind == "b":
        return None
    if array.dtype.kind == "f" and not (np.isfinite(array) & (array == np.round(array))).all():
        return None
    if array.size and not -(2**63) <= int(array.min()) <= int(array.max()) < 2**63:
        return None
    return array.astype(np.int64)


def _read(file: IO[bytes], name: str) -> np.ndarray:
    """The array of an open file; its header says how large it is."""
    shape, in_columns, dtype = _read_header(file, name)
    if dtype.kind not in "fiub":
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


def _read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether it is stored in columns, and kind of the array of an open file."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name} has the format {version}; expected 1.0 or 2.0")
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return read_header(file, max_header_size=MAX_HEADER)


def _reason(error: Exception) -> str:
    return in_one_line(error)[:200] or type(error).__name__
