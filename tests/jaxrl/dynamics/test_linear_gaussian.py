"""Expectation maximisation of a linear-Gaussian model against dense NumPy, and what it recovers."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics import linear_gaussian
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.linear_gaussian import Episodes, Params

A: Any = np.array([[0.95, -0.3], [0.3, 0.95]]) * 0.98
B: Any = np.array([[0.5, 0.0, 0.1], [0.0, 0.3, -0.4]])
Q: Any = np.array([[0.02, 0.005], [0.005, 0.01]])
RNG = np.random.default_rng(0)
C: Any = RNG.normal(size=(5, 2))
OFFSET: Any = RNG.normal(size=5)
R: Any = RNG.uniform(0.05, 0.3, 5)
FIRST: Any = (np.array([0.5, -0.5]), 0.4 * np.eye(2))
TRUE = Params(A, B, Q, C, OFFSET, R, Belief(*FIRST))
fit = jax.jit(linear_gaussian.fit, static_argnums=2)
em_step = jax.jit(linear_gaussian.em_step)


def draw_episodes(episodes: int, steps: int, missing: float, seed: int = 1) -> Episodes:
    """Drawn from `TRUE`; the last episode is a third shorter and padded."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(episodes, steps, 3))
    y, valid = np.zeros((episodes, steps, 5)), np.ones((episodes, steps), bool)
    for e in range(episodes):
        z = rng.multivariate_normal(FIRST[0], FIRST[1])
        for t in range(steps):
            y[e, t] = C @ z + OFFSET + np.sqrt(R) * rng.normal(size=5)
            z = A @ z + B @ u[e, t] + rng.multivariate_normal(np.zeros(2), Q)
    valid[-1, steps - steps // 3 :] = False
    observed = (rng.uniform(size=y.shape) > missing) & valid[..., None]
    observed[0, 3:5] = False
    arrays: Any = (np.float32(np.where(observed, y, 7.0)), np.float32(u), observed, valid)
    return Episodes(*arrays)


def dense_smoother(params: Params, y, u, observed):
    """Mean `[T d]` and covariance of all states of an episode at once, and the log-likelihood."""
    steps, d = len(y), len(params.transition)
    unroll, push = np.eye(steps * d), np.zeros(steps * d)
    noise = np.kron(np.eye(steps), params.process)
    noise[:d, :d], push[:d] = params.first.covariance, params.first.mean
    for t in range(1, steps):
        here, last = slice(t * d, t * d + d), slice(t * d - d, t * d)
        unroll[here] += params.transition @ unroll[last]
        push[here] = params.effect @ u[t - 1]
    mean, prior = unroll @ push, unroll @ noise @ unroll.T
    design = np.kron(np.eye(steps), params.matrix)[observed.ravel()]
    error = (y - params.offset)[observed] - design @ mean
    y_covariance = design @ prior @ design.T + np.diag(
        np.tile(params.noise, steps)[observed.ravel()]
    )
    gain = prior @ design.T @ np.linalg.inv(y_covariance)
    logs = np.linalg.slogdet(2 * np.pi * y_covariance)[1]
    evidence = -0.5 * (logs + error @ np.linalg.solve(y_covariance, error))
    return mean + gain @ error, prior - gain @ design @ prior, evidence


def slow_step(params: Params, data: Episodes) -> tuple[Params, float]:
    """One iteration with dense matrices and sums over all times."""
    d, m, n = 2, 3, 5
    gram, cross_moments, next_squares = (
        np.zeros((d + m, d + m)),
        np.zeros((d, d + m)),
        np.zeros((d, d)),
    )
    state_moments, channel_moments, squares = (
        np.zeros((n, d + 1, d + 1)),
        np.zeros((n, d + 1)),
        np.zeros(n),
    )
    firsts, total, moves = [], 0.0, 0
    for y, u, observed, valid in zip(*data, strict=True):
        length = int(valid.sum())
        y, u, observed = (np.asarray(x[:length]) for x in (y.astype(float), u, observed))
        mean, covariance, evidence = dense_smoother(params, y, u, observed)
        total += evidence
        # Second moments of neighbouring states and inputs, for the dynamics.
        second = covariance + np.outer(mean, mean)
        block = lambda s, t, x=second: x[s * d : s * d + d, t * d : t * d + d]
        firsts.append((mean[:d], block(0, 0)))
        for t in range(length - 1):
            z = mean[t * d : t * d + d]
            x = np.concatenate([z, u[t]])
            square = np.outer(x, x)
            square[:d, :d] = block(t, t)
            gram += square
            next_mean = mean[t * d + d : t * d + 2 * d]
            cross_moments += np.hstack([block(t + 1, t), np.outer(next_mean, u[t])])
            next_squares += block(t + 1, t + 1)
            moves += 1
        # Second moments of states and channels, for the emission.
        for t in range(length):
            square = np.ones((d + 1, d + 1))
            square[:d, :d] = block(t, t)
            square[:d, d] = square[d, :d] = mean[t * d : t * d + d]
            for i in np.flatnonzero(observed[t]):
                state_moments[i] += square
                channel_moments[i] += y[t, i] * square[d]
                squares[i] += y[t, i] ** 2
    # Least squares.
    weights = cross_moments @ np.linalg.inv(gram)
    process = (next_squares - weights @ cross_moments.T) / moves
    emission_weights = np.stack(
        [np.linalg.solve(a, b) for a, b in zip(state_moments, channel_moments, strict=True)]
    )
    noise = (squares - np.sum(emission_weights * channel_moments, axis=1)) / state_moments[:, d, d]
    first = np.mean([x for x, _ in firsts], axis=0)
    first_covariance = np.mean([x for _, x in firsts], axis=0) - np.outer(first, first)
    parts: Any = (
        weights[:, :d],
        weights[:, d:],
        process,
        emission_weights[:, :d],
        emission_weights[:, d],
        noise,
    )
    return Params._make([*parts, Belief(first, first_covariance)]), total


def single(params: Params) -> Params:
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), params)


def test_an_iteration_equals_a_slow_one_in_numpy():
    data = draw_episodes(3, 24, missing=0.2)
    expected, evidence = slow_step(TRUE, data)
    params, log_likelihood = em_step(single(TRUE), data)
    np.testing.assert_allclose(log_likelihood, evidence, rtol=1e-4)
    for name in Params._fields:
        for a, b in zip(
            *(jax.tree.leaves(getattr(x, name)) for x in (params, expected)), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-3, err_msg=name)


def test_the_smoother_equals_dense_conditioning():
    data = draw_episodes(1, 12, missing=0.3)
    y, u, observed = (np.asarray(x[0]) for x in data[:3])
    mean, covariance, evidence = dense_smoother(TRUE, y.astype(float), u, observed)
    smoothed = jax.jit(linear_gaussian.smooth)(single(TRUE), y, u, observed)
    np.testing.assert_allclose(smoothed.mean.ravel(), mean, atol=1e-3)
    np.testing.assert_allclose(smoothed.log_likelihood, evidence, rtol=1e-4)
    for t in range(12):
        here, there = slice(2 * t, 2 * t + 2), slice(2 * t + 2, 2 * t + 4)
        np.testing.assert_allclose(smoothed.covariance[t], covariance[here, here], atol=1e-3)
        if t < 11:
            np.testing.assert_allclose(smoothed.lagged[t], covariance[there, here], atol=1e-3)


@pytest.fixture(scope="module")
def fitted_model():
    data = draw_episodes(4, 300, missing=0.1)
    start = jax.jit(partial(linear_gaussian.first_guess, dims=2))(data)
    params, curve = fit(start, data, 40)
    return params, np.asarray(curve, float)[np.isfinite(curve)], start, data


def test_the_likelihood_never_falls(fitted_model):
    curve = fitted_model[1]
    assert (np.diff(curve) > -1e-5 * abs(curve[-1])).all()
    assert curve[-1] > curve[0] + 100


@pytest.mark.slow
def test_few_rounds_go_as_far_as_many_steps(fitted_model):
    """300 steps of expectation maximisation alone from the same start, but for a tenth of a nat."""
    _, curve, start, data = fitted_model
    plain = jax.jit(
        lambda params: jax.lax.fori_loop(
            0, 300, lambda i, params: linear_gaussian.em_step(params, data)[0], params
        )
    )(start)
    likelihood = lambda params: float(em_step(params, data)[1])
    assert 3 * len(curve) <= 120
    assert curve[-1] > likelihood(plain) - 0.1
    assert curve[-1] > curve[0] + 100


@pytest.mark.slow
def test_a_known_model_is_recovered(fitted_model):
    """Up to a change of the coordinates of z: eigenvalues, and the responses C Aᵏ B to inputs."""
    params = fitted_model[0]
    eigenvalues = np.sort_complex(np.linalg.eigvals(np.asarray(params.transition, float)))
    np.testing.assert_allclose(eigenvalues, np.sort_complex(np.linalg.eigvals(A)), atol=0.02)
    for k in range(8):
        a, b, c = (np.asarray(x) for x in (params.transition, params.effect, params.matrix))
        ours = c @ np.linalg.matrix_power(a, k) @ b
        np.testing.assert_allclose(ours, C @ np.linalg.matrix_power(A, k) @ B, atol=0.06)
    np.testing.assert_allclose(params.noise, R, rtol=0.2)
    curve = fit(single(TRUE), draw_episodes(4, 300, missing=0.1), 1)[1]
    assert fitted_model[1][-1] > curve[0] - 20  # no worse than the truth itself


def test_what_stands_where_nothing_was_observed_changes_nothing():
    data = draw_episodes(3, 24, missing=0.2)
    changed = data._replace(y=np.where(data.observed, data.y, np.float32(-3e38)))
    for a, b in zip(
        *(jax.tree.leaves(em_step(single(TRUE), x)) for x in (data, changed)), strict=True
    ):
        assert np.isfinite(a).all()
        np.testing.assert_array_equal(a, b)


def test_an_unstable_state_does_not_grow_in_padding():
    """Nor does what stands in padding change anything."""
    data = draw_episodes(3, 24, missing=0.0)
    wild = single(TRUE._replace(transition=1e3 * np.eye(2)))
    changed = data._replace(u=np.where(data.valid[..., None], data.u, np.float32(9.0)))
    for a, b in zip(*(jax.tree.leaves(em_step(wild, x)) for x in (data, changed)), strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_inputs_of_zero_have_no_effect():
    data = draw_episodes(2, 60, missing=0.0)
    params, curve = fit(single(TRUE), data._replace(u=np.zeros_like(data.u)), 3)
    assert np.isfinite(curve).all()
    np.testing.assert_array_equal(params.effect, 0)


def test_more_dimensions_than_channels_are_refused():
    with pytest.raises(ValueError, match="6 dimensions for 5 channels"):
        linear_gaussian.first_guess(draw_episodes(1, 20, 0.0), 6)
