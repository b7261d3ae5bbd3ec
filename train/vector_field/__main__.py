"""`python -m train.vector_field`."""

import sys

from train.host import command
from train.vector_field.program import PROGRAM

if __name__ == "__main__":
    sys.exit(command.main(PROGRAM))
