"""How long a step of `train.play` takes, with its answer: `python -m bench.play RUN ...`.

Names of released policies may stand in place of run directories.
"""

import sys
import time
from pathlib import Path

import numpy as np

from train.host.showing.live_game import Game
from train.play import __main__ as play
from train.play import messages

STEPS = 60


def milliseconds(name: str) -> np.ndarray:
    """Times each of `STEPS` steps of one game after another, in milliseconds."""
    is_run = Path(name).is_dir()
    options = play.Options(run=name) if is_run else play.Options(policy=name)
    live = play.live_of(play.load_run(options), options)
    play.warm_up(live)
    game, times = Game(live, 0), []
    for seed in range(STEPS):
        if game.ending:
            game.new(seed)
        begin = time.perf_counter()
        messages.answer(game, '{"do": "step"}')
        times.append(1e3 * (time.perf_counter() - begin))
    return np.array(times)


if __name__ == "__main__":
    for name in sys.argv[1:] or [play.FAVOURITE]:
        times = milliseconds(name)
        print(f"{name}: median {np.median(times):.1f} ms, worst {times.max():.1f} ms")
