"""The old name of `python -m train.snake.players`."""

import sys

if __name__ == "__main__":
    print("train.snake_players is now train.snake.players: use that name", file=sys.stderr)
    sys.exit(2)
