"""What can go wrong with a run, as a user meets it: one line and an exit code."""

FAILED = 1
"""Exit code of a run whose numbers stopped being finite; any other exception ends in 1, too."""
REFUSED = 2
"""Exit code after bad input."""
INTERRUPTED = 75
"""Exit code after the first SIGTERM or Ctrl-C: saved, run it again (EX_TEMPFAIL of sysexits.h)."""
QUIT = 130
"""Exit code after the second signal: gone at once, back to the newest checkpoint."""


class RunError(Exception):
    """Ends a run; the message is the one line that the user reads."""

    exit_code = FAILED


class UsageError(RunError):
    """Bad input: says what was wrong, what was expected, what to do."""

    exit_code = REFUSED


class NonFiniteError(RunError):
    """Learning produced NaN or infinity, and the configuration says to stop there."""


class Interrupted(RunError):
    """A signal asked the run to stop; everything is saved."""

    exit_code = INTERRUPTED
