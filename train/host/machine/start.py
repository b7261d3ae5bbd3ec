"""What a command does before anything computes, as gymnax does when it is imported."""

import sys
from collections.abc import Sequence

from train.host.errors import RunError
from train.host.machine import devices, distributed


def begin(arguments: Sequence[str] | None = None) -> None:
    """Joins other processes if the command line says so, else makes each core a device.

    Ends this process, with one line, if it cannot join or there is no device.
    """
    try:
        distributed.begin(sys.argv[1:] if arguments is None else arguments)
        if not distributed.has_joined():
            devices.one_per_core()
        devices.refuse_none()
    except RunError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
