"""Bayesian linear regression for the parameters of a field, with unknown noise variance.

Normal-inverse-gamma: given the variance v of the noise, the parameters are Gaussian with covariance
v P; 1/v is gamma distributed. Both are conjugate to `displacement = design @ parameters + noise`,
so one datum at a time gives what all at once would (Bishop 2006, sections 3.3 and 2.3.6; Gelman et
al. 2013, chapter 14). Axes: p parameters, d outputs.

Where all outputs share the same regressors, like the d components of a field of shared features,
one covariance `[p, p]` is enough: the full one is its Kronecker product with the unit matrix
`[d, d]`. Otherwise (`shared=False`) the design has a row per output, as for a linearised model.

The covariance is kept as a square root, as in square-root filters (Potter 1963; Bierman 1977,
chapter II): in float32, data 10¹² times as precise as the prior (a noise variance of 1e-12) would
otherwise leave negative variances.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from jaxrl import checks
from jaxrl.numerics.linalg import matmul

KNOWN = 1e12  # gamma shape of a known noise, so large that float32 loses what data add
LARGE_SHAPE = 8.0  # above which two terms of Stirling's series are as precise as float32


class Posterior(NamedTuple):
    mean: jax.Array  # [p, d] where the outputs share the design, else [p]
    root: jax.Array  # [p, p], S with covariance P = S Sᵀ, in units of the noise's deviation
    shape: jax.Array  # of the gamma distribution of 1 / variance
    rate: jax.Array  # of the same; the noise's variance is about rate / shape
    information: jax.Array  # nats gained from data: half the decrease of the log-determinant

    @property
    def covariance(self) -> jax.Array:
        """P `[p, p]`, in units of the variance of the noise; positive semidefinite by its form."""
        product = matmul(self.root, self.root.mT)
        return (product + product.mT) / 2  # symmetric to the last bit


def prior(
    num_parameters: int,
    dims: int,
    relative_variance: float | jax.Array,
    noise_variance: float | jax.Array,
    noise_strength: float | np.floating | jax.Array = jnp.inf,
    shared: bool = True,
) -> Posterior:
    """Before any data: independent parameters with mean 0.

    Args:
      num_parameters: p; those of one output if `shared`.
      dims: d.
      relative_variance: of a parameter, in units of `noise_variance`.
      noise_variance: of one output, in its unit squared: the first guess.
      noise_strength: weight of that guess, as a number of observed outputs. Infinite: it is known.
      shared: whether one row of the design serves all outputs.

    Raises:
      ValueError: a size below 1, or a number that is not above 0 in float32.
    """
    checks.number("num_parameters", num_parameters, least=1)
    checks.number("dims", dims, least=1)
    single = jnp.finfo(jnp.float32)
    tiny, largest = float(single.tiny), float(single.max)
    checks.number("relative_variance", relative_variance, least=tiny, most=largest)
    checks.number("noise_variance", noise_variance, least=tiny, most=largest / KNOWN)
    if isinstance(noise_strength, int | float | np.generic) and not noise_strength >= tiny:
        raise ValueError(
            f"noise_strength is {noise_strength}, expected a number above 0: give the number of "
            "outputs that noise_variance counts for, inf if it is known"
        )
    shape = jnp.minimum(jnp.asarray(noise_strength, jnp.float32) / 2, KNOWN)
    return Posterior(
        mean=jnp.zeros((num_parameters, dims) if shared else num_parameters),
        root=jnp.eye(num_parameters) * jnp.sqrt(relative_variance),
        shape=shape,
        rate=shape * noise_variance,
        information=jnp.zeros(()),
    )


def noise_variance(posterior: Posterior) -> jax.Array:
    """The variance of the noise, a scalar: 1 / E[1 / variance]."""
    return posterior.rate / posterior.shape


def predictive_variance(posterior: Posterior, design: jax.Array) -> jax.Array:
    """x P xᵀ for every row x of `design` `[..., p]`: `[...]`, in units of the noise's variance.

    The predictive variance without observation noise, which would add 1. With a shared design it is
    that of each of the d outputs.
    """
    return jnp.sum(matmul(design, posterior.root) ** 2, axis=-1)


def pad(posterior: Posterior, size: int) -> Posterior:
    """The same with parameters that are known to be 0 at the end: p = `size` of them."""
    num_new = size - len(posterior.root)
    mean = jnp.pad(posterior.mean, [(0, num_new)] + [(0, 0)] * (posterior.mean.ndim - 1))
    return posterior._replace(mean=mean, root=jnp.pad(posterior.root, (0, num_new)))


def log_density(
    posterior: Posterior,
    design: jax.Array,
    displacement: jax.Array,
    relative_noise: float | jax.Array = 1.0,
) -> jax.Array:
    """log p(displacement | data so far), a scalar, of a datum as `update` takes it.

    For a shared design; summed over data it is their marginal likelihood. Student's t, which is
    Gaussian where the noise is known. 0 where nothing was observed.
    """
    error = displacement - matmul(design, posterior.mean)  # [d]
    spread = relative_noise + predictive_variance(posterior, design)
    shape, rate, half = posterior.shape, posterior.rate, len(error) / 2
    misfit = jnp.sum(error**2) / spread / 2
    is_known = shape >= KNOWN
    unknown_shape = jnp.where(is_known, 1.0, shape)  # no overflow in what is not used
    student = _log_gamma_ratio(unknown_shape, half) - half * jnp.log(rate / shape)
    student = student - (unknown_shape + half) * jnp.log1p(misfit / rate)
    gaussian = -(half * jnp.log(rate / shape) + misfit * shape / rate)
    density = jnp.where(is_known, gaussian, student) - half * jnp.log(2 * jnp.pi * spread)
    return jnp.where(jnp.isinf(relative_noise), 0.0, density)


def _log_gamma_ratio(shape: jax.Array, half: float) -> jax.Array:
    """log (Γ(a + h) / (Γ(a) aʰ)) of a = `shape` and h = `half`, which is 0 for an infinite a.

    The logarithms of both grow as a log a, and their difference would be rounding errors: of a
    large a it is that of Stirling's series.
    """
    large, small = jnp.maximum(shape, LARGE_SHAPE), jnp.minimum(shape, LARGE_SHAPE)
    rest = lambda x: 1 / (12 * x) - 1 / (360 * x**3)
    series = (large + (half - 0.5)) * jnp.log1p(half / large) - half
    series = series + rest(large + half) - rest(large)
    direct = gammaln(small + half) - gammaln(small) - half * jnp.log(small)
    return jnp.where(shape > LARGE_SHAPE, series, direct)


def update(
    posterior: Posterior,
    design: jax.Array,
    displacement: jax.Array,
    relative_noise: float | jax.Array = 1.0,
) -> Posterior:
    """The posterior after one datum, `displacement = design @ parameters + noise`.

    Exact, up to rounding: deviations (square roots of variances) have roundings of what they were
    before any data. x P xᵀ must be below 10³⁸. Each row of the design costs O(p²).

    Args:
      posterior: before it.
      design: `[p]` where shared, else `[d, p]`. If it is a linearisation at parameters θ, the
        displacement must be J θ + (observed - predicted at θ).
      displacement: `[d]`.
      relative_noise: variance of this datum's noise in units of the noise's variance, the same for
        all outputs. Infinite: nothing was observed.

    Raises:
      ValueError: the shapes do not fit together, or the noise is not above 0.
    """
    checks.number("relative_noise", relative_noise, above=0, finite=False)
    mean, root, shape, rate, information = posterior
    size, dims = len(mean), displacement.shape[-1]
    shared = mean.ndim == 2
    expected = (size,) if shared else (dims, size)
    if design.shape != expected or displacement.shape != (mean.shape[1] if shared else dims,):
        raise ValueError(
            f"design and displacement have shapes {design.shape} and {displacement.shape}, "
            f"expected {expected} and [d] for parameters {mean.shape}: give one datum of this model"
        )

    absorb = partial(_absorb, relative_noise)
    carry, datum = (mean, root, jnp.zeros_like(rate), information), (design, displacement)
    carry = absorb(carry, datum)[0] if shared else jax.lax.scan(absorb, carry, datum)[0]
    mean, root, misfit, information = carry
    count = jnp.where(jnp.isinf(relative_noise), 0.0, dims)
    rate_change = jnp.where(
        shape < KNOWN, misfit / 2, 0.0
    )  # a known noise stays, whatever the misfit
    return Posterior(mean, root, shape + count / 2, rate + rate_change, information)


def _absorb(relative_noise: float | jax.Array, carry: tuple, datum: tuple) -> tuple[tuple, None]:
    """`(mean, root, misfit, information)` after one row of the design and its displacement."""
    mean, root, misfit, information = carry
    row, displacement = datum
    projection = matmul(row, root)  # [p], Sᵀ x
    variance = jnp.sum(projection**2)  # x P xᵀ
    deviation = jnp.sqrt(relative_noise + variance)
    error = (displacement - matmul(row, mean)) / deviation  # [d] or scalar
    gain = matmul(root, projection) / deviation  # [p], P x over the deviation
    mean = mean + jnp.multiply.outer(gain, error)
    root = root - jnp.multiply.outer(gain, projection / (deviation + jnp.sqrt(relative_noise)))
    ratio = variance / relative_noise
    log_ratio = jnp.log(variance) - jnp.log(relative_noise)  # where the ratio overflows
    nats = jnp.where(jnp.isinf(ratio), log_ratio, jnp.log1p(ratio))
    information = information + jnp.size(error) * nats / 2
    return (mean, root, misfit + jnp.sum(error**2), information), None
