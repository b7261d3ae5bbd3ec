"""A sweep from its flags, or from the directory in which it was begun."""

from collections.abc import Collection
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from train.host.command_line.command import parse, with_flags
from train.host.command_line.defaults import fields_in, preset_line
from train.host.command_line.saved_config import split_config_flag
from train.host.command_line.suggestions import suggestion_text
from train.host.errors import UsageError, in_one_line
from train.host.files.run_directory import RunDirectory
from train.host.machine import devices
from train.host.machine.progress import plain_console, print_line
from train.host.numbers import quantity
from train.host.plain_config import check_options, field_of, flag, plain, rebuild
from train.host.program import Program, UnknownProgramError, find
from train.host.running.saved_runs import with_run_fields
from train.sweep import batches, cluster, files, plan
from train.sweep.options import Options, saved_options
from train.sweep.plan import Trial, Variation
from train.sweep.sweep import Sweep, Trials

USAGE = "python -m train.sweep NAME [PRESET]"
OF_ONE_RUN = ("num_seeds", "evaluate_every", "evaluate_games", "patience", "log")
"""Fields of `run` that a sweep does not take from the `--config` of a run."""
OFF = {"evaluate_every": 0, "patience": None, "log": "none", "live": False, "distributed": ""}
"""Fields of `run` that are for a single run, and their values in a sweep."""


def begin(name: str, preset: str, options: Options, flags: list[str]) -> Sweep:
    """A new sweep. Raises UsageError before anything is written if something does not fit."""
    if not name:
        raise UsageError(f"which program? {USAGE}, such as: python -m train.sweep snake")
    program = program_of(name)
    config, preset, variations = read(program, preset, options, flags)
    run, default = config.run, program.presets[preset].config.run
    if run.resume or run.directory or run.num_seeds != default.num_seeds:
        raise UsageError("a sweep has --seeds, --directory and --resume of its own: use these")
    refuse_large_seeds(run.seed, options)
    config = with_run_fields(config, num_seeds=1)  # some presets have several
    config = program.for_sweep(of_many_runs(config, fields_in(flags)))
    if config.run.devices.isdecimal():
        devices.refuse_missing(int(config.run.devices))
    RunDirectory.refuse_unusable(options.directory)  # before a long look at data
    try:
        refuse_by_guess(program, config, options, variations)
        config = program.complete(config)
    except ValueError as error:
        raise UsageError(with_flags(in_one_line(error), config)) from error
    sweep = make_sweep(program, preset, config, options, variations)
    if options.confirm and len({trial.configuration for trial in sweep.planned.trials}) == 1:
        raise UsageError("--confirm scores the best of several configurations again: leave it out")
    for group in sweep.planned.groups:
        batches.policy_of(program, group)  # refused before anything is written
    directory = RunDirectory.create(options.directory, f"sweep-{name}").path
    sweep = replace(sweep, directory=directory)
    files.write_plan(
        directory,
        {
            "program": program.address,
            "preset": preset,
            "config": plain(config),
            "options": {k: x for k, x in asdict(options).items() if k != "cluster"},
            "batches": [[trial.member for trial in part.trials] for part in sweep.planned.groups],
        },
    )
    return announce(sweep, options)


def refuse_by_guess(
    program: Program, config: Any, options: Options, variations: list[Variation]
) -> None:
    """Raises UsageError for values that the data refuse whatever else they say, and ValueError for
    data that are of no use themselves."""
    guess = program.guess(config)
    if guess is config:
        return
    program.training(guess)
    for values in configurations_of(guess, options, variations):
        plan.refuse_unfit(program, guess, values)


def refuse_large_seeds(seed: int, options: Options) -> None:
    """Raises UsageError unless all seeds, those of the confirmation too, have 31 bits."""
    last = seed + options.seeds + options.confirm_seeds - 1
    if last >= 2**31:
        raise UsageError(
            f"seeds must be below 2**31; {options.seeds} from --run.seed {seed} and "
            f"{options.confirm_seeds} to confirm the best go up to {last}: choose a smaller one"
        )


def read(
    program: Program, preset: str, options: Options, flags: list[str]
) -> tuple[Any, str, list[Variation]]:
    """The configuration of all members, its preset, and what is varied, which that suits, too.

    Raises UsageError where no preset suits all of it; the values in a file are used as they are.
    """
    # a flag may have an effect only with the values of a member: these are refused by `plan.check`
    read_flags = partial(parse, program, reset_fields=OF_ONE_RUN, refuses_idle=False)
    config, chosen = read_flags([*([preset] if preset else []), *flags])
    variations = variations_of(program, chosen, config, options, flags)
    presets = plan.suited_presets(program, chosen, config, variations)
    if split_config_flag(flags)[0] or presets.keys() == {chosen}:
        return config, chosen, variations
    if len(presets) > 1:
        places = ", ".join(f"{name} for {program.environment(x)}" for name, x in presets.items())
        raise UsageError(f"--vary needs different presets, {places}: sweep each of them by itself")
    ((suited, changed),) = presets.items()
    print_line(preset_line(program, chosen, suited, changed))
    return *read_flags([suited, *flags]), variations


def program_of(name: str) -> Program:
    """The program of a name, or of a module of one's own. Raises UsageError."""
    folders = (path.parent.name for path in Path(__file__).parents[1].glob("*/program.py"))
    program_names = sorted(x for x in folders if x != "host")
    try:
        return find(name, "the command line")
    except UnknownProgramError:
        if "." in name:  # a module of one's own
            raise
    guess = suggestion_text(name, program_names)
    raise UsageError(f"there is no program {name}{guess}: choose one of {', '.join(program_names)}")


def of_many_runs(config: Any, fields: Collection[str]) -> Any:
    """`config` without what is for a single run, such as scores while training, a log, a page.

    Members are compared after their training, and one that fails leaves the others alone. Raises
    UsageError if flags have set one of these to something, among other `fields`.
    """
    off = {name: value for name, value in OFF.items() if hasattr(config.run, name)}
    if config.run.on_nonfinite == "restore":  # takes back the updates of all members
        off["on_nonfinite"] = "raise"
    for name, value in off.items():
        own = flag(name if name in fields else f"run.{name}")  # some are without the prefix
        if {name, f"run.{name}"} & {*fields} and getattr(config.run, name) != value:
            what = f"{own} restore" if name == "on_nonfinite" else own
            raise UsageError(f"{what} is for a single run: leave it out of a sweep")
    return with_run_fields(config, **off)


def resume(directory: Path) -> Sweep:
    """A sweep that was begun in `directory`."""
    saved = files.read_plan(directory)
    program = find(saved["program"], directory)
    config = rebuild(program.preset_config(directory, saved["preset"]), saved["config"])
    check_options(config, str(directory / files.PLAN))
    options = saved_options(saved["options"], directory)
    variations = variations_of(program, saved["preset"], config, options, [])
    sweep = make_sweep(program, saved["preset"], config, options, variations, saved["batches"])
    return announce(replace(sweep, directory=directory), options)


def make_sweep(
    program: Program,
    preset: str,
    config: Any,
    options: Options,
    variations: list[Variation],
    saved: list[list[int]] | None = None,
) -> Sweep:
    """The sweep, without its directory; `saved` are the members of its batches."""
    console = plain_console()
    trials = make_trials(program, preset, config, options, variations)
    if saved is None:
        job_groups = cluster.split_groups(trials.groups, options.cluster)
        parts = [part for group in job_groups for part in batches.batches(program, group)]
    else:
        refuse_other_members(saved, len(trials.trials))
        groups = {trial.member: group for group in trials.groups for trial in group.trials}
        by_index = {trial.member: trial for trial in trials.trials}
        parts = [groups[x[0]]._replace(trials=[by_index[i] for i in x]) for x in saved]
    trials = trials._replace(groups=parts)
    return Sweep(program, preset, config, Path(), trials, options.confirm_seeds, console)


def refuse_other_members(batches: Any, count: int) -> None:
    """Raises UsageError unless the batches of a plan have each of so many members once."""
    is_listed = isinstance(batches, list) and all(isinstance(x, list) and x for x in batches)
    members = [i for batch in batches for i in batch] if is_listed else []
    if not all(type(i) is int for i in members) or sorted(members) != list(range(count)):
        raise UsageError(
            f"the batches in {files.PLAN} do not have each of its {quantity(count, 'members')} "
            "once: restore the file, and begin another sweep for other members"
        )


def announce(sweep: Sweep, options: Options) -> Sweep:
    """Says what a sweep will do, and returns it."""
    training, run = sweep.training, sweep.config.run
    configurations = {trial.configuration for trial in sweep.planned.trials}
    summary = (
        f"{quantity(len(configurations), 'configurations')} of "
        f"{quantity(options.seeds, 'seeds')}, {run.total_steps:,} {training.unit} each, "
        f"in {quantity(len(sweep.planned.groups), 'batches')}"
    )
    sweep.console.print(f"{summary}; the sweep is in {sweep.directory}", markup=False)
    if training.caution:
        sweep.console.print(training.caution, markup=False)
    return sweep


def variations_of(
    program: Program, preset: str, config: Any, options: Options, flags: list[str]
) -> list[Variation]:
    """What `--vary` says. Raises UsageError."""
    read_value = plan.reader(program, preset, flags)
    variations = [plan.variation(text, read_value, config) for text in options.vary]
    if len({x.name for x in variations}) < len(variations):
        raise UsageError("a field is varied twice: give all its values in one --vary")
    return variations


def make_trials(
    program: Program, preset: str, config: Any, options: Options, variations: list[Variation]
) -> Trials:
    """The members and the groups that are compiled together. Raises UsageError."""
    values = configurations_of(config, options, variations)
    default = default_values(config, variations)
    seeds = range(config.run.seed, config.run.seed + options.seeds)
    trials: list[Trial] = plan.trials(values, seeds)
    default_index = next((i for i, x in enumerate(values) if x == default), None)
    return Trials(trials, plan.groups(program, config, preset, trials), default_index)


def configurations_of(
    config: Any, options: Options, variations: list[Variation]
) -> list[dict[str, Any]]:
    """The values of each configuration that is tried. Raises UsageError."""
    if options.random and not variations:
        raise UsageError("--random draws what --vary names: give one")
    if not options.random:
        return plan.grid(variations)
    default = default_values(config, variations)
    return plan.draw_configurations(variations, options.random, config.run.seed, default)


def default_values(config: Any, variations: list[Variation]) -> dict[str, Any]:
    """What the fields that are varied are in `config`."""
    return {x.name: field_of(config, x.name) for x in variations}
