"""`python -m train.snake`."""

import sys

from train.host.command_line import command
from train.host.machine import start

if __name__ == "__main__":
    start.begin()
    from train.snake.program import PROGRAM

    sys.exit(command.main(PROGRAM))
