"""`python -m train.two_snake`."""

import sys

from train.host import command
from train.two_snake.program import PROGRAM

if __name__ == "__main__":
    sys.exit(command.main(PROGRAM))
