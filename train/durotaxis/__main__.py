"""`python -m train.durotaxis`."""

import sys

from train.host import command, distributed

if __name__ == "__main__":
    distributed.begin()  # before anything computes, as gymnax does when it is imported
    from train.durotaxis.program import PROGRAM

    sys.exit(command.main(PROGRAM))
