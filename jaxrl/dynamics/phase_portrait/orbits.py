"""Orbits of a map without noise: where they come to, and how fast neighbours part from them.

Letters: S orbits, T recorded states, d dimensions of the state. Places are in units of the data's
spread (see `region`).
"""

from functools import partial

import jax
import jax.numpy as jnp

from jaxrl.dynamics.phase_portrait.fixed_points import Step, move
from jaxrl.numerics.linalg import matmul

FREE = 8
"""One part in so many of the steps is left for tangents to turn, before their growth counts."""


@partial(jax.jit, static_argnames=("step", "length"))
def follow(
    step: Step,
    frame: tuple,
    places: jax.Array,
    u: jax.Array,
    edge: jax.Array,
    settling: jax.Array,
    stride: jax.Array,
    length: int,
) -> tuple[jax.Array, jax.Array]:
    """`(path [T, S, d], has left [S])` of orbits from `places` `[S, d]`.

    T = `length` places, each `stride` steps after the last, recorded after `settling` steps; the
    two may vary without compiling anew. An orbit that comes further than `edge` from the middle, or
    to no number, has left and stays where it was.
    """

    def advance(x: jax.Array, has_left: jax.Array):
        after = move(step, frame, x, u)
        leaves = has_left | ~(jnp.linalg.norm(after) <= edge)  # true for NaN, too
        return jnp.where(leaves, x, after), leaves

    def advance_steps(count: jax.Array, carry: tuple) -> tuple:
        return jax.lax.fori_loop(0, count, lambda _, both: jax.vmap(advance)(*both), carry)

    def record(carry: tuple, _: None):
        return advance_steps(stride, carry), carry[0]

    carry = advance_steps(settling, (places, jnp.zeros(len(places), bool)))
    (_, has_left), path = jax.lax.scan(record, carry, None, length)
    return path, has_left


@partial(jax.jit, static_argnames=("step", "length"))
def exponents(step: Step, frame: tuple, places: jax.Array, u: jax.Array, length: int) -> jax.Array:
    """Lyapunov exponents `[S, d]` per step of orbits from `places` `[S, d]`, the largest first.

    Tangents are moved by the Jacobian and made orthogonal again at each of `length` steps (Benettin
    et al. 1980); the mean of the logarithms of their lengths, the first eighth left out.
    """
    map_ = lambda x: move(step, frame, x, u)
    d = places.shape[1]

    def orbit_exponents(x: jax.Array) -> jax.Array:
        def advance(carry: tuple, index: jax.Array):
            x, tangents, total = carry
            lengths, tangents = orthogonalise(matmul(jax.jacfwd(map_)(x), tangents))
            counts = index >= length // FREE
            return (map_(x), tangents, total + jnp.where(counts, jnp.log(lengths), 0.0)), None

        start = (x, jnp.eye(d, dtype=x.dtype), jnp.zeros(d, x.dtype))
        (_, _, total), _ = jax.lax.scan(advance, start, jnp.arange(length))
        # where coordinates do not act on each other, tangents stay in the order they began in
        return jnp.sort(total / (length - length // FREE), descending=True)

    return jax.vmap(orbit_exponents)(places)


def orthogonalise(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`(lengths [d], columns [d, d])` of a matrix by Gram and Schmidt, twice for its rounding.

    Written out, because LAPACK under `vmap` is a loop.
    """
    lengths, columns = [], []
    for k in range(matrix.shape[1]):
        column = matrix[:, k]
        for _ in range(2):
            for other in columns:
                column = column - jnp.sum(column * other) * other
        length = jnp.maximum(jnp.linalg.norm(column), jnp.finfo(matrix.dtype).tiny)
        lengths.append(length)
        columns.append(column / length)
    return jnp.stack(lengths), jnp.stack(columns, axis=1)
