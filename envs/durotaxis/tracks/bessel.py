"""The logarithm of the Bessel function I₀, with derivatives that float32 can hold.

    (log I₀)' = A = I₁ / I₀,  A' = 1 - A / z - A²

The terms of A' cancel for large z, where it is taken from the series of A in 1 / z (Abramowitz &
Stegun 1964, 9.7.1). Without this a second derivative would be one of Chebyshev polynomials, wrong
from z = 100 on, and slow to compile.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import i0e, i1e

LARGE = 30.0
"""From here on the series is used."""
SERIES = (1 / 2, 1 / 8, 1 / 8, 25 / 128, 13 / 32)
"""1 - A is the sum of these over z, z², …"""


@jax.custom_jvp
def log_i0e(z: jax.Array) -> jax.Array:
    """log(I₀(z) exp(-z)) for z >= 0, in any shape; twice differentiable."""
    return jnp.log(i0e(z))


@log_i0e.defjvp
def _log_i0e_jvp(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    return log_i0e(*primals), -_complement(*primals) * tangents[0]


@jax.custom_jvp
def _complement(z: jax.Array) -> jax.Array:
    """1 - I₁(z) / I₀(z)."""
    inverse = 1 / jnp.maximum(z, LARGE)
    series = sum(c * inverse ** (i + 1) for i, c in enumerate(SERIES))
    return jnp.where(z > LARGE, series, 1 - i1e(z) / i0e(z))


@_complement.defjvp
def _complement_jvp(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    (z,) = primals
    value = _complement(z)
    ratio = 1 - value
    inverse = 1 / jnp.maximum(z, LARGE)
    series = sum((i + 1) * c * inverse ** (i + 2) for i, c in enumerate(SERIES))
    by_rule = 1 - jnp.where(z > 1e-3, ratio / jnp.maximum(z, 1e-3), 0.5) - ratio**2
    return value, -jnp.where(z > LARGE, series, by_rule) * tangents[0]
