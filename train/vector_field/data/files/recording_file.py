"""What a file of recorded data is, found by its first bytes, and its arrays."""

from functools import lru_cache
from pathlib import Path

from train.host.errors import in_one_line
from train.vector_field.data import matlab_versions, packed
from train.vector_field.data.files import matlab, nwb
from train.vector_field.data.files.content import Content
from train.vector_field.data.files.held_inputs import Series
from train.vector_field.data.files.names import Names
from train.vector_field.data.files.tables import csv_file

HDF5 = b"\x89HDF\r\n\x1a\n"
UTF_16 = b"\xff\xfe", b"\xfe\xff"
EXPECTED = (
    "expected an npz file with y [T, n] or [E, T, n], or spike_times and spike_units, and with "
    "u [T, m] or [E, T, m]; or a .mat, CSV or NWB file"
)
HEAD = 512
"""Bytes by which a file is known."""


def is_npz(path: str) -> bool:
    """Whether it is a zip file, as npz files are, by its first bytes.

    Raises ValueError if there is no such file.
    """
    return _first_bytes(path).startswith(b"PK")


def read(path: str, names: Names, bin_width: float, inputs: str = "") -> Content:
    """The content of a file that is no npz file; `inputs` is a CSV file of inputs for spikes.

    Raises ValueError, in one line, for what cannot be read.
    """
    status = Path(path).stat()
    return _read(path, names, bin_width, inputs, (status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=4)
def _read(path: str, names: Names, bin_width: float, inputs: str, version: tuple) -> Content:
    del version  # the cache alone needs it
    head = _first_bytes(path)
    if head.startswith(matlab_versions.VERSION_7_3):
        raise ValueError(
            f"{path} is a MATLAB file of version 7.3: save it in MATLAB by save('{path}', '-v7')"
        )
    series = _input_series(inputs, Names(time=names.time)) if inputs else None
    try:
        if packed.is_packed(path):
            _refuse_packed_arrays(path)
            return csv_file.read(path, names, bin_width, series)
        is_matlab = matlab_versions.is_readable(head)
        if is_matlab or head.startswith(HDF5):
            if inputs:
                raise ValueError(
                    'its inputs stand in itself: leave out --inputs, or give "" for this file'
                )
            return (matlab if is_matlab else nwb).read(path, names, bin_width)
        if not _is_text(head):
            raise ValueError("its bytes are of no known format")
        return csv_file.read(path, names, bin_width, series)
    except (ValueError, OSError, KeyError, RuntimeError) as error:
        # h5py raises the last three for a file that is cut off or damaged
        raise ValueError(f"{path} cannot be read ({in_one_line(error)}); {EXPECTED}") from None


def _refuse_packed_arrays(path: str) -> None:
    """Raises ValueError for what gzip packed and is no table: its readers need the file itself."""
    if not _is_text(packed.read_bytes(path, HEAD)):
        raise ValueError("gzip packed it, and of packed files only CSV is read: unpack it, gunzip")


def _is_text(head: bytes) -> bool:
    return b"\x00" not in head or head.startswith(UTF_16)  # of which tables say what to do


def _input_series(path: str, names: Names) -> Series:
    try:
        return csv_file.series_of(path, names)
    except (ValueError, OSError) as error:
        raise ValueError(
            f"the inputs in {path} cannot be read ({in_one_line(error)}); expected a CSV file with "
            "a column of times"
        ) from None


def _first_bytes(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(HEAD)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}; {EXPECTED}") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder; {EXPECTED}") from None
