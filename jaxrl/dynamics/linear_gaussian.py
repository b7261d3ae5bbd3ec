"""A linear-Gaussian state-space model with inputs, learned by expectation maximisation.

    z_{t+1} = A z_t + B u_t + w,  w ~ N(0, Q);    y_t = C z_t + c + v,  v ~ N(0, diag R)

Any observations may be missing. The E step is the Kalman filter and the smoother of Rauch, Tung &
Striebel, the M step is weighted least squares (Shumway & Stoffer 1982; Ghahramani & Hinton 1996).
Alone they need hundreds of iterations where states are slow or noisy; extrapolating from two of
them takes a tenth of that (SQUAREM, Varadhan & Roland 2008).
Axes: E episodes, T steps, d latent dimensions, n channels, m inputs.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics import kalman
from jaxrl.dynamics.kalman import Belief
from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul
from jaxrl.types import where_tree

LEAST_NOISE = 1e-6
"""Smallest variance of a channel, in the unit of the data squared."""


class Params(NamedTuple):
    transition: jax.Array  # [d, d] A
    effect: jax.Array  # [d, m] B
    process: jax.Array  # [d, d] Q
    matrix: jax.Array  # [n, d] C
    offset: jax.Array  # [n] c
    noise: jax.Array  # [n] R
    first: Belief  # of the first state of an episode


class Episodes(NamedTuple):
    """What was recorded; episodes are padded at their end."""

    y: jax.Array  # [E, T, n], finite numbers where missing
    u: jax.Array  # [E, T, m], u_t moves the state from t to t + 1
    observed: jax.Array  # bool [E, T, n], false where missing and in padding
    valid: jax.Array  # bool [E, T], false in padding


class SmoothedStates(NamedTuple):
    """The states given all observations."""

    mean: jax.Array  # [T, d]
    covariance: jax.Array  # [T, d, d]
    lagged: jax.Array  # [T - 1, d, d] Cov(z_{t+1}, z_t)
    log_likelihood: jax.Array  # of the observations of the episode


def fit(
    start: Params, data: Episodes, rounds: int, tolerance: float = 1e-6
) -> tuple[Params, jax.Array]:
    """The parameters after so many rounds, and the log-likelihood `[rounds]` before each.

    A round is three steps of expectation maximisation; the likelihood never falls. The last one
    follows the first that gains less than `tolerance` nats per number observed, as only the next
    round tells what one gained; NaN stands for those after it.
    """
    least_gain = tolerance * jnp.sum(data.observed)

    def is_going_on(carry: tuple[Params, jax.Array, jax.Array]) -> jax.Array:
        _, curve, i = carry
        gain = curve[i - 1] - curve[i - 2]  # NaN, which is not small, after one round
        return (i < rounds) & ((i < 2) | (gain >= least_gain))

    def go_on(
        carry: tuple[Params, jax.Array, jax.Array],
    ) -> tuple[Params, jax.Array, jax.Array]:
        params, curve, i = carry
        params, log_likelihood = accelerated_step(params, data)
        return params, curve.at[i].set(log_likelihood), i + 1

    no_curve = jnp.full(rounds, jnp.nan, start.offset.dtype)
    params, curve, _ = jax.lax.while_loop(is_going_on, go_on, (start, no_curve, jnp.int32(0)))
    return params, curve


def em_step(params: Params, data: Episodes) -> tuple[Params, jax.Array]:
    """One step of expectation maximisation, and the log-likelihood before it."""
    smoothed = smooth_all(params, data)
    return m_step(data, smoothed), jnp.sum(smoothed.log_likelihood)


def accelerated_step(params: Params, data: Episodes) -> tuple[Params, jax.Array]:
    """Three steps, the last one from where the first two lead if they go on; else those two.

    Varadhan & Roland (2008), scheme S3: with r the first change and v the change of the change,
    x + 2 s r + s² v for s = |r| / |v|, at least 1, where both steps alone end.
    """

    # A loop of three steps, as what stands in a program three times is compiled three times.
    def step(points: tuple, is_third: jax.Array) -> tuple[tuple, jax.Array]:
        _, before, newest = points
        start = where_tree(is_third, _extrapolate(*points), newest)
        after, log_likelihood = em_step(start, data)
        return (before, newest, after), log_likelihood

    is_third = jnp.array([False, False, True])
    points, log_likelihoods = jax.lax.scan(step, (params, params, params), is_third)
    _, second, third = points
    is_better = log_likelihoods[2] >= log_likelihoods[1]  # not for NaN
    return where_tree(is_better, third, second), log_likelihoods[0]


def _extrapolate(start: Params, first: Params, second: Params) -> Params:
    """The parameters that two steps lead to if they go on."""
    x, x_first, x_second = map(_to_line, (start, first, second))
    change = x_first - x
    bend = x_second - x_first - change
    tiny = jnp.finfo(x.dtype).tiny
    size = jnp.maximum(jnp.linalg.norm(change) / jnp.maximum(jnp.linalg.norm(bend), tiny), 1.0)
    return _from_line(x + 2 * size * change + size**2 * bend, second)


def _to_line(params: Params) -> jax.Array:
    """All but the first covariance in a row, such that any row is one of parameters."""
    root, log_noise = jnp.linalg.cholesky(params.process), jnp.log(params.noise)
    numbers = params._replace(process=root, noise=log_noise)[:-1]
    return jnp.concatenate([x.ravel() for x in (*numbers, params.first.mean)])


def _from_line(row: jax.Array, like: Params) -> Params:
    """The parameters that `_to_line` gives a row of, with the first covariance of others."""
    shapes = [x.shape for x in (*like[:-1], like.first.mean)]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])[:-1]
    parts = [x.reshape(shape) for x, shape in zip(jnp.split(row, ends), shapes, strict=True)]
    transition, effect, root, matrix, offset, log_noise, mean = parts
    root = jnp.tril(root)
    process = matmul(root, root.T) + LEAST_NOISE * jnp.eye(len(root), dtype=row.dtype)
    noise = jnp.maximum(jnp.exp(log_noise), LEAST_NOISE)
    first = like.first._replace(mean=mean)
    return Params(transition, effect, process, matrix, offset, noise, first)


def first_guess(data: Episodes, dims: int) -> Params:
    """Principal components of the observations as states, and the regressions between them.

    Missing observations count as the channel's mean. Raises ValueError for more dimensions than
    channels.
    """
    channels = data.y.shape[-1]
    if dims > channels:
        raise ValueError(f"{dims} dimensions for {channels} channels: expected at most that")
    weight = jnp.maximum(jnp.sum(data.observed, axis=(0, 1)), 1)
    offset = jnp.sum(jnp.where(data.observed, data.y, 0.0), axis=(0, 1)) / weight
    centred = jnp.where(data.observed, data.y - offset.reshape(1, 1, -1), 0.0)
    flat = centred.reshape(-1, channels)
    count = jnp.maximum(jnp.sum(data.valid), 1)
    values, vectors = linalg.eigh(matmul(flat.T, flat) / count)
    scale = jnp.sqrt(jnp.maximum(values[-dims:], LEAST_NOISE))
    mean = matmul(centred, vectors[:, -dims:]) / scale.reshape(1, 1, -1)
    covariance = 0.1 * jnp.broadcast_to(jnp.eye(dims), (*mean.shape, dims))
    lagged = jnp.zeros_like(covariance[:, 1:])
    guess = SmoothedStates(mean, covariance, lagged, jnp.zeros(len(mean)))
    return m_step(data, guess)


def filter_states(
    params: Params,
    y: jax.Array,
    u: jax.Array,
    observed: jax.Array,
    valid: jax.Array | None = None,
) -> tuple[Belief, Belief, jax.Array]:
    """Beliefs `[T, ...]` before and after each observation of an episode, and the log-likelihood.

    Of the observations `y` `[T, n]` those are used that are `observed`; `u` is `[T, m]`. In
    padding, where `valid`, bool `[T]`, is false, beliefs stay as predicted after the last step;
    None: there is none.
    """
    y = jnp.where(observed, y, 0.0)  # what is missing may be too large to be squared
    valid = jnp.ones(len(y), bool) if valid is None else valid

    def step(expected: Belief, now: tuple) -> tuple[Belief, tuple]:
        y, u, observed, valid = now
        variance = jnp.where(observed, params.noise, jnp.inf)
        emission = lambda z: (matmul(params.matrix, z) + params.offset, variance)
        belief = kalman.correct(expected, y, emission)
        evidence = _log_likelihood(params, expected, belief, y, observed)
        # In padding an unstable state would grow until it is no number, and spoil the others.
        after = where_tree(valid, predict(params, belief, u), expected)
        return after, (expected, belief, evidence)

    _, (before, after, evidence) = jax.lax.scan(step, params.first, (y, u, observed, valid))
    return before, after, jnp.sum(evidence)


def predict(params: Params, belief: Belief, u: jax.Array) -> Belief:
    """One step later, after the input `u` `[m]`."""
    move = lambda z: matmul(params.transition, z) + matmul(params.effect, u)
    return kalman.predict(belief, move, params.process)


def _log_likelihood(
    params: Params, expected: Belief, belief: Belief, y: jax.Array, observed: jax.Array
) -> jax.Array:
    """log N(y; C m + c, C P Cᵀ + R) of what is observed, by matrices `[d, d]` alone.

    log |C P Cᵀ + R| = log |R| + log |I + P M| and the square is eᵀ R⁻¹ e - sᵀ P' s, with M = Cᵀ R⁻¹
    C, s = Cᵀ R⁻¹ e and P' the covariance after the observation.
    """
    error = y - matmul(params.matrix, expected.mean) - params.offset
    precision = jnp.where(observed, 1 / params.noise, 0.0)
    information = matmul(params.matrix.T, precision[:, None] * params.matrix)
    score = matmul(params.matrix.T, precision * error)
    roots = matmul(linalg.root(expected.covariance).T, linalg.root(information))
    squares = jnp.sum(precision * error**2) - matmul(score, matmul(belief.covariance, score))
    logs = jnp.sum(jnp.where(observed, jnp.log(2 * jnp.pi * params.noise), 0.0))
    return -0.5 * (logs + linalg.log_determinant1p(roots) + squares)


def smooth_all(params: Params, data: Episodes) -> SmoothedStates:
    """`smooth` of each episode, `[E, T, ...]`."""
    each = (data.y, data.u, data.observed, data.valid)
    return jax.vmap(smooth, (None, 0, 0, 0, 0))(params, *each)


def smooth(
    params: Params,
    y: jax.Array,
    u: jax.Array,
    observed: jax.Array,
    valid: jax.Array | None = None,
) -> SmoothedStates:
    """The states of an episode given all of it; arguments as for `filter_states`."""
    valid = jnp.ones(len(y), bool) if valid is None else valid
    before, after, evidence = filter_states(params, y, u, observed, valid)
    last = jax.tree.map(lambda x: x[-1], after)

    def step(next_belief: Belief, now: tuple[Belief, Belief, jax.Array]) -> tuple[Belief, tuple]:
        belief, expected, is_inside = now  # at t, and at t + 1 before its observation
        cross_covariance = matmul(params.transition, belief.covariance)
        gain = linalg.solve_positive(_add_ridge(expected.covariance), cross_covariance).T
        mean = belief.mean + matmul(gain, next_belief.mean - expected.mean)
        surplus = next_belief.covariance - expected.covariance
        covariance = belief.covariance + matmul(matmul(gain, surplus), gain.T)
        smoothed_belief = Belief(mean, (covariance + covariance.T) / 2)
        smoothed_belief = where_tree(is_inside, smoothed_belief, belief)
        return smoothed_belief, (smoothed_belief, matmul(next_belief.covariance, gain.T))

    steps = jax.tree.map(lambda x: x[:-1], after), jax.tree.map(lambda x: x[1:], before), valid[1:]
    _, (beliefs, lagged) = jax.lax.scan(step, last, steps, reverse=True)
    all_beliefs = jax.tree.map(lambda x, end: jnp.concatenate([x, end[None]]), beliefs, last)
    return SmoothedStates(all_beliefs.mean, all_beliefs.covariance, lagged, evidence)


def m_step(data: Episodes, smoothed: SmoothedStates) -> Params:
    """The M step: parameters of the largest expected log-likelihood; `smoothed` has a leading E.

    Directions that are never visited, such as those of inputs that are always 0, get weight 0.
    """
    mean, covariance = smoothed.mean, smoothed.covariance
    first_mean = jnp.mean(mean[:, 0], axis=0)
    deviation = mean[:, 0] - first_mean[None]
    first_covariance = jnp.mean(
        covariance[:, 0] + deviation[:, :, None] * deviation[:, None], axis=0
    )
    transition, effect, process = _dynamics(data, smoothed)
    return Params(
        transition,
        effect,
        process,
        *_emission(data, smoothed),
        Belief(first_mean, first_covariance),
    )


def _dynamics(data: Episodes, smoothed: SmoothedStates) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A, B and Q, from all transitions within episodes."""
    mean, covariance, lagged, _ = smoothed
    dims, counted = mean.shape[-1], data.valid[:, 1:]
    x = jnp.concatenate([mean, data.u], axis=-1)[:, :-1]  # [E, T - 1, d + m]
    add = lambda products: jnp.sum(jnp.where(counted[..., None, None], products, 0.0), (0, 1))
    outer = lambda a, b: add(a[..., :, None] * b[..., None, :])
    covariance_sum, next_covariance_sum = add(covariance[:, :-1]), add(covariance[:, 1:])
    lagged_sum, num_inputs = add(lagged), x.shape[-1] - dims
    gram = outer(x, x) + jnp.pad(covariance_sum, ((0, num_inputs), (0, num_inputs)))
    cross_moments = outer(mean[:, 1:], x) + jnp.pad(lagged_sum, ((0, 0), (0, num_inputs)))
    weights = linalg.solve_positive(_add_ridge(gram), cross_moments.T).T  # [d, d + m]
    transition, effect = weights[:, :dims], weights[:, dims:]
    residual = mean[:, 1:] - matmul(x, weights.T)
    cross_term = matmul(transition, lagged_sum.T)
    square_term = matmul(matmul(transition, covariance_sum), transition.T)
    process = (
        outer(residual, residual) + next_covariance_sum - cross_term - cross_term.T + square_term
    )
    process = (process + process.T) / (2 * jnp.maximum(jnp.sum(counted), 1))
    return transition, effect, process + LEAST_NOISE * jnp.eye(dims)


def _emission(data: Episodes, smoothed: SmoothedStates) -> tuple[jax.Array, jax.Array, jax.Array]:
    """C, c and R, of each channel from the times at which it was observed."""
    mean, covariance = smoothed.mean, smoothed.covariance
    observed_weight, y = data.observed.astype(mean.dtype), jnp.where(data.observed, data.y, 0.0)
    x = jnp.concatenate([mean, jnp.ones_like(mean[..., :1])], axis=-1)  # [E, T, d + 1]
    second_moment = x[..., :, None] * x[..., None, :] + jnp.pad(
        covariance, ((0, 0), (0, 0), (0, 1), (0, 1))
    )
    gram = jnp.einsum("eti,etab->iab", observed_weight, second_moment, precision="highest")
    cross_moments = jnp.einsum("eti,eta->ia", observed_weight * y, x, precision="highest")
    weights = linalg.solve_positive(jax.vmap(_add_ridge)(gram), cross_moments[..., None])[..., 0]
    matrix, offset = weights[:, :-1], weights[:, -1]
    residual = y - matmul(x, weights.T)
    state_variance = jnp.einsum("ia,etab,ib->eti", matrix, covariance, matrix, precision="highest")
    count = jnp.maximum(jnp.sum(observed_weight, axis=(0, 1)), 1)
    noise = jnp.sum(observed_weight * (residual**2 + state_variance), axis=(0, 1)) / count
    return matrix, offset, jnp.maximum(noise, LEAST_NOISE)


def _add_ridge(positive: jax.Array) -> jax.Array:
    """A ridge of d roundings of the mean eigenvalue, which singular matrices need."""
    float_info = jnp.finfo(positive.dtype)
    ridge = float_info.eps * jnp.trace(positive) + float_info.tiny
    return positive + ridge * jnp.eye(len(positive), dtype=positive.dtype)
