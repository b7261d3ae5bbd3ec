"""What a search begins with: its ranges, its schedule and its first candidates, all checked."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import jax

from jaxrl.checks import INT32
from train.host.errors import UsageError
from train.host.machine import memory
from train.host.program import Program
from train.sweep import batches, plan
from train.sweep.plan import Group, Interval, Variation
from train.sweep.search import schedule
from train.sweep.search.schedule import Schedule
from train.sweep.sweep import Trials

MEMBERS = 16
"""Slots, by default."""
STATES = 3
"""Of a slot, while candidates are replaced: the old one, a fresh one, and a copy."""
NEEDED = {"members": None, "rung": None, "reduction": 2, "budgets": None}
"""Options that need a search, with their defaults."""


class Options(Protocol):
    """Those of `train.sweep.build` that a search reads."""

    @property
    def search(self) -> str | None: ...
    @property
    def members(self) -> int | None: ...
    @property
    def rung(self) -> int | None: ...
    @property
    def reduction(self) -> int: ...
    @property
    def budgets(self) -> int | None: ...
    @property
    def seeds(self) -> int: ...
    @property
    def random(self) -> int: ...


class SearchPlan(NamedTuple):
    """A search before it begins."""

    config: Any  # its budget is that of a candidate, its chunks those of the schedule
    trials: Trials  # the first candidates, in one group
    ranges: dict[str, Interval]
    schedule: Schedule


def refuse_options(options: Options, seeds: int) -> None:
    """Raises UsageError for options that have no effect; `seeds` is the default of that one."""
    if options.search is None:
        for name, default in NEEDED.items():
            if getattr(options, name) != default:
                raise UsageError(f"--{name} has no effect without --search: leave it out")
        return
    if options.random or options.seeds != seeds:
        option = "random" if options.random else "seeds"
        raise UsageError(
            f"--{option} has no effect, as a search draws candidates of one seed each: "
            "see --members and --confirm"
        )
    if options.search == "population" and (options.reduction != 2 or options.budgets):
        option = "budgets" if options.budgets else "reduction"
        raise UsageError(f"--{option} is for --search halving: leave it out")
    if options.members is not None and options.members < 2:
        raise UsageError(f"--members {options.members}: a search compares two at least")


def make(
    program: Program, preset: str, config: Any, options: Options, variations: Sequence[Variation]
) -> SearchPlan:
    """The search. Raises UsageError for what does not fit, before anything is compiled."""
    ranges = ranges_of(program, options, variations)
    if getattr(config.run, "max_episodes", None):
        raise UsageError("a search has a budget of steps: leave out --run.max-episodes")
    training = program.training(config)
    is_halving = options.search == "halving"
    parts = options.reduction**schedule.HALVINGS if is_halving else schedule.PERIODS
    budgets = (options.budgets or schedule.BUDGETS) if is_halving else 1
    timetable = schedule.make(training, config.run, options.rung, parts, budgets)
    steps = {"total_steps": timetable.budget, "chunk_steps": timetable.chunk}
    steps = {name: updates * training.steps_per_update for name, updates in steps.items()}
    config = replace(config, run=replace(config.run, **steps, devices="1"))
    count = options.members or MEMBERS
    seed = config.run.seed
    if seed + count * timetable.candidates > INT32:
        raise UsageError(f"--run.seed {seed} leaves no room for a seed of each candidate")
    default = {x.name: plan.field_of(config, x.name) for x in variations}
    for end in ("low", "high"):
        refuse_end(program, preset, config, {k: getattr(x, end) for k, x in ranges.items()})
    configurations = plan.draw_configurations(variations, count - 1, seed, default)
    trials = [plan.Trial(i, i, seed + i, values) for i, values in enumerate(configurations)]
    (group,) = plan.groups(program, config, preset, trials)
    refuse_too_many(program, group)
    return SearchPlan(config, Trials(trials, [group], 0), ranges, timetable)


def ranges_of(
    program: Program, options: Options, variations: Sequence[Variation]
) -> dict[str, Interval]:
    """The ranges. Raises UsageError unless there are some, and each can be traced."""
    if not variations:
        raise UsageError(
            f"--search {options.search} needs ranges: give --vary FIELD=LOW..HIGH, or log:LOW..HIGH"
        )
    ranges = {}
    for name, choices in variations:
        if not isinstance(choices, Interval):
            raise UsageError(f"{name} has values: a search draws from a range, FIELD=LOW..HIGH")
        if name in program.static:
            raise UsageError(f"{name} cannot be searched: {program.static[name]}")
        ranges[name] = choices
    return ranges


def refuse_end(program: Program, preset: str, config: Any, values: dict[str, float]) -> None:
    """Raises UsageError if the program refuses the ends of all ranges together."""
    changed = plan.config_of(config, values)
    plan.check(program, changed, preset)
    try:
        program.training(changed)
    except ValueError as error:
        raise UsageError(f"{plan.values_text(values)}: {error}") from error


def refuse_too_many(
    program: Program, group: Group, free_bytes: Callable[[], int | None] = memory.free_bytes
) -> None:
    """Raises UsageError, which says how many fit, unless all slots fit into memory together."""
    count, free = len(group.trials), free_bytes()
    if free is None:
        return
    training = program.training(plan.config_of(group.config, group.trials[0].values))
    state = jax.eval_shape(training.init, jax.random.key(0))
    size = STATES * sum(map(memory.size_of, jax.tree.leaves(state)))
    fit = min(batches.max_members(program, group), int(batches.SHARE * free // size))
    if fit < count:
        raise UsageError(
            f"--members {count}: {fit} fit into memory together, and a search cannot be split"
        )
