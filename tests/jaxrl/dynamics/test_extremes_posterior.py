"""The posterior at extreme scales: each step against extended precision, from the same state.

What many data at scales far apart leave is a matter of conditioning. So one step is bounded by its
roundings, those of |Sᵀ| |x| included, where x P xᵀ cancels; and of a sequence only what must hold
whatever was rounded: variances neither negative nor larger than the datum allows.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from jaxrl.dynamics import posterior
from tests.jaxrl.extremes import (
    EPS,
    FUNCTION,
    MAX,
    TINY,
    assert_within,
    double,
    extreme,
    numbers,
    scales,
    seeds,
    single,
)

D = 2  # outputs
parameters = st.sampled_from([1, 3])
noises = st.one_of(scales, st.just(float("inf")))
strengths = st.one_of(scales, st.just(float("inf")))
update = jax.jit(posterior.update)
predictive_variance = jax.jit(posterior.predictive_variance)


def prior(size, variance, noise, strength, shared=True):
    return posterior.prior(size, D if shared else 1, variance, noise, strength, shared)


def step(state, row, target, r):
    """`(mean, root, misfit, information)` after one datum, each with a bound of its error."""
    mean, root = (x.astype(np.longdouble) for x in (state.mean, state.root))
    x, y, r = (np.asarray(v).astype(np.longdouble) for v in (row, target, r))
    p = len(x)
    # The datum's variance and the gain.
    f, lost_f = x @ root, ((p + 1) * EPS) * (abs(x) @ abs(root)) + TINY
    variance = f @ f
    lost_variance = 2 * abs(f) @ lost_f + lost_f @ lost_f + (p + 2) * EPS * variance + TINY
    deviation = np.sqrt(r + variance)
    off = lost_variance / deviation**2 + 2 * EPS  # of the deviation, relatively
    assume(off < 0.05)
    gain = root @ f / deviation
    lost_gain = (abs(root) @ (lost_f + (p + 2) * EPS * abs(f))) / deviation + abs(gain) * 1.1 * off
    lost_gain += TINY * abs(root).sum()
    # The change of the mean.
    innovation = y - x @ mean
    error = innovation / deviation
    lost_error = (p + 1) * EPS * (abs(y) + abs(x) @ abs(mean)) / deviation
    lost_error = 1.1 * lost_error + abs(error) * (1.1 * off + 2 * EPS)
    outer = np.multiply.outer
    move = outer(gain, error)
    lost_move = outer(lost_gain, abs(error) + lost_error) + outer(abs(gain), lost_error)
    # The change of the root, and the nats.
    slope = f / (deviation + np.sqrt(r))
    lost_slope = lost_f / deviation + abs(slope) * (1.1 * off + 3 * EPS)
    turn = outer(gain, slope)
    lost_turn = outer(lost_gain, abs(slope) + lost_slope) + outer(abs(gain), lost_slope)
    nats = np.size(error) * np.log1p(variance / r) / 2
    lost = lost_variance / (r + variance) + FUNCTION * EPS * np.log1p(variance / r)
    return (
        (mean + move, lost_move + 2 * EPS * (abs(mean) + abs(move))),
        (root - turn, lost_turn + 2 * EPS * (abs(root) + abs(turn))),
        (
            np.sum(error**2),
            np.sum(2 * abs(error) * lost_error + lost_error**2 + 4 * EPS * error**2),
        ),
        (nats, np.size(error) * lost + EPS * nats),
    )


@extreme(
    seed=seeds, size=parameters, variance=scales, noise=scales, strength=strengths,
    regressor_scale=scales, target_scale=scales, relative_noise=noises, shared=st.booleans(),
    later=st.booleans(),
)  # fmt: skip
def test_one_datum(
    seed, size, variance, noise, strength, regressor_scale, target_scale, relative_noise, shared,
    later,
):  # fmt: skip
    """At first, and after another datum. A datum of infinite noise changes nothing at all."""
    rng = np.random.default_rng(seed)
    row = lambda: numbers(rng, (size,) if shared else (1, size), regressor_scale)
    target = lambda: numbers(rng, (D if shared else 1,), target_scale)
    state = prior(size, variance, noise, strength, shared)
    r = single(relative_noise)
    if later:
        state = update(state, row(), target(), single(rng.uniform(0.5, 2) * min(r, 1e12)))
    state = jax.tree.map(np.asarray, state)
    x, y = row(), target()
    new_state = update(state, x, y, r)
    if np.isinf(r):
        for before, after in zip(state, new_state, strict=True):
            np.testing.assert_array_equal(after, before)
        return
    mean, root, misfit, information = step(state, x if shared else x[0], y if shared else y[0], r)
    assert_within(new_state.mean, *mean)
    assert_within(new_state.root, *root)
    assert_within(new_state.information, state.information + information[0], information[1]
                  + EPS * state.information)  # fmt: skip
    is_known = state.shape >= posterior.KNOWN
    rate = double(state.rate) + (0 if is_known else misfit[0] / 2)
    assert_within(new_state.rate, rate, 2 * EPS * rate + misfit[1] / 2)
    shape = double(state.shape) + len(y) / 2
    assert_within(new_state.shape, shape, EPS * shape)


@extreme(seed=seeds, size=parameters, variance=scales, noise=scales, strength=strengths,
         target_scale=scales)  # fmt: skip
def test_streams(seed, size, variance, noise, strength, target_scale):
    """Regressors and noises each of a scale of its own, targets, too: nothing breaks."""
    rng, state = np.random.default_rng(seed), prior(size, variance, noise, strength)
    largest, misfit = np.sqrt(double(variance)), 0.0
    for _ in range(5):
        x = numbers(rng, (size,), 10.0 ** rng.uniform(-12, 12))
        r = single(10.0 ** rng.uniform(-12, 12))
        before, y = double(predictive_variance(state, x)), numbers(rng, (D,), target_scale)
        error = double(y) - double(x) @ double(state.mean)
        misfit = misfit + np.sum(error**2) / (double(r) + before)
        after_state = update(state, x, y, r)
        if misfit < MAX / 4:
            assert np.isfinite(after_state.rate)
        assert all(np.all(np.isfinite(x)) for x in after_state._replace(rate=after_state.mean))
        covariance = np.asarray(after_state.covariance)
        np.testing.assert_array_equal(covariance, covariance.T)
        assert np.all(np.diagonal(covariance) >= 0)
        after, rounding = (
            double(predictive_variance(after_state, x)),
            32 * EPS * largest * abs(double(x)).sum(),
        )
        assert 0 <= np.sqrt(after) <= np.sqrt(min(before, r)) * (1 + 32 * EPS) + rounding
        assert after_state.information >= state.information
        state = after_state
    guess = double(posterior.noise_variance(state))
    assert guess > 0
    if np.isinf(strength):
        assert_within(guess, double(single(noise)), 4 * EPS * noise)


@extreme(seed=seeds, variance=scales, regressor_scale=scales, relative_noise=scales)
def test_deviations_after_data_of_one_scale(seed, variance, regressor_scale, relative_noise):
    """Right to some roundings of what they were before any data; the reference is QR in float64."""
    rng, size, steps = np.random.default_rng(seed), 3, 6
    x = single(regressor_scale * rng.normal(size=(steps, size)))
    state, r = prior(size, variance, 1.0, float("inf")), single(relative_noise)
    for row in x:
        state = update(state, row, np.zeros(D, np.float32), r)
    unit = np.sqrt(double(single(variance)))
    rows = np.concatenate([double(x) * unit / np.sqrt(double(r)), np.eye(size)])
    rows = rows / np.maximum(1.0, abs(rows).max())  # of one scale, as the answer is
    factor = np.asarray(np.linalg.qr(rows, mode="r"))
    scale = np.maximum(1.0, abs(double(x) * unit / np.sqrt(double(r))).max())
    points = rng.normal(size=(4, size))
    exact = unit / scale * np.sqrt(np.sum(np.linalg.solve(factor.T, points.T) ** 2, axis=0))
    deviations = np.sqrt(double(predictive_variance(state, single(points))))
    before = unit * np.sqrt(np.sum(points**2, axis=1))
    condition = np.linalg.cond(factor[:, :]) if scale == 1 else 1.0
    assert_within(deviations, exact, 64 * steps * EPS * before * max(condition, 1.0))


@pytest.mark.parametrize("number", [0.0, 1e-50, 1e50, float("inf"), float("nan"), -1.0])
def test_numbers_that_float32_does_not_hold_are_refused(number):
    with pytest.raises(ValueError, match="relative_variance is"):
        posterior.prior(3, 2, number, 1.0)
    with pytest.raises(ValueError, match="noise_variance is"):
        posterior.prior(3, 2, 1.0, number)
    if not number > TINY:
        with pytest.raises(ValueError, match="noise_strength is"):
            posterior.prior(3, 2, 1.0, 1.0, number)
        if not number > 0:
            with pytest.raises(ValueError, match="relative_noise is"):
                posterior.update(posterior.prior(3, 2, 1.0, 1.0), jnp.ones(3), jnp.ones(2), number)
