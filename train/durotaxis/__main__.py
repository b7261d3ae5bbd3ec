"""`python -m train.durotaxis`."""

import sys

from train.host.command_line import command
from train.host.machine import start

if __name__ == "__main__":
    start.begin()
    from train.durotaxis.program import PROGRAM

    sys.exit(command.main(PROGRAM))
