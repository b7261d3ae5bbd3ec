"""Observations that are a few facts about the game, a number each."""

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard, rules
from envs.snake.scene import (
    Scene,
    compass,
    danger,
    escapes,
    food_reach,
    heading,
    is_tail_reachable,
    offset_from_head,
    offset_signs,
    reach,
    reflect_signs,
    reflect_ways,
    tail_reach,
    wall_distances,
)


def vector(parts: list[jax.Array]) -> jax.Array:
    """Scalars as one array, float32 `[F]`."""
    return jnp.stack([jnp.asarray(part, jnp.float32) for part in parts])


def features(scene: Scene) -> jax.Array:
    return vector([*danger(scene), *compass(scene, scene.state.food), *heading(scene)])


def flood(scene: Scene) -> jax.Array:
    return jnp.concatenate([features(scene), vector(reach(scene))])


def selective_view(scene: Scene) -> jax.Array:
    tail = [*compass(scene, scene.state.tail), is_tail_reachable(scene)]
    return jnp.concatenate([flood(scene), vector(tail)])


def enhanced_view(scene: Scene) -> jax.Array:
    board, state = scene.board, scene.state
    rows, cols = rules.size_of(board, state)
    farthest = rows + cols - 2
    extra_features = [
        *escapes(scene),
        *compass(scene, state.tail),
        is_tail_reachable(scene),
        bitboard.distance(board, state.head, state.tail) / farthest,
        state.length / rules.num_cells(board, state),
    ]
    return jnp.concatenate([flood(scene), vector(extra_features)])


def tail(scene: Scene) -> jax.Array:
    """Observation in the head's frame, with reachability of the tail in each direction."""
    board, state = scene.board, scene.state
    farthest, size = rules.longer_side(board, state) - 1, rules.size_of(board, state)
    food, end = (offset_from_head(board, state, cell) for cell in (state.food, state.tail))
    signs = [sign for offset in (food, end) for sign in offset_signs(*offset)]
    # where games differ in size, all obstacles lie beyond their walls
    inner_obstacles = state.obstacles if state.size is None else None
    return vector(
        [
            *danger(scene),
            *reach(scene),
            *tail_reach(scene),
            *food_reach(scene),
            *(x / farthest for x in (*food, *end)),
            *signs,
            *(x / farthest for x in wall_distances(board, state, inner_obstacles, size)),
            state.length / rules.num_cells(board, state),
        ]
    )


def compass_view(scene: Scene) -> jax.Array:
    """The observation of a published DQN, in the frame of the board."""
    board, state = scene.board, scene.state
    free = rules.free_cells(board, scene.rules, state)
    cells = [state.head + rules.offset(board, jnp.int32(h)) for h in range(4)]
    down = board.row(state.food) - board.row(state.head)
    right = board.col(state.food) - board.col(state.head)
    exists = state.food >= 0
    upright = jnp.abs(down) > jnp.abs(right)
    along = [upright & (down < 0), ~upright & (right > 0), upright & (down > 0)]
    along = [*along, ~upright & (right <= 0)]
    places = [place(x) for x in (state.head, state.tail) for place in (board.col, board.row)]
    rows, cols = rules.size_of(board, state)
    return vector(
        [
            *(state.heading == h for h in range(4)),
            *(~bitboard.contains(free, cell) for cell in cells),
            *(exists & way for way in along),
            jnp.where(exists, right, 0) / cols,
            jnp.where(exists, down, 0) / rows,
            state.length / rules.num_cells(board, state),
            *(place / size for place, size in zip(places, (cols, rows, cols, rows), strict=True)),
        ]
    )


def reflect_tail(obs: jax.Array) -> jax.Array:
    """`tail` of the reflected game: left and right change places."""
    ways, signs = reflect_ways, reflect_signs
    places = [*ways(0), *ways(3), *ways(6), *ways(9), 12, 13, 14, 15, *signs(16), *signs(20)]
    sign = np.ones(28, np.float32)
    sign[[13, 15]] = -1.0  # how far to the right food and tail lie
    return obs[jnp.array([*places, *ways(24), 27])] * jnp.asarray(sign)
