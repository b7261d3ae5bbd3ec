"""`python -m train.allo`."""

import sys

from train.host import command, start

if __name__ == "__main__":
    start.begin()
    from train.allo.program import PROGRAM

    sys.exit(command.main(PROGRAM))
