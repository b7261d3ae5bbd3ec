"""What a snake sees in the frame of its head: the board turns with it, so that it moves upwards.

So a position and its three rotations are one, and a reflection exchanges left and right alone.
"""

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard
from envs.snake.observations import vector
from envs.snake.scene import (
    offset_from_head,
    offset_signs,
    reflect_signs,
    reflect_ways,
    wall_distances,
)
from envs.snake.views import look
from envs.two_snake.scene import (
    Scene,
    comparison,
    danger,
    danger_from_others,
    distance_of_heads,
    is_reachable,
    max_length,
    reached_share,
    threat,
)

RADIUS = 4
"""Cells that are seen each way."""
SIDE = 2 * RADIUS + 1
NUM_LAYERS = 4
NUM_ENTRIES = 43
SIZE = NUM_ENTRIES + NUM_LAYERS * SIDE**2


def near(scene: Scene) -> jax.Array:
    """Float32 `[SIZE]`: the entries of `envs.two_snake.observations`, then the four squares."""
    everything = jnp.concatenate([vector(entries_of(scene)), squares(scene)])
    return jnp.where(scene.view.lives, everything, 0.0)


def entries_of(scene: Scene) -> list[jax.Array]:
    """The entries before the squares."""
    board, view = scene.board, scene.view
    own, other, exists = view.own, view.other, view.other_lives
    farthest = max(board.rows, board.cols) - 1
    food, rival, tail = (
        offset_from_head(board, own, cell) for cell in (view.food, other.head, own.tail)
    )
    turned = (other.heading - own.heading) & 3
    of_other = [
        *danger_from_others(scene),
        *(x / farthest for x in rival),
        *offset_signs(*rival),
        *(turned == way for way in (0, 2, 1, 3)),
        other.length / max_length(scene),
        distance_of_heads(scene),
        threat(scene),
    ]
    return [
        *danger(scene),
        *reached_share(scene),
        *(jnp.where(exists, entry, 0) for entry in of_other),
        *(x / farthest for x in food),
        *offset_signs(*food),
        *(x / farthest for x in tail),
        *(x / farthest for x in wall_distances(board, own)),
        exists,
        is_reachable(scene, own.tail),
        own.length / max_length(scene),
        *comparison(scene),
    ]


def squares(scene: Scene) -> jax.Array:
    """Float32 `[NUM_LAYERS * SIDE**2]`: blocked · the own body · the others' · their heads."""
    board, view = scene.board, scene.view
    own, other = view.own.order, view.other.order
    assert own is not None, "the game was started without the order of the bodies"
    assert other is not None
    outside = np.iinfo(np.int16).max
    # bodies do not overlap: what is above 0 is the own, what is below another's
    _, ranks = look(board, view.own, RADIUS, own - other, np.int16(outside))
    is_wall = ranks == outside
    moves = jnp.where(is_wall, 0, ranks).astype(jnp.float32) / max_length(scene)
    is_head = bitboard.contains(heads_of_others(scene), jnp.asarray(board.indices))
    _, heads = look(board, view.own, RADIUS, is_head, np.bool_(False))
    layers = [ranks != 0, jnp.clip(moves, 0.0, 1.0), jnp.clip(-moves, 0.0, 1.0), heads]
    return jnp.concatenate([layer.astype(jnp.float32) for layer in layers])


def heads_of_others(scene: Scene) -> bitboard.Bits:
    """The heads of all that are alive."""
    view = scene.view
    if view.crowd is not None:
        return view.crowd.heads
    return bitboard.single(view.other.head, scene.board.num_words)


def reflect(obs: jax.Array) -> jax.Array:
    """`near` `[SIZE]` of the reflected game: left and right change places."""
    ways, signs = reflect_ways, reflect_signs
    places = [*ways(0), *ways(3), *ways(6), 9, 10, *signs(11), *signs(15), 19, 20, 21]
    places += [22, 23, *signs(24), 28, 29, *ways(30), *range(33, NUM_ENTRIES)]
    sign = np.ones(NUM_ENTRIES, np.float32)
    sign[[10, 23, 29]] = -1.0  # how far to the right the other, food and tail lie
    entries = obs[jnp.array(places)] * jnp.asarray(sign)
    cells = obs[NUM_ENTRIES:].reshape(NUM_LAYERS, SIDE, SIDE)[:, :, ::-1]
    return jnp.concatenate([entries, cells.reshape(-1)])


def no_danger(obs: jax.Array) -> jax.Array:
    """Forward, left, right: nothing lies there, or only the own tail."""
    return (obs[..., 0:3] + obs[..., 6:9]) < 0.5
