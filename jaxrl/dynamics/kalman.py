"""An extended Kalman filter whose matrices are no larger than the latent state.

However many channels are observed, they enter as M = Hᵀ R⁻¹ H `[d, d]` and Hᵀ R⁻¹ (y - h), with H
the emission's Jacobian and R the channels' variances, both at the predicted mean: the information
form (Anderson & Moore 1979, section 6.3). Channels are independent given the state, and Poisson
ones differ from Gaussian ones only by a variance that is the mean. M may be singular, as it is with
fewer channels than latent dimensions. Axes: d latent dimensions, n channels.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.numerics import linalg
from jaxrl.numerics.batched_cond import cond_any
from jaxrl.numerics.linalg import matmul

Emission = Callable[[jax.Array], tuple[jax.Array, jax.Array]]
"""State `[d]` -> mean `[n]` and variance `[n]` of what is observed."""

LEAST_VARIANCE = (
    1e-12  # of a channel, so that one without noise, or a rate that underflowed, counts
)
CERTAIN = 1e4  # variance before an observation over that after, above which `_mean_update` is used
RIDGE = 1e-5  # of the mean eigenvalue of M, so that unobserved directions give 0


class Belief(NamedTuple):
    """The state is Gaussian."""

    mean: jax.Array  # [d]
    covariance: jax.Array  # [d, d]


class Evidence(NamedTuple):
    """The likelihood of the error of a predicted mean, given one observation."""

    displacement: jax.Array  # [d], state minus predicted mean; 0 in unobserved directions
    information: jax.Array  # [d, d], inverse of the covariance of its error; may be singular

    @property
    def weight(self) -> jax.Array:
        """Mean information of a direction, a scalar: 1 / variance if all are equally observed."""
        return jnp.trace(self.information) / len(self.displacement)


def predict(
    belief: Belief,
    step: Callable[[jax.Array], jax.Array],
    process_covariance: float | jax.Array,
) -> Belief:
    """One step later: A P Aᵀ + Q with A the Jacobian of `step` at the mean.

    Args:
      belief: before the step.
      step: state `[d]` -> expected next state `[d]`.
      process_covariance: Q `[d, d]` of the noise of a whole step, or its variance in each
        dimension, a scalar; q dt with q per unit of time.
    """
    jacobian, mean = jax.jacfwd(_duplicate_output(step), has_aux=True)(belief.mean)
    noise = jnp.asarray(process_covariance)
    if noise.ndim == 0:
        noise = noise * jnp.eye(len(mean))
    return Belief(
        mean, _symmetrise(matmul(matmul(jacobian, belief.covariance), jacobian.T) + noise)
    )


def correct(belief: Belief, obs: jax.Array, emission: Emission) -> Belief:
    """The belief after the observation `obs` `[n]`: covariance (P⁻¹ + M)⁻¹, see `_inverse_of_sum`.

    Neither P nor M is inverted, so both may be singular. Variances of channels count from 1e-12 on.
    Raises ValueError unless `obs` and both parts of the emission have one shape `[n]`.
    """
    information, score = _information_and_score(belief, obs, emission)
    covariance = _inverse_of_sum(belief.covariance, information)
    is_certain = jnp.trace(belief.covariance) * jnp.trace(information) > CERTAIN
    operands = (belief.covariance, information, score)
    move = cond_any(is_certain, lambda x: _mean_update(*x), operands, matmul(covariance, score))
    return Belief(belief.mean + move, covariance)


def evidence(belief: Belief, obs: jax.Array, emission: Emission) -> Evidence:
    """Generalised least squares estimate from `obs` `[n]` of the state minus the predicted mean.

    The best linear unbiased estimate of an offset δ in y = h(mean) + H (δ + e) + noise, with e of
    covariance P. It is M⁻¹ Hᵀ R⁻¹ (y - h), with covariance P + M⁻¹. As a datum for the field it has
    the information (P + M⁻¹)⁻¹, which is finite where M is singular. Raises ValueError as `correct`
    does.
    """
    information, score = _information_and_score(belief, obs, emission)
    size = len(score)
    scale = jnp.trace(information) / size
    unit = jnp.maximum(scale, jnp.finfo(score.dtype).tiny)  # which no determinant can underflow
    scaled_information = information / unit + RIDGE * jnp.eye(size)
    displacement = linalg.solve_positive(scaled_information, (score / unit)[:, None])[:, 0]
    displacement = jnp.where(scale > 0, displacement, 0.0)
    return Evidence(displacement, _inverse_of_sum(information, belief.covariance))


def information(belief: Belief, emission: Emission) -> jax.Array:
    """Hᵀ (H P Hᵀ + R)⁻¹ H `[d, d]`: Fisher information of an observation about the mean.

    With P = 0 it is M, limited by the noise of the channels alone.
    """
    jacobian, (_, variance) = _linearise_emission(belief, emission)
    return _inverse_of_sum(_channel_information(jacobian, variance), belief.covariance)


def _information_and_score(
    belief: Belief, obs: jax.Array, emission: Emission
) -> tuple[jax.Array, jax.Array]:
    """M `[d, d]` and Hᵀ R⁻¹ (y - h) `[d]`."""
    jacobian, (mean, variance) = _linearise_emission(belief, emission)
    if not obs.shape == mean.shape == variance.shape or obs.ndim != 1:
        raise ValueError(
            f"observation, its mean and its variance have shapes {obs.shape}, {mean.shape} and "
            f"{variance.shape}, expected one shape [n]: give the variance of each channel"
        )
    error = (obs - mean) / jnp.maximum(variance, LEAST_VARIANCE)
    return _channel_information(jacobian, variance), matmul(error, jacobian)


def _linearise_emission(
    belief: Belief, emission: Emission
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """H `[n, d]`, and the mean and the variance of the channels."""

    def emission_with_aux(z):
        mean, variance = emission(z)
        return mean, (mean, variance)

    return jax.jacfwd(emission_with_aux, has_aux=True)(belief.mean)


def _channel_information(jacobian: jax.Array, variance: jax.Array) -> jax.Array:
    """M = Hᵀ R⁻¹ H `[d, d]`."""
    weighted = jacobian / jnp.maximum(variance, LEAST_VARIANCE)[:, None]
    return _symmetrise(matmul(jacobian.T, weighted))


def _inverse_of_sum(prior: jax.Array, information: jax.Array) -> jax.Array:
    """(A⁻¹ + B)⁻¹ for A = `prior`, B = `information`, both `[d, d]` and possibly singular.

    As S (I + Sᵀ B S)⁻¹ Sᵀ with A = S Sᵀ, by roots alone: symmetric, and positive semidefinite by
    its form. Where B is singular, float32 needs A B below 10¹² (see `linalg.root1p`).
    """
    root = linalg.root(prior)
    lower = linalg.root1p(matmul(root.T, linalg.root(information)))
    half = linalg.solve_lower(lower, root.T)
    return matmul(half.T, half)


def _mean_update(prior: jax.Array, information: jax.Array, score: jax.Array) -> jax.Array:
    """(A⁻¹ + B)⁻¹ s for A = `prior`, B = `information` `[d, d]` and s = `score` `[d]` in B's range.

    The product of matrix and vector loses it where A B is large and B singular: A may be large in
    directions in which nothing was observed, and so large a vector has roundings there. Here each
    column of a root of B is a channel of noise 1, taken after the one before (Potter 1963).
    """
    root = linalg.root(prior)
    channels, obs = linalg.root_and_coordinates(information, score[:, None])
    move = jnp.zeros_like(score)
    for channel, channel_obs in zip(channels.T, obs[:, 0], strict=True):
        projection = matmul(root.T, channel)
        length = jnp.max(jnp.abs(projection), initial=1.0)  # whose square might overflow
        deviation = length * jnp.sqrt(length**-2 + jnp.sum((projection / length) ** 2))
        gain = matmul(root, projection / deviation)
        move = move + gain * ((channel_obs - matmul(channel, move)) / deviation)
        root = root - jnp.multiply.outer(gain, projection / (deviation + 1))
    return move


def _duplicate_output(function: Callable) -> Callable:
    return lambda z: (function(z),) * 2


def _symmetrise(matrix: jax.Array) -> jax.Array:
    return (matrix + matrix.T) / 2
