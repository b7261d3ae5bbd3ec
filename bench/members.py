"""Members of a sweep are what each run is alone: two values under `vmap`, beside two runs.

python -m bench.members [PROGRAM ...]

Trains two values of a float of each kind (an agent's, an environment's, a curriculum's, a prior's)
side by side, and each by itself. Prints how far the parameters of both kinds of run are apart, as a
share of what the two values make different. Exits with 1 where that is above 1 %.
"""

import argparse
import dataclasses
import sys
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from bench.flags import shrink
from train.host.compilation.compiled import parameters
from train.host.plain_config import with_field
from train.host.program import Program, find

MOST = 0.01


class Case(NamedTuple):
    """Two values of a field of a preset, and the updates to make with each."""

    program: str
    preset: str
    field: str
    values: tuple[float, float]
    updates: int = 2


CASES = (
    Case("snake", "ppo", "agent.learning_rate", (1e-3, 3e-3)),
    Case("snake", "ppo", "env.rewards.food", (1.0, 2.0)),
    Case("snake", "ppo", "env.grown_share", (0.1, 0.6)),
    Case("snake", "pqn", "agent.discount", (0.9, 0.995)),
    Case("snake", "dqn", "agent.learning_rate", (1e-3, 3e-3), 130),
    Case("snake", "rainbow", "agent.priority_exponent", (0.2, 0.8), 130),
    Case("two_snake", "curriculum", "env.rewards.food", (0.5, 2.0), 8),
    Case("two_snake", "curriculum", "curriculum.static.opponents.random", (0.0, 3.0)),
    Case("durotaxis", "linear", "env.slope", (0.02, 0.05)),
    Case("durotaxis", "linear", "env.weights.distance", (1.0, 5.0)),
    Case("durotaxis", "curriculum", "curriculum.first_width", (100.0, 300.0)),
    Case("allo", "allo", "agent.learning_rate", (1e-3, 5e-3)),
    Case("allo", "sampled", "agent.dual_step", (0.01, 0.04)),
    Case("vector_field", "vector_field", "bayesian.prior_speed", (0.5, 1.0), 5),
    Case("vector_field", "vector_field", "env.process_noise", (0.01, 0.03), 5),
    Case("vector_field", "sequence_vae", "vae.learning_rate", (1e-3, 3e-3), 5),
)


def train_case(program: Program, config: Any, case: Case, value: Any, key: jax.Array) -> jax.Array:
    """The parameters after `case.updates` updates, as one vector."""
    training = program.training(with_field(config, case.field, value))
    state, _ = jax.lax.scan(
        lambda state, _: training.update(state), training.init(key), length=case.updates
    )
    floats = [x for x in parameters(state.agent) if jnp.issubdtype(x.dtype, jnp.inexact)]
    return ravel_pytree(floats)[0]


def differences(case: Case) -> tuple[float, float]:
    """`(between the kinds of run, between the values)`: largest differences of a parameter."""
    program = find(case.program, "the command line")
    config, key = with_few_envs(program.presets[case.preset].config), jax.random.key(0)
    values = jnp.array(case.values)
    train = lambda value: train_case(program, config, case, value, key)
    together = np.asarray(jax.jit(jax.vmap(train))(values))
    alone = np.stack([np.asarray(jax.jit(partial(train, value))()) for value in case.values])
    return float(np.abs(together - alone).max()), float(np.abs(np.diff(alone, axis=0)).max())


def with_few_envs(config: Any) -> Any:
    """`config` with few environments, where it has some."""
    if hasattr(config, "loop"):
        num_steps = min(config.loop.num_steps, 16)
        loop = dataclasses.replace(config.loop, num_envs=8, num_steps=num_steps)
        return dataclasses.replace(config, loop=loop)
    return shrink(config)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help="default: all")
    chosen = parser.parse_args().programs
    failed = 0
    for case in CASES:
        if chosen and case.program not in chosen:
            continue
        gap, effect = differences(case)
        failed += not gap <= MOST * effect
        print(
            f"{case.program} {case.preset} {case.field} {case.values}: {gap:.1e} of {effect:.1e}",
            flush=True,
        )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
