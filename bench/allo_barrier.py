"""How far the accuracy of eigenvectors depends on the barrier: its first weight and its growth.

python -m bench.allo_barrier [CASE ...] [--runs runs/barrier]
python -m bench.allo_barrier --draw docs/images/allo_barrier.png

Every case, a preset on a maze, is one sweep of `train.sweep`: three seeds of each combination of
`agent.barrier_start` and `agent.barrier_step`, all in one compilation. Sweeps are kept and
continued, so that the measurement may be interrupted; cases that results/allo_barrier.json holds,
with as many steps, transitions and seeds and the same barriers, are passed over.
"""

import argparse
import csv
import hashlib
import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from bench.snake_speed import append, machine
from train.host.showing.pictures import BLUE, GREY, VERMILLION, legend_below, save

RESULTS = Path(__file__).parent / "results" / "allo_barrier.json"
STARTS, STEPS = (0.1, 0.5, 2.0, 10.0), (0.0, 0.01, 1.0)
SEEDS = 3
TRANSITIONS = 200_000


class Case(NamedTuple):
    """What is trained."""

    preset: str
    maze: str
    steps: int  # gradient steps of each member

    @property
    def name(self) -> str:
        return f"{self.preset} {self.maze}"


CASES = (
    Case("allo", "GridMaze-9", 5_000),
    Case("allo", "GridRoom-4", 5_000),
    Case("paper", "GridMaze-9", 16_400),
    Case("ggdo", "GridMaze-9", 10_000),
)


def flags(case: Case) -> list[str]:
    """The command line of a sweep after `python -m train.sweep`."""
    values = lambda numbers: ",".join(map(str, numbers))
    return [
        *("allo", case.preset, "--env.maze", case.maze),
        f"--env.transitions={TRANSITIONS}",
        f"--run.total-steps={case.steps}",
        "--agent.barrier-limit=10000",  # or that of the preset would hide the growth
        *("--vary", f"agent.barrier_start={values(STARTS)}"),
        *("--vary", f"agent.barrier_step={values(STEPS)}"),
        *("--seeds", str(SEEDS), "--confirm=0"),
    ]


def measure(case: Case, directory: Path) -> dict[str, Any]:
    """Runs a sweep, or goes on with it, and reads what it has written."""
    is_begun = (directory / "sweep.yaml").is_file()
    sweep_flags = flags(case)
    arguments = (
        ["--resume", str(directory)] if is_begun else [*sweep_flags, "--directory", str(directory)]
    )
    subprocess.run([sys.executable, "-m", "train.sweep", *arguments], check=True)
    rows_by_place: dict[tuple[float, float], list[dict[str, Any]]] = {}
    with (directory / "members.csv").open(newline="", encoding="utf-8") as file:
        members = {int(row["member"]): row for row in csv.DictReader(file)}
    for path in sorted(directory.glob("batches/*/scores.json")):
        for row in json.loads(path.read_bytes()):
            values = members[row["member"]]
            place = float(values["agent.barrier_start"]), float(values["agent.barrier_step"])
            rows_by_place.setdefault(place, []).append(row)
    return {
        **machine(),
        "case": case.name,
        "steps": case.steps,
        "transitions": TRANSITIONS,
        "command": " ".join(["python -m train.sweep", *sweep_flags]),
        "rows": [
            {
                "start": start,
                "step": step,
                "similarity": [row["score"] for row in rows],
                "ceiling": [(row["evaluation"] or {}).get("ceiling") for row in rows],
            }
            for (start, step), rows in sorted(rows_by_place.items())
        ],
    }


def is_measured(case: Case, record: dict[str, Any]) -> bool:
    """Whether a record is of this case as it is now. Old ones do not say their steps."""
    seeds = {(row["start"], row["step"]): len(row["similarity"]) for row in record["rows"]}
    sizes = (record["case"], record.get("steps", case.steps), record["transitions"], seeds)
    return sizes == (
        case.name,
        case.steps,
        TRANSITIONS,
        dict.fromkeys(product(STARTS, STEPS), SEEDS),
    )


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Similarity of every seed over the first weight, a line for each growth; a panel a case."""
    figure = Figure(figsize=(10, 2.9 * -(-len(records) // 2) + 0.4), dpi=150, layout="constrained")
    panels = figure.subplots(-(-len(records) // 2), 2, sharey=True, squeeze=False).ravel()
    for axes, record in zip(panels, records, strict=False):
        for step, colour in zip(STEPS, (GREY, BLUE, VERMILLION), strict=True):
            rows = [row for row in record["rows"] if row["step"] == step]
            points = [(r["start"], s) for r in rows for s in r["similarity"] if s is not None]
            means = [(r["start"], mean_of(r["similarity"])) for r in rows if any(r["similarity"])]
            axes.plot(*zip(*points, strict=True), ".", color=colour, alpha=0.5)
            axes.plot(*zip(*means, strict=True), color=colour, label=f"growth {step:g}")
        axes.set(
            xscale="log", ylim=(0, 1.03), xlabel="barrier at the start, b", ylabel="similarity"
        )
        axes.set_title(record["case"], loc="left", size=10)
    for axes in panels[len(records) :]:
        axes.remove()
    legend_below(figure, panels[0].get_legend_handles_labels()[0])
    save(figure, path)


def mean_of(scores: list[float | None]) -> float:
    """The mean of the seeds that did not diverge."""
    return float(np.mean([score for score in scores if score is not None]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="such as 'paper GridMaze-9'; default: all")
    parser.add_argument("--runs", type=Path, default=Path("runs/barrier"))
    parser.add_argument("--draw", type=Path, help="only draw what was measured, into this file")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.draw:
        results = {row["case"]: row for row in json.loads(options.out.read_bytes())}
        draw([results[case.name] for case in CASES if case.name in results], options.draw)
        return
    for case in CASES:
        saved_records = json.loads(options.out.read_bytes()) if options.out.is_file() else []
        is_selected = not options.cases or case.name in options.cases
        if is_selected and not any(is_measured(case, record) for record in saved_records):
            # named by all it varies, or a sweep of other sizes would be continued in its place
            digest = hashlib.sha256(" ".join(flags(case)).encode()).hexdigest()[:8]
            results = measure(case, options.runs / f"{case.name.replace(' ', '-')}-{digest}")
            append(options.out, results)
            print(case.name, results["rows"], flush=True)


if __name__ == "__main__":
    main()
