"""Named observations of a game of Snake, all float32.

Whatever is counted by direction comes in one order: forward, left, right in the frame of the head,
and up, right, down, left in the frame of the board.

An obstacle is seen as a wall where walls are; `board` has -1 there, and `planes` counts it as body
without a place in it. Of several pieces of food, directions and offsets are those of the nearest;
`food reachable` says whether any is, and what shows the board shows all. So no size depends on
either.

| name | size | contents |
|---|---|---|
| `features` | 10 | danger forward, left, right · food up, right, down, left · heading up, right, down |
| `flood` | 13 | `features` · share of the free cells that can be reached forward, left, right |
| `selective` | 18 | `flood` · tail up, right, down, left · tail reachable |
| `enhanced` | 23 | `flood` · escapes forward, left, right · tail (4) · tail reachable · its distance · length |
| `tail` | 28 | danger (3) · reach (3) · tail reachable (3) · food reachable (3), each forward, left, right · food and tail offset (forward, right) · signs of each (4 + 4) · distance to the walls (3) · length |
| `near` | 191 | `tail` · hunger · for each of the 9 × 9 cells around the head, rotated with it: blocked (81) · for how long (81) |
| `far` | 913 | `near` · for each of the 19 × 19 cells around the head, rotated with it: free (361) · for how long blocked, 0 beyond the walls (361) |
| `gaps` | 290 | `near` · one over the number of free cells · one over the distance between the free cells nearest to the food and farthest from it · of each: offset (forward, right), one over the distance from food and head, whether the body turns around it (4) (8 + 8) · for each of the 9 × 9 cells around the head: how soon it is free (81) |
| `compass` | 19 | heading up, right, down, left · danger (4) · food along the longer way (4) · food right and down · length · head col, row · tail col, row |
| `board` | rows × cols | one number per cell: body 1/3, head 2/3, food 1 |
| `egocentric` | side × side × 5 | the whole board around the head, rotated with it: wall · place in the body · food · length · hunger |
| `planes` | rows × cols × 5 | body · head · tail · food · place in the body, 1 at the head |
"""  # noqa: E501

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard, gaps, rules
from envs.snake.bitboard import Board
from envs.snake.rules import State
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
from envs.snake.views import View, full_radius, middle, order_of, view

NEAR = 4
"""Cells that `near` sees each way."""
FAR = 9
"""Cells that `far` sees each way: all of a board of 10×10, wherever the head is."""
NUM_NEAR = (2 * NEAR + 1) ** 2
NEAR_SIZE = 29 + 2 * NUM_NEAR


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


def board_view(scene: Scene) -> jax.Array:
    """Float32 `[rows * cols]`: what lies on each cell as one number; no order, no heading."""
    cells, state = jnp.asarray(scene.board.indices), scene.state
    body = bitboard.contains(state.occupied, cells)
    codes = (body.astype(jnp.int32), (cells == state.head).astype(jnp.int32))
    food = jnp.where(_is_food(state, cells), 3, 0)
    sums = codes[0] + codes[1] + food
    if state.obstacles is not None:
        sums = jnp.where(bitboard.contains(state.obstacles, cells), -3, sums)
    return sums.astype(jnp.float32) / 3.0


def planes(scene: Scene) -> jax.Array:
    """Float32 `[rows, cols, 5]`: body, head, tail, food, order of the body."""
    board, state = scene.board, scene.state
    order, length = order_of(state).astype(jnp.float32), state.length.astype(jnp.float32)
    cells = jnp.asarray(board.indices)
    food, blocked = _is_food(state, cells), order > 0
    if state.obstacles is not None:
        blocked = blocked | bitboard.contains(state.obstacles, cells)
    # flat until the end, and a product instead of a quotient: each doubles the speed on a CPU
    layers = [
        blocked,
        order == length,
        order == 1,
        food,
        order * (1 / length),
    ]
    cells = jnp.stack([layer.astype(jnp.float32) for layer in layers], axis=-1)
    return cells.reshape(board.rows, board.cols, len(layers))


def _is_food(state: State, cells: jax.Array) -> jax.Array:
    """On which of the cells `[C]` food lies."""
    if state.foods is None:
        return cells == state.food
    return jnp.any(cells[None, :] == state.foods[:, None], axis=0)


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


def reflect_tail(obs: jax.Array) -> jax.Array:
    """`tail` of the reflected game: left and right change places."""
    ways, signs = reflect_ways, reflect_signs
    places = [*ways(0), *ways(3), *ways(6), *ways(9), 12, 13, 14, 15, *signs(16), *signs(20)]
    sign = np.ones(28, np.float32)
    sign[[13, 15]] = -1.0  # how far to the right food and tail lie
    return obs[jnp.array([*places, *ways(24), 27])] * jnp.asarray(sign)


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


class Observation(NamedTuple):
    """A named observation: how it is computed and what it needs."""

    describe: Callable[[Scene], jax.Array]
    shape: Callable[[Board], tuple[int, ...]]
    needs_regions: bool = True
    needs_order: bool = False
    is_image: bool = False
    sees_hunger: bool = False
    safe: Callable[[jax.Array], jax.Array] | None = None  # moves that do not kill, bool [..., 3]
    reflect: Callable[[jax.Array], jax.Array] | None = None  # the observation of the reflected game


def _entries(size: int) -> Callable[[Board], tuple[int, ...]]:
    return lambda board: (size,)


def _head_square(board: Board) -> tuple[int, ...]:
    return (2 * full_radius(board) + 1, 2 * full_radius(board) + 1, 5)


def _no_danger(obs: jax.Array) -> jax.Array:
    """Forward, left, right, from observations that begin with the danger there."""
    return obs[..., :3] < 0.5


OBSERVATIONS = {
    "features": Observation(features, _entries(10), needs_regions=False, safe=_no_danger),
    "flood": Observation(flood, _entries(13), safe=_no_danger),
    "selective": Observation(selective_view, _entries(18), safe=_no_danger),
    "enhanced": Observation(enhanced_view, _entries(23), safe=_no_danger),
    "tail": Observation(tail, _entries(28), safe=_no_danger, reflect=reflect_tail),
    "near": Observation(
        near_view,
        _entries(NEAR_SIZE),
        needs_order=True,
        sees_hunger=True,
        safe=_no_danger,
        reflect=reflect_near,
    ),
    "far": Observation(
        far_view,
        _entries(NEAR_SIZE + 2 * (2 * FAR + 1) ** 2),
        needs_order=True,
        sees_hunger=True,
        safe=_no_danger,
        reflect=reflect_far,
    ),
    "gaps": Observation(
        gaps_view,
        _entries(NEAR_SIZE + gaps.NUM_STRAYS + NUM_NEAR),
        needs_order=True,
        sees_hunger=True,
        safe=_no_danger,
        reflect=reflect_gaps,
    ),
    "compass": Observation(compass_view, _entries(19), needs_regions=False),
    "board": Observation(board_view, lambda board: (board.num_cells,), needs_regions=False),
    "planes": Observation(
        planes,
        lambda board: (board.rows, board.cols, 5),
        needs_regions=False,
        needs_order=True,
        is_image=True,
    ),
    "egocentric": Observation(
        egocentric_view,
        _head_square,
        needs_regions=False,
        needs_order=True,
        is_image=True,
        sees_hunger=True,
        reflect=lambda obs: obs[:, ::-1],
    ),
}
