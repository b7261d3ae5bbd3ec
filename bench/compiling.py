"""Programs of the command line as something to compile: their configuration, mesh and chunk."""

import json
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from jaxrl import loop, sharding
from train.host.machine.devices import AXES
from train.host.plain_config import with_field
from train.host.program import Program, find

UPDATES = 2  # of a chunk; one would not be a loop


def program_and_config(case: str, blocks: int) -> tuple[Program, Any]:
    """The program and configuration of `PROGRAM:PRESET[:FIELD=JSON ...]`.

    With so many blocks, where it has any.
    """
    name, preset, *fields = case.split(":")
    program = find(name, "the command line")
    config = program.presets[preset].config
    place = next((x for x in ("loop", "agent") if hasattr(getattr(config, x, None), "blocks")), "")
    if place:
        config = with_field(config, f"{place}.blocks", blocks)
    for field, text in (x.split("=") for x in fields):
        value = json.loads(text)
        config = with_field(config, field, tuple(value) if isinstance(value, list) else value)
    return program, config


def mesh_of(devices: Sequence[Any]) -> Mesh:
    """A mesh of one member and as many blocks as devices."""
    return Mesh(np.array(devices)[None], AXES, axis_types=(AxisType.Auto,) * 2)


def lower_update(update: Any, shapes: Any, mesh: Mesh) -> Any:
    """`update` or a chunk, for a state of these shapes that is split over a mesh."""
    shardings = sharding.shardings(mesh, shapes)
    return jax.jit(
        update, in_shardings=(shardings,), out_shardings=(shardings, None), donate_argnums=0
    ).lower(shapes)


def lower_chunk(training: Any, shapes: Any, mesh: Mesh) -> Any:
    """A chunk of `UPDATES` updates."""
    return lower_update(loop.make_chunk(training.update, UPDATES), shapes, mesh)
