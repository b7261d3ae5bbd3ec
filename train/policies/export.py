"""`python -m train.policies`: exports trained policies as files and lists those of the package.

python -m train.policies export RUN NAME [--seed 0] [--hardware "2 cores of ..."]
python -m train.policies list

A policy is NAME.safetensors (see `train.host.policy_files`) with a card, NAME.md. Those of the
package are in `train/trained/`; wherever a name is expected, the path of such a file can be given.
`--run.policy NAME` starts a training from the parameters of a policy.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from jaxrl import checkpoint
from train.host import policy_files, records, runs, scores
from train.host.command import command, parse_flags
from train.host.config import plain
from train.host.errors import UsageError
from train.host.program import Run
from train.policies import card, store

LARGEST = 5_000_000
"""Largest size of the parameters of a policy in the package, in bytes."""


@dataclass(frozen=True)
class Export:
    """Writes the policy of a run's newest checkpoint, and a card that describes it."""

    run: Annotated[str, tyro.conf.Positional]
    """Run directory."""
    name: Annotated[str, tyro.conf.Positional]
    """Name in the package, or the path of a .safetensors file."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Which of several seeds."""
    hardware: str = ""
    """What it was trained on, for the card; empty: the device recorded by the run."""


def main(arguments: list[str]) -> int:
    def policies() -> None:
        match arguments:
            case ["export", *flags]:
                options = parse_flags("python -m train.policies export", Export, flags)
                path = export(options.run, options.name, options.seed, options.hardware)
                print(path, path.with_suffix(".md"), sep="\n")
            case ["list"]:
                Console().print(table())
            case ["--help"] | ["-h"]:
                print(__doc__)
            case _:
                raise UsageError("expected: python -m train.policies export RUN NAME, or list")

    return command(policies)


def export(directory: str | Path, name: str, seed: int | None = None, hardware: str = "") -> Path:
    """Writes a policy and its card; returns the path of the policy. For arguments see `Export`.

    Raises UsageError for what cannot be exported.
    """
    run = runs.load(directory)
    path, seed = _new_file(name), _one_seed(run, seed)
    arrays = policy_files.parameters(run.agents[run.seeds.index(seed)])
    size = sum(x.nbytes for x in arrays.values())
    if path.parent == policy_files.TRAINED and size > LARGEST:
        raise UsageError(f"{name} would have {size:,} bytes; expected {LARGEST:,}: give a path")
    meta = checkpoint.read_meta(run.directory / records.CHECKPOINTS, run.updates)
    config = runs.with_evaluation(run.config, seed=seed, num_seeds=1, directory="", resume="")
    content = {
        "entry_point": run.program.address,
        "preset": records.read_config(directory)["preset"],
        "config": plain(config),
        "updates": run.updates,
        "trained": {name: meta[name] for name in ("versions", "device", "git")},
        "scores": scores_of(run, seed),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    policy_files.write(path, arrays, content)
    text = card.card(path.stem, run, content, meta["counters"], size, hardware)
    records.write_whole(path.with_suffix(".md"), text)
    return path


def scores_of(run: Run, seed: int) -> dict[str, Any] | None:
    """The row of a seed in `eval.json`, if it is of its newest agent acting greedily."""
    found = scores.read_evaluation(run.directory)
    if found is None or found.get("updates", run.updates) != run.updates:
        return None
    if run.plays_games and not found.get("greedy", run.config.run.evaluation_greedy):
        return None
    return next((row for row in found["seeds"] if row["seed"] == seed), None)


def _new_file(name: str) -> Path:
    """The file to write. Raises UsageError for a name that could not be loaded again."""
    path = policy_files.path_of(name)
    if path.suffix != ".safetensors" or not re.fullmatch(r"[\w-][\w.-]*", path.stem):
        raise UsageError(f"{name!r} is no name of a policy: expected one such as snake-10x10")
    return path


def _one_seed(run: Run, seed: int | None) -> int:
    """The seed to export: the given one, or the only one. Raises UsageError if it is not clear."""
    seeds = run.seeds
    if seed is None and len(seeds) == 1:
        return seeds[0]
    if seed not in seeds:
        known = ", ".join(map(str, seeds))
        raise UsageError(f"{run.directory} has no seed {seed}: choose --seed among {known}")
    return seed


def table() -> Table | str:
    """The policies of the package with their scores."""
    if not policy_files.names():
        return f"there is no policy in {policy_files.TRAINED}"
    out = Table(box=box.SIMPLE_HEAD)
    for heading in ("policy", "run of", "updates", "score", "kB"):
        out.add_column(heading, justify="left" if heading in ("policy", "run of") else "right")
    for name in policy_files.names():
        path = policy_files.file_of(name)
        content = policy_files.read_metadata(path)
        found = store.as_run(name)
        score = found.program.training(found.config).score
        mean = (content["scores"] or {}).get(score)
        mean = mean.get("mean") if isinstance(mean, dict) else mean
        of = f"{content['entry_point']} {content['preset']}"
        score = "" if mean is None else f"{mean:.4g}"
        kilobytes = f"{path.stat().st_size / 1000:,.0f}"
        out.add_row(name, of, f"{content['updates']:,}", score, kilobytes)
    return out
