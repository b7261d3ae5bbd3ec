"""Files that are written whole or not at all."""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from train.host.errors import UsageError, os_errors_with_path


@contextmanager
def replacement_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a temporary file for writing that replaces `path` in one step, once it is on the disk.

    No reader and no crash ever sees half of it; after an error the old file is still there.
    """
    path = Path(path)
    partial = partial_file(path)
    with os_errors_with_path(path):
        try:
            with partial.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError as error:
            if error.filename == str(partial):  # which nobody has asked for
                error.filename = str(path)
            raise
        finally:
            with suppress(OSError):  # a file system that cannot be written has none
                partial.unlink(missing_ok=True)


def partial_file(path: Path) -> Path:
    """Where the content of a file is written until it is whole."""
    return path.with_name(f".{path.name}.partial")


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Replaces an npz file in one step."""
    with replacement_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def write_whole(path: str | Path, text: str) -> None:
    """Replaces a text file in one step."""
    with replacement_file(path) as file:
        file.write(text.encode())


def finite_or_null(value: Any) -> Any:
    """`value` with null for NaN and infinity, which JSON does not have."""
    return _replace_nonfinite(value, lambda number: None)


def finite_or_text(value: Any) -> Any:
    """`value` with infinity as "inf", as a flag takes it: null stands for no value."""
    return _replace_nonfinite(value, str)


def _replace_nonfinite(value: Any, replacement: Callable[[float], Any]) -> Any:
    """`value` with `replacement` of each number that JSON does not have."""
    if isinstance(value, dict):
        return {key: _replace_nonfinite(item, replacement) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_nonfinite(item, replacement) for item in value]
    is_lost = isinstance(value, float) and not math.isfinite(value)
    return replacement(value) if is_lost else value


def refuse_no_file(path: Path) -> None:
    """Raises UsageError for an `--out` that is a folder, or lies in none that can be written."""
    if path.is_dir():
        raise UsageError(f"--out {path} is a folder; name a file in it")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"--out {path} lies in no folder; create that first")
    refuse_unwritable(folder, "name a file in a folder that can")


def refuse_unwritable(directory: Path, advice: str) -> None:
    """Raises UsageError if nothing can be written into a directory, which may not exist yet.

    `advice` is what to do, in words that follow "cannot be written: ".
    """
    places = (directory.absolute(), *directory.absolute().parents)
    existing = next(place for place in places if os.path.lexists(place))
    if not existing.is_dir():
        raise UsageError(f"{directory} cannot be written, as {existing} is no folder: {advice}")
    if not os.access(existing, os.W_OK):
        raise UsageError(f"{directory} cannot be written: {advice}")


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Raises UsageError for a file that exists and is not to be replaced."""
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists already: choose another --out, or give --overwrite")
