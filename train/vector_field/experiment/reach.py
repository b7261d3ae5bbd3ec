"""The points on which a field is scored, and where a controller can come.

In the plane they are a grid, whose cells are reached and visited. In more dimensions, where a grid
would be too large, they are drawn: Q points of the box, and Q states that a controller reached.
Axes: G points of the grid along each axis, d latent dimensions.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.vector_field import VectorField
from envs.vector_field.params import Params
from jaxrl.numerics.linalg import matmul

POINTS = 25
"""G, points along each axis of the grid on which a field is scored."""
SAMPLE = 1_000
"""Q, points in more than two dimensions."""
NEAR = 0.15
"""A drawn state counts as visited once the state came within this times box √d of it."""
ATTEMPTS, ATTEMPT_STEPS, GOAL_STEPS = 128, 1_000, 100
"""How the reachable cells are estimated; see `reachable`."""


def grid_points(box: float, dims: int = 2, plane: tuple[int, int] = (0, 1)) -> jax.Array:
    """`[G, G, d]`: points within ± `box` in the plane of two coordinates; the others are 0.

    Axis 0 is the first coordinate of `plane`. In two dimensions the field is scored at them.
    """
    axis = jnp.linspace(-box, box, POINTS)
    return embed(jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1), dims, plane)


def embed(places: jax.Array, dims: int, plane: tuple[int, int]) -> jax.Array:
    """Places `[..., 2]` in the plane of two coordinates as states `[..., d]`; the others are 0."""
    if dims == 2:
        return places
    return jnp.zeros((*places.shape[:-1], dims)).at[..., np.array(plane)].set(places)


def project(states: Any, plane: tuple[int, int]) -> Any:
    """States or velocities `[..., d]` on the plane of two coordinates, `[..., 2]`."""
    return states if states.shape[-1] == 2 else states[..., np.array(plane)]


def scored_points(box: float, dims: int) -> jax.Array:
    """The points within ± `box` at which a field is scored: a grid `[G, G, 2]`, or `[Q, d]` drawn
    once and for all."""
    if dims == 2:
        return grid_points(box)
    unit_points = np.random.default_rng(0).uniform(-1, 1, (SAMPLE, dims))
    return box * jnp.asarray(unit_points, jnp.float32)


def visits(
    path: jax.Array,
    box: float,
    reached: jax.Array,
    wrap: Callable[[jax.Array], jax.Array] = lambda difference: difference,
) -> jax.Array:
    """Which cells `[G, G]`, or which of the states `reached` `[Q, d]`, a path `[T, d]` visits.

    `wrap` takes differences of states the shorter way round of angles.
    """
    dims = path.shape[-1]
    if dims == 2:
        return cells(path, box)
    squares = jnp.sum(wrap(reached[:, None] - path[None]) ** 2, axis=-1)  # [Q, T]
    return jnp.any(squares < (NEAR * box) ** 2 * dims, axis=1)


def cells(z: jax.Array, box: float) -> jax.Array:
    """`[G, G]` bool: the cells around the grid's points in which any state `z` `[T, 2]` lies."""
    axis = jnp.linspace(-box, box, POINTS)
    near = jnp.abs(z[:, :, None] - axis[None, None]) <= box / (POINTS - 1)  # [T, 2, G]
    both = near.astype(jnp.float32)
    return matmul(both[:, 0].T, both[:, 1]) > 0


def reachable(env: VectorField, params: Params, box: float, key: jax.Array) -> jax.Array:
    """`[G, G]` bool: the cells that a controller with knowledge of the field visits; in more than
    two dimensions `[Q, d]`, states drawn from those that it visits.

    It steers towards a random goal in the box, a new one every `GOAL_STEPS` steps, as directly as
    the largest input allows and the shorter way round of angles, in `ATTEMPTS` attempts of
    `ATTEMPT_STEPS` steps. In half of them it pushes in random directions instead: an oscillating
    state can be driven farther that way.
    """

    def step(carry: tuple, time: jax.Array):
        state, goal, visited, key = carry
        key, goal_key, step_key = jax.random.split(key, 3)
        new_goal = jax.random.uniform(goal_key, goal.shape, minval=-box, maxval=box)
        goal = jnp.where(time % GOAL_STEPS == 0, new_goal, goal)
        u = jax.vmap(steer)(goal, state.z, jnp.arange(ATTEMPTS) % 2 == 1)
        step_all = jax.vmap(env.step, in_axes=(0, 0, 0, None))
        _, state, *_ = step_all(jax.random.split(step_key, ATTEMPTS), state, u, params)
        if not planar:
            return (state, goal, visited, key), state.z
        return (state, goal, visited | cells(state.z, box), key), None

    steer, planar = partial(steering_input, env, params), env.dims == 2
    reset_key, key = jax.random.split(key)
    resets = jax.vmap(env.reset, in_axes=(0, None))
    _, start = resets(jax.random.split(reset_key, ATTEMPTS), params)
    no_visits = cells(start.z, box) if planar else ()
    begin = (start, jnp.zeros((ATTEMPTS, env.dims)), no_visits, key)
    (_, _, visited, _), path = jax.lax.scan(step, begin, jnp.arange(ATTEMPT_STEPS))
    if planar:
        return jnp.asarray(visited)
    states = path.reshape(-1, env.dims)
    chosen = np.random.default_rng(1).choice(len(states), SAMPLE, replace=False)
    return states[jnp.asarray(chosen)]


def steering_input(
    env: VectorField, params: Params, goal: jax.Array, z: jax.Array, pushes: jax.Array
) -> jax.Array:
    """The input `[I]` that takes the state `z` `[d]` towards a goal `[d]`, as strong as may be.

    Where `pushes`, the goal is a direction instead. Near the goal the input is 0.
    """
    effect = lambda u: env.effect(u, z, params)
    zero_input = jnp.zeros(env.num_inputs)
    way = env.wrap_angles(goal - z)
    straight = way / params.dt - env.velocity(z, params)
    target_effect = jnp.where(pushes, goal, straight) - effect(zero_input)
    u = matmul(target_effect, jax.jacfwd(effect)(zero_input))
    u = u / jnp.maximum(jnp.max(jnp.abs(u)), 1e-6) * params.action_bound
    near = ~pushes & (jnp.linalg.norm(way) < params.dt * params.action_bound)
    return jnp.where(near, 0.0, 1.0) * u
