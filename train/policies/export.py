"""`python -m train.policies`: exports trained policies as files and lists those of the package.

python -m train.policies export RUN NAME [--seed 0] [--hardware "2 cores of ..."] [--overwrite]
python -m train.policies compile RUN, or --policy NAME
python -m train.policies list

A policy is NAME.safetensors (see `train.host.files.policy_files`) with a card, NAME.md, in the
current directory; a path says where else. `--policy NAME` finds it there, after those of the
package in `train/trained/`; the path of such a file can be given, too. `--run.policy NAME` starts a
training from the parameters of a policy.
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
from jaxrl.types import AgentState
from train.host import abilities
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.errors import UsageError
from train.host.files import policy_files
from train.host.files.run_directory import RunDirectory
from train.host.files.whole_files import write_whole
from train.host.numbers import digits_text
from train.host.plain_config import plain
from train.host.program import Run
from train.host.running import saved_policies, saved_runs
from train.host.scoring import scores
from train.policies import card, compiled, dependence

LARGEST = 5_000_000
"""Largest size of the parameters of a policy in the package, in bytes."""

FACTS = ("entry_point", "preset", "updates", "scores")
"""What `facts` knows of a policy."""


@dataclass(frozen=True)
class Export:
    """Writes the policy of a run's newest checkpoint, and a card that describes it."""

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Run directory."""
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """Name of the files to write, or their path; both without or with .safetensors."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Which of several seeds."""
    best: bool = False
    """The policy that was best while training, kept in RUN/best, instead of the newest."""
    hardware: str = ""
    """What it was trained on, for the card; empty: the device recorded by the run."""
    licence: Annotated[str, tyro.conf.arg(metavar="TEXT", aliases=["--license"])] = ""
    """Licence of the policy, for the card, such as CC-BY-4.0; empty: that is left open."""
    overwrite: bool = False
    """Replace files that exist."""
    package: bool = False
    """Write into train/trained/, among the policies that come with the package."""


def main(arguments: list[str]) -> int:
    def policies(arguments: list[str]) -> None:
        match arguments:
            case ["export", *flags]:
                path = write(parse_flags("python -m train.policies export", Export, flags))
                print(path, path.with_suffix(".md"), sep="\n")
            case ["compile", *flags]:
                options = parse_flags("python -m train.policies compile", compiled.Compile, flags)
                print(*compiled.write(options), sep="\n")
            case ["list"]:
                Console().print(table())
            case ["--help" | "--help-all" | "-h"]:
                print(__doc__)
            case _:
                raise UsageError("expected: train.policies export RUN NAME, compile RUN, or list")

    return command(policies, arguments)


def export(
    directory: str | Path,
    name: str | Path,
    seed: int | None = None,
    hardware: str = "",
    licence: str = "",
    **flags: bool,
) -> Path:
    """Writes a policy and its card; returns the path of the policy. For arguments see `Export`.

    Raises UsageError for what cannot be exported.
    """
    return write(
        Export(str(directory), str(name), seed, hardware=hardware, licence=licence, **flags)
    )


def write(options: Export) -> Path:
    """`export`, as its command is given the arguments."""
    path = new_file(options)
    run = saved_runs.load(options.run, options.best)
    abilities.refuse_no_policies(run.program, run.directory)
    seed = saved_policies.one_seed(run, options.seed)
    agent = run.agents[run.seeds.index(seed)]
    arrays = policy_files.parameters(agent)
    size = sum(x.nbytes for x in arrays.values())
    if options.package and size > LARGEST:
        raise UsageError(
            f"{path} would have {size:,} bytes; expected at most {LARGEST:,}: give a path"
        )
    refuse_unkept(run, agent)
    directory, newest = RunDirectory(Path(options.run)), None if options.best else run.updates
    meta = checkpoint.read_meta(directory.checkpoints, newest)
    config = saved_runs.with_run_fields(run.config, seed=seed, num_seeds=1, directory="", resume="")
    content = {
        **facts(run, directory, seed, options.best),
        "config": plain(config),
        "trained": {name: meta[name] for name in ("versions", "device", "git")}
        | {"files": meta.get("files", {})},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    policy_files.write(path, arrays, content)
    licence = options.licence or (card.OF_OURS if options.package else card.OPEN)
    source = card.Source(run, meta["counters"], options.hardware, licence, options.best)
    text = card.card(path, source, content, arrays)
    write_whole(path.with_suffix(".md"), text)
    return path


def refuse_unkept(run: Run, agent: AgentState) -> None:
    """Raises UsageError if the agent, acting greedily, reads what a policy does not keep."""
    if names := dependence.read_outside_params(run.program, run.config, agent, greedy=True):
        raise UsageError(
            f"{run.directory} cannot be exported: acting greedily, its agent reads "
            f"{', '.join(names)} of its state, and a policy keeps only what is below a field named "
            "params: put it there"
        )


def facts(run: Run, directory: RunDirectory, seed: int, best: bool) -> dict[str, Any]:
    """What the file of a policy says of its training, but for the configuration.

    `directory` is that of the run, `best` whether its policies are those of its `best/`.
    """
    return {
        "entry_point": run.program.address,
        "preset": directory.config()["preset"],
        "updates": saved_runs.updates_of(run, seed, best),
        "scores": scores_of(run, seed),
    }


def scores_of(run: Run, seed: int) -> dict[str, Any] | None:
    """The row of a seed in `eval.json`, if it is of its newest agent acting greedily."""
    evaluation = scores.read_evaluation(run.directory)
    if evaluation is None or evaluation.get("updates", run.updates) != run.updates:
        return None
    if run.plays_games and not evaluation.get("greedy", run.config.run.evaluation_greedy):
        return None
    return next((row for row in evaluation["seeds"] if row["seed"] == seed), None)


def new_file(options: Export) -> Path:
    """The file to write.

    Raises UsageError for a name that could not be loaded again, and for files that exist.
    """
    name, path = options.name, policy_files.path_of(options.name)
    if not re.fullmatch(r"[\w-][\w.-]*", path.stem):
        raise UsageError(
            f"{name!r} is no name of a policy: expected letters, digits, _, - and ., as snake-10x10"
        )
    if options.package and policy_files.is_path(name):
        raise UsageError(f"--package expects a name such as snake-10x10, not the path {name}")
    if options.package:
        path = policy_files.TRAINED / path.name
    elif not policy_files.is_path(name) and name in policy_files.names():
        raise UsageError(f"{name} is a policy of the package: choose another name, or a path")
    for file in (path, path.with_suffix(".md")):
        if file.exists() and not options.overwrite:
            raise UsageError(f"{file} exists already: choose another name, or give --overwrite")
    return path


def table() -> Table | str:
    """The policies of the package with their scores; "?" where a program cannot be found."""
    if not policy_files.names():
        return f"there is no policy in {policy_files.TRAINED}"
    out = Table(box=box.SIMPLE_HEAD)
    for heading in ("policy", "run of", "updates", "score", "kB"):
        out.add_column(heading, justify="left" if heading in ("policy", "run of") else "right")
    for name in policy_files.names():
        try:
            out.add_row(name, *row(name))
        except UsageError as error:
            out.add_row(name, f"? ({error})", "?", "?", "?")
    return out


def row(name: str) -> list[str]:
    """What a policy is, its updates, score and size. Raises UsageError if it cannot be used."""
    path = policy_files.file_of(name)
    content = policy_files.read_metadata(path)
    run = saved_policies.as_run(name)
    score = run.program.training(run.config).score.name
    mean = (content["scores"] or {}).get(score)
    mean = mean.get("mean") if isinstance(mean, dict) else mean
    return [
        f"{content['entry_point']} {content['preset']}",
        f"{content['updates']:,}",
        "" if mean is None else digits_text(mean),
        f"{path.stat().st_size / 1000:,.0f}",
    ]
