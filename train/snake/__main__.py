"""`python -m train.snake`."""

import sys

from train.host import command
from train.snake.program import PROGRAM

if __name__ == "__main__":
    sys.exit(command.main(PROGRAM))
