"""Distributions over choices against explicit sums and the frequencies of samples."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxrl.losses.distributions.discrete import Categorical, PerNode, masked
from tests.jaxrl.losses.distribution_parts import (
    INF,
    LIVE,
    LOGITS,
    NODES,
    NODES_2,
    OTHER,
    UNLIKELY,
    log_probs,
    probabilities,
    samples,
)


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

    value_and_gradient = jax.jit(jax.value_and_grad(measures))
    single_node = value_and_gradient(logits[:1], live[:1], action[:1])
    value, gradient = value_and_gradient(logits, live, action)
    np.testing.assert_allclose(value, single_node[0], rtol=1e-6)
    np.testing.assert_allclose(gradient, np.pad(single_node[1], ((0, 2), (0, 0))), rtol=1e-6)
    assert PerNode(logits, live & False).log_prob(action) == 0
