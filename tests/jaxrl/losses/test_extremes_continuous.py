"""Distributions over real actions at extreme parameters, against formulas in float64."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.special import expit, log_expit

from jaxrl.losses.distributions.continuous import LOG_2PI, Normal, SquashedNormal
from jaxrl.losses.distributions.discrete import Categorical
from jaxrl.losses.distributions.joint import Joint
from tests.jaxrl.extremes import (
    EPS,
    FUNCTION,
    assert_within,
    double,
    extreme,
    numbers,
    scales,
    seeds,
    single,
)

B = 3
KEYS = 16
sizes = st.sampled_from([0, 1, 4])


def deviations(rng, shape, scale) -> Any:
    return single(scale * rng.uniform(0.5, 2.0, size=shape))


@jax.jit
def measure_normal(mean, scale, other_mean, other_scale, action, key):
    """log_prob, entropy and kl, their gradients by the parameters, and log_probs of samples."""
    parts = (
        lambda m, s, m2, s2: Normal(m, s).log_prob(action),
        lambda m, s, m2, s2: Normal(m, s).entropy(),
        lambda m, s, m2, s2: Normal(m, s).kl(Normal(m2, s2)),
    )
    measures = []
    for of in parts:
        summed = lambda *x, of=of: (jnp.sum(of(*x)), of(*x))
        slopes, value = jax.grad(summed, (0, 1, 2, 3), has_aux=True)(
            mean, scale, other_mean, other_scale
        )
        measures.append((value, slopes))
    policy = Normal(mean, scale)
    return measures, jax.vmap(lambda k: policy.log_prob(policy.sample(k)))(
        jax.random.split(key, KEYS)
    )


@extreme(
    seed=seeds, size=sizes, mean_scale=scales, scale=scales, other_scale=scales,
    action_scale=st.one_of(scales, st.just(None)),
)  # fmt: skip
def test_normal(seed, size, mean_scale, scale, other_scale, action_scale):
    """Roundings of the terms; a gradient is infinite only where float32 has none so large."""
    rng, shape = np.random.default_rng(seed), (B, size)
    mean, other_mean = (numbers(rng, shape, mean_scale) for _ in range(2))
    if action_scale is None:  # means next to each other
        other_mean = single(double(mean) * (1 + 1e-6))
    s, s2 = deviations(rng, shape, scale), deviations(rng, shape, other_scale)
    action = numbers(rng, shape, action_scale) if action_scale else single(mean + s)
    measures, sampled = measure_normal(mean, s, other_mean, s2, action, jax.random.key(seed))
    assert np.all(np.isfinite(sampled))
    (log_prob, log_prob_slopes), (entropy, entropy_slopes), (kl, kl_slopes) = measures

    m, s, m2, s2, a = (double(x) for x in (mean, s, other_mean, s2, action))
    z, log_s, more = (a - m) / s, np.log(s), size + 4
    terms = 0.5 * z**2 + abs(log_s) + 1
    constant = 0.5 * LOG_2PI
    exact = -np.sum(0.5 * z**2 + log_s + constant, -1)
    assert_within(log_prob, exact, EPS * (FUNCTION + more) * np.sum(terms, -1))
    assert_within(log_prob_slopes[0], z / s, 8 * EPS * abs(z / s))
    assert_within(log_prob_slopes[1], z**2 / s - 1 / s, 10 * EPS * (z**2 / s + 1 / s))
    size_of = EPS * (FUNCTION + more) * np.sum(abs(log_s) + 2, -1)
    assert_within(entropy, np.sum(0.5 + constant + log_s, -1), size_of)
    assert_within(entropy_slopes[1], 1 / s, 4 * EPS / s)

    ratio, z, log = s / s2, (m - m2) / s2, np.log(s) - np.log(s2)
    exact = np.sum(0.5 * (ratio**2 + z**2 - 1) - log, -1)
    terms = ratio**2 + z**2 + abs(log) + 1
    assert_within(kl, exact, EPS * (FUNCTION + more) * np.sum(terms, -1))
    assert_within(kl_slopes[0], z / s2, 8 * EPS * abs(z / s2))
    assert_within(kl_slopes[1], ratio / s2 - 1 / s, 10 * EPS * (ratio / s2 + 1 / s))
    assert_within(kl_slopes[2], -z / s2, 8 * EPS * abs(z / s2))
    slope = (1 - ratio**2 - z**2) / s2
    assert_within(kl_slopes[3], slope, 12 * EPS * (1 + ratio**2 + z**2) / s2)


@jax.jit
def measure_squashed(mean, scale, low, high, raw, action, key):
    log_prob = lambda m, s, a: jnp.sum(SquashedNormal(Normal(m, s), low, high).log_prob(a))
    policy = SquashedNormal(Normal(mean, scale), low, high)
    samples = jax.vmap(policy.sample)(jax.random.split(key, KEYS))
    slopes = jax.vmap(jax.value_and_grad(log_prob, (0, 1)), in_axes=(None, None, 0))
    return (
        policy.squash(raw),
        policy.log_jacobian(raw),
        policy.unsquash(action),
        policy.log_prob(action),
        samples,
        slopes(mean, scale, samples),
    )


def unsquash(action, low, high):
    """`(raw, what its roundings amount to, its fraction of the box)`, kept off the ends."""
    fraction = np.clip((action - low) / (high - low), 2 * EPS, 1 - 2 * EPS)
    raw = 0.5 * (np.log(fraction) - np.log1p(-fraction))
    return raw, EPS * (2 / (1 - fraction) + FUNCTION * (abs(np.log(fraction)) + 1)), fraction


@extreme(
    seed=seeds, size=sizes, mean_scale=scales, scale=scales, low_scale=scales, width=scales,
    raw_scale=scales,
)  # fmt: skip
def test_squashed(seed, size, mean_scale, scale, low_scale, width, raw_scale):
    """Actions stay in the box; what is said of an action is right for one a rounding beside it."""
    rng, shape = np.random.default_rng(seed), (B, size)
    low = numbers(rng, shape, low_scale)
    high = single(double(low) + deviations(rng, shape, width))
    high = np.maximum(high, np.nextafter(low, np.float32(np.inf)))
    mean, s, raw = (
        numbers(rng, shape, mean_scale),
        deviations(rng, shape, scale),
        numbers(rng, shape, raw_scale),
    )
    share = rng.choice([0.0, 1e-7, 0.3, 1 - 1e-7, 1.0, 2.0], size=shape)
    action = single(double(low) + share * (double(high) - double(low)))
    squash, jacobian, found_raw, log_prob, samples, (sample_log_prob, slopes) = measure_squashed(
        mean, s, low, high, raw, action, jax.random.key(seed)
    )
    # Samples stay in the box.
    samples, squash = np.asarray(samples), np.asarray(squash)
    assert np.all((samples >= low) & (samples <= high))
    assert np.all(np.isfinite(sample_log_prob))
    for slope in slopes:
        assert not np.isnan(slope).any()

    # Actions of raw samples, and the slope there.
    m, s, l, h, u, a = (double(x) for x in (mean, s, low, high, raw, action))
    part = expit(2 * u)
    off = EPS * (2 * abs(l) + (h - l) * part * (FUNCTION + 2 * abs(u) * (1 - part)))
    assert np.all((squash >= low) & (squash <= high))
    assert_within(squash, l + (h - l) * part, off)
    slope = lambda u: log_expit(2 * u) + log_expit(-2 * u)
    size_of = lambda u: (FUNCTION + size) * (2 * abs(u) + abs(np.log(2 * (h - l))) + 2)
    exact = np.sum(np.log(2 * (h - l)) + slope(u), -1)
    assert_within(jacobian, exact, EPS * np.sum(size_of(u), -1))

    # Raw samples of actions, and the density; at an end the likeliest raw sample counts.
    u, raw_error, fraction = unsquash(a, l, h)
    assert_within(found_raw, u, raw_error)
    near = 16 * EPS  # whether it counts as at the end is a matter of rounding
    beyond = np.where(fraction < 0.5, np.minimum(m, u), np.maximum(m, u))
    at_end = (fraction <= 2 * EPS) | (fraction >= 1 - 2 * EPS)
    is_unsure = (np.minimum(fraction, 1 - fraction) < near) & (beyond == m) & (m != u)
    inside = np.where(at_end, beyond, u)
    z = (inside - m) / s
    lost_z = (raw_error + EPS * (abs(inside) + abs(m))) / s + 2 * EPS * abs(z)
    exact = -0.5 * z**2 - np.log(s) - 0.5 * LOG_2PI - np.log(2 * (h - l)) - slope(u)
    bound = (
        abs(z) * lost_z
        + lost_z**2
        + 2 * raw_error
        + EPS * (FUNCTION + size) * (z**2 + abs(np.log(s)) + 2)
        + EPS * size_of(u)
    )
    sure = ~is_unsure.any(-1)
    exact, bound = np.sum(exact, -1), np.sum(bound, -1)
    assert_within(np.asarray(log_prob)[sure], exact[sure], bound[sure])
    assert not np.isnan(log_prob).any()


def test_a_joint_policy_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no parts"):
        Joint(()).log_prob(())


@pytest.mark.slow
@extreme(seed=seeds, batch=st.sampled_from([0, B]), size=sizes, scale=scales, logit_scale=scales)
def test_joint_policies_add_up(seed, batch, size, scale, logit_scale):
    rng = np.random.default_rng(seed)
    logits = numbers(rng, (batch, 3), logit_scale)
    normal = Normal(numbers(rng, (batch, size), scale), deviations(rng, (batch, size), scale))
    parts = Categorical(logits), normal
    measures = measure_joint(Joint(parts), jax.random.key(seed))
    part_measures = measures[1]
    for total, (first, second) in zip(measures[0], part_measures, strict=True):
        assert total.shape == (batch,)
        exact = double(first) + double(second)
        assert_within(total, exact, EPS * abs(exact))
        assert np.all(np.isfinite(total))


@jax.jit
def measure_joint(policy, key):
    action = policy.sample(key)
    pairs = zip(policy.parts, action, strict=True)
    part_measures = [
        [part.log_prob(a) for part, a in pairs],
        [part.entropy() for part in policy.parts],
        [part.kl(part) for part in policy.parts],
    ]
    return [policy.log_prob(action), policy.entropy(), policy.kl(policy)], part_measures
