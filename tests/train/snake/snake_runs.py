"""Run directories that nobody trained, of Snake or another program: all is 0 but the agent."""

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl import checkpoint
from jaxrl.types import AgentState
from train.host.command_line import command
from train.host.compilation import compiled
from train.host.files.provenance import provenance
from train.host.files.run_directory import RunDirectory
from train.host.plain_config import plain
from train.host.program import Program
from train.snake import program as snake

UPDATES = 3
COUNTERS = {"updates": UPDATES, "seconds": 12.5}


def make_run(
    directory: Path,
    flags: str,
    change: Callable[[AgentState], AgentState],
    program: Program = snake.PROGRAM,
) -> Path:
    """A run as `python -m train.NAME FLAGS` leaves one, with what `change` makes of no agent."""
    config, preset = command.parse(program, flags.split())
    seeds = config.run.members.starts
    template = jax.eval_shape(compiled.init_all(program.training(config).init, seeds), seeds)
    state = jax.tree.map(zero_array, template)
    state = state._replace(agent=change(state.agent))
    directory.mkdir()
    RunDirectory(directory).write_config(program.address, preset, config)
    meta = {"config": plain(config), "counters": COUNTERS, **provenance()}
    checkpoint.save(RunDirectory(directory).checkpoints, UPDATES, state, meta)
    return directory


def zero_array(template: jax.ShapeDtypeStruct) -> np.ndarray | jax.Array:
    """Zeros, also for keys; of NumPy, as JAX compiles a program for every shape."""
    if jnp.issubdtype(template.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.zeros((*template.shape, 2), jnp.uint32))
    return np.zeros(template.shape, template.dtype)
