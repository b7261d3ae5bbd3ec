"""The configuration that a run has saved, as the default of a command line.

`--resume DIR` continues that run; `--config FILE` begins another with what it has saved.
"""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from train.host.errors import UsageError
from train.host.plain_config import check_options, field_of, rebuild, with_field
from train.host.program import Program

C = TypeVar("C")


def resumed(arguments: Sequence[str]) -> str | None:
    """The value of `--resume`, which is needed before the other flags can be parsed."""
    for argument, value in itertools.zip_longest(arguments, arguments[1:]):
        if argument == "--resume" and value:
            return value
        if argument.startswith("--resume="):
            return argument.partition("=")[2]
    return None


def without_config(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The value of `--config`, empty without one, and the other arguments. Raises UsageError."""
    found, rest, given = [], [], iter(arguments)
    for argument in given:
        name, equals, value = argument.partition("=")
        if name == "--config":
            found.append(value if equals else next(given, ""))
        else:
            rest.append(argument)
    if len(found) > 1 or "" in found or any(x.startswith("--") for x in found):
        raise UsageError("--config needs one FILE: the config.yaml of a run, or its directory")
    return (found or [""])[0], rest


def saved_by(
    program: Program, source: str, saved: dict[str, Any], chosen: str | None
) -> tuple[str, Any]:
    """`(preset, config)` of what `source` has saved; `chosen` is the preset that is asked for.

    Raises UsageError if it is of another program or preset, or holds what may not be there.
    """
    preset = saved["preset"]
    if saved["name"] != program.address:
        raise UsageError(f"{source} is a run of {saved['name']}, not of {program.address}")
    like = program.preset_of(source, preset)
    if chosen not in (None, preset):
        raise UsageError(f"{source} has the preset {preset}: leave out {chosen}")
    config = rebuild(like, saved["config"])
    check_options(config, source)
    return preset, config


def elsewhere(config: C, preset: Any, left: Collection[str]) -> C:
    """`config` for another run: as in `preset` are its place and the fields of `run` in `left`."""
    names = [x for x in ("directory", "resume", *left) if hasattr(preset.run, x)]
    run = replace(field_of(config, "run"), **{name: getattr(preset.run, name) for name in names})
    return with_field(config, "run", run)
