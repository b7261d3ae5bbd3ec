"""How near learned left and right eigenvectors of directed walks come to the true ones.

python -m bench.allo_directed [--seeds 10] [--walks OneWayRooms-4 GridRoom-4:0.15 …]

Beside the scores of both sides: eigenvalues, rank correlations of hitting times with the exact
ones, and the same of the data's own solution (ceiling) and of commute times of the walk without its
direction. A line is added as soon as a walk is done.
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
from train.allo.maze import Maze
from train.allo.training import make_training
from train.host.running.run import run

RESULTS = Path(__file__).parent / "results" / "allo_directed.json"
WALKS = ("OneWayRooms-4", "PortalRoom-1", "GridRoom-4:0.15", "GridRoom-4:0.3")
"""Mazes, and after a colon their wind."""


def maze_of(walk: str) -> Maze:
    name, _, wind = walk.partition(":")
    return Maze(maze=name, wind=float(wind or 0))


def sizes(maze: Maze) -> dict[str, int]:
    """How much the preset learns from there, how long and how wide, as a record has it."""
    config = PRESETS["directed"].config
    return {
        "transitions": maze.transitions,
        "steps_at_most": config.run.total_steps,
        "features": config.agent.num_features + config.agent.spare_features,
        "eigenvectors": config.agent.num_features,
    }


def measure(walk: str, maze: Maze, num_seeds: int) -> dict[str, Any]:
    """One record: a training of all seeds, and its evaluation."""
    config, started = PRESETS["directed"].config, time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        config = dataclasses.replace(
            config,
            env=maze,
            run=dataclasses.replace(config.run, num_seeds=num_seeds, directory=f"{directory}/run"),
        )
        result = run(make_training(config), config, "allo", "directed")
    assert result.evaluation
    content = result.evaluation.content
    rows = content["seeds"]
    scores = [name for name, x in rows[0].items() if isinstance(x, int | float) and name != "seed"]
    return {
        "walk": walk,
        "states": content["states"],
        **sizes(maze),
        "true_eigenvalues": content["true_eigenvalues"],
        "seeds": num_seeds,
        "scores": {name: [row[name] for row in rows] for name in scores},
        "seconds": time.perf_counter() - started,  # all: set-up, compilation, training, scores
    }


def line(row: dict[str, Any]) -> str:
    means = {name: np.mean(x) for name, x in row["scores"].items()}
    names = ("similarity", "ceiling_similarity", "near_similarity", "rank_goals", "rank_sources")
    return f"{row['walk']}: " + ", ".join(f"{name} {means[name]:.4f}" for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--walks", nargs="+", default=WALKS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    for walk in options.walks:
        row = measure(walk, maze_of(walk), options.seeds)
        append(options.out, {**machine(), **row})  # at once: the next walk may take minutes
        print(line(row), flush=True)


if __name__ == "__main__":
    main()
