"""The command line that repeats a training."""

import shlex
from dataclasses import replace
from typing import Any

from train.host.command_line.defaults import chunks, suited_preset
from train.host.plain_config import flag, plain
from train.host.program import Program, Run

WHERE = ("directory", "resume", "devices", "distributed", "log", "live")
"""Fields of `run` that say where and how it is made, not what it learns."""


def training_command(run: Run, preset: str) -> str:
    """The command line that trains the same again, in a new directory, as a shell takes it.

    `preset` is the one that the configuration was made of.
    """
    preset, default = beginning(run.program, preset, run.config)
    settings = run.config.run
    usual = {name: getattr(default.run, name) for name in WHERE if hasattr(settings, name)}
    config = replace(run.config, run=replace(settings, **usual))
    return shlex.join([*run.program.command.split(), preset, *flags(plain(config), plain(default))])


def beginning(program: Program, preset: str, config: Any) -> tuple[str, Any]:
    """`(preset, configuration)` from which a command line begins that repeats `config`.

    `preset` is the one that `config` was made of.
    """
    preset = suited_preset(program, preset, config)
    default = program.presets[preset].config
    fields = chunks(config.run, default.run)
    if fields and fields["chunk_steps"] != config.run.chunk_steps:
        fields = {"chunk_steps": fields["chunk_steps"]}
    return preset, replace(default, run=replace(default.run, **fields))


def flags(value: Any, default: Any, name: str = "") -> list[str]:
    """The flags that turn `default` into `value`, both plain data."""
    if isinstance(value, dict):
        prefix = f"{name}." if name else ""
        return [x for key in value for x in flags(value[key], default[key], f"{prefix}{key}")]
    if value == default:
        return []
    if isinstance(value, bool):
        *path, switch = name.split(".")
        return [flag(".".join([*path, switch if value else f"no-{switch}"]))]
    return [flag(name), *map(str, value if isinstance(value, list) else [value])]
