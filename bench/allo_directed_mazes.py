"""How near `directed` comes to its ceiling in twelve mazes that are hard in ways of their own.

python -m bench.allo_directed_mazes [--seeds 10] [--mazes portals-46 …]

The mazes are those of `bench.directed_mazes`. A line is added as soon as a maze is done;
mazes that the file already has, with as many seeds, transitions, steps and features, are left out.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

from bench.allo_directed import measure, sizes
from bench.directed_mazes import MAZES
from bench.snake_speed import append, machine
from train.allo.maze import Maze

RESULTS = Path(__file__).parent / "results" / "allo_directed_mazes.json"


def missing_mazes(names: list[str], num_seeds: int, path: Path) -> list[str]:
    """The mazes that were not measured with so many seeds and with the sizes of the preset."""
    records = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    key = {**sizes(Maze()), "seeds": num_seeds}
    done = {record["walk"] for record in records if key.items() <= record.items()}
    return [name for name in names if name not in done]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mazes", nargs="+", default=list(MAZES), choices=list(MAZES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    for name in missing_mazes(options.mazes, options.seeds, options.out):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / f"{name}.txt"
            file.write_text(MAZES[name].text, encoding="utf-8")
            row = measure(name, Maze(maze_file=str(file), wind=MAZES[name].wind), options.seeds)
        append(options.out, {**machine(), **row})  # at once: the next maze may take minutes
        scores = {key: np.array(x) for key, x in row["scores"].items()}
        gaps = scores["ceiling_similarity"] - scores["similarity"]
        print(
            f"{name}: similarity {scores['similarity'].mean():.4f}, ceiling "
            f"{scores['ceiling_similarity'].mean():.4f}, at most {gaps.max():.4f} below it",
            flush=True,
        )


if __name__ == "__main__":
    main()
