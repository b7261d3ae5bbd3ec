"""Distributions over actions to choose from, at extreme logits, against sums in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from jaxrl.losses.distributions.discrete import Categorical, PerNode, masked
from tests.jaxrl.extremes import (
    EPS,
    FUNCTION,
    TINY,
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


@jax.jit
def measure_categorical(logits, other, allowed, action, key):
    gradients = measure_logits(lambda x: masked(x, allowed), logits, other, action)
    policy = masked(logits, allowed)
    samples = jax.vmap(policy.sample)(jax.random.split(key, KEYS))
    sampled = jax.vmap(policy.log_prob)(samples)
    return gradients, policy.mode(), samples, sampled


def measure_logits(policy_of, logits, other, action):
    """`[(value, (slope by logits, slope by other))]` of log_prob, entropy and kl."""
    parts = (
        lambda x, y: policy_of(x).log_prob(action),
        lambda x, y: policy_of(x).entropy(),
        lambda x, y: policy_of(x).kl(policy_of(y)),
    )
    measures = []
    for of in parts:
        summed = lambda x, y, of=of: (jnp.sum(of(x, y)), of(x, y))
        slopes, value = jax.grad(summed, (0, 1), has_aux=True)(logits, other)
        measures.append((value, slopes))
    return measures


def softmax(logits, allowed):
    """`(log p, p, roundings of log p)` `[..., A]` in float64; 0 in the place of log 0."""
    x = np.where(allowed, double(logits), -np.inf)
    x = x - x.max(-1, keepdims=True)
    log_p = x - np.log(np.exp(x).sum(-1, keepdims=True))
    p = np.exp(log_p)
    x, log_p = np.where(allowed, x, 0.0), np.where(allowed, log_p, 0.0)
    mean = np.sum(p * abs(x), -1, keepdims=True)
    return log_p, p, abs(x) + abs(log_p) + mean + FUNCTION + x.shape[-1]


def assert_right(measures, logits, other, allowed, action):
    """Checks one Categorical each; bounds are EPS times the magnitudes that are added up."""
    (log_prob, slope), (entropy, fall), (kl, changes) = (
        (value, slopes) for value, slopes in measures
    )
    log_p, p, off = softmax(logits, allowed)
    log_q, q, off_q = softmax(other, allowed)
    at = action[..., None]
    take = lambda x: np.take_along_axis(x, at, -1)[..., 0]
    assert_within(log_prob, take(log_p), EPS * take(off))
    chosen = np.arange(p.shape[-1]) == at
    assert_within(slope[0], chosen - p, EPS * (2 * off * p + chosen))

    flushed = TINY * p.shape[-1]
    for value, by_self, log_r, off_r in (
        (-double(entropy), -double(fall[0]), 0.0, 0.0),
        (kl, changes[0], log_q, off_q),
    ):
        size = abs(log_p) + abs(log_r) + 1
        exact = np.sum(p * (log_p - log_r), -1)
        relative = off + np.sum(p * off, -1, keepdims=True) + p.shape[-1] + 4
        lost = EPS * p * (relative * size + off_r) + flushed * size
        total = np.sum(lost, -1)
        assert_within(value, exact, total)
        size_sum = np.sum(p * size, -1, keepdims=True)
        by_exact = p * (log_p - log_r - exact[..., None])
        assert_within(
            by_self,
            by_exact,
            lost + p * total[..., None] + EPS * p * (2 * relative) * size_sum + flushed * size_sum,
        )
    assert_within(changes[1], q - p, EPS * (2 * off_q * q + 2 * off * p) + 2 * flushed)


@extreme(
    seed=seeds, actions=st.sampled_from([1, 2, 5]), scale=scales, other_scale=scales,
    offset=st.one_of(st.just(0.0), scales),
    allows=st.sampled_from(["all", "one", "some", "none"]),
)  # fmt: skip
def test_categorical(seed, actions, scale, other_scale, offset, allows):
    """Values and gradients; samples are allowed and have a finite log-probability."""
    rng, shape = np.random.default_rng(seed), (B, actions)
    logits = single(double(numbers(rng, shape, scale)) + offset)
    other = numbers(rng, shape, other_scale)
    one = np.arange(actions) == rng.integers(actions, size=(B, 1))
    allowed = {
        "all": np.ones(shape, bool),
        "one": one,
        "some": one | (rng.random(shape) < 0.5),
        "none": np.zeros(shape, bool),
    }[allows]
    is_allowed = (
        allowed if allows != "none" else ~allowed
    )  # where nothing is allowed, everything is
    action = np.where(is_allowed, rng.random(shape), -1.0).argmax(-1).astype(np.int32)
    measures, mode, samples, sampled = measure_categorical(
        logits, other, allowed, action, jax.random.key(seed)
    )
    assert_right(measures, logits, other, is_allowed, action)
    np.testing.assert_array_equal(mode, np.where(is_allowed, logits, -np.inf).argmax(-1))
    assert np.all(np.isfinite(sampled))
    assert np.all(
        np.take_along_axis(np.broadcast_to(is_allowed, (KEYS, *shape)), samples[..., None], -1)
    )
    masked_out = [np.asarray(s)[~is_allowed] for _, slopes in measures for s in slopes]
    assert all(np.all(s == 0) for s in masked_out)


@jax.jit
def zero_share(logits, key):
    return jnp.mean(jax.vmap(Categorical(logits).sample)(jax.random.split(key, 1024)) == 0)


@extreme(seed=seeds, offset=scales, sign=st.sampled_from([-1, 1]), gap=st.sampled_from([0.0, 1.0]))
def test_an_offset_common_to_all_logits_does_not_decide(seed, offset, sign, gap):
    """Frequencies of two actions, within 7 standard deviations."""
    logits = single(sign * offset + np.array([0.0, gap]))
    p = 1 / (1 + np.exp(double(logits[1]) - double(logits[0])))
    share = float(zero_share(logits, jax.random.key(seed)))
    assert abs(share - p) <= 7 * np.sqrt(p * (1 - p) / 1024) + 1e-4


@jax.jit
def measure_nodes(logits, other, live, action, key):
    measures = measure_logits(lambda x: PerNode(x, live), logits, other, action)
    policy = PerNode(logits, live)
    sample = policy.sample(key)
    return measures, policy.mode(), sample, policy.log_prob(sample)


@pytest.mark.slow
@extreme(
    seed=seeds, nodes=st.sampled_from([0, 1, 4]), actions=st.sampled_from([1, 3]), scale=scales,
    lives=st.sampled_from(["all", "one", "none"]),
)  # fmt: skip
def test_per_node(seed, nodes, actions, scale, lives):
    """The sum over live nodes of what a Categorical says; the logits of others may be anything."""
    rng, shape = np.random.default_rng(seed), (B, nodes, actions)
    logits, other = (numbers(rng, shape, scale) for _ in range(2))
    which = rng.integers(max(nodes, 1), size=(B, 1))
    live = {"all": np.ones, "one": np.ones, "none": np.zeros}[lives](shape[:2], bool)
    live = np.arange(nodes) == which if lives == "one" else live
    logits[~live] = rng.choice([np.nan, np.inf, -np.inf, 1e30])
    action = rng.integers(actions, size=shape[:2]).astype(np.int32)
    measures, mode, sample, sampled = measure_nodes(
        logits, other, live, action, jax.random.key(seed)
    )
    clean, allowed = np.where(live[..., None], logits, 0.0), np.ones(shape, bool)
    log_p, p, off = softmax(clean, allowed) if nodes else (np.zeros(shape),) * 3
    log_q, _, off_q = softmax(other, allowed) if nodes else (np.zeros(shape),) * 3
    counts = lambda x: np.sum(np.where(live, x, 0.0), -1)
    take = lambda x: np.take_along_axis(x, action[..., None], -1)[..., 0]
    log_prob, entropy, kl = (value for value, _ in measures)
    more = off + actions + nodes + 4
    assert_within(log_prob, counts(take(log_p)), EPS * counts(take(more)))
    lost = lambda size: counts(np.sum((EPS * p * more * 3 + actions * TINY) * size, -1))
    assert_within(entropy, counts(np.sum(-p * log_p, -1)), lost(abs(log_p) + 1))
    exact = counts(np.sum(p * (log_p - log_q), -1))
    assert_within(
        kl, exact, lost(abs(log_p) + abs(log_q) + 1) + EPS * counts(np.sum(p * off_q, -1))
    )
    assert np.all(np.isfinite(sampled))
    assert np.all(np.asarray(sample)[~live] == 0)
    assert np.all(np.asarray(mode)[~live] == 0)
    for _, slopes in measures:
        for slope in slopes:
            assert np.all(np.isfinite(slope))
            assert np.all(np.asarray(slope)[~live] == 0)
