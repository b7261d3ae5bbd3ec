"""`python -m train.allo`."""

import sys

from train.allo.program import PROGRAM
from train.host import command

if __name__ == "__main__":
    sys.exit(command.main(PROGRAM))
