"""DQN: known optimal values, targets by hand, which transitions it draws and how it acts."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxrl import loop
from jaxrl.agents import dqn
from jaxrl.losses import n_step, q_learning
from jaxrl.losses.n_step import Batch
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mlp import MLP
from jaxrl.replay import uniform
from jaxrl.types import Transition
from tests.jaxrl import toy_environments as toys
from tests.jaxrl.agents.dqn_parts import A, D, N, arrays, assert_equal, init_state, random_rollout


class Table(nn.Module):
    """One weight per observation and action, where observations are one-hot."""

    num_actions: int = A

    @nn.compact
    def __call__(self, obs):
        return nn.Dense(self.num_actions, use_bias=False)(obs)


# What it learns.


class Case(NamedTuple):
    """A variant, where it learns, and how near it must come."""

    env: toys.Toy
    network: nn.Module
    changes: dict[str, Any]
    tolerance: float


def noisy_network(**arguments) -> QNetwork:
    return QNetwork(MLP((8,), noisy=True), A, noisy=True, **arguments)


NOTHING: dict[str, Any] = {}
SINGLE_3_STEP = {"double": False, "n_step": 3}
PER = {"prioritised": True, "priority_exponent": 0.6, "importance_transitions": 4_000}
C51 = {"categorical": True, "value_low": -2.0, "value_high": 2.0}
NO_EPSILON = {"epsilon_start": 0.0, "epsilon_end": 0.0}
DUELING_C51 = noisy_network(dueling=True, streams=(8,), atoms=21)
CASES = {
    "action": Case(toys.ActionObservationReward(), Table(), NOTHING, 1e-3),
    "climb": Case(toys.TruncatedClimb(), Table(), NOTHING, 1e-3),
    "terminated, 3 steps": Case(toys.TerminatedStream(), Table(), SINGLE_3_STEP, 1e-3),
    "prioritised": Case(toys.TruncatedClimb(), Table(), PER | SINGLE_3_STEP, 1e-3),
    "categorical": Case(toys.DelayedReward(), QNetwork(MLP((8,)), A, atoms=41), C51, 0.05),
    "noisy": Case(toys.ActionObservationReward(), noisy_network(), NOTHING, 0.1),
    "rainbow": Case(toys.DelayedReward(), DUELING_C51, PER | C51 | NO_EPSILON | {"n_step": 2}, 0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_values_are_the_closed_forms(case: Case):
    env, network, discount = case.env, case.network, 0.9
    usual = dqn.Config(
        learning_rate=0.05,
        discount=discount,
        batch_size=32,
        updates_per_rollout=20,
        capacity=1_000,
        warmup=100,
        target_period=20,
        epsilon_end=0.5,
        epsilon_transitions=1_000,
    )
    config = replace(usual, **case.changes)
    agent = dqn.make(network, config, num_envs=8)
    train = loop.make_loop(env, (), agent, loop.Config(num_envs=8, num_steps=5))
    chunk = loop.make_chunk(train.update, 100)
    state, _ = jax.jit(lambda key: chunk(train.init(key)))(jax.random.key(1))

    outputs: Any = network.apply(state.agent.learner.params, env.observations())
    q = q_learning.values(outputs, config.value_range)
    np.testing.assert_allclose(np.asarray(q), env.optimal_q(discount), atol=case.tolerance)

    best = dqn.make(network, config, greedy=True)
    values = env.optimal_q(discount)
    for obs, value in zip(env.observations(), values, strict=True):
        action, _, _ = best.act(state.agent, (), obs, jax.random.key(0))
        assert value[action] == value.max()


# Targets and losses.


def test_double_and_max_targets_by_hand():
    """The online network prefers action 1, whose target value is the smaller one.

    What follows a terminal step counts nothing, whatever it is.
    """
    params = {"params": {"Dense_0": {"kernel": jnp.array([[1.0, 2.0]])}}}
    target_params = {"params": {"Dense_0": {"kernel": jnp.array([[30.0, 20.0]])}}}
    batch = Batch(
        obs=jnp.ones((3, 1)),
        action=jnp.array([0, 1, 1]),
        return_=jnp.array([1.0, 2.0, 3.0]),
        discount=jnp.array([0.5, 0.1, 0.0]),
        next_obs=jnp.array([[1.0], [1.0], [jnp.nan]]),
    )
    key = jax.random.key(0)
    target = partial(q_learning.td_target, Table().apply, params, target_params, batch)
    double = target(key, double=True, value_range=None)
    np.testing.assert_allclose(double, [1 + 0.5 * 20, 2 + 0.1 * 20, 3])
    largest = target(jax.random.clone(key), double=False, value_range=None)
    np.testing.assert_allclose(largest, [1 + 0.5 * 30, 2 + 0.1 * 30, 3])


def test_a_distribution_after_a_terminal_step_counts_nothing():
    """Its logits are NaN; all mass is at the return of 0.5, between two atoms."""
    one, apply = jnp.ones(1), lambda params, obs, rngs: jnp.full((1, A, 3), jnp.nan)
    batch = Batch(one, jnp.zeros(1, jnp.int32), 0.5 * one, 0.0 * one, one)
    target = q_learning.td_target(apply, (), (), batch, jax.random.key(0), True, (-1.0, 1.0))
    np.testing.assert_allclose(target, [[0.0, 0.5, 0.5]], rtol=1e-6)


def test_loss_by_hand():
    """Errors 0.5 and -3 with δ = 1: (0.5²/2 + (3 - 1/2)) / 2, or with weights 1 and 0.1."""
    params = {"params": {"Dense_0": {"kernel": jnp.array([[1.0, 2.0]])}}}
    obs, zeros = jnp.ones((2, 1)), jnp.zeros(2)
    batch = Batch(obs, jnp.array([0, 1]), zeros, zeros, obs)
    target = jnp.array([0.5, 5.0])
    loss = jax.value_and_grad(q_learning.loss, has_aux=True)
    loss_args = (target, jax.random.key(0), 1.0, None)
    (value, (q, error)), grads = loss(params, Table().apply, batch, *loss_args)
    np.testing.assert_allclose(value, (0.125 + 2.5) / 2)
    np.testing.assert_allclose(q, [1.0, 2.0])
    np.testing.assert_allclose(error, [0.5, 3.0])
    np.testing.assert_allclose(arrays(grads)[0], [[0.5 / 2, -1 / 2]])
    weighted = batch._replace(weight=jnp.array([1.0, 0.1]))
    (value, (_, error)), grads = loss(params, Table().apply, weighted, *loss_args)
    np.testing.assert_allclose(value, (0.125 + 0.25) / 2)
    np.testing.assert_allclose(error, [0.5, 3.0])
    np.testing.assert_allclose(arrays(grads)[0], [[0.5 / 2, -0.1 / 2]])


@pytest.mark.parametrize("changes", [{"loss": "squared"}, {"huber_delta": 1e9}])
def test_the_squared_error_can_be_asked_for(changes):
    """½ e² of errors 0.5 and -3, weighted 1 and 0.1; the gradients are the weighted errors."""
    params = {"params": {"Dense_0": {"kernel": jnp.array([[1.0, 2.0]])}}}
    obs, zeros = jnp.ones((2, 1)), jnp.zeros(2)
    batch = Batch(obs, jnp.array([0, 1]), zeros, zeros, obs, jnp.array([1.0, 0.1]))
    delta = dqn.Config(**changes).loss_delta
    loss_args = (jnp.array([0.5, 5.0]), jax.random.key(0), delta, None)
    loss = jax.value_and_grad(q_learning.loss, has_aux=True)
    (value, _), grads = loss(params, Table().apply, batch, *loss_args)
    np.testing.assert_allclose(value, (0.125 + 0.1 * 4.5) / 2, rtol=1e-6)
    np.testing.assert_allclose(arrays(grads)[0], [[0.5 / 2, -0.3 / 2]], rtol=1e-6)


@pytest.mark.parametrize(("loss", "value"), [("huber", 1 / 3), ("squared", 10 / 4)])
def test_rare_large_rewards_count_less_than_their_mean_in_the_huber_loss(loss, value):
    """A target of 0 three times of four, else 10: where the slope is 0, 3 q = 1 or q = 10 / 4.

    An action that always pays 1 seems better by the one and worse by the other.
    """
    params = {"params": {"Dense_0": {"kernel": jnp.array([[1.0, value]])}}}
    obs, zeros = jnp.ones((5, 1)), jnp.zeros(5)
    batch = Batch(obs, jnp.array([0, 1, 1, 1, 1]), zeros, zeros, obs)
    target = jnp.array([1.0, 0.0, 0.0, 0.0, 10.0])
    loss_args = (target, jax.random.key(0), dqn.Config(loss=loss).loss_delta, None)
    slope = jax.grad(q_learning.loss, has_aux=True)(params, Table().apply, batch, *loss_args)[0]
    np.testing.assert_allclose(arrays(slope)[0], [[0.0, 0.0]], atol=1e-6)


def n_step_by_hand(rows: list[Transition], start: int, env: int, n: int, discount: float):
    """`(return, factor, next_obs)` as the definition says, one step at a time."""
    total = 0.0
    for k in range(n):
        row = rows[start + k]
        total += discount**k * float(row.reward[env])
        if row.terminated[env]:
            return total, 0.0, row.next_obs[env]
        if row.truncated[env]:
            break
    return total, discount ** (k + 1), row.next_obs[env]


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_batches_hold_n_step_targets(n):
    steps = random_rollout(0, length=9)
    # What 7 rows keep.
    rows = [jax.tree.map(lambda x, t=t: np.asarray(x)[t], steps) for t in range(2, 9)]
    ring = uniform.init(n_step.example(jnp.zeros(D)), 7, N)
    for part in (slice(0, 4), slice(4, 9)):
        ring = uniform.add(ring, jax.tree.map(lambda x, part=part: x[part], steps))

    sample = jax.jit(n_step.sample, static_argnums=(2, 3, 4))
    batch = sample(ring, jax.random.key(0), 3, 50, n, 0.8)
    assert batch.obs.shape == (3, 50, D)
    starts = {
        rows[t].obs[env].tobytes(): (t, env) for t in range(len(rows) - n + 1) for env in range(N)
    }
    sampled_starts = set()
    for obs, action, return_, factor, next_obs in zip(
        *(np.asarray(x).reshape(150, *x.shape[2:]) for x in batch[:5]), strict=True
    ):
        t, env = starts[obs.tobytes()]
        sampled_starts.add((t, env))
        want_return, want_factor, want_next = n_step_by_hand(rows, t, env, n, 0.8)
        assert action == rows[t].action[env]
        np.testing.assert_allclose((return_, factor), (want_return, want_factor), rtol=1e-5)
        np.testing.assert_array_equal(next_obs, want_next)
    assert len(sampled_starts) > 0.9 * len(starts)


def test_without_a_limit_nothing_is_clipped():
    optimizer = dqn.make_optimizer(dqn.Config(max_grad_norm=None))
    grads = {"a": jnp.array([3e8, 0.0])}
    _, state = optimizer.update(grads, optimizer.init(grads), grads)
    momentum = optax.tree.get(state, "mu")
    chex.assert_trees_all_close(momentum, {"a": jnp.array([3e7, 0.0])}, rtol=1e-6)


def test_clipping_is_by_global_norm():
    """Adam's first moment after one step is a tenth of the clipped gradient."""
    optimizer = dqn.make_optimizer(dqn.Config(max_grad_norm=1.0))
    params = {"a": jnp.zeros(2), "b": jnp.zeros(1)}
    grads = {"a": jnp.array([3.0, 0.0]), "b": jnp.array([4.0])}  # norm 5
    _, state = optimizer.update(grads, optimizer.init(params), params)
    momentum = optax.tree.get(state, "mu")
    chex.assert_trees_all_close(momentum, jax.tree.map(lambda g: 0.1 * g / 5, grads), rtol=1e-6)
    _, state = optimizer.update({"a": grads["a"] / 10, "b": grads["b"] / 10}, state, params)
    chex.assert_trees_all_close(  # shorter than the limit: untouched
        optax.tree.get(state, "mu"),
        jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g / 10, momentum, grads),
        rtol=1e-6,
    )


# Which transitions are learned from.


ONE_DRAW = dqn.Config(prioritised=True, capacity=32, batch_size=8, updates_per_rollout=1)


def test_priorities_are_the_errors_of_what_was_learned():
    """Where drawn, (|target - Q| + 1e-6)^α as NumPy has it; 1 elsewhere, and in the newest row.

    Before the warm-up is over all are 1.
    """
    steps = random_rollout(3, length=6)

    @jax.jit
    def update(state, warmup):
        config = replace(ONE_DRAW, n_step=2, priority_exponent=0.7, discount=0.8, warmup=warmup)
        agent = dqn.make(Table(), config, num_envs=N)
        return agent.update(state, steps, jax.random.key(1))

    state = init_state(dqn.make(Table(), ONE_DRAW, num_envs=N))
    waiting = np.repeat([1.0] * 6 + [0.0] * 2, N).reshape(8, N)  # six of eight rows are written
    cold, metrics = update(state, 100)
    assert_equal((cold.learner, cold.priorities.mass), (state.learner, waiting))
    assert all(np.isfinite(x) for x in arrays(metrics))

    after, _ = update(state, 0)
    mass = np.asarray(after.priorities.mass)
    kernel = np.asarray(state.learner.params["params"]["Dense_0"]["kernel"], np.float64)
    rows = [jax.tree.map(lambda x, t=t: np.asarray(x)[t], steps) for t in range(6)]
    num_drawn = 0
    for t, env in np.ndindex(5, N):
        return_, factor, next_obs = n_step_by_hand(rows, t, env, 2, 0.8)
        error = return_ + factor * (next_obs @ kernel).max()
        error -= (rows[t].obs[env] @ kernel)[rows[t].action[env]]
        expected = (abs(error) + 1e-6) ** 0.7
        assert np.isclose(mass[t, env], expected, rtol=1e-4) or mass[t, env] == 1.0
        num_drawn += mass[t, env] != 1.0
    assert 3 <= num_drawn <= 8
    np.testing.assert_array_equal(mass[5:], waiting[5:])
    assert after.priorities.largest == max(1.0, mass.max())


def test_a_minibatch_is_drawn_by_the_priorities_the_last_one_wrote():
    """One error of 5 (Huber loss 4.5) among sixteen, all others 0: an eighth of the first draw is
    a guess, the second is all of it."""
    config = replace(
        ONE_DRAW,
        warmup=0,
        batch_size=256,
        updates_per_rollout=2,
        learning_rate=1e-30,
        discount=0.0,
        priority_exponent=1.0,
        importance_start=0.0,
        importance_transitions=10**9,
    )
    agent, steps = dqn.make(Table(), config, num_envs=N), random_rollout(0, length=4)
    steps = steps._replace(reward=jnp.zeros((4, N)).at[2, 1].set(5.0))
    state = init_state(agent)
    blank = jax.tree.map(jnp.zeros_like, state.learner.params)
    state = state._replace(learner=state.learner._replace(params=blank))
    _, metrics = jax.jit(agent.update)(state, steps, jax.random.key(0))
    np.testing.assert_allclose(metrics["loss"], 4.5 * (1 / 16 + 1) / 2, rtol=0.05)


# How it acts.


def test_acting_is_epsilon_greedy():
    agent = dqn.make(Table(3), dqn.Config(), num_envs=N)
    kernel = {"params": {"Dense_0": {"kernel": jnp.array([[0.0, 2.0, 1.0]])}}}
    state = agent.init(jax.random.key(0), jnp.zeros(1))
    state = state._replace(learner=state.learner._replace(params=kernel))

    def frequencies(agent, epsilon):
        at = state._replace(epsilon=jnp.float32(epsilon))
        keys = jax.random.split(jax.random.key(3), 20_000)
        action, memory, extras = jax.vmap(lambda k: agent.act(at, (), jnp.ones(1), k))(keys)
        assert action.dtype == jnp.int32
        assert (memory, extras) == ((), ())
        return np.bincount(action, minlength=3) / len(keys)

    np.testing.assert_array_equal(frequencies(agent, 0.0), [0, 1, 0])
    np.testing.assert_allclose(frequencies(agent, 1.0), [1 / 3] * 3, atol=0.015)
    np.testing.assert_allclose(frequencies(agent, 0.3), [0.1, 0.8, 0.1], atol=0.01)
    greedy = dqn.make(Table(3), dqn.Config(), greedy=True)
    np.testing.assert_array_equal(frequencies(greedy, 1.0), [0, 1, 0])


def test_noise_explores_unless_greedy():
    config = dqn.Config(epsilon_start=0.0, epsilon_end=0.0, capacity=N)

    @jax.jit
    def act(key, keys):
        agents = [dqn.make(noisy_network(), config, greedy, num_envs=N) for greedy in (False, True)]
        state = agents[0].init(key, jnp.zeros(D))
        acts = lambda agent: lambda key: agent.act(state, (), jnp.ones(D), key)[0]
        return [jax.vmap(acts(agent))(jax.random.clone(keys)) for agent in agents]

    exploring, best = act(jax.random.key(0), jax.random.split(jax.random.key(1), 50))
    assert set(exploring.tolist()) == {0, 1}
    assert len(set(best.tolist())) == 1
