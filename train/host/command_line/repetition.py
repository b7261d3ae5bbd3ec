"""The command line that repeats a training."""

import shlex
from dataclasses import replace
from typing import Any

from train.host.command_line.defaults import chunks, suited_preset
from train.host.plain_config import flag, flatten, plain
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
    return shlex.join([*run.program.command.split(), preset, *flags(config, default)])


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


def flags(config: Any, default: Any) -> list[str]:
    """The flags that turn `default` into `config`, of one type."""
    values, old = flatten(plain(config)), flatten(plain(default))
    changed = [name for name, value in values.items() if value != old[name]]
    return [word for name in changed for word in _words(flag(name, config), values[name])]


def _words(flag: str, value: Any) -> list[str]:
    """A flag with a value as plain data; a switch has none."""
    if isinstance(value, bool):
        place, dot, last = flag.rpartition(".")
        return [flag if value else f"{place}{dot}no-{last}" if dot else f"--no-{flag[2:]}"]
    return [flag, *map(str, value if isinstance(value, list) else [value])]
