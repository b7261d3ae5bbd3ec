"""Directories that one process at a time writes."""

from pathlib import Path
from typing import IO

from train.host.errors import UsageError


def lock(file: IO[bytes], directory: Path) -> None:
    """Raises UsageError for a directory that another process writes; else locks it.

    The lock ends with the process.
    """
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(
            f"{directory} is being written by another process: stop it first"
        ) from None
    except OSError:  # a file system without locks
        return
