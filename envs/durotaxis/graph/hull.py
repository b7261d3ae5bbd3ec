"""The convex hull of those of P points in the plane that a mask selects: vertices and area.

Gift wrapping (Jarvis 1973): from each vertex a line rotates until it meets the next one, which
costs one pass over the points. If several points lie on that line, up to `TOLERANCE`, the farthest
is the next vertex. So a point that lies beyond a straight side by rounding only is not a vertex,
and of points that coincide only the one in the lowest slot is.

A CPU walks from vertex to vertex. Accelerators, on which a loop that the data end is dear, find the
next point of every point at once, and then those that a walk would come to.
"""

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp

TOLERANCE = 1e-3
"""How far outside the hull of the others a point must lie to be a vertex, px: some ten times the
rounding error of float32 at 1000 px, and a fiftieth of the shortest step of a colony."""
LANES = 8  # numbers that are compared at once


class Hull(NamedTuple):
    """The convex hull of the selected points."""

    is_vertex: jax.Array  # bool [P]
    area: jax.Array  # float32 [], px²; 0 where the points lie on a line


class Walk(NamedTuple):
    """The state of a walk around the hull, counter-clockwise if y points up."""

    slot: jax.Array  # int32, slot of the vertex reached
    is_vertex: jax.Array  # bool [P], the vertices so far
    num_vertices: jax.Array  # int32
    twice_area: jax.Array  # float32, area so far between the centre and the sides, times 2, px²
    past_half: jax.Array  # bool, whether it is more than halfway around the centre
    is_closed: jax.Array  # bool, whether it is back at the start


def vertices(x: jax.Array, y: jax.Array, mask: jax.Array) -> jax.Array:
    """Bool `[P]`: which of the points x, y `[P]` (px) in `mask` `[P]` are vertices.

    With fewer than three points, all of them. If all points lie on a line, up to `TOLERANCE`, those
    of smallest and largest x and y: up to four, the lowest slot of equal ones.
    """
    return convex_hull(x, y, mask).is_vertex


def area(x: jax.Array, y: jax.Array, mask: jax.Array) -> jax.Array:
    """Float32 `[]`: the area of the hull of the points x, y `[P]` (px) in `mask` `[P]`, px²."""
    return convex_hull(x, y, mask).area


@jax.jit  # traced once for each number of points
def convex_hull(x: jax.Array, y: jax.Array, mask: jax.Array) -> Hull:
    """Vertices and area in one computation; see `vertices` for the arguments and the rules."""
    num_points = jnp.sum(mask.astype(jnp.float32))
    share = mask / jnp.maximum(num_points, 1)
    first = _farthest(x, y, mask, jnp.sum(share * x), jnp.sum(share * y))
    second = _farthest(x, y, mask, x[first], y[first])
    along_x, along_y = x[second] - x[first], y[second] - y[first]
    length = jnp.sqrt(along_x**2 + along_y**2)
    height = jnp.abs(along_x * (y - y[first]) - along_y * (x - x[first]))  # px, times the length
    third = _argmax(jnp.where(mask, height, -1.0))
    is_flat = height[third] <= TOLERANCE * length
    corners = jnp.stack([first, second, third])
    centre = jnp.mean(x[corners]), jnp.mean(y[corners])  # inside by more than rounding
    is_vertex, twice_area = jax.lax.platform_dependent(
        *(x, y, mask, first, centre, is_flat), cpu=_walk, default=_walk_at_once
    )
    is_vertex = jnp.where(is_flat, _extremes(x, y, mask), is_vertex)
    is_vertex = jnp.where(num_points < 3, mask, is_vertex)
    return Hull(is_vertex, 0.5 * twice_area)


def _walk(
    x: jax.Array,
    y: jax.Array,
    mask: jax.Array,
    first: jax.Array,
    centre: tuple[jax.Array, jax.Array],
    is_flat: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Vertices, bool `[P]`, and twice the area, by a walk around the hull from the vertex `first`.

    It ends after a full turn around `centre`, a point inside: within the tolerance it may miss
    `first`. Where the points are flat there is no walk.
    """
    slots = jnp.arange(x.size)
    start_x, start_y = x[first] - centre[0], y[first] - centre[1]

    def step(walk: Walk) -> Walk:
        slot = _next(x, y, mask, walk.slot, centre)
        here_x, here_y = x[walk.slot] - centre[0], y[walk.slot] - centre[1]
        there_x, there_y = x[slot] - centre[0], y[slot] - centre[1]
        is_left = start_x * there_y - start_y * there_x >= 0
        is_round = walk.past_half & is_left
        there_x = jnp.where(is_round, start_x, there_x)
        there_y = jnp.where(is_round, start_y, there_y)
        return Walk(
            slot=slot,
            is_vertex=walk.is_vertex | ((slots == slot) & ~is_round),
            num_vertices=walk.num_vertices + 1,
            twice_area=walk.twice_area + here_x * there_y - here_y * there_x,
            past_half=walk.past_half | ~is_left,
            is_closed=is_round | (walk.num_vertices >= x.size),
        )

    start = Walk(
        slot=first,
        is_vertex=slots == first,
        num_vertices=jnp.ones_like(first),
        twice_area=jnp.zeros_like(start_x),
        past_half=jnp.zeros_like(is_flat),
        is_closed=is_flat,
    )
    end = jax.lax.while_loop(lambda walk: ~walk.is_closed, step, start)
    return end.is_vertex, end.twice_area


def _walk_at_once(
    x: jax.Array,
    y: jax.Array,
    mask: jax.Array,
    first: jax.Array,
    centre: tuple[jax.Array, jax.Array],
    is_flat: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """`_walk` without a step, by O(P²) numbers at once; the area up to the rounding of its sum.

    A walk has the start on its one side until it is halfway round, then on the other, and closes
    with the step that changes this back: so where it goes from a point is a matter of that point.
    The points it comes to are found by doubling (Wyllie 1979): those within n steps, and where n
    more steps lead from them, are those within 2 n.
    """
    slots = jnp.arange(x.size, dtype=jnp.int32)
    here_x, here_y = x - centre[0], y - centre[1]
    is_left = (here_x[first] * here_y - here_y[first] * here_x >= 0) | (slots == first)
    following = _next_of_all(x, y, mask, centre)
    closes = ~is_left & is_left[following]

    def double(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        is_reached, target = carry
        is_hit = is_reached[:, None] & (target[:, None] == slots[None])
        return is_reached | jnp.any(is_hit, axis=0), target[target]

    start = (slots == first, jnp.where(closes, slots, following))
    rounds = (x.size - 1).bit_length()  # the last of P vertices is P - 1 steps away
    is_vertex, _ = jax.lax.fori_loop(0, rounds, double, start)
    there = jnp.where(closes, first, following)
    cross = here_x * here_y[there] - here_y * here_x[there]
    return is_vertex, jnp.sum(jnp.where(is_vertex & ~is_flat, cross, 0.0))


def _next(
    x: jax.Array, y: jax.Array, mask: jax.Array, slot: jax.Array, centre: tuple[jax.Array, ...]
) -> jax.Array:
    """The vertex that follows the one in `slot`: all other points lie left of the line to it.

    It is the farthest point in any direction that leaves no point more than `TOLERANCE` to its
    right.
    """
    limits, cotangent, squared = _directions(x, y, mask, slot, centre)
    # The barrier is for speed: XLA for CPU fuses the minimum badly with what follows.
    limit, cotangent, squared = jax.lax.optimization_barrier((_least(limits), cotangent, squared))
    return _argmax(jnp.where(cotangent <= limit, squared, -1.0))


def _next_of_all(
    x: jax.Array, y: jax.Array, mask: jax.Array, centre: tuple[jax.Array, ...]
) -> jax.Array:
    """`_next` of every slot, int32 `[P]`."""
    directions = jax.vmap(_directions, in_axes=(None, None, None, 0, None))  # [P, P] each
    slots = jnp.arange(x.size)
    limit = jnp.min(directions(x, y, mask, slots, centre)[0], axis=1, keepdims=True)
    # The barrier is for memory: no `[P, P]` array waits for the limits, all are computed again.
    x, y, limit = jax.lax.optimization_barrier((x, y, limit))
    _, cotangent, squared = directions(x, y, mask, slots, centre)
    return jnp.argmax(jnp.where(cotangent <= limit, squared, -1.0), axis=1).astype(jnp.int32)


def _directions(
    x: jax.Array, y: jax.Array, mask: jax.Array, slot: jax.Array, centre: tuple[jax.Array, ...]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The limit that every point sets, its direction and distance², all as seen from `slot`.

    A direction is the angle clockwise from the direction of the centre, between 0 and 180 degrees;
    angles are compared by their cotangents, which decrease. Beyond the limit of a point it lies
    more than `TOLERANCE` to the right.
    """
    to_x, to_y = x - x[slot], y - y[slot]
    centre_x, centre_y = centre[0] - x[slot], centre[1] - y[slot]
    squared = to_x**2 + to_y**2
    along = centre_x * to_x + centre_y * to_y
    aside = centre_y * to_x - centre_x * to_y  # positive on the right, seen towards the centre
    is_ahead = mask & (aside > 0) & (squared > TOLERANCE**2)
    cotangent = jnp.where(is_ahead, along / aside, jnp.inf)
    # Rotated left by the angle whose sine is tolerance / distance: the limit set by this point.
    tangent = TOLERANCE * jax.lax.rsqrt(jnp.maximum(squared - TOLERANCE**2, TOLERANCE**4))
    rotated = (cotangent + tangent) / (1 - cotangent * tangent)
    return jnp.where(cotangent * tangent < 1, rotated, jnp.inf), cotangent, squared


def _farthest(
    x: jax.Array, y: jax.Array, mask: jax.Array, from_x: jax.Array, from_y: jax.Array
) -> jax.Array:
    """The slot of the point in `mask` that is farthest from another point."""
    return _argmax(jnp.where(mask, (x - from_x) ** 2 + (y - from_y) ** 2, -1.0))


def _extremes(x: jax.Array, y: jax.Array, mask: jax.Array) -> jax.Array:
    """Bool `[P]`: the points in `mask` of smallest and largest x and y, the lowest slot of each."""
    slots = jnp.arange(x.size)
    is_extreme = jnp.zeros_like(mask)
    for value in (x, -x, y, -y):
        is_extreme |= slots == _argmax(jnp.where(mask, value, -jnp.inf))
    return is_extreme & mask


def _argmax(values: jax.Array) -> jax.Array:
    """Int32: the lowest slot of the largest value; faster than `jnp.argmax` on a CPU."""
    slots = jnp.arange(values.size, dtype=values.dtype)
    return _least(jnp.where(values == _largest(values), slots, values.size - 1)).astype(jnp.int32)


def _least(values: jax.Array) -> jax.Array:
    return jnp.min(_fold_lanes(jnp.minimum, values))


def _largest(values: jax.Array) -> jax.Array:
    return jnp.max(_fold_lanes(jnp.maximum, values))


def _fold_lanes(
    operation: Callable[[jax.Array, jax.Array], jax.Array], values: jax.Array
) -> jax.Array:
    """`[LANES]` of `[P]`: XLA for CPU compares a short row one number at a time, but not slices."""
    padded = jnp.pad(values, (0, -values.size % LANES), mode="edge")
    return reduce(operation, [padded[i : i + LANES] for i in range(0, padded.size, LANES)])
