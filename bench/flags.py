"""Every flag of every preset does something: it changes what is compiled, or it is refused.

python -m bench.flags [PROGRAM ...] [--presets PRESET ...]

Sets one field after another to other legal values and compares what is traced with them, the
constants included. Prints the fields that change nothing; exits with 1 if there are any.
"""

import argparse
import dataclasses
import hashlib
import sys
import typing
from collections.abc import Iterator
from typing import Any, Literal

import jax
import numpy as np

from train.host.command_line.command import refuse_idle
from train.host.errors import RunError, UsageError
from train.host.plain_config import field_of, with_field
from train.host.program import Program, find

PROGRAMS = ("snake", "two_snake", "allo", "durotaxis", "vector_field", "gymnax")
FILES = ("maze_file", "field_file", "data", "allow_disconnected", "opponent")
"""Fields that name a file, or matter only with one."""
SHOWN = ("units", "pixel_size", "stiffness_unit", "field_pixel_size", "field_range")
"""Fields that change what is told and drawn, or matter only with a file."""
DATA_ONLY = ("batch_size", "validation_share", "transitions")
"""Fields that name data, or matter only with them."""
NAMES = {
    "env.maze": ["GridRoom-1"],
    "env.policy": ["0.4,0.2,0.2,0.2"],
    "env.id": ["Asterix-MinAtar", "MountainCarContinuous-v0", "Acrobot-v1"],
    "env.options": [("rows=6",)],
    "env.numbers": [("max_steps_in_episode=9",)],
    "env.goal": ["up", "1,1"],
    "env.fields": [("van_der_pol",)],
    "policies": [("hold20",)],
    "agent.component_weights": [(0.5,)],
    "network.hidden": [(24,)],
    "env.observation": ["features", "local", "linear", "identity"],
}
"""Other values of fields whose type does not tell any."""


def leaves(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`(dotted name, type)` of every field but those of `run`, which the host reads."""
    hints = typing.get_type_hints(type(config), include_extras=False)
    for field in dataclasses.fields(config):
        name, value = f"{prefix}{field.name}", getattr(config, field.name)
        if name == "run" or field.name in FILES + SHOWN or name in DATA_ONLY:
            continue
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from leaves(value, f"{name}.")
        else:
            yield name, hints[field.name]


def other_values(name: str, kind: Any, value: Any) -> list[Any]:
    """Values to try in the place of `value`; those that a configuration refuses are passed over."""
    choices = [x for part in (kind, *typing.get_args(kind)) for x in literals(part)]
    if choices:
        return [x for x in choices if x != value]
    if name in NAMES:
        return [x for x in NAMES[name] if x != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value * 2, value - 1, value // 2, 50]
    if isinstance(value, float):
        return [100.0] if value == float("inf") else [0.9 * value, 1.1 * value, value + 0.1]
    if isinstance(value, tuple) and value and isinstance(value[0], int | float):
        return [tuple(0.9 * x if isinstance(x, float) else x + 1 for x in value)]
    return [x for x in (7, 0.5) if value is None]


def literals(kind: Any) -> tuple:
    return typing.get_args(kind) if typing.get_origin(kind) is Literal else ()


def fingerprint(program: Program, config: Any) -> str:
    """Identifies the traced `init` and `update` of a training, its constants and host settings."""
    training = program.training(config)

    def init_and_update(key: jax.Array) -> Any:
        return training.update(training.init(key))

    traced = jax.make_jaxpr(init_and_update)(jax.random.key(0))
    constants = [hashlib.sha256(np.asarray(x).tobytes()).hexdigest() for x in traced.consts]
    return f"{traced} {constants} {training.steps_per_update}"


def idle_fields(program: Program, preset: str) -> list[str]:
    """The fields of a preset that change nothing and are not refused."""
    config = shrink(program.presets[preset].config)
    before, idle = fingerprint(program, config), []
    for name, kind in leaves(config):
        if not changes_something(program, config, name, kind, before):
            idle.append(name)
    return idle


def changes_something(program: Program, config: Any, name: str, kind: Any, before: str) -> bool:
    """Whether any other value of a field leads to another program, or all are refused."""
    refused = 0
    old_value = field_of(config, name)
    candidates = [x for x in other_values(name, kind, old_value) if x != old_value]
    for value in candidates:
        try:
            changed = with_field(config, name, value)
            refuse_idle(program, changed, config)
            if fingerprint(program, changed) != before:
                return True
        except (ValueError, OverflowError, RunError):
            refused += 1
    return refused == len(candidates)


def shrink(config: Any) -> Any:
    """`config` with less of what takes time to set up, and no less to decide."""
    if hasattr(config.env, "transitions"):
        return with_field(config, "env.transitions", 5_000)
    return config


def selected_presets(description: str | None) -> Iterator[tuple[Program, str]]:
    """Each program and preset that the command line names; all of them where it names none.

    Presets are those of any program; one that none of them has, and an unknown program, ends with
    one line.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--presets", nargs="*", help="default: all")
    options = parser.parse_args()
    try:
        programs = [find(name, "the command line") for name in options.programs]
    except UsageError as error:
        parser.error(str(error))
    for preset in options.presets or ():
        if not any(preset in program.presets for program in programs):
            parser.error(f"there is no preset {preset} of {', '.join(options.programs)}")
    for program in programs:
        for preset in program.presets:
            if not options.presets or preset in options.presets:
                yield program, preset


def main() -> int:
    num_idle = 0
    for program, preset in selected_presets(__doc__):
        idle = idle_fields(program, preset)
        num_idle += len(idle)
        idle_text = ", ".join(idle) or "every flag does something"
        print(f"{program.name} {preset}: {idle_text}", flush=True)
    return int(num_idle > 0)


if __name__ == "__main__":
    sys.exit(main())
