"""`python -m bench.peers` and `python -m bench.peers scores`."""

import sys

from train.host.machine import start

if __name__ == "__main__":
    start.begin()
    from bench.peers import command, scores

    if sys.argv[1:2] == ["scores"]:
        sys.exit(scores.main(sys.argv[2:]))
    sys.exit(command.main())
