"""`python -m train.sweep NAME [PRESET] --vary FIELD=VALUES ... [--field value ...]`."""

import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from jaxrl.checks import Count, CountOrZero
from train.host import records
from train.host.command import command, parse, parse_known
from train.host.config import check_options, field_of, flag, plain, rebuild
from train.host.errors import UsageError
from train.host.program import Program, find
from train.host.runs import with_evaluation
from train.sweep import batches, cluster, files, plan
from train.sweep.cluster import Cluster
from train.sweep.plan import Trial
from train.sweep.sweep import Sweep, Trials

USAGE = "python -m train.sweep NAME [PRESET]"
OF_ONE_RUN = ("num_seeds", "evaluate_every", "evaluate_games", "patience", "log")
"""Fields of `run` that a sweep does not take from the `--config` of a run."""


@dataclass(frozen=True)
class Options:
    """Trains many configurations and seeds of a program side by side, and compares them.

    NAME is a program, such as snake or gymnax; all flags of `python -m train.NAME` may be given,
    for all members. Numbers (learning rates, rewards, ...) are varied in one compilation, switches
    and sizes in one compilation each. Members that do not fit into memory together are trained in
    batches. The best configuration is scored again on seeds that had no part in choosing it.
    """

    vary: Annotated[list[str], tyro.conf.UseAppendAction] = field(default_factory=list)
    """What to try: FIELD=VALUE,VALUE,..., or with --random FIELD=LOW..HIGH or
    FIELD=log:LOW..HIGH. May be given several times; the grid combines all values."""
    seeds: Count = 3
    """Seeds of each configuration: run.seed, run.seed + 1, and so on."""
    random: CountOrZero = 0
    """Configurations drawn at random, beside the preset itself; 0: the grid."""
    confirm: Annotated[CountOrZero | None, tyro.conf.arg(metavar="INT")] = None
    """Fresh seeds on which the best configuration is scored again; None: as many as seeds."""
    directory: str = ""
    """Directory to create; empty: runs/sweep-NAME-DATE-TIME."""
    resume: Annotated[str, tyro.conf.arg(metavar="DIR")] = ""
    """Directory of a sweep to continue; nothing else is given then."""
    cluster: Cluster = field(default_factory=Cluster)


def main(arguments: list[str]) -> int:
    def sweep() -> None:
        given = list(arguments)
        name = given.pop(0) if given and not given[0].startswith("-") else ""
        preset = given.pop(0) if given and not given[0].startswith("-") else ""
        options, rest = parse_known(USAGE, Options, given)
        check_options(options)
        cluster.refuse(options)
        if options.resume:
            if name or rest:
                raise UsageError(f"--resume {options.resume} continues as it began: give no more")
            cluster.run(again(Path(options.resume)), options.cluster)
        else:
            cluster.run(begin(name, preset, options, rest), options.cluster)

    return command(sweep)


def begin(name: str, preset: str, options: Options, flags: list[str]) -> Sweep:
    """A new sweep. Raises UsageError before anything is written if something does not fit."""
    if not name:
        raise UsageError(f"which program? {USAGE}, such as: python -m train.sweep snake")
    program = find(name, "the command line")
    config, preset = parse(program, [*([preset] if preset else []), *flags], OF_ONE_RUN)
    if config.run.resume or config.run.directory or config.run.num_seeds != 1:
        raise UsageError("a sweep has --seeds, --directory and --resume of its own: use these")
    config = without_scores(config, program.presets[preset])
    planned = planned_of(program, preset, config, options, flags)
    groups = cluster.shared(planned.groups, options.cluster)
    parts = [part for group in groups for part in batches.batches(program, group)]
    directory = Path(options.directory or records.create_dated(Path("runs"), f"sweep-{name}"))
    if options.directory:
        records.create(options.directory, "sweep")
    files.write_plan(
        directory,
        {
            "program": program.address,
            "preset": preset,
            "config": plain(config),
            "options": {k: x for k, x in asdict(options).items() if k != "cluster"},
            "batches": [[trial.member for trial in part.trials] for part in parts],
        },
    )
    return made(program, preset, config, options, directory, planned._replace(groups=parts))


def without_scores(config: Any, default: Any) -> Any:
    """`config` without scores while training, and without a log: members are compared after it."""
    names = [x for x in ("evaluate_every", "patience", "log") if hasattr(config.run, x)]
    if given := [x for x in names if getattr(config.run, x) != getattr(default.run, x)]:
        raise UsageError(f"{flag(f'run.{given[0]}')} is for a single run: leave it out of a sweep")
    off = {"evaluate_every": 0, "patience": None, "log": "none"}
    return with_evaluation(config, **{name: off[name] for name in names})


def again(directory: Path) -> Sweep:
    """A sweep that was begun in `directory`."""
    saved = files.read_plan(directory)
    program = find(saved["program"], directory)
    config = rebuild(program.preset_of(directory, saved["preset"]), saved["config"])
    options = Options(**saved["options"])
    planned = planned_of(program, saved["preset"], config, options, [])
    groups = {trial.member: group for group in planned.groups for trial in group.trials}
    by_index = {trial.member: trial for trial in planned.trials}
    parts = [
        groups[batch[0]]._replace(trials=[by_index[i] for i in batch]) for batch in saved["batches"]
    ]
    return made(
        program, saved["preset"], config, options, directory, planned._replace(groups=parts)
    )


def made(
    program: Program, preset: str, config: Any, options: Options, directory: Path, planned: Trials
) -> Sweep:
    """The sweep; says what it will do."""
    console = Console(highlight=False, soft_wrap=True)
    configurations = {trial.configuration for trial in planned.trials}
    console.print(
        f"{len(configurations):,} configurations of {options.seeds} seeds, "
        f"{config.run.total_steps:,} {program.training(config).unit} each, in "
        f"{len(planned.groups)} batches; the sweep is in {directory}",
        markup=False,
    )
    confirm = options.seeds if options.confirm is None else options.confirm
    return Sweep(program, preset, config, directory, planned, confirm, console)


def planned_of(
    program: Program, preset: str, config: Any, options: Options, flags: list[str]
) -> Trials:
    """The members and the groups that are compiled together. Raises UsageError."""
    parsed = plan.reader(program, preset, flags)
    variations = [plan.variation(text, parsed, config) for text in options.vary]
    if len({x.name for x in variations}) < len(variations):
        raise UsageError("a field is varied twice: give all its values in one --vary")
    default = {x.name: field_of(config, x.name) for x in variations}
    if options.random and not variations:
        raise UsageError("--random draws what --vary names: give one")
    values = (
        plan.drawn(variations, options.random, config.run.seed, default)
        if options.random
        else plan.grid(variations)
    )
    seeds = range(config.run.seed, config.run.seed + options.seeds)
    trials: list[Trial] = plan.trials(values, seeds)
    known = next((i for i, x in enumerate(values) if x == default), None)
    return Trials(trials, plan.groups(program, config, preset, trials), known)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
