"""`python -m train.gymnax`."""

import sys

from train.host import distributed

if __name__ == "__main__":
    distributed.begin()  # before anything computes, as gymnax does when it is imported
    from train.gymnax.program import main

    sys.exit(main(sys.argv[1:]))
