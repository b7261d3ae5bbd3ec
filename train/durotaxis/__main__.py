"""`python -m train.durotaxis`."""

import sys

from train.durotaxis.program import PROGRAM
from train.host import command

if __name__ == "__main__":
    sys.exit(command.main(PROGRAM))
