"""Functions of the state that a field is a weighted sum of: three bases, for what is known of it.

* Bumps on a grid (`rbf`): any smooth field, but their number grows as a power of the dimension.
* Random Fourier features (Rahimi & Recht 2007): the same, a Gaussian process with a Gaussian
  kernel, by any number of random waves in any dimension.
* Polynomials: products of Legendre polynomials up to a total degree, for fields of mechanics and
  chemistry that are polynomials themselves; they know of no scale and extrapolate.

Axes: d dimensions, C features, k outputs.
"""

from functools import lru_cache
from itertools import product
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, Positive, Seed
from jaxrl.dynamics import rbf
from jaxrl.dynamics.rbf import Grid
from jaxrl.numerics.linalg import matmul
from jaxrl.numerics.trigonometry import cosine

Kind = Literal["bumps", "fourier", "polynomial"]
MOST = 20_000
"""Features at most: their covariance is `[C, C]`."""


@struct.dataclass
class Fourier:
    """√(2/C) cos(ω·z + b), with frequencies ω ~ N(0, I / length²) and phases b ~ U(0, 2π).

    With independent weights of one variance a sum of them is nearly a Gaussian process of that
    variance and of the kernel exp(-|Δ|² / 2 length²).
    """

    count: Count = struct.field(pytree_node=False, default=300)
    """C, number of waves."""
    dims: Count = struct.field(pytree_node=False, default=2)
    """d."""
    length: Positive = 1.0
    """Length over which the field changes, in units of the state."""
    seed: Seed = struct.field(pytree_node=False, default=0)
    """Of the frequencies and phases."""

    @property
    def num_features(self) -> int:
        return self.count


@struct.dataclass
class Polynomial:
    """Products of Legendre polynomials of z / half_width, each of mean square 1 in the box."""

    degree: Count = struct.field(pytree_node=False, default=3)
    """Largest total degree."""
    dims: Count = struct.field(pytree_node=False, default=2)
    """d."""
    half_width: Positive = 2.5
    """Half the width of the box, in units of the state."""

    @property
    def num_features(self) -> int:
        """C, (degree + d)! / (degree! d!)."""
        return len(_powers(self.degree, self.dims))


Basis = Grid | Fourier | Polynomial


def check(basis: Basis) -> None:
    """Raises ValueError for numbers out of range and for more features than can be handled."""
    if isinstance(basis, Grid):
        return rbf.check(basis)
    checks.config(basis)
    size = basis.count if isinstance(basis, Fourier) else _num_powers(basis.degree, basis.dims)
    if size > MOST:
        raise ValueError(f"{size} features are more than {MOST}: choose fewer")
    return None


def features(basis: Basis, z: jax.Array) -> jax.Array:
    """`[..., C]` at the states `z` `[..., d]`. Raises ValueError if the last axis is not d."""
    if isinstance(basis, Grid):
        return rbf.features(basis, z)
    if z.ndim < 1 or z.shape[-1] != basis.dims:
        raise ValueError(f"states have shape {z.shape}, expected [..., {basis.dims}]")
    if isinstance(basis, Fourier):
        frequency, phase = _waves(basis.count, basis.dims, basis.seed)
        angle = matmul(z, jnp.asarray(frequency.T)) / basis.length + phase.reshape(
            (1,) * (z.ndim - 1) + (-1,)
        )
        return (2 / basis.count) ** 0.5 * cosine(angle)
    return _legendre(basis, z)


def weighted_sum(basis: Basis, weights: jax.Array, z: jax.Array) -> jax.Array:
    """`features(basis, z) @ weights`: `[..., k]` from weights `[C, k]` and states `[..., d]`."""
    if isinstance(basis, Grid):
        return rbf.weighted_sum(basis, weights, z)
    return matmul(features(basis, z), weights)


def mean_square(basis: Basis) -> jax.Array:
    """Sum of the squared features, by which a prior of the weights becomes one of the field.

    At the origin for bumps; 1 for waves and C for polynomials, which are means.
    """
    if isinstance(basis, Grid):
        return jnp.sum(rbf.features(basis, jnp.zeros(basis.dims)) ** 2)
    return jnp.asarray(1.0 if isinstance(basis, Fourier) else float(basis.num_features))


@lru_cache
def _waves(count: int, dims: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies of length 1 `[C, d]` and phases `[C]`."""
    rng = np.random.default_rng(seed)
    frequency = rng.standard_normal((count, dims))
    return frequency.astype(np.float32), rng.uniform(0, 2 * np.pi, count).astype(np.float32)


@lru_cache
def _powers(degree: int, dims: int) -> np.ndarray:
    """All exponents of a total up to `degree`, `[C, d]`."""
    if dims == 1:
        return np.arange(degree + 1)[:, None]
    lower_powers = [tuple(row) for row in _powers(degree, dims - 1)]
    rows = [(first, *row) for first, row in product(range(degree + 1), lower_powers)]
    return np.array([row for row in rows if sum(row) <= degree])


def _num_powers(degree: int, dims: int) -> int:
    size = 1
    for i in range(1, min(degree, dims) + 1):
        size = size * (degree + dims + 1 - i) // i
    return size


def _legendre(basis: Polynomial, z: jax.Array) -> jax.Array:
    """The products `[..., C]`, by the recurrence (k + 1) P_{k+1} = (2k + 1) x P_k - k P_{k-1}."""
    x = z / basis.half_width
    polynomials = [jnp.ones_like(x), x]
    for k in range(1, basis.degree):
        polynomials.append(((2 * k + 1) * x * polynomials[k] - k * polynomials[k - 1]) / (k + 1))
    scaled = jnp.stack([(2 * k + 1) ** 0.5 * p for k, p in enumerate(polynomials)], axis=-1)
    powers = _powers(basis.degree, basis.dims)  # [C, d]
    factors = [scaled[..., i, :][..., powers[:, i]] for i in range(basis.dims)]
    out = factors[0]
    for factor in factors[1:]:
        out = out * factor
    return out
