"""What a sweep trains: configurations from the values to try, and seeds of each.

A variation names a field and what to try: `agent.learning_rate=1e-4,3e-4`, values that the grid
combines, or `agent.learning_rate=log:1e-4..1e-2` and `agent.discount=0.9..0.99`, ranges from which
`--random` draws.
"""

import contextlib
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxrl import checks
from train.host.command_line.command import parse, refuse_idle
from train.host.command_line.suggestions import suggestion_text
from train.host.errors import UsageError
from train.host.numbers import digits_text
from train.host.plain_config import field_of, flag, names_below, numbers, with_field
from train.host.program import Program

MOST = 1_000_000
"""Members, at most."""
_RANGE = re.compile(r"(?P<scale>log:|linear:)?(?P<low>\.?[^.:]\S*?)\.\.(?P<high>\S+)")


class Interval(NamedTuple):
    """Numbers to draw from, uniformly or, if `log`, with uniform logarithms."""

    low: float
    high: float
    log: bool

    def draw(self, rng: np.random.Generator) -> float:
        if self.log:
            return float(np.exp(rng.uniform(np.log(self.low), np.log(self.high))))
        return float(rng.uniform(self.low, self.high))


class Variation(NamedTuple):
    """A field by its dotted name, and what to try."""

    name: str
    choices: tuple[Any, ...] | Interval

    def draw(self, rng: np.random.Generator) -> Any:
        if isinstance(self.choices, Interval):
            return self.choices.draw(rng)
        return self.choices[int(rng.integers(len(self.choices)))]


class Trial(NamedTuple):
    """A member of a sweep before it is trained."""

    member: int  # from 0
    configuration: int  # from 0
    seed: int
    values: Mapping[str, Any]  # of the fields that are varied


class Group(NamedTuple):
    """Members that one compiled program trains: their configurations differ in numbers alone."""

    config: Any  # with the switches and sizes of these members
    names: tuple[str, ...]  # of the numbers that differ
    trials: list[Trial]

    def numbers(self) -> dict[str, list[float]]:
        return {name: [float(trial.values[name]) for trial in self.trials] for name in self.names}


def variation(text: str, read_value: Callable[[str, str], Any], config: Any) -> Variation:
    """What a `--vary` says; `read_value(name, value)` reads one value. Raises UsageError."""
    name, equals, choices_text = text.partition("=")
    name = name.strip().removeprefix("--").replace("-", "_")
    if not equals or not choices_text.strip():
        raise UsageError(f"--vary {text}: expected FIELD=VALUE,VALUE,... or FIELD=LOW..HIGH")
    if name.partition(".")[0] == "run":
        raise UsageError(f"--vary {text}: fields of run cannot be varied; see --seeds")
    if name not in (field_names := names_below(config, "")):
        guess = suggestion_text(name, field_names)
        raise UsageError(f"--vary {text}: there is no field {name}{guess}; --help lists all")
    if match := _RANGE.fullmatch(choices_text.strip()):
        return Variation(name, interval(text, name, match, read_value))
    choices = tuple(read_value(name, value.strip()) for value in choices_text.split(","))
    if len(set(map(str, choices))) < len(choices):
        raise UsageError(f"--vary {text}: a value is there twice")
    return Variation(name, choices)


def interval(
    text: str, name: str, match: re.Match, read_value: Callable[[str, str], Any]
) -> Interval:
    """A range of numbers. Raises UsageError unless it is one."""
    low, high = (read_value(name, match[end]) for end in ("low", "high"))
    if isinstance(low, int) and isinstance(high, int) and not isinstance(low, bool):
        raise UsageError(f"--vary {text}: whole numbers are listed, as {name}=4,16,64")
    if not isinstance(low, float) or not isinstance(high, float) or not low < high:
        raise UsageError(f"--vary {text}: expected a range LOW..HIGH of numbers, LOW below HIGH")
    if not math.isfinite(high - low):
        raise UsageError(f"--vary {text}: a range has finite ends: give a smaller one")
    log = match["scale"] == "log:"
    if log and low <= 0:
        raise UsageError(f"--vary {text}: a logarithmic range begins above 0")
    return Interval(low, high, log)


def reader(program: Program, preset: str, flags: Sequence[str]) -> Callable[[str, str], Any]:
    """`(name, value) -> value` as the command line of the program reads it."""
    # the preset is chosen already; `check` refuses what has no effect with all values together
    program = program._replace(preset_for=lambda preset, config: preset)

    def read_value(name: str, value: str) -> Any:
        if not value:
            raise UsageError(f"--vary {name}: a value is empty")
        default = program.presets[preset].config
        if isinstance(field_of(default, name), bool):
            return parse_switch(name, value)
        words = [preset, *flags, flag(name, default), *value.split()]
        config, _ = parse(program, words, refuses_idle=False)
        return field_of(config, name)

    return read_value


def parse_switch(name: str, value: str) -> bool:
    """A value of a switch, which as a flag has none. Raises UsageError."""
    switch_values = {"true": True, "on": True, "false": False, "off": False}
    if value.lower() not in switch_values:
        raise UsageError(f"--vary {name}={value}: a switch is on or off")
    return switch_values[value.lower()]


def suited_presets(
    program: Program, preset: str, config: Any, variations: Sequence[Variation]
) -> dict[str, Any]:
    """The presets that suit the configurations to try, each with the first of these.

    One that the program refuses needs none.
    """
    fixed = [x for x in variations if not isinstance(x.choices, Interval)]
    fixed = [x for x in fixed if not isinstance(x.choices[0], float)]  # a number suits as another
    presets: dict[str, Any] = {}
    for values in grid(fixed):
        changed = config_of(config, values)
        with contextlib.suppress(ValueError):
            presets.setdefault(program.preset_for(preset, changed), changed)
    return presets or {preset: config}


def grid(variations: Sequence[Variation]) -> list[dict[str, Any]]:
    """Every combination of the values. Raises UsageError for ranges."""
    for name, choices in variations:
        if isinstance(choices, Interval):
            raise UsageError(f"{name} has a range: say how many to draw with --random")
    names = [name for name, _ in variations]
    return [
        dict(zip(names, chosen, strict=True))
        for chosen in itertools.product(*(choices for _, choices in variations))
    ]


def draw_configurations(
    variations: Sequence[Variation], count: int, seed: int, default: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The default, to compare with, and `count` configurations drawn at random."""
    rng = np.random.default_rng(seed)
    others = [{name: one.draw(rng) for name, one in with_names(variations)} for _ in range(count)]
    return [dict(default), *others]


def with_names(variations: Sequence[Variation]) -> list[tuple[str, Variation]]:
    return [(one.name, one) for one in variations]


def trials(configurations: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> list[Trial]:
    """A member for each configuration and seed. Raises UsageError for too many."""
    count = len(configurations) * len(seeds)
    if count > MOST:
        raise UsageError(f"{count:,} members are more than {MOST:,}: try fewer values or seeds")
    pairs = itertools.product(enumerate(configurations), seeds)
    return [Trial(i, c, seed, values) for i, ((c, values), seed) in enumerate(pairs)]


def config_of(config: Any, values: Mapping[str, Any]) -> Any:
    """`config` with the values of some fields."""
    for name, value in values.items():
        config = with_field(config, name, value)
    return config


def groups(program: Program, config: Any, preset: str, members: Sequence[Trial]) -> list[Group]:
    """Members by what one compiled program can train. Raises UsageError for bad configurations."""
    names = tuple(members[0].values)
    traced_names = tuple(x for x in names if x in numbers(config) and x not in program.static)
    groups_by_key: dict[str, Group] = {}
    for trial in members:
        fixed = {name: x for name, x in trial.values.items() if name not in traced_names}
        base = config_of(config, fixed)
        groups_by_key.setdefault(repr(fixed), Group(base, traced_names, [])).trials.append(trial)
    configurations = {trial.configuration: trial.values for trial in members}.values()
    for values in configurations:
        check(program, config_of(config, values), preset)
    for values in configurations:
        refuse_unfit(program, config, values)
    return list(groups_by_key.values())


def refuse_unfit(program: Program, config: Any, values: Mapping[str, Any]) -> None:
    """Raises UsageError for values with which the program refuses to be trained.

    Each configuration is asked for: the numbers of members are traced, which nothing can refuse.
    """
    try:
        program.training(config_of(config, values))
    except ValueError as error:
        raise UsageError(f"{values_text(values)}: {error}") from error


def check(program: Program, config: Any, preset: str) -> None:
    """Raises UsageError for a value that is not as declared, or has no effect."""
    try:
        checks.config(config)
    except checks.OutOfRange as error:
        raise UsageError(f"{flag(error.name, config)} {error.problem}") from error
    refuse_idle(program, config, program.presets[preset].config)


def values_text(values: Mapping[str, Any]) -> str:
    """Values of fields in a line: `agent.clip=0.1 loop.num_envs=64`."""
    return " ".join(f"{name}={text_of(value)}" for name, value in values.items()) or "the preset"


def text_of(value: Any) -> str:
    """A value as in a table: numbers with four significant digits."""
    if isinstance(value, tuple):
        return " ".join(map(text_of, value))
    return digits_text(value) if isinstance(value, float) else str(value)
