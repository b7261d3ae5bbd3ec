"""`python -m train.allo`."""

import sys

from train.host.command_line import command
from train.host.machine import start

if __name__ == "__main__":
    start.begin()
    from train.allo.program import PROGRAM

    sys.exit(command.main(PROGRAM))
