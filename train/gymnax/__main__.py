"""`python -m train.gymnax`."""

import sys

from train.host import start

if __name__ == "__main__":
    start.begin()
    from train.gymnax.program import main

    sys.exit(main(sys.argv[1:]))
