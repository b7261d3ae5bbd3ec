"""The filter at extreme scales, against exact rational arithmetic.

In float32 the information M = Hᵀ R⁻¹ H has roundings of its own, and so has a root of P. A variance
in any direction is therefore right between those of P and M that are a few roundings of their
diagonals away, and up to a few roundings of what it was before.
"""

from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from jaxrl.dynamics import kalman
from jaxrl.dynamics.kalman import Belief
from tests.jaxrl.extremes import (
    EPS,
    TINY,
    assert_within,
    double,
    extreme,
    numbers,
    scales,
    seeds,
    single,
)

sizes = st.sampled_from([(1, 1), (2, 1), (2, 2), (3, 2), (3, 4), (2, 0)])  # dimensions, channels
certainties = st.sampled_from(["full", "one direction", "exactly"])


def emission(H, R):
    return lambda z: (jnp.matmul(H, z, precision="highest"), R)


@jax.jit
def update_belief(belief, obs, H, R):
    evidence = kalman.evidence(belief, obs, emission(H, R))
    return kalman.correct(belief, obs, emission(H, R)), evidence, evidence.weight


def rational(x) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(double(x))


def solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A⁻¹ B of fractions, by elimination."""
    rows = np.concatenate([A, B], axis=1)
    for k in range(len(A)):
        pivot = next(i for i in range(k, len(A)) if rows[i, k] != 0)
        rows[[k, pivot]] = rows[[pivot, k]]
        rows[k] = rows[k] / rows[k, k]
        for i in range(len(A)):
            if i != k:
                rows[i] = rows[i] - rows[i, k] * rows[k]
    return rows[:, len(A) :]


def exact_update(P, H, R, error):
    """P', the move of the mean and Hᵀ (H P Hᵀ + R)⁻¹ H, of fractions."""
    spread = H @ P @ H.T + np.diag(R) if len(H) else np.zeros((0, 0), object)
    gain = solve(spread, H @ P).T if len(H) else np.zeros((len(P), 0), object)
    information = H.T @ solve(spread, H) if len(H) else np.zeros_like(P)
    return P - gain @ H @ P, gain @ error, information


def least_covariance(P, H, R, rounding):
    """P' if M were larger by the diagonal matrix `rounding`: a channel more for each dimension."""
    own = rational(np.diag(np.sqrt(np.diag(rounding).astype(float))))
    size = len(P)
    ones, zeros = rational(np.ones(size)), rational(np.zeros(len(H) + size))
    return exact_update(P, np.concatenate([H, own]), np.concatenate([R, ones]), zeros)[0]


def covariance(rng, d: int, scale: float, knows: str) -> Any:
    """`[d, d]` with correlations at most 0.3, so that its rounding leaves it positive."""
    if knows == "exactly":
        return np.zeros((d, d), np.float32)
    deviation = np.sqrt(scale) * rng.uniform(0.5, 2.0, d)
    if knows == "one direction":
        deviation[1:] = 0.0
    correlation = np.eye(d) + (1 - np.eye(d)) * rng.uniform(-0.3, 0.3)
    P = single(correlation * deviation[:, None] * deviation)
    return (P + P.T) / 2


@pytest.mark.slow
@extreme(
    seed=seeds, size=sizes, knows=certainties, scale=scales, slope_scale=scales, noise=scales,
    error_scale=scales, own=st.booleans(),
)  # fmt: skip
def test_corrections(seed, size, knows, scale, slope_scale, noise, error_scale, own):
    """Variances in random directions, those that are seen among them; `own`: of each channel."""
    # A belief and channels of these scales, and the filter's update in float32.
    rng, (d, n) = np.random.default_rng(seed), size
    P = covariance(rng, d, scale, knows)
    H = single(slope_scale * rng.uniform(0.5, 2.0, (n, d)) * rng.choice([-1, 1], (n, d)))
    R = single(noise * rng.uniform(1.0, 2.0, n))
    if own:
        R = single(10.0 ** rng.uniform(-12, 12, n))
    obs = numbers(rng, (n,), error_scale)
    after, evidence, weight = update_belief(Belief(jnp.zeros(d), P), obs, H, R)
    for leaf in jax.tree.leaves((after, evidence, weight)):
        assert np.all(np.isfinite(leaf))
    for matrix in (after.covariance, evidence.information):
        np.testing.assert_array_equal(matrix, matrix.T)
        assert np.all(np.diagonal(matrix) >= 0)
    assert weight >= 0

    # The exact covariance, and bounds of it for matrices that are some roundings larger or smaller.
    P_, H_, R_, obs_ = (rational(x) for x in (P, H, R, obs))
    exact, move, information = exact_update(P_, H_, R_, obs_)
    off: Any = Fraction(64 * d * d * (n + 2) * EPS)
    rounding = off * np.diag((H_**2 / R_[:, None]).sum(0)) if n else 0 * P_  # of M
    least = least_covariance(P_ - off * np.diag(np.diag(P_)), H_, R_, rounding)
    filtered_covariance = rational(after.covariance)
    small = np.trace(exact @ rounding) < Fraction(1, 2)
    for v in (*np.eye(d), *rng.normal(size=(3, d)), *(double(H) / slope_scale)):
        v = rational(v)
        spread, before = v @ filtered_covariance @ v, v @ P_ @ v + off * (abs(v) @ abs(P_) @ abs(v))
        above = v @ exact @ v + 2 * (v @ exact @ rounding @ exact @ v) if small else before
        assert spread <= above + off * (abs(v) @ abs(P_) @ abs(v)) + Fraction(TINY)
        assert (
            spread
            >= v @ least @ v
            - off * (abs(v) @ abs(filtered_covariance) @ abs(v))
            - Fraction(TINY) * 64
        )

    if own or knows != "full" or n == 0:
        return
    # All channels alike: the whole of it, with the conditioning of the channels' directions.
    values = np.linalg.svd(double(H) / slope_scale, compute_uv=False)
    conditioned = 32 * d * n * (values.max() / values.min()) ** 2
    if conditioned > 1e5:
        return
    ratio = min(
        1e4, float(np.trace(double(P))) * float(np.sum(double(H) ** 2 / double(R)[:, None]))
    )
    solution_scale = (
        np.abs(np.linalg.pinv(double(H) / slope_scale)).max() * abs(double(obs)).max() / slope_scale
    )
    share = min(1.0, 4 * ratio)
    lost = conditioned * EPS * (1 + ratio) * solution_scale * share + TINY * 1e13
    assert_within(after.mean, move.astype(float), lost)
    exact = information.astype(float)
    assert_within(
        evidence.information, exact, 4 * conditioned * EPS * abs(exact).max() + TINY * 1e2
    )


@pytest.mark.slow
@extreme(seed=seeds, d=st.sampled_from([1, 2, 3]), n=st.sampled_from([0, 1, 3]), slope_scale=scales,
         noise=scales, error_scale=scales, own=st.booleans())  # fmt: skip
def test_displacements(seed, d, n, slope_scale, noise, error_scale, own):
    """The solution of M with its ridge, whose condition number is up to d / RIDGE."""
    rng = np.random.default_rng(seed)
    H = single(slope_scale * rng.uniform(0.5, 2.0, (n, d)) * rng.choice([-1, 1], (n, d)))
    R = single(10.0 ** rng.uniform(-12, 12, n) if own else noise * rng.uniform(1.0, 2.0, n))
    obs = numbers(rng, (n,), error_scale)
    evidence = update_belief(Belief(jnp.zeros(d), jnp.eye(d)), obs, H, R)[1]
    if n == 0:
        np.testing.assert_array_equal(evidence.displacement, 0.0)
        return
    H_, R_, obs_ = (rational(x) for x in (H, R, obs))
    M = (H_ / R_[:, None]).T @ H_
    ridge = Fraction(kalman.RIDGE) * np.trace(M) / d
    ridged_information = M + ridge * rational(np.eye(d))
    score, size = H_.T @ (obs_ / R_), abs(H_).T @ (abs(obs_) / R_)
    exact = solve(ridged_information, score[:, None])[:, 0].astype(float)
    condition = np.linalg.cond((ridged_information / ridge).astype(float))
    lost = EPS * 16 * (d + n) * (condition * abs(exact).max() + float(max(size) / ridge) / 1)
    assert_within(evidence.displacement, exact, lost + TINY * 1e26)


predict = jax.jit(
    lambda P, A, q: kalman.predict(
        Belief(jnp.ones(len(P)), P), lambda z: jnp.matmul(A, z, precision="highest"), q
    )
)


@extreme(seed=seeds, d=st.sampled_from([1, 3]), knows=certainties, scale=scales, slope_scale=scales,
         noise=scales)  # fmt: skip
def test_predictions(seed, d, knows, scale, slope_scale, noise):
    """Roundings of |A| |P| |Aᵀ| + Q."""
    rng = np.random.default_rng(seed)
    P, A = covariance(rng, d, scale, knows), single(slope_scale * rng.uniform(-2, 2, (d, d)))
    prediction = predict(P, A, single(noise))
    a, p, q = double(A), double(P), double(single(noise)) * np.eye(d)
    size = abs(a) @ abs(p) @ abs(a).T + q
    assert_within(prediction.covariance, a @ p @ a.T + q, EPS * (2 * d + 6) * size + TINY * 1e13)
    assert_within(prediction.mean, a.sum(1), EPS * (d + 1) * abs(a).sum(1))


def test_channels_without_noise_decide():
    """At any scale above that of the least variance, 1e-12."""
    for scale in (1e-4, 1.0, 1e12):
        belief, H = Belief(jnp.zeros(2), scale * jnp.eye(2)), jnp.array([[1.0, 2.0]])
        posterior = update_belief(belief, jnp.ones(1) * np.sqrt(scale), H, jnp.zeros(1))[0]
        np.testing.assert_allclose(posterior.mean / np.sqrt(scale), [0.2, 0.4], rtol=1e-4)
        np.testing.assert_allclose(posterior.covariance[0, 0] / scale, 0.8, rtol=1e-4)
