"""Distributions against explicit sums, numerical integration and the frequencies of samples."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrl.losses.distributions import (
    Categorical,
    ClippedNormal,
    Joint,
    Normal,
    PartlyFixedPolicy,
    PerNode,
    SquashedNormal,
    masked,
)

INF = np.inf
# The bounds of a chi-square or Kolmogorov-Smirnov test on a fixed key: it fails or it does not.
UNLIKELY = 1e-3


def integral(density, grid: np.ndarray) -> float:
    """Trapezoid rule in float64."""
    return float(np.trapezoid(np.asarray(density, np.float64), grid))


draw = jax.jit(jax.vmap(lambda distribution, key: distribution.sample(key), in_axes=(None, 0)))
log_probs = jax.jit(jax.vmap(lambda distribution, a: distribution.log_prob(a), in_axes=(None, 0)))
squash = jax.jit(jax.vmap(lambda distribution, raw: distribution.squash(raw), in_axes=(None, 0)))
log_jacobian = jax.jit(jax.vmap(lambda d, raw: d.log_jacobian(raw), in_axes=(None, 0)))


def samples(distribution, key: jax.Array, count: int):
    """`[count, ...]`, the way the loop draws them: a key each."""
    return draw(distribution, jax.random.split(key, count))


def as_actions(grid: np.ndarray) -> jax.Array:
    """Points `[M]` as actions `[M, 1]`."""
    return jnp.asarray(grid, jnp.float32)[:, None]


# --- Categorical

LOGITS = jnp.array([[0.5, -1.0, 2.0, 0.0], [3.0, 3.0, -3.0, 1.0], [-50.0, 60.0, 0.0, 1.0]])
OTHER = jnp.array([[0.0, 1.0, -2.0, 0.5], [0.0, 3.0, 3.0, -1.0], [1.0, 2.0, 3.0, 4.0]])


def probabilities(logits) -> np.ndarray:
    weights = np.exp(np.asarray(logits, np.float64))
    return weights / weights.sum(-1, keepdims=True)


def test_categorical_against_explicit_sums():
    p, q = probabilities(LOGITS), probabilities(OTHER)
    policy, other = Categorical(LOGITS), Categorical(OTHER)
    for action in range(4):
        log_prob = policy.log_prob(jnp.full(3, action))
        np.testing.assert_allclose(log_prob, np.log(p[:, action]), rtol=1e-5)
    np.testing.assert_allclose(policy.entropy(), -np.sum(p * np.log(p), -1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(policy.kl(other), np.sum(p * np.log(p / q), -1), rtol=1e-4)
    np.testing.assert_allclose(policy.kl(policy), np.zeros(3), atol=1e-6)
    assert policy.mode().tolist() == [2, 0, 1]


def test_categorical_does_not_care_for_a_constant_in_its_logits():
    shifted = Categorical(LOGITS + 1000.0)
    np.testing.assert_allclose(shifted.entropy(), Categorical(LOGITS).entropy(), atol=1e-3)
    np.testing.assert_allclose(shifted.kl(Categorical(LOGITS)), np.zeros(3), atol=1e-3)


def test_categorical_samples_as_often_as_it_says():
    action = samples(Categorical(LOGITS[:2]), jax.random.key(0), 20_000)
    assert action.dtype == jnp.int32
    assert action.shape == (20_000, 2)
    for column in range(2):
        counts = np.bincount(action[:, column], minlength=4)
        expected = probabilities(LOGITS[column]) * 20_000
        assert scipy.stats.chisquare(counts, expected).pvalue > UNLIKELY


def test_one_key_draws_the_whole_batch_independently():
    action = Categorical(jnp.zeros((20_000, 2, 2))).sample(jax.random.key(1))
    pairs = np.bincount(np.asarray(action) @ [1, 2], minlength=4)
    assert scipy.stats.chisquare(pairs).pvalue > UNLIKELY


def test_forbidden_actions_are_never_sampled_and_the_rest_as_often_as_it_says():
    # The forbidden actions would be by far the likeliest.
    allowed = jnp.array([True, False, True, True, False])
    logits = jnp.array([1.0, 90.0, 0.0, -1.0, 80.0])
    policy = masked(logits, allowed)
    action = samples(policy, jax.random.key(2), 20_000)
    counts = np.bincount(action, minlength=5)
    assert counts[1] == counts[4] == 0
    expected = probabilities(jnp.array([1.0, 0.0, -1.0])) * 20_000
    assert scipy.stats.chisquare(counts[[0, 2, 3]], expected).pvalue > UNLIKELY
    assert policy.mode() == 0
    log_prob = log_probs(policy, jnp.arange(5))
    assert log_prob[jnp.array([1, 4])].tolist() == [-INF, -INF]


floats = st.floats(-20, 20, width=32)
rows = st.lists(st.tuples(floats, floats, st.booleans()), min_size=6, max_size=6)
entropy_and_kl = jax.jit(
    lambda logits, other, allowed: (
        masked(logits, allowed).entropy(),
        masked(logits, allowed).kl(masked(other, allowed)),
        masked(logits, allowed).kl(Categorical(other)),
    )
)


@settings(max_examples=60, deadline=None)
@given(rows)
def test_a_mask_is_the_same_as_fewer_actions(rows):
    logits, other, allowed = (np.array(column) for column in zip(*rows, strict=True))
    is_allowed = allowed if allowed.any() else ~allowed
    p, q = probabilities(logits[is_allowed]), probabilities(other[is_allowed])
    unmasked = probabilities(other)[is_allowed]
    logits, other = (jnp.asarray(x, jnp.float32) for x in (logits, other))
    actual = entropy_and_kl(logits, other, jnp.asarray(allowed))
    expected = (-np.sum(p * np.log(p)), np.sum(p * np.log(p / q)), np.sum(p * np.log(p / unmasked)))
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("forbidden", [-INF, float(np.finfo(np.float32).min), -1e9])
def test_gradients_are_finite_with_forbidden_actions(forbidden):
    logits = jnp.array([[0.3, forbidden, -0.2, forbidden], [forbidden, 1.0, forbidden, forbidden]])

    def loss(x, y):
        policy, other = Categorical(logits + x), Categorical(logits + y)
        log_prob = policy.log_prob(jnp.array([2, 1]))
        return jnp.sum(policy.entropy() + policy.kl(other) + log_prob)

    noise = jax.random.normal(jax.random.key(3), (2, *logits.shape))
    value, gradients = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(*noise)
    assert np.isfinite(value)
    for gradient in gradients:
        assert np.all(np.isfinite(gradient))
        assert np.all(gradient[logits == forbidden] == 0)
        np.testing.assert_allclose(gradient.sum(-1), 0, atol=1e-6)  # constants do not matter


def test_kl_is_infinite_where_the_other_forbids():
    policy = Categorical(jnp.zeros((2, 3)))
    other = masked(jnp.zeros((2, 3)), jnp.array([[True, True, True], [True, True, False]]))
    assert policy.kl(other).tolist() == [0, INF]
    np.testing.assert_allclose(other.kl(policy), [0, np.log(3 / 2)], rtol=1e-6)


def test_a_row_where_nothing_is_allowed_stays_finite():
    logits = jnp.array([0.5, 1.5])
    policy = masked(logits, jnp.array([False, False]))
    np.testing.assert_allclose(policy.entropy(), Categorical(logits).entropy())
    gradient = jax.grad(lambda x: masked(x, jnp.array([False, False])).entropy())(logits)
    assert np.all(np.isfinite(gradient))


def test_the_gradient_of_log_prob_is_one_hot_minus_p():
    gradient = jax.grad(lambda x: Categorical(x).log_prob(jnp.array(2)))(LOGITS[0])
    np.testing.assert_allclose(gradient, np.eye(4)[2] - probabilities(LOGITS[0]), atol=1e-6)


# --- PerNode

LIVE = jnp.array([[True, True, True], [True, False, True], [False, False, False]])
NODES = jnp.stack([LOGITS[:, :3], OTHER[:, :3], LOGITS[:, 1:]])  # [3 graphs, 3 nodes, 3 actions]
NODES_2 = jnp.stack([OTHER[:, 1:], LOGITS[:, :3], OTHER[:, :3]])


def test_per_node_against_the_sum_over_all_actions_of_all_nodes():
    policy, other = PerNode(NODES, LIVE), PerNode(NODES_2, LIVE)
    p, q = probabilities(NODES), probabilities(NODES_2)
    entropy, kl = policy.entropy(), policy.kl(other)
    actions = list(itertools.product(range(3), repeat=3))
    all_actions = jnp.broadcast_to(jnp.array(actions)[:, None], (27, 3, 3))
    log_prob = log_probs(policy, all_actions)  # [27, graphs]
    for i, live in enumerate(np.asarray(LIVE)):
        nodes = np.flatnonzero(live)
        log_p, log_q = (
            np.array([sum(np.log(x[i, n, a[n]]) for n in nodes) for a in actions]) for x in (p, q)
        )
        np.testing.assert_allclose(log_prob[:, i], log_p, rtol=1e-4, atol=1e-6)
        share = np.exp(log_p) / 3.0 ** (3 - len(nodes))  # a dead node's action says nothing
        np.testing.assert_allclose(share.sum(), 1, rtol=1e-6)
        np.testing.assert_allclose(entropy[i], -np.sum(share * log_p), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(kl[i], np.sum(share * (log_p - log_q)), rtol=1e-4, atol=1e-6)


def test_per_node_samples_live_nodes_independently_and_leaves_the_dead_at_0():
    logits = jnp.array([[0.0, 1.0], [-5.0, 90.0], [0.5, 0.0]])
    policy = PerNode(logits, jnp.array([True, False, True]))
    action = np.asarray(samples(policy, jax.random.key(13), 20_000))
    assert action.dtype == np.int32
    assert not np.any(action[:, 1])
    first, last = (probabilities(logits[i]) for i in (0, 2))
    counts = np.bincount(action @ [2, 0, 1], minlength=4)
    expected = np.outer(first, last).ravel() * 20_000
    assert scipy.stats.chisquare(counts, expected).pvalue > UNLIKELY
    assert policy.mode().tolist() == [1, 0, 0]


def test_dead_nodes_may_hold_anything():
    live = jnp.array([True, False, False])
    logits = jnp.array([[0.5, -1.0], [np.nan, 0.0], [-INF, INF]])
    action = jnp.array([1, -7, 99])

    def measures(logits, live, action):
        policy = PerNode(logits, live)
        return policy.log_prob(action) + policy.entropy() + policy.kl(PerNode(2 * logits, live))

    single_node = jax.value_and_grad(measures)(logits[:1], live[:1], action[:1])
    value, gradient = jax.value_and_grad(measures)(logits, live, action)
    np.testing.assert_allclose(value, single_node[0], rtol=1e-6)
    np.testing.assert_allclose(gradient, np.pad(single_node[1], ((0, 2), (0, 0))), rtol=1e-6)
    assert PerNode(logits, live & False).log_prob(action) == 0


# --- Normal

MEAN, SCALE = jnp.array([0.3, -2.0, 5.0]), jnp.array([1.0, 0.1, 3.0])
MEAN_2, SCALE_2 = jnp.array([-0.2, -2.1, 4.0]), jnp.array([0.7, 0.2, 5.0])


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


# --- Squashed

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


# --- Clipped


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


# --- Joint, and all of them


def joint() -> Joint:
    """Batch `[2]`: what to do, and two ways to say how much of it."""
    mean, scale = jnp.stack([MEAN, MEAN_2]), jnp.stack([SCALE, SCALE_2])
    ends = jnp.zeros((2, 3)), jnp.ones((2, 3))
    return Joint(
        (Categorical(LOGITS[:2]), Normal(mean, scale), SquashedNormal(Normal(mean, scale), *ends))
    )


def test_joint_sums_over_its_parts():
    policy = joint()
    other = jax.tree.map(lambda x: x + 0.1, policy)
    action = policy.sample(jax.random.key(9))
    log_prob = [part.log_prob(a) for part, a in zip(policy.parts, action, strict=True)]
    np.testing.assert_allclose(policy.log_prob(action), np.sum(log_prob, 0), rtol=1e-6)
    entropy = [part.entropy() for part in policy.parts]
    np.testing.assert_allclose(policy.entropy(), np.sum(entropy, 0), rtol=1e-6)
    kl = [p.kl(q) for p, q in zip(policy.parts, other.parts, strict=True)]
    np.testing.assert_allclose(policy.kl(other), np.sum(kl, 0), rtol=1e-6)
    for mode, part in zip(policy.mode(), policy.parts, strict=True):
        assert np.array_equal(mode, part.mode())


def test_what_is_held_counts_in_nothing():
    """It is the policy over the free coordinates alone; gradients of the others are 0."""
    mean, scale = jnp.array([0.3, -1.0, 0.5, 2.0]), jnp.array([0.5, 1.5, 1.0, 0.2])
    low, high = jnp.array([0.0, -1.0, 2.0, 0.0]), jnp.array([0.7, 1.0, 5.0, 1.0])
    free, fixed = jnp.array([True, False, True, False]), jnp.array([9.0, -1.0, 9.0, 0.25])
    policy = SquashedNormal(Normal(mean, scale), low, high)
    free_indices = jnp.array([0, 2])
    free_policy = jax.tree.map(lambda x: x[free_indices], policy)
    other = SquashedNormal(Normal(mean + 1, 2 * scale), low, high)
    held = PartlyFixedPolicy(policy, free, fixed)
    actions = samples(held, jax.random.key(0), 500)
    np.testing.assert_array_equal(actions[:, 1], -1.0)
    np.testing.assert_array_equal(actions[:, 3], 0.25)
    assert len(np.unique(actions[:, 0])) > 400
    np.testing.assert_allclose(
        log_probs(held, actions),
        log_probs(free_policy, actions[:, free_indices]),
        rtol=1e-5,
        atol=1e-5,
    )
    np.testing.assert_allclose(held.entropy(), free_policy.entropy(), rtol=1e-6)
    expected = free_policy.kl(jax.tree.map(lambda x: x[free_indices], other))
    np.testing.assert_allclose(held.kl(PartlyFixedPolicy(other, free, fixed)), expected, rtol=1e-6)
    np.testing.assert_allclose(held.mode()[free_indices], free_policy.mode())
    np.testing.assert_array_equal(held.mode()[jnp.array([1, 3])], [-1.0, 0.25])
    all_free = PartlyFixedPolicy(policy, jnp.ones(4, bool), fixed)
    inside = low + (high - low) * 0.3
    np.testing.assert_allclose(all_free.log_prob(inside), policy.log_prob(inside), rtol=1e-6)
    slope = jax.grad(
        lambda m: PartlyFixedPolicy(
            SquashedNormal(Normal(m, scale), low, high), free, fixed
        ).log_prob(actions[0])
    )
    assert (np.asarray(slope(mean)) != 0).tolist() == free.tolist()


def test_joint_kl_against_the_sum_over_all_pairs_of_actions():
    policy, other = (Joint((Categorical(x[0]), Categorical(x[1]))) for x in (LOGITS, OTHER))
    first, second = (jnp.ravel(x) for x in jnp.meshgrid(jnp.arange(4), jnp.arange(4)))
    log_p, log_q = (np.float64(log_probs(d, (first, second))) for d in (policy, other))
    np.testing.assert_allclose(np.exp(log_p).sum(), 1, rtol=1e-5)
    np.testing.assert_allclose(policy.entropy(), -np.sum(np.exp(log_p) * log_p), rtol=1e-4)
    np.testing.assert_allclose(policy.kl(other), np.sum(np.exp(log_p) * (log_p - log_q)), rtol=1e-4)


def test_joint_samples_its_parts_independently():
    pair = Joint((Normal(MEAN, SCALE), Normal(MEAN, SCALE)))
    a, b = samples(pair, jax.random.key(10), 20_000)
    assert abs(np.corrcoef(a[:, 0], b[:, 0])[0, 1]) < 0.03


def test_a_joint_of_names_is_that_of_a_tuple_in_the_order_of_names():
    first, second = Categorical(LOGITS[0]), Normal(MEAN, SCALE)
    named, plain = Joint({"b": second, "a": first}), Joint((first, second))
    action = named.sample(jax.random.key(3))
    assert set(action) == {"a", "b"}
    in_order = (action["a"], action["b"])
    assert jax.tree.all(jax.tree.map(np.array_equal, plain.sample(jax.random.key(3)), in_order))
    assert named.log_prob(action) == plain.log_prob(in_order)
    assert named.entropy() == plain.entropy()
    assert named.mode()["a"] == first.mode()
    assert set(named.describe()) == set(plain.describe())


def test_joint_refuses_parts_of_different_batches():
    policy = Joint((Categorical(LOGITS), Normal(MEAN, SCALE)))
    with pytest.raises(AssertionError, match="shape"):
        policy.entropy()


ALL = {
    "categorical": lambda: Categorical(LOGITS[:2]),
    "masked": lambda: masked(LOGITS[:2], LOGITS[:2] > -2),
    "per node": lambda: PerNode(NODES[:2], LIVE[:2]),
    "normal": lambda: joint().parts[1],
    "squashed": lambda: joint().parts[2],
    "clipped": lambda: ClippedNormal(
        *(getattr(joint().parts[2], x) for x in ("raw", "low", "high"))
    ),
    "joint": joint,
    "joint of names": lambda: Joint(dict(zip("abc", joint().parts, strict=True))),
}


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_a_batch_is_the_same_as_one_at_a_time(make):
    """And each is a pytree that goes through jit and vmap."""
    policy = jax.jit(lambda x: x)(make())
    other = jax.tree.map(lambda x: x + 0.1, policy)
    action = policy.sample(jax.random.key(11))

    def measure(policy, other, action):
        return policy.log_prob(action), policy.entropy(), policy.kl(other)

    batched = jax.jit(measure)(policy, other, action)
    assert [x.shape for x in batched] == [(2,)] * 3
    mapped = jax.jit(jax.vmap(measure))(policy, other, action)
    for a, b in zip(batched, mapped, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    keys = jax.random.split(jax.random.key(12), 2)
    sampled = jax.jit(jax.vmap(lambda d, k: d.sample(k)))(policy, keys)
    assert jax.tree.map(jnp.shape, sampled) == jax.tree.map(jnp.shape, action)
    modes = jax.vmap(lambda d: d.mode())(policy)
    assert all(map(np.array_equal, jax.tree.leaves(modes), jax.tree.leaves(policy.mode())))
