"""`python -m train.two_snake`, and `python -m train.two_snake tournament A B ...`."""

import sys

from train.host.command_line import command
from train.host.machine import start

if __name__ == "__main__":
    start.begin()
    from train.two_snake import ranking
    from train.two_snake.program import PROGRAM

    if sys.argv[1:2] == ["tournament"]:
        sys.exit(ranking.main(sys.argv[2:]))
    sys.exit(command.main(PROGRAM))
