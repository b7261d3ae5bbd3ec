"""`python -m train.policies`: trained policies as files, to be played without training.

python -m train.policies export RUN NAME [--seed 0] [--hardware "2 cores of ..."]
python -m train.policies list

A policy is NAME.safetensors (see `train.policy_files`), beside NAME.md, its card. Those of the
package lie in `train/trained/`; wherever a name is expected, the path of such a file will do.
`--run.policy NAME` begins a training with the parameters of one.
"""

import importlib
import itertools
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import jax
import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from jaxrl import checkpoint
from jaxrl.types import AgentState
from train import policy_card, policy_files, records, runs, scores
from train.command import command, parse_flags
from train.config import plain, rebuild
from train.errors import UsageError

ENTRY_POINTS = ("snake",)
"""Those whose `evaluation` takes policies: its `Options` have `policy` beside `run`, and it has
`film(run, games, key, directory)`, which returns the path of a film and a line of its score."""
LARGEST = 5_000_000
"""Bytes that the parameters of a policy of the package may have."""


class Policy(NamedTuple):
    """A policy, ready to act."""

    entry: ModuleType  # the module that trained it
    config: Any
    agent: AgentState  # with the parameters of the file, and 0 in all else


@dataclass(frozen=True)
class Export:
    """Writes the policy of a run's newest checkpoint, and a card that tells where it is from."""

    run: Annotated[str, tyro.conf.Positional]
    """Run directory."""
    name: Annotated[str, tyro.conf.Positional]
    """Name in the package, or the path of a .safetensors file."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Which of several seeds."""
    hardware: str = ""
    """What it was trained on, for the card; empty: what the run says of the device."""


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
    entry_point = run.entry.__name__.rpartition(".")[2]
    if entry_point not in ENTRY_POINTS:
        known = " and ".join(ENTRY_POINTS)
        raise UsageError(f"{directory} is a run of {entry_point}: policies are kept of {known}")
    path, seed = _new_file(name), _one_seed(run, seed)
    arrays = policy_files.parameters(run.agents[run.seeds.index(seed)])
    size = sum(x.nbytes for x in arrays.values())
    if path.parent == policy_files.TRAINED and size > LARGEST:
        raise UsageError(f"{name} would have {size:,} bytes; expected {LARGEST:,}: give a path")
    meta = checkpoint.read_meta(run.directory / records.CHECKPOINTS, run.updates)
    config = runs.with_evaluation(run.config, seed=seed, num_seeds=1, directory="", resume="")
    content = {
        "entry_point": entry_point,
        "preset": records.read_config(directory)["preset"],
        "config": plain(config),
        "updates": run.updates,
        "trained": {name: meta[name] for name in ("versions", "device", "git")},
        "scores": scores_of(run, seed),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    policy_files.write(path, arrays, content)
    text = policy_card.card(path.stem, run, content, meta["counters"], size, hardware)
    records.write_whole(path.with_suffix(".md"), text)
    return path


def scores_of(run: runs.Run, seed: int) -> dict[str, Any] | None:
    """What `eval.json` says of a seed, if that was found by its newest agent at its best."""
    found = scores.read_evaluation(run.directory)
    if found is None or found.get("updates", run.updates) != run.updates:
        return None
    if not found.get("greedy", run.config.run.evaluation_greedy):
        return None
    return next((row for row in found["seeds"] if row["seed"] == seed), None)


def load(name: str | Path) -> Policy:
    """A policy by its name or path. Raises UsageError, in one line, for what is not one."""
    run = as_run(name)
    return Policy(run.entry, run.config, run.agents[0])


def as_run(name: str | Path) -> runs.Run:
    """A policy as a run of one agent, in whose directory, `runs/policy-NAME`, nothing need be."""
    path = policy_files.file_of(name)
    content = policy_files.read_metadata(path)
    entry = entry_of(path, content)
    if content["preset"] not in entry.PRESETS:
        raise UsageError(f"{path} has the preset {content['preset']}, which is unknown here")
    default = entry.PRESETS[content["preset"]]
    try:
        config = rebuild(default, completed(content["config"], plain(default)))
        agent = jax.eval_shape(entry.make_training(config).init, jax.random.key(0)).agent
    except (ValueError, TypeError, UsageError) as error:
        raise UsageError(f"{path} cannot be used: {' '.join(str(error).split())}") from error
    arrays = policy_files.read_arrays(path, policy_files.parameters(agent))
    agents = [policy_files.with_parameters(agent, arrays)]
    return runs.Run(Path("runs", f"policy-{path.stem}"), entry, config, content["updates"], agents)


def completed(saved: Any, default: Any) -> Any:
    """`saved` with the fields that its version did not have yet as in `default`, plain data both.

    A run must not go on with numbers that were never said; a policy only acts, and whether it does
    so by the same network is checked by names and shapes.
    """
    if not (isinstance(saved, dict) and isinstance(default, dict)):
        return saved
    return default | {name: completed(x, default.get(name)) for name, x in saved.items()}


def opened(run: str | None, policy: str | None) -> runs.Run:
    """The run of a directory, or a policy as one; UsageError unless just one of them is given."""
    if run is not None and policy is None:
        return runs.load(run)
    if policy is not None and run is None:
        return as_run(policy)
    raise UsageError("expected a run directory or --policy NAME: give one of them, and not both")


def entry_named(arguments: Sequence[str]) -> ModuleType | None:
    """The module that trained the policy which a command's arguments name, if they name one."""
    for flag, value in itertools.pairwise([*arguments, ""]):
        name = value if flag == "--policy" else flag.removeprefix("--policy=")
        if name and name != flag:
            path = policy_files.file_of(name)
            return entry_of(path, policy_files.read_metadata(path))
    return None


def entry_of(path: Path, content: dict[str, Any]) -> ModuleType:
    """The module `train.NAME` that trained the policy there."""
    if content["entry_point"] not in ENTRY_POINTS:
        raise UsageError(f"{path} is a policy of {content['entry_point']}, which is unknown here")
    return importlib.import_module(f"train.{content['entry_point']}")


def _new_file(name: str) -> Path:
    """The file to write; UsageError for what would not be found again by its name."""
    path = policy_files.path_of(name)
    if path.suffix != ".safetensors" or not re.fullmatch(r"[\w-][\w.-]*", path.stem):
        raise UsageError(f"{name!r} is no name of a policy: expected one such as snake-10x10")
    return path


def _one_seed(run: runs.Run, seed: int | None) -> int:
    """The only one, unless another is asked for."""
    seeds = run.seeds
    if seed is None and len(seeds) == 1:
        return seeds[0]
    if seed not in seeds:
        known = ", ".join(map(str, seeds))
        raise UsageError(f"{run.directory} has no seed {seed}: choose --seed among {known}")
    return seed


def table() -> Table | str:
    """The policies of the package, and how good they were after training."""
    if not policy_files.names():
        return f"there is no policy in {policy_files.TRAINED}"
    out = Table(box=box.SIMPLE_HEAD)
    for heading in ("policy", "run of", "updates", "score", "kB"):
        out.add_column(heading, justify="left" if heading in ("policy", "run of") else "right")
    for name in policy_files.names():
        path = policy_files.file_of(name)
        content = policy_files.read_metadata(path)
        entry, found = entry_of(path, content), content["scores"] or {}
        mean = found.get(entry.SCORE, {}).get("mean")
        of = f"{content['entry_point']} {content['preset']}"
        score = "" if mean is None else f"{mean:.4g}"
        kilobytes = f"{path.stat().st_size / 1000:,.0f}"
        out.add_row(name, of, f"{content['updates']:,}", score, kilobytes)
    return out


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
