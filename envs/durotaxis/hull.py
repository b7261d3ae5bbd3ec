"""The convex hull of some of P points in the plane: its vertices and its area.

Gift wrapping (Jarvis 1973): from each vertex the supporting line turns on to the next, so the cost
is one pass over the points a vertex. Where several points lie on that line, up to `TOLERANCE`, the
farthest is the next vertex; so points that rounding puts a little beyond a straight side are none,
and of points that coincide the one of the lowest slot stands for all.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

TOLERANCE = 1e-3
"""How far a point must stick out of the others' hull to be a vertex, px: some ten times what
float32 rounds at a thousand px, and a fiftieth of the shortest step of a colony."""


class Hull(NamedTuple):
    """The hull of the points that count."""

    is_vertex: jax.Array  # bool [P]
    area: jax.Array  # float32 [], px²; 0 where the points lie on a line


class Walk(NamedTuple):
    """A walk round the hull, counter-clockwise where y points up."""

    slot: jax.Array  # int32, of the vertex it has come to
    is_vertex: jax.Array  # bool [P], the vertices so far
    num_vertices: jax.Array  # int32
    twice_area: jax.Array  # float32, of the fan from the centre, px²
    past_half: jax.Array  # bool, whether it is more than half way round the centre
    is_closed: jax.Array  # bool, whether it has come back


def vertices(x: jax.Array, y: jax.Array, mask: jax.Array) -> jax.Array:
    """Bool `[P]`: which of the points x, y `[P]` (px) that `mask` `[P]` lets count are vertices.

    Of fewer than three points all are. Of points on a line, up to `TOLERANCE`, those of smallest
    and largest x and y are, the lowest slot where several are equal: up to four.
    """
    return convex_hull(x, y, mask).is_vertex


def area(x: jax.Array, y: jax.Array, mask: jax.Array) -> jax.Array:
    """Float32 `[]`: the area of the hull of the points x, y `[P]` (px) in `mask` `[P]`, px²."""
    return convex_hull(x, y, mask).area


def convex_hull(x: jax.Array, y: jax.Array, mask: jax.Array) -> Hull:
    """Vertices and area at the price of one; see `vertices` for the arguments and the rules."""
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
    centre = jnp.mean(x[corners]), jnp.mean(y[corners])  # inside, farther than rounding reaches
    walk = _walk(x, y, mask, first, centre, is_flat)
    is_vertex = jnp.where(is_flat, _extremes(x, y, mask), walk.is_vertex)
    is_vertex = jnp.where(num_points < 3, mask, is_vertex)
    return Hull(is_vertex, 0.5 * walk.twice_area)


def _walk(
    x: jax.Array,
    y: jax.Array,
    mask: jax.Array,
    first: jax.Array,
    centre: tuple[jax.Array, jax.Array],
    is_flat: jax.Array,
) -> Walk:
    """Round the hull from the vertex `first`, about a centre that lies inside; not at all if flat.

    The centre tells when it is round, for a walk may step over `first`, within tolerance.
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
    return jax.lax.while_loop(lambda walk: ~walk.is_closed, step, start)


def _next(
    x: jax.Array, y: jax.Array, mask: jax.Array, slot: jax.Array, centre: tuple[jax.Array, ...]
) -> jax.Array:
    """The vertex that follows the one in `slot`: all other points lie left of the line to it.

    Directions from here are told by their angle clockwise from the centre's, between 0 and 180
    degrees, and compared by its cotangent, which falls. Of the directions that leave no point
    more than `TOLERANCE` to their right, the farthest point in one.
    """
    to_x, to_y = x - x[slot], y - y[slot]
    centre_x, centre_y = centre[0] - x[slot], centre[1] - y[slot]
    squared = to_x**2 + to_y**2
    along = centre_x * to_x + centre_y * to_y
    aside = centre_y * to_x - centre_x * to_y  # positive on the right, seen towards the centre
    is_ahead = mask & (aside > 0) & (squared > TOLERANCE**2)
    cotangent = jnp.where(is_ahead, along / aside, jnp.inf)
    # Turned left by the angle whose sine is tolerance over distance: as far as a line may cut in.
    tangent = TOLERANCE * jax.lax.rsqrt(jnp.maximum(squared - TOLERANCE**2, TOLERANCE**4))
    turned = (cotangent + tangent) / (1 - cotangent * tangent)
    limit = jnp.min(jnp.where(cotangent * tangent < 1, turned, jnp.inf))
    # The barrier is for speed: XLA for CPU joins the minimum badly with what follows.
    limit, cotangent, squared = jax.lax.optimization_barrier((limit, cotangent, squared))
    return _argmax(jnp.where(cotangent <= limit, squared, -1.0))


def _farthest(
    x: jax.Array, y: jax.Array, mask: jax.Array, from_x: jax.Array, from_y: jax.Array
) -> jax.Array:
    """The slot of the point in `mask` that is farthest from another point."""
    return _argmax(jnp.where(mask, (x - from_x) ** 2 + (y - from_y) ** 2, -1.0))


def _extremes(x: jax.Array, y: jax.Array, mask: jax.Array) -> jax.Array:
    """Bool `[P]`: the points in `mask` of smallest and largest x and y, the lowest slot of each."""
    slots = jnp.arange(x.size)
    found = jnp.zeros_like(mask)
    for value in (x, -x, y, -y):
        found |= slots == _argmax(jnp.where(mask, value, -jnp.inf))
    return found & mask


def _argmax(values: jax.Array) -> jax.Array:
    """Int32: the lowest slot of the largest value; faster than `jnp.argmax` on a CPU."""
    slots = jnp.arange(values.size, dtype=values.dtype)
    return jnp.min(jnp.where(values == jnp.max(values), slots, values.size - 1)).astype(jnp.int32)
