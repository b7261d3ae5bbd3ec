"""`python -m tests.bench.peers` and `python -m tests.bench.peers scores`."""

import sys

from train.host import start

if __name__ == "__main__":
    start.begin()
    from tests.bench.peers import command, scores

    if sys.argv[1:2] == ["scores"]:
        sys.exit(scores.main(sys.argv[2:]))
    sys.exit(command.main())
