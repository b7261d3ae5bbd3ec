"""`python -m train.snake`."""

import sys

from train.host import command, start

if __name__ == "__main__":
    start.begin()
    from train.snake.program import PROGRAM

    sys.exit(command.main(PROGRAM))
