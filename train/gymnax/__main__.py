"""`python -m train.gymnax`."""

import sys

from train.host import command, start

if __name__ == "__main__":
    start.begin()
    from train.gymnax.program import PROGRAM

    sys.exit(command.main(PROGRAM))
