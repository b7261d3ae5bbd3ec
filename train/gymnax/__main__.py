"""`python -m train.gymnax`."""

import sys

from train.host.command_line import command
from train.host.machine import start

if __name__ == "__main__":
    start.begin()
    from train.gymnax.program import PROGRAM

    sys.exit(command.main(PROGRAM))
