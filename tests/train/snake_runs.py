"""Run directories of `train.snake` that nobody trained: all is 0 but the agent."""

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp

from jaxrl import checkpoint
from jaxrl.types import AgentState
from train import command, programs, records, snake
from train.config import plain

UPDATES = 3
COUNTERS = {"updates": UPDATES, "seconds": 12.5}


def make_run(directory: Path, flags: str, change: Callable[[AgentState], AgentState]) -> Path:
    """A run as `python -m train.snake FLAGS` leaves one, with what `change` makes of no agent."""
    config, preset = command.parse("snake", snake.PRESETS, flags.split())
    seeds = config.run.seed_array()
    like = jax.eval_shape(programs.beginning(snake.make_training(config).init, seeds), seeds)
    state = jax.tree.map(nothing, like)
    state = state._replace(agent=change(state.agent))
    directory.mkdir()
    records.write_config(directory, "snake", preset, config)
    meta = {"config": plain(config), "counters": COUNTERS, **records.provenance()}
    checkpoint.save(directory / records.CHECKPOINTS, UPDATES, state, meta)
    return directory


def nothing(like: jax.ShapeDtypeStruct) -> jax.Array:
    """Zeros, also for keys."""
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.zeros((*like.shape, 2), jnp.uint32))
    return jnp.zeros(like.shape, like.dtype)
