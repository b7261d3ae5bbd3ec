"""The defaults that suit a configuration: the preset for its environment, chunks for its budget."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import jax

from train.host import device_presets
from train.host.program import Program
from train.host.training import Config

LEAST_ROWS = 40
"""Rows of the record, at least, of a budget that is smaller than that of the defaults."""
ROUNDING = 4 / 3
"""By which whole updates may lengthen a chunk of one and a half of them."""


def fields_in(arguments: Sequence[str]) -> set[str]:
    """The dotted names of the fields that flags set: `run.chunk_steps`."""
    flags = (x.partition("=")[0] for x in arguments if x.startswith("--"))
    return {x.removeprefix("--").replace("-", "_") for x in flags}


def first_preset(program: Program) -> str:
    """The preset where none is named: the first or, on a GPU or TPU, the one shaped for it."""
    return device_presets.preset_for_device(program, next(iter(program.presets)))


def shape_line(program: Program, preset: str, is_named: bool) -> str:
    """What is said of presets in two shapes; nothing on CPUs, and of a preset in one shape."""
    first, wide = next(iter(program.presets)), program.presets[preset].wide
    if not device_presets.on_accelerator():
        return ""
    device = jax.devices()[0].device_kind
    if is_named and wide:
        return f"{program.name}: {wide} is {preset} in the shape for this device ({device})"
    if not is_named and preset != first:
        return f"{program.name}: {preset} on this device ({device}); name {first} to have that"
    return ""


def suited_preset(program: Program, preset: str, config: Any) -> str:
    """The preset for the environment of `config`; `preset` if there is no such environment."""
    try:
        return program.preset_for(preset, config)
    except ValueError:
        return preset  # `Program.training` refuses it, with a message of its own


def preset_line(program: Program, preset: str, suited: str, config: Any) -> str:
    """What is said where the preset `suited` takes the place of another one."""
    return f"{program.name}: {preset} for {program.environment(config)} is the preset {suited}"


def follow_budget(config: Any, default: Any, chosen: Collection[str]) -> Any:
    """`config` with chunks that suit its budget, unless flags have `chosen` these fields."""
    fields = {} if "run.chunk_steps" in chosen else chunks(config.run, default.run)
    fields = {name: x for name, x in fields.items() if f"run.{name}" not in chosen}
    return replace(config, run=replace(config.run, **fields))


def chunks(run: Config, default: Config) -> dict[str, int]:
    """The fields of `run` that say how long a chunk is, for a budget smaller than `default` has.

    There are as many chunks as by default, and no fewer than `LEAST_ROWS`; scores while training
    keep their share of the budget.
    """
    share = min(_shares(run, default))
    if share >= 1:
        return {}
    usual = default.total_steps / default.chunk_steps
    rows = max(usual, ROUNDING * LEAST_ROWS)
    fields = {"chunk_steps": max(1, int(share * default.total_steps / rows))}
    evaluate_every = getattr(default, "evaluate_every", 0)
    return fields | (
        {"evaluate_every": round(evaluate_every * rows / usual)} if evaluate_every else {}
    )


def _shares(run: Config, default: Config) -> list[float]:
    """How much `run` has of each budget of `default`, in steps and in episodes."""
    names = ("total_steps", "max_episodes")
    pairs = [(getattr(run, name, None), getattr(default, name, None)) for name in names]
    return [own / usual for own, usual in pairs if own is not None and usual]
