"""Presets in the shape for the device: the twin that has more environments, on GPUs and TPUs."""

from dataclasses import replace
from typing import Any

import jax

from train.host.errors import UsageError
from train.host.program import Preset, Program


def on_accelerator() -> bool:
    """Whether this process computes on a GPU or TPU."""
    return jax.default_backend() != "cpu"


def preset_for_device(program: Program, name: str) -> str:
    """The preset `name` or, on a GPU or TPU, the one of `Preset.wide`, if there is one.

    Raises UsageError if there is no preset of this name.
    """
    if name not in program.presets:
        names = ", ".join(program.presets)
        raise UsageError(f"{program.name} has no preset {name}: choose one of {names}")
    wide = program.presets[name].wide
    return wide if wide and on_accelerator() else name


def wide_preset(config: Any, num_envs: int, num_steps: int, summary: str, **agent: Any) -> Preset:
    """The twin of a configuration, with these numbers in its `loop` and others in its `agent`."""
    loop = replace(config.loop, num_envs=num_envs, num_steps=num_steps)
    return Preset(replace(config, loop=loop, agent=replace(config.agent, **agent)), summary)
