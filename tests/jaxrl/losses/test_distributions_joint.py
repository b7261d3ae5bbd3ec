"""Joint distributions against sums over their parts; all kinds in batches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.losses.distributions.continuous import (
    ClippedNormal,
    Normal,
    PartlyFixedPolicy,
    SquashedNormal,
)
from jaxrl.losses.distributions.discrete import Categorical, PerNode, masked
from jaxrl.losses.distributions.joint import Joint
from tests.jaxrl.losses.distribution_parts import (
    LIVE,
    LOGITS,
    MEAN,
    MEAN_2,
    NODES,
    OTHER,
    SCALE,
    SCALE_2,
    log_probs,
    samples,
)


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


@pytest.mark.slow
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


@pytest.mark.fast_cases(1)
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
