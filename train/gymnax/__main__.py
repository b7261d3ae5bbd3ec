"""`python -m train.gymnax`."""

import sys

from train.gymnax.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
