"""The bytes of a file, unpacked where gzip packed them, as in `spikes.csv.gz`."""

import gzip
import zlib
from pathlib import Path

from train.host.errors import in_one_line
from train.host.files.array_files import MAX_BYTES

GZIP = b"\x1f\x8b"
"""What a file that gzip packed begins with."""


def is_packed(path: str) -> bool:
    """Whether gzip packed a file."""
    with Path(path).open("rb") as file:
        return file.read(len(GZIP)) == GZIP


def read_bytes(path: str, most: int | None = None) -> bytes:
    """All bytes of a file, unpacked; only the first of them where there are more than `most`.

    Raises OSError for a file that cannot be read, and ValueError for a packed one that is cut off
    or damaged, or holds more than `MAX_BYTES`.
    """
    if not is_packed(path):
        with Path(path).open("rb") as file:
            return file.read(most)
    try:
        with gzip.open(path) as file:
            content = file.read(MAX_BYTES + 1 if most is None else most)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"gzip cannot unpack it, {in_one_line(error)}") from None
    if len(content) > MAX_BYTES:  # a small file may hold far more than fits into memory
        raise ValueError(f"unpacked it has more than {MAX_BYTES:,} bytes: cut it up")
    return content
