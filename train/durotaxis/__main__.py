"""`python -m train.durotaxis`."""

import sys

from train.host import command, start

if __name__ == "__main__":
    start.begin()
    from train.durotaxis.program import PROGRAM

    sys.exit(command.main(PROGRAM))
