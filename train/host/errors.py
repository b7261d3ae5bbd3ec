"""Errors that a user sees: a message of one line and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FAILED = 1
"""Exit code of a run whose numbers are no longer finite, when the file system refuses something,
and after any other exception."""
REFUSED = 2
"""Exit code after bad input."""
INTERRUPTED = 75
"""Exit code after the first SIGTERM or Ctrl-C: what was done is saved, the rest can be had later
(EX_TEMPFAIL, sysexits.h)."""
QUIT = 130
"""Exit code after the second signal: quit at once, only the newest checkpoint remains."""


class RunError(Exception):
    """Ends a run; the message is the line printed for the user."""

    exit_code = FAILED


class UsageError(RunError):
    """Bad input: says what was wrong, what was expected, what to do."""

    exit_code = REFUSED


class NonFiniteError(RunError):
    """Learning produced NaN or infinity, and the configuration says to stop there."""


class Interrupted(RunError):
    """A signal asked a command to stop; what was done is saved."""

    exit_code = INTERRUPTED


@contextmanager
def os_errors_with_path(path: str | Path) -> Iterator[None]:
    """Adds the file's name to an OSError that has none, as after writing to a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def in_one_line(error: BaseException) -> str:
    """The message of an error without its line breaks."""
    return " ".join(message_of(error).split())


def message_of(error: BaseException) -> str:
    """The text of an error; a word on it if its class, a user's own, cannot make one."""
    try:
        return str(error)
    except Exception:
        return "its message cannot be shown"


def os_error_message(error: OSError) -> str:
    """One line about what the file system refused, where, and what to do once that is mended."""
    reason = error.strerror or in_one_line(error) or type(error).__name__
    location = f"{error.filename}: " if error.filename else ""
    return "; ".join([f"{location}{reason}", *getattr(error, "__notes__", [])])
