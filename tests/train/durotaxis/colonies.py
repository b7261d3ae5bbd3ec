"""A small colony, its rows of a table and results of its episodes."""

import csv
from pathlib import Path

from envs.durotaxis.actions import Bounds
from tests.envs.durotaxis import oracle
from train.durotaxis.config import Experiment

GROUND = oracle.Ground(width=60, height=40, slope=0.05, base=1.0)
COUNT = 16
SMALL = Experiment(
    **{"width": 60, "height": 40, "observation": "local", "capacity": 10, "threshold_nodes": 10.0},
    **{"max_steps_in_episode": 40, "bounds": Bounds(delete_ratio=(0.42, 0.7))},
)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))
