"""The matchmaker: where environment, agent and loop meet; every module here is a command.

`train.load` is for programs of your own: a trained policy that acts.
"""

from typing import TYPE_CHECKING

from train.host import entrance

if TYPE_CHECKING:
    from pathlib import Path

    from train.policies.acting import Policy

entrance.check()


def load(source: "str | Path", best: bool = False, seed: int | None = None) -> "Policy":
    """The policy of a run directory, of a file, or of the library by its name.

    Of a run it is that of the newest checkpoint or, with `best`, the one that was best while it
    trained; `seed` says which of several. Raises UsageError, in one line, if there is none, and for
    programs in which nothing acts step by step.
    """
    from train.policies import acting  # commands that need no policy start without it

    return acting.load(source, best, seed)
