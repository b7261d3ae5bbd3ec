"""What a command does before anything computes, as gymnax does when it is imported."""

import sys
from collections.abc import Sequence

from train.host import devices, distributed


def begin(arguments: Sequence[str] | None = None) -> None:
    """Joins other processes if the command line says so, else makes each core a device.

    Ends this process if it cannot join.
    """
    distributed.begin(sys.argv[1:] if arguments is None else arguments)
    if not distributed.has_joined():
        devices.one_per_core()
