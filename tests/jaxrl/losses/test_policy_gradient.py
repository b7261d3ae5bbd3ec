"""The loss of actor-critics against NumPy, term by term; advantages; a step of the optimizer."""

from dataclasses import replace
from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxrl.losses import policy_gradient
from jaxrl.losses.distributions.discrete import Categorical
from jaxrl.types import Transition

B, A, K = 24, 3, 2
Config = partial(
    policy_gradient.Config, discount=0.9, gae_lambda=0.8, value_weight=0.7, entropy_weight=0.3
)


def problem(seed: int, values: tuple[int, ...] = ()):
    """`(policy, value, batch)`, all far enough apart that every clip is active somewhere."""
    rng = np.random.default_rng(seed)
    normal = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)
    policy, action = Categorical(normal(B, A)), jnp.asarray(rng.integers(0, A, B), jnp.int32)
    batch = policy_gradient.Batch(
        obs=(),
        action=action,
        log_prob=policy.log_prob(action) + 0.3 * normal(B),
        value=normal(B, *values),
        advantage=3.0 * normal(B) + 1.0,
        target=normal(B, *values),
    )
    return policy, normal(B, *values), batch


def plain_value_loss(value, batch, clip, weights) -> float:
    """Number by number, in double precision."""
    total = 0.0
    value, old, target = (
        np.asarray(x, np.float64).reshape(B, -1) for x in (value, batch.value, batch.target)
    )
    for i in range(B):
        for k, weight in enumerate(weights):
            error = (value[i, k] - target[i, k]) ** 2
            if clip is not None:
                near = old[i, k] + min(max(value[i, k] - old[i, k], -clip), clip)
                error = max(error, (near - target[i, k]) ** 2)
            total += 0.5 * weight * error / B
    return total


def plain_parts(policy, batch, standardise) -> dict[str, float]:
    logits = np.asarray(policy.logits, np.float64)
    prob = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    advantage = np.asarray(batch.advantage, np.float64)
    if standardise:
        advantage = (advantage - advantage.mean()) / advantage.std()
    parts = {"policy_loss": 0.0, "entropy": 0.0, "kl": 0.0, "clip_fraction": 0.0}
    for i in range(B):
        ratio = prob[i, batch.action[i]] / np.exp(np.float64(batch.log_prob[i]))
        clipped = min(max(ratio, 0.8), 1.2)
        parts["policy_loss"] -= min(ratio * advantage[i], clipped * advantage[i]) / B
        parts["entropy"] -= sum(p * np.log(p) for p in prob[i]) / B
        parts["kl"] += (ratio - 1 - np.log(ratio)) / B
        parts["clip_fraction"] += float(abs(ratio - 1) > 0.2) / B
    return parts


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("clip", [None, 0.2])
@pytest.mark.parametrize("weights", [None, (0.5, 2.0)], ids=["one value", "two components"])
def test_the_loss_equals_a_calculation_in_numpy(weights, clip, standardise):
    policy, value, batch = problem(0, (K,) if weights else ())
    config = Config(value_clip=clip, component_weights=weights, standardise=standardise)
    total, metrics = jax.jit(policy_gradient.loss)(policy, value, batch, config)
    expected = plain_parts(policy, batch, standardise)
    assert 0 < expected["clip_fraction"] < 1
    expected["value_loss"] = plain_value_loss(value, batch, clip, weights or (1.0,))
    for name, part in expected.items():
        np.testing.assert_allclose(metrics[name], part, rtol=1e-4)
    assert set(metrics) == set(expected)
    sum_ = expected["policy_loss"] + 0.7 * expected["value_loss"] - 0.3 * expected["entropy"]
    np.testing.assert_allclose(total, sum_, rtol=1e-4)


def test_clipped_values_by_hand():
    """Old value 0, clip 0.5; the target is 1 in the first half, -1 in the second."""
    value = jnp.array([0.25, 0.75, -0.25, -0.75, 0.25, 0.75])
    target = jnp.array([1.0, 1.0, 1.0, 1.0, -1.0, -1.0])
    # towards the target beyond the clip: it stays at 0.5; away from it: never better than it is
    errors = [0.75, 0.5, 1.25, 1.75, 1.25, 1.75]
    error_of = lambda v: policy_gradient.squared_error(v, jnp.zeros(6), target, 0.5)
    np.testing.assert_allclose(error_of(value), 0.5 * np.square(errors), rtol=1e-6)
    slope = jax.grad(lambda v: jnp.sum(error_of(v)))(value)
    np.testing.assert_allclose(slope, [-0.75, 0.0, -1.25, -1.75, 1.25, 1.75], rtol=1e-6)


def test_values_that_have_not_moved_are_not_clipped():
    _, value, batch = problem(1)
    still = batch._replace(value=value)
    free, clipped = (
        policy_gradient.value_error(value, still, Config(value_clip=c)) for c in (None, 1e-3)
    )
    np.testing.assert_array_equal(free, clipped)


def test_clips_of_values_vmap():
    policy, value, batch = problem(2)
    clips = jnp.array([0.1, 0.3, 1e6])
    config = lambda clip: replace(Config(), value_clip=clip)
    loss = lambda clip: policy_gradient.loss(policy, value, batch, config(clip))[1]["value_loss"]
    losses = jax.vmap(loss)(clips)
    for x, clip in zip(losses, (0.1, 0.3, None), strict=True):
        np.testing.assert_allclose(x, plain_value_loss(value, batch, clip, (1.0,)), rtol=1e-4)


def test_the_estimate_of_the_divergence_is_right_on_average():
    """Under the old policy E[ρ] = 1, so E[k₃] is the KL divergence itself."""
    old, new = (Categorical(jnp.array(logits)) for logits in ([0.3, 1.0, -2.0], [1.0, 0.0, 0.5]))
    prob = jax.nn.softmax(old.logits)
    log_ratio = jax.nn.log_softmax(new.logits) - jax.nn.log_softmax(old.logits)
    estimates = policy_gradient.kl_estimate(log_ratio)
    assert np.all(np.asarray(estimates) >= 0)
    np.testing.assert_allclose(jnp.sum(prob * estimates), old.kl(new), rtol=1e-5)


def rollout(steps: int = 6, num_envs: int = 4) -> tuple[Transition, jax.Array, jax.Array]:
    """Rewards in two components with endings of both kinds, and values before and after."""
    rng = np.random.default_rng(0)
    normal = lambda: jnp.asarray(rng.normal(size=(steps, num_envs, K)), jnp.float32)
    ended = rng.random((2, steps, num_envs)) < 0.2
    terminated, truncated = jnp.asarray(ended[0]), jnp.asarray(ended[1] & ~ended[0])
    return Transition((), (), normal(), (), terminated, truncated, ()), normal(), normal()


def plain_advantages(reward, value, next_value, terminated, truncated) -> Any:
    """The sum of later TD errors up to the end of the episode, step by step (discount 0.9)."""
    advantage = np.zeros(reward.shape)
    for t, n in np.ndindex(*reward.shape):
        for k in range(t, len(reward)):
            future = 0.0 if terminated[k, n] else 0.9 * next_value[k, n]
            delta = reward[k, n] + future - value[k, n]
            advantage[t, n] += (0.9 * 0.8) ** (k - t) * delta
            if terminated[k, n] or truncated[k, n]:
                break
    return advantage


@pytest.mark.parametrize("weights", [None, (0.5, 2.0)])
def test_advantages_of_components_add_up(weights):
    parts, value, next_value = rollout()
    advantage, target = policy_gradient.advantages(
        parts, value, next_value, Config(component_weights=weights)
    )
    ended = np.asarray(parts.terminated), np.asarray(parts.truncated)
    assert np.any(ended[0])
    assert np.any(ended[1])
    reward, before, after = (np.asarray(x) for x in (parts.reward, value, next_value))
    component_advantages = [
        plain_advantages(reward[..., k], before[..., k], after[..., k], *ended) for k in range(K)
    ]
    total = sum(w * x for w, x in zip(weights or (1.0, 1.0), component_advantages, strict=True))
    np.testing.assert_allclose(advantage, total, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        target, np.stack(component_advantages, axis=-1) + before, rtol=1e-4, atol=1e-5
    )


def test_a_critic_with_one_value_learns_the_sum_of_the_components():
    parts, value, next_value = rollout()
    values = value[..., 0], next_value[..., 0]
    summed_rollout = parts._replace(reward=parts.reward.sum(axis=-1))
    actual, expected = (
        policy_gradient.advantages(x, *values, Config()) for x in (parts, summed_rollout)
    )
    chex.assert_trees_all_close(actual, expected, rtol=1e-5)
    plain = plain_advantages(
        *(np.asarray(x) for x in (summed_rollout.reward, *values, *summed_rollout[4:6]))
    )
    np.testing.assert_allclose(actual[0], plain, rtol=1e-4, atol=1e-5)


def test_weights_for_other_components_are_refused():
    with pytest.raises(ValueError, match="1 component_weights for 2 components of the reward: gi"):
        policy_gradient.advantages(*rollout(), Config(component_weights=(1.0,)))


@pytest.mark.parametrize(
    ("num_components", "value_shape", "text"), [(0, (1,), r"\[\]"), (K, (3,), r"\[2\]")]
)
def test_values_of_other_components_are_refused(num_components, value_shape, text):
    parts, value, _ = rollout()
    if not num_components:
        parts = parts._replace(reward=parts.reward[..., 0])
    values = jnp.zeros((*value.shape[:2], *value_shape))
    message = rf"values of shape \[{value_shape[0]}\] for one .*, the reward of a step .* {text}: "
    with pytest.raises(ValueError, match=message):
        policy_gradient.advantages(parts, values, values, Config())


def test_steps_are_those_of_adam_on_clipped_gradients():
    config = Config(max_grad_norm=0.5, adam_epsilon=1e-3)
    params = {"w": jnp.array([1.0, -2.0]), "b": jnp.array([0.5])}
    slopes = [{"w": jnp.array([3.0, x]), "b": jnp.array([0.1 * x])} for x in (0.0, -4.0, 1e-3)]
    optimizer = policy_gradient.make_optimizer(config)
    reference = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.05, eps=1e-3))
    actual, state = params, optimizer.init(params)
    expected, their_state = params, reference.init(params)
    for gradient in slopes:
        actual, state = policy_gradient.descend(optimizer, gradient, actual, state, 0.05)
        change, their_state = reference.update(gradient, their_state)
        expected = optax.apply_updates(expected, change)
    chex.assert_trees_all_close(actual, expected, rtol=1e-6)


def test_numbers_of_actions_are_summed_up_and_choices_are_not():
    random = np.random.default_rng(0)
    scalar, vector = random.normal(size=(5, 3)), random.normal(size=(5, 3, 2))
    choices = random.integers(0, 2, (5, 3, 4))
    action = tuple(map(jnp.asarray, (choices, scalar, vector)))
    metrics = policy_gradient.action_metrics(action)
    rows = np.concatenate([scalar[..., None], vector], axis=-1).reshape(15, 3)
    np.testing.assert_allclose(metrics["action_mean"], rows.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(metrics["action_deviation"], rows.std(0), rtol=1e-5)
    np.testing.assert_allclose(metrics["action_min"], rows.min(0), rtol=1e-6)
    np.testing.assert_allclose(metrics["action_max"], rows.max(0), rtol=1e-6)
    assert policy_gradient.action_metrics(jnp.asarray(choices)) == {}


def test_a_transition_alone_teaches_the_policy():
    policy, value, batch = problem(0)
    one = lambda tree: jax.tree.map(lambda x: x[:1], tree)

    def objective(logits: jax.Array) -> jax.Array:
        return policy_gradient.loss(Categorical(logits), one(value), one(batch), Config())[0]

    logits = np.asarray(policy.logits[:1], float)
    chance = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    action, advantage = int(batch.action[0]), float(batch.advantage[0])
    ratio = chance[0, action] / np.exp(float(batch.log_prob[0]))
    clipped = ratio * advantage > np.clip(ratio, 0.8, 1.2) * advantage
    log_prob_grad = (np.arange(A) == action) - chance
    entropy = -(chance * np.log(chance)).sum()
    entropy_grad = -chance * (np.log(chance) + entropy)
    expected = -advantage * ratio * log_prob_grad * (not clipped) - 0.3 * entropy_grad
    np.testing.assert_allclose(jax.grad(objective)(policy.logits[:1]), expected, rtol=1e-4)
    assert not clipped
