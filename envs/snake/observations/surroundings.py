"""Observations of the cells around the head, rotated with it: near, far, or all of the board."""

import jax
import jax.numpy as jnp

from envs.snake import gaps, rules
from envs.snake.observations.vectors import reflect_tail, tail, vector
from envs.snake.scene import Scene
from envs.snake.views import View, full_radius, middle, view

NEAR = 4
"""Cells that `near` sees each way."""
FAR = 9
"""Cells that `far` sees each way: all of a board of 10×10, wherever the head is."""
NUM_NEAR = (2 * NEAR + 1) ** 2
NEAR_SIZE = 29 + 2 * NUM_NEAR


def near_view(scene: Scene) -> jax.Array:
    """`tail`, hunger, and of each cell around the head whether and for how long it is blocked."""
    return _near(scene, view(scene.board, scene.state, NEAR))


def _near(scene: Scene, surroundings: View) -> jax.Array:
    """`near`, of the cells within `NEAR` of the head."""
    is_blocked = (surroundings.wall + surroundings.vacated > 0).astype(jnp.float32)
    return jnp.concatenate(
        [
            tail(scene),
            vector([scene.starving]),
            is_blocked,
            surroundings.wall + surroundings.vacated,
        ]
    )


def far_view(scene: Scene) -> jax.Array:
    """`near`, and of each cell farther around the head whether it is free, and for how long not.

    Not whether it is blocked, as beyond the walls all are: hundreds of inputs that never change.
    """
    surroundings = view(scene.board, scene.state, FAR)
    is_free = (surroundings.wall + surroundings.vacated == 0).astype(jnp.float32)
    near = _near(scene, middle(surroundings, NEAR))
    return jnp.concatenate([near, is_free, surroundings.vacated])


def gaps_view(scene: Scene) -> jax.Array:
    """`near`, which free cells are left, and how soon those around the head are free."""
    board, state = scene.board, scene.state
    surroundings = view(board, state, NEAR)
    strays, soon = gaps.stray_cells(board, state), gaps.soonness(surroundings, state)
    return jnp.concatenate([_near(scene, surroundings), vector(strays), soon])


def egocentric_view(scene: Scene) -> jax.Array:
    """Float32 `[side, side, 5]`: the whole board as the head sees it."""
    square = view(scene.board, scene.state, full_radius(scene.board))
    side = 2 * full_radius(scene.board) + 1
    share = scene.state.length / rules.num_cells(scene.board, scene.state)
    length = jnp.full_like(square.wall, 1.0) * share
    hunger = jnp.full_like(square.wall, 1.0) * scene.starving
    cells = jnp.stack([square.wall, square.vacated, square.food, length, hunger], axis=-1)
    return cells.reshape(side, side, 5)


def reflect_near(obs: jax.Array) -> jax.Array:
    """`near` of the reflected game."""
    return jnp.concatenate([reflect_tail(obs[:28]), obs[28:29], reflect_squares(obs[29:], NEAR)])


def reflect_far(obs: jax.Array) -> jax.Array:
    """`far` of the reflected game."""
    near, squares = jnp.split(obs, [NEAR_SIZE])
    return jnp.concatenate([reflect_near(near), reflect_squares(squares, FAR)])


def reflect_gaps(obs: jax.Array) -> jax.Array:
    """`gaps` of the reflected game."""
    near, free, soon = jnp.split(obs, [NEAR_SIZE, NEAR_SIZE + gaps.NUM_STRAYS])
    parts = [reflect_near(near), gaps.reflect_stray_cells(free), reflect_squares(soon, NEAR)]
    return jnp.concatenate(parts)


def reflect_squares(cells: jax.Array, radius: int) -> jax.Array:
    """Squares of the cells around the head, `[K * side * side]`, right for left."""
    side = 2 * radius + 1
    return cells.reshape(-1, side, side)[:, :, ::-1].reshape(-1)
