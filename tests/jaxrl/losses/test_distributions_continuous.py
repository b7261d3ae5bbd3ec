"""Normal, squashed and clipped distributions against numerical integration and SciPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxrl.losses.distributions.continuous import ClippedNormal, Normal, SquashedNormal
from tests.jaxrl.losses.distribution_parts import (
    INF,
    MEAN,
    MEAN_2,
    SCALE,
    SCALE_2,
    UNLIKELY,
    as_actions,
    integral,
    log_jacobian,
    log_probs,
    samples,
    squash,
)


def test_normal_log_prob_against_scipy():
    action = jnp.array([[0.0, -2.2, 9.0], [1.0, -1.9, 5.0]])
    mean, scale = (jnp.broadcast_to(x, (2, 3)) for x in (MEAN, SCALE))
    expected = scipy.stats.norm.logpdf(action, MEAN, SCALE).sum(-1)
    np.testing.assert_allclose(Normal(mean, scale).log_prob(action), expected, rtol=1e-5)


@pytest.mark.parametrize("i", range(3))
def test_normal_against_numerical_integration(i):
    grid = np.linspace(MEAN[i] - 12 * SCALE[i], MEAN[i] + 12 * SCALE[i], 20_001)
    policy, other = (
        Normal(MEAN[i : i + 1], SCALE[i : i + 1]),
        Normal(MEAN_2[i : i + 1], SCALE_2[i : i + 1]),
    )
    log_p, log_q = (np.float64(log_probs(d, as_actions(grid))) for d in (policy, other))
    p = np.exp(log_p)
    np.testing.assert_allclose(integral(p, grid), 1, rtol=1e-4)
    np.testing.assert_allclose(policy.entropy(), integral(-p * log_p, grid), rtol=1e-4)
    np.testing.assert_allclose(policy.kl(other), integral(p * (log_p - log_q), grid), rtol=1e-3)
    np.testing.assert_allclose(policy.kl(policy), 0, atol=1e-6)


def test_normal_coordinates_add_up():
    policy, other = Normal(MEAN, SCALE), Normal(MEAN_2, SCALE_2)
    parts = [Normal(m[None], s[None]) for m, s in zip(MEAN, SCALE, strict=True)]
    others = [Normal(m[None], s[None]) for m, s in zip(MEAN_2, SCALE_2, strict=True)]
    np.testing.assert_allclose(policy.entropy(), sum(p.entropy() for p in parts), rtol=1e-6)
    expected = sum(p.kl(q) for p, q in zip(parts, others, strict=True))
    np.testing.assert_allclose(policy.kl(other), expected, rtol=1e-6)


def test_normal_samples():
    action = samples(Normal(MEAN, SCALE), jax.random.key(4), 20_000)
    assert action.shape == (20_000, 3)
    for i in range(3):
        cdf = scipy.stats.norm(float(MEAN[i]), float(SCALE[i])).cdf
        assert scipy.stats.kstest(action[:, i], cdf).pvalue > UNLIKELY
    np.testing.assert_allclose(np.corrcoef(action.T), np.eye(3), atol=0.03)
    assert Normal(MEAN, SCALE).mode().tolist() == MEAN.tolist()


# In float32, -1 + (0.1 - -1) is more than 0.1.
BOXES = {"uneven": (-1.0, 0.1), "offset": (2.0, 10.0), "from zero": (0.0, 0.5)}
boxes = pytest.mark.parametrize(("low", "high"), BOXES.values(), ids=BOXES)


def squashed_normal(mean, scale, low, high) -> SquashedNormal:
    mean, scale, low, high = (jnp.atleast_1d(jnp.float32(x)) for x in (mean, scale, low, high))
    return SquashedNormal(Normal(mean, scale), low, high)


def action_grid(low, high) -> np.ndarray:
    """Fine over the inside of the box, finer still at its ends, where a density may pile up."""
    fraction = scipy.stats.norm.cdf(np.linspace(-4.5, 4.5, 40_001))
    return low + (high - low) * fraction


@boxes
@pytest.mark.parametrize(("mean", "scale"), [(0.0, 0.5), (0.8, 0.3), (-0.3, 1.0)])
def test_squashed_against_numerical_integration(low, high, mean, scale):
    policy, other = squashed_normal(mean, scale, low, high), squashed_normal(0.1, 0.8, low, high)
    grid = action_grid(low, high)
    log_p, log_q = (np.float64(log_probs(d, as_actions(grid))) for d in (policy, other))
    p = np.exp(log_p)
    np.testing.assert_allclose(integral(p, grid), 1, rtol=1e-3)
    np.testing.assert_allclose(policy.kl(other), integral(p * (log_p - log_q), grid), atol=2e-3)

    # The entropy of the action is that of the raw sample plus E[log_jacobian].
    raw = np.linspace(mean - 10 * scale, mean + 10 * scale, 4_001)
    slope = log_jacobian(policy, as_actions(raw))
    correction = integral(scipy.stats.norm.pdf(raw, mean, scale) * slope, raw)
    entropy = integral(-p * log_p, grid)
    np.testing.assert_allclose(policy.entropy() + correction, entropy, atol=5e-3)
    np.testing.assert_allclose(policy.entropy(), scipy.stats.norm.entropy(mean, scale), rtol=1e-5)


@boxes
def test_squashed_samples_follow_its_density_and_stay_in_the_box(low, high):
    policy = squashed_normal(0.4, 1.2, low, high)
    action = np.asarray(samples(policy, jax.random.key(5), 20_000))[:, 0]
    assert np.all((action >= low) & (action <= high))

    def cdf(a):
        fraction = np.clip((np.float64(a) - low) / (high - low), 1e-12, 1 - 1e-12)
        return scipy.stats.norm.cdf(np.arctanh(2 * fraction - 1), 0.4, 1.2)

    assert scipy.stats.kstest(action, cdf).pvalue > UNLIKELY


@boxes
def test_log_jacobian_is_the_slope_of_squash(low, high):
    raw = jnp.linspace(-3.0, 3.0, 13)[:, None]
    policy = squashed_normal(0.0, 1.0, low, high)
    slope = jax.vmap(jax.grad(lambda u: policy.squash(u)[0]))(raw)[:, 0]
    actual = log_jacobian(policy, raw)
    np.testing.assert_allclose(actual, jnp.log(slope), rtol=1e-3, atol=1e-4)
    half = (high - low) / 2
    exact = np.log(half * (1 - np.tanh(np.float64(raw[:, 0])) ** 2))
    np.testing.assert_allclose(actual, exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("raw", [-1e4, -100.0, -20.0, 20.0, 100.0, 1e4])
def test_log_jacobian_far_out_is_exact(raw):
    # tanh' u = 4 e^(-2|u|) (1 + o(1)); written as 1 - tanh² it is log 0 from |u| = 9 on.
    actual = squashed_normal(0.0, 1.0, -1.0, 1.0).log_jacobian(jnp.array([raw], jnp.float32))
    np.testing.assert_allclose(actual, np.log(4) - 2 * abs(raw), rtol=1e-6)


@boxes
def test_log_prob_of_an_action_is_that_of_its_raw_sample(low, high):
    policy = squashed_normal(0.4, 1.2, low, high)
    raw = jnp.linspace(-3.0, 3.0, 41)[:, None]
    action = squash(policy, raw)
    np.testing.assert_allclose(jax.vmap(policy.unsquash)(action), raw, atol=2e-4)
    expected = log_probs(policy.raw, raw) - log_jacobian(policy, raw)
    np.testing.assert_allclose(log_probs(policy, action), expected, atol=1e-3)
    key = jax.random.key(6)
    raw = samples(policy.raw, jax.random.clone(key), 100)
    np.testing.assert_allclose(samples(policy, key, 100), squash(policy, raw), rtol=1e-6)


@boxes
def test_everything_is_finite_on_the_boundary_and_beyond(low, high):
    width = high - low
    action = jnp.array([low - width, low, jnp.nextafter(low, high), high, high + 0.1 * width])

    def log_prob(mean, scale, action):
        return squashed_normal(mean, scale, low, high).log_prob(action[None])

    slopes = jax.vmap(jax.value_and_grad(log_prob, argnums=(0, 1)), in_axes=(None, None, 0))
    value, gradients = jax.jit(slopes)(0.2, 0.7, action)
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(gradients))
    extreme = squashed_normal(50.0, 20.0, low, high)  # nearly all mass rounds onto the boundary
    sampled = samples(extreme, jax.random.key(7), 1_000)
    assert np.all((sampled >= low) & (sampled <= high))
    assert np.all(np.isfinite(log_probs(extreme, sampled)))


def test_the_ratio_of_two_policies_is_the_same_on_both_sides_of_the_squash():
    new, old = squashed_normal(0.3, 0.9, 0.0, 2.0), squashed_normal(0.1, 1.1, 0.0, 2.0)
    raw = jnp.array([-1.5, 0.0, 0.7, 2.5])[:, None]
    action = squash(new, raw)
    outside = log_probs(new, action) - log_probs(old, action)
    inside = log_probs(new.raw, raw) - log_probs(old.raw, raw)
    np.testing.assert_allclose(outside, inside, atol=1e-4)


def test_the_mode_of_squashed_is_the_median():
    policy = squashed_normal(0.7, 0.4, 2.0, 10.0)
    action = samples(policy, jax.random.key(8), 20_000)
    np.testing.assert_allclose(np.median(action), policy.mode()[0], atol=0.05)


def test_clipped_against_scipy_and_its_samples():
    """Inside the density, on a bound the probability beyond it; an infinite bound does nothing."""
    mean, scale = np.array([0.3, -0.5, 1.0]), np.array([1.0, 2.0, 0.5])
    low, high = np.array([0.0, -np.inf, -np.inf]), np.array([np.inf, -1.0, np.inf])
    raw = Normal(jnp.float32(mean), jnp.float32(scale))
    policy = ClippedNormal(raw, jnp.float32(low), jnp.float32(high))
    action = np.asarray(samples(policy, jax.random.key(6), 20_000))
    normal: Any = scipy.stats.norm(mean, scale)
    on_low, on_high = np.mean(action == low, 0), np.mean(action == high, 0)
    np.testing.assert_allclose(on_low, normal.cdf(low), atol=0.01)
    np.testing.assert_allclose(on_high, normal.sf(high), atol=0.01)
    assert np.all((action >= low) & (action <= high))
    for point, log_p in (
        ([0.0, -1.0, 1.2], [normal.logcdf(low)[0], normal.logsf(high)[1], normal.logpdf(1.2)[2]]),
        ([0.4, -3.0, 0.0], normal.logpdf([0.4, -3.0, 0.0])),
    ):
        np.testing.assert_allclose(policy.log_prob(jnp.array(point)), np.sum(log_p), rtol=1e-5)
    np.testing.assert_allclose(policy.mode(), [0.3, -1.0, 1.0], rtol=1e-6)


@pytest.mark.slow
def test_the_gradient_of_clipped_is_that_of_scipy_even_far_out():
    slope = jax.grad(lambda mean, a: clipped_normal(mean, 0.5).log_prob(a))
    for mean in (-20.0, -0.3, 0.4, 15.0):
        step = 1e-4 * max(1.0, abs(mean))
        z = lambda m: scipy.stats.norm.logcdf((0.0 - m) / 0.5)
        expected = (z(mean + step) - z(mean - step)) / (2 * step)
        np.testing.assert_allclose(
            slope(jnp.array([mean]), jnp.zeros(1)), [expected], rtol=2e-3, atol=1e-6
        )


def clipped_normal(mean, scale) -> ClippedNormal:
    """At least 0."""
    return ClippedNormal(Normal(mean, jnp.full_like(mean, scale)), jnp.zeros(1), jnp.full(1, INF))
