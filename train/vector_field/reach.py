"""The grid on which a field is scored, and which of its cells a controller can reach.

Axes: G points of the grid along each axis.
"""

import jax
import jax.numpy as jnp

from envs.vector_field import VectorField
from envs.vector_field.params import Params

POINTS = 25
"""G, points along each axis of the grid on which a field is scored."""
ATTEMPTS, ATTEMPT_STEPS, GOAL_STEPS = 128, 1_000, 100
"""How the reachable cells are estimated; see `reachable`."""


def grid_points(box: float) -> jax.Array:
    """`[G, G, 2]`: the points within ± `box` at which a field is scored; axis 0 is coordinate 0."""
    axis = jnp.linspace(-box, box, POINTS)
    return jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1)


def cells(z: jax.Array, box: float) -> jax.Array:
    """`[G, G]` bool: the cells around the grid's points in which any state `z` `[T, 2]` lies."""
    axis = jnp.linspace(-box, box, POINTS)
    near = jnp.abs(z[:, :, None] - axis[None, None]) <= box / (POINTS - 1)  # [T, 2, G]
    both = near.astype(jnp.float32)
    return jnp.matmul(both[:, 0].T, both[:, 1]) > 0


def reachable(env: VectorField, params: Params, box: float, key: jax.Array) -> jax.Array:
    """`[G, G]` bool: the cells that a controller with knowledge of the field visits.

    It steers towards a random goal in the box, a new one every `GOAL_STEPS` steps, as directly as
    the largest input allows, in `ATTEMPTS` attempts of `ATTEMPT_STEPS` steps. In half of them it
    pushes in random directions instead: an oscillating state can be driven farther that way.
    """

    def towards(goal: jax.Array, z: jax.Array, pushes: jax.Array) -> jax.Array:
        effect = lambda u: env.effect(u, z, params)
        nothing = jnp.zeros(env.num_inputs)
        straight = (goal - z) / params.dt - env.velocity(z, params)
        wanted = jnp.where(pushes, goal, straight) - effect(nothing)
        u = jnp.matmul(wanted, jax.jacfwd(effect)(nothing))
        u = u / jnp.maximum(jnp.max(jnp.abs(u)), 1e-6) * params.action_bound
        near = ~pushes & (jnp.linalg.norm(goal - z) < params.dt * params.action_bound)
        return jnp.where(near, 0.0, 1.0) * u

    def step(carry: tuple, time: jax.Array):
        state, goal, visited, key = carry
        key, goal_key, step_key = jax.random.split(key, 3)
        fresh = jax.random.uniform(goal_key, goal.shape, minval=-box, maxval=box)
        goal = jnp.where(time % GOAL_STEPS == 0, fresh, goal)
        u = jax.vmap(towards)(goal, state.z, jnp.arange(ATTEMPTS) % 2 == 1)
        stepped = jax.vmap(env.step, in_axes=(0, 0, 0, None))
        _, state, *_ = stepped(jax.random.split(step_key, ATTEMPTS), state, u, params)
        return (state, goal, visited | cells(state.z, box), key), None

    reset_key, key = jax.random.split(key)
    resets = jax.vmap(env.reset, in_axes=(0, None))
    _, start = resets(jax.random.split(reset_key, ATTEMPTS), params)
    begin = (start, jnp.zeros((ATTEMPTS, 2)), cells(start.z, box), key)
    (_, _, visited, _), _ = jax.lax.scan(step, begin, jnp.arange(ATTEMPT_STEPS))
    return visited
