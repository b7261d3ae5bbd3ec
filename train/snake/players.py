"""`python -m train.snake.players`: scores of rule-based players (`train.snake.rule_based`)."""

import sys

from train.host.machine import start

if __name__ == "__main__":
    start.begin(())
    from train.snake.rule_based import main

    sys.exit(main(sys.argv[1:]))
