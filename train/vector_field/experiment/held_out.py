"""Held-out episodes of a vector field, on which forecasts of what was learned are scored.

Axes: T steps, K steps ahead, n channels, m inputs.
"""

import jax
import jax.numpy as jnp

from envs.vector_field import VectorField
from envs.vector_field.params import Params
from jaxrl.dynamics.planning import stimulation

HELD_OUT_STEPS, AHEAD = 500, 30
"""T and K."""
SKIPPED = 20
"""First steps of a held-out episode, not scored: the state estimate has to settle first."""
Episode = tuple[jax.Array, jax.Array]
"""Observations `[T, n]` and the inputs after them `[T, m]`."""


def held_out_pair(env: VectorField, params: Params, key: jax.Array) -> tuple[Episode, Episode]:
    """Two held-out episodes, with stimulation and without."""
    driven_key, free_key = jax.random.split(key)
    return held_out_episode(env, params, 1.0, driven_key), held_out_episode(
        env, params, 0.0, free_key
    )


def held_out_episode(env: VectorField, params: Params, strength: float, key: jax.Array) -> Episode:
    """`(obs [T, n], actions [T, m])` of an episode with random inputs, held for 20 steps."""
    bound = jnp.broadcast_to(params.action_bound, (env.num_inputs,))
    hold_policy = stimulation.Config(kind="hold", hold_steps=20, at_edge=True, strength=strength)
    driver = stimulation.make(hold_policy, lambda nothing: nothing, -bound, bound)  # type: ignore
    reset_key, key = jax.random.split(key)

    def step(carry, _):
        obs, state, stimulus, key = carry
        key, act_key, step_key = jax.random.split(key, 3)
        action, stimulus = driver.act((), state.z, stimulus, act_key)
        after, state, *_ = env.step(step_key, state, action, params)
        return (after, state, stimulus, key), (obs, action)

    initial_carry = (*env.reset(reset_key, params), driver.init(), key)
    return jax.lax.scan(step, initial_carry, length=HELD_OUT_STEPS)[1]
