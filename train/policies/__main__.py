"""`python -m train.policies`."""

import sys

from train.policies.export import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
