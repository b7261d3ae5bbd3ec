"""The configuration that a run has saved, as the default of a command line.

`--resume DIR` continues that run; `--config FILE` begins another with what it has saved.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from train.host.arguments import split_flag
from train.host.errors import UsageError
from train.host.plain_config import check_options, field_of, rebuild, with_field
from train.host.program import Program

C = TypeVar("C")


def split_config_flag(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The value of `--config`, empty without one, and the other arguments. Raises UsageError."""
    sources, others = split_flag(arguments, "--config")
    if len(sources) > 1 or "" in sources or any(x.startswith("--") for x in sources):
        raise UsageError("--config needs one FILE: the config.yaml of a run, or its directory")
    return (sources or [""])[0], others


def preset_and_config(
    program: Program, source: str, saved: dict[str, Any], chosen: str | None
) -> tuple[str, Any]:
    """`(preset, config)` of what `source` has saved; `chosen` is the preset that is asked for.

    Raises UsageError if it is of another program or preset, or holds what may not be there.
    """
    preset = saved["preset"]
    if saved["name"] != program.address:
        raise UsageError(f"{source} is a run of {saved['name']}, not of {program.address}")
    like = program.preset_config(source, preset)
    if chosen not in (None, preset):
        raise UsageError(f"{source} has the preset {preset}: leave out {chosen}")
    config = rebuild(like, saved["config"])
    check_options(config, source)
    return preset, config


def without_run_location(config: C, preset: Any, reset_fields: Collection[str]) -> C:
    """`config` for another run: its place and the `reset_fields` of `run` are those of `preset`."""
    names = [x for x in ("directory", "resume", *reset_fields) if hasattr(preset.run, x)]
    run = replace(field_of(config, "run"), **{name: getattr(preset.run, name) for name in names})
    return with_field(config, "run", run)
