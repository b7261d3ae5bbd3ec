"""How near ALLO's eigenvectors come to the true ones, maze by maze, beside what the data allow.

python -m bench.allo_accuracy [--preset allo] [--transitions 1000000 3000000] [--mazes …]
    [--policy exploring]

Every maze is learned with one setting, that of the preset, by several seeds at once, each with data
and initialisation of its own. A line of the table is added as soon as a maze is done.
"""

import argparse
import dataclasses
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.snake_speed import append, machine
from train.allo.config import PRESETS
from train.allo.training import make_training
from train.host.running.run import run
from train.host.showing.pictures import interval

RESULTS = Path(__file__).parent / "results" / "allo_accuracy.json"
STANDARD = (
    *("GridMaze-7", "GridMaze-9", "GridMaze-17"),
    *("GridRoom-1", "GridRoom-4", "GridRoomSym-4", "GridRoom-16"),
)
OWN = ("corridors-400-seed1", "rooms-5x5-size4", "corridors-1000-seed1", "rooms-6x6-size5")
HEAD = (
    "| maze | walk | transitions | similarity (95 % interval) | least seed | ceiling "
    "| largest gap to it | near ties as one | its ceiling | λ right, of 11 | seconds |\n"
    + "|---" * 11
    + "|"
)


def measure(
    preset: str, maze: str, transitions: int, policy: str, num_seeds: int
) -> dict[str, Any]:
    """One line: a training of all seeds, and its evaluation."""
    config, started = PRESETS[preset].config, time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        config = dataclasses.replace(
            config,
            env=dataclasses.replace(config.env, maze=maze, transitions=transitions, policy=policy),
            run=dataclasses.replace(config.run, num_seeds=num_seeds, directory=f"{directory}/run"),
        )
        result = run(make_training(config), config, "allo", preset)
    assert result.evaluation
    content = result.evaluation.content
    rows = content["seeds"]
    column = lambda name: np.array([row[name] for row in rows], float)
    return {
        "preset": preset,
        "maze": maze,
        "states": content["states"],
        "transitions": transitions,
        "policy": policy,
        "gradient_steps": config.run.total_steps,
        "seeds": num_seeds,
        "similarity": column("similarity").tolist(),
        "ceiling": column("ceiling").tolist(),
        "near_similarity": column("near_similarity").tolist(),
        "near_ceiling": column("near_ceiling").tolist(),
        "eigenvalues_within": column("eigenvalues_within").tolist(),
        "collapsed": column("collapsed").tolist(),
        "seconds": time.perf_counter() - started,  # all: set-up, compilation, training, scores
    }


def line(row: dict[str, Any]) -> str:
    arrays = {name: np.array(row[name]) for name in row if isinstance(row[name], list)}
    mean, half = arrays["similarity"].mean(), interval(arrays["similarity"])
    gap = np.max(arrays["ceiling"] - arrays["similarity"])
    cells = (
        row["maze"],
        row["policy"],
        f"{row['transitions'] / 1e6:g} M",
        f"{mean:.4f} ({mean - half:.4f} to {mean + half:.4f})",
        f"{arrays['similarity'].min():.4f}",
        f"{arrays['ceiling'].mean():.4f}",
        f"{gap:.4f}",
        f"{arrays['near_similarity'].mean():.4f}",
        f"{arrays['near_ceiling'].mean():.4f}",
        f"{arrays['eigenvalues_within'].min():.0f} to {arrays['eigenvalues_within'].max():.0f}",
        f"{row['seconds']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="allo", choices=list(PRESETS))
    parser.add_argument("--mazes", nargs="+", default=[*STANDARD, *OWN])
    parser.add_argument("--transitions", nargs="+", type=int, default=[1_000_000, 3_000_000])
    parser.add_argument("--policy", default="uniform", choices=("uniform", "exploring"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    lines = [HEAD]
    for transitions in options.transitions:
        for maze in options.mazes:
            row = measure(options.preset, maze, transitions, options.policy, options.seeds)
            lines.append(line(row))
            print(lines[-1], flush=True)
            append(options.out, {**machine(), **row})  # at once: the next maze may take minutes
    print("\n".join(lines))


if __name__ == "__main__":
    main()
