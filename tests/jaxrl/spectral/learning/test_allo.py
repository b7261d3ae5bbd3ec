"""Parts of ALLO: sampled moments, schedules, rotations, and what is refused."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from envs.grid.layouts import parse
from jaxrl.networks.mlp import MLP
from jaxrl.spectral.learning import allo, allo_state, allo_walks, encoder, objectives
from jaxrl.spectral.learning.allo_config import outputs
from jaxrl.spectral.learning.encoder import Encoder
from jaxrl.types import Transition
from tests.jaxrl.spectral.learning.allo_parts import SMALL, random_walks, training


def sampled_state(
    config: allo.Config, rollouts: list[Transition], num_states: int, network: Any = None
) -> allo_state.State:
    """An agent that remembers these rollouts; the network sees states one-hot."""
    steps, num_envs = rollouts[0].reward.shape
    network = network or Encoder(MLP((8,)), outputs(config, num_states))
    inputs = jnp.eye(num_states)
    agent = allo.make(network, config, 4, inputs, num_envs, steps)

    def remember(rollouts):
        state = agent.init(jax.random.key(3), jnp.int32(0))
        for rollout in rollouts:
            state = allo_walks.record_rollout(config, state, rollout)
        return state

    return jax.jit(remember)(rollouts)


@pytest.mark.slow
def test_minibatches_measure_the_law_without_bias():
    """The mean of 4,000 minibatches lies within five standard errors of the exact moments."""
    config = replace(SMALL, expectation="sampled", batch_size=16, capacity=240)
    network: Any = Encoder(MLP((8,)), 6)
    state = sampled_state(config, [random_walks(s, 6, 20, 6) for s in (0, 1)], 6, network)
    features = network.apply(state.learner.params, state.inputs)
    graph, weight = objectives.graph_of(allo_walks.pair_law(config, state))
    exact = objectives.exact_moments(features, graph, weight, True)

    def measure(key):
        moments = allo.measure(network, config, state, state.learner.params, key)
        return *moments[:3], moments.error * moments.other_error

    keys = jax.random.split(jax.random.key(0), 4_000)
    samples = jax.device_get(jax.jit(jax.vmap(measure))(keys))
    for rows, true in zip(samples, (*exact[:3], exact.error**2), strict=True):
        error = rows.std(axis=0) / np.sqrt(len(rows))
        assert (np.abs(rows.mean(axis=0) - true) < 5 * error + 1e-6).all()


def test_features_of_all_states_or_of_a_batch_are_the_same():
    """Rows of 9 states: 8 go through the network one by one, 9 are looked up."""
    network: Any = Encoder(MLP((8,)), 3)
    inputs = jax.random.normal(jax.random.key(0), (9, 2))
    params = network.init(jax.random.key(1), inputs[0])

    def squares(features):
        return jnp.sum(features**2 * jnp.arange(1.0, 4.0)[None]), features

    def encode_by_index(params, state):
        return squares(encoder.encode(network, params, inputs, state))

    def encode_observation(params, state):
        return squares(encoder.encode(network, params, (), inputs[state]))

    def apply_network(params, state):
        return squares(network.apply(params, inputs[state]))

    for batch in (8, 9):
        state = jnp.asarray(np.random.default_rng(batch).integers(0, 9, batch), jnp.int32)
        grads_by_index, grads_by_observation, true = (
            jax.jit(jax.grad(function, has_aux=True))(params, state)
            for function in (encode_by_index, encode_observation, apply_network)
        )
        chex.assert_trees_all_close(grads_by_index, true, rtol=1e-4, atol=1e-4)
        chex.assert_trees_all_close(grads_by_observation, true, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_outputs_are_permuted_only_where_due(key):
    network: Any = Encoder(MLP((8,)), 6)
    inputs = jnp.eye(9)
    agent = allo.make(network, SMALL, 4, inputs, 1, 5)
    state = agent.init(key, jnp.int32(0))
    before = allo_state.features(network, replace(SMALL, num_features=6), state)
    for seed, due in ((0, False), (1, True), (2, True)):
        learner = allo.permute_outputs(state.learner, jax.random.key(seed), jnp.array(due))
        after = np.asarray(network.apply(learner.params, inputs))
        order = [int(np.argmin(np.abs(before - after[:, [i]]).sum(axis=0))) for i in range(6)]
        assert sorted(order) == list(range(6))
        assert (order != list(range(6))) == due
        np.testing.assert_allclose(after, np.asarray(before)[:, order], rtol=1e-5, atol=1e-6)
        chex.assert_trees_all_equal(learner._replace(params=()), state.learner._replace(params=()))


def test_a_policy_of_chance(key):
    agent = allo.make(Encoder(MLP((8,)), 6), SMALL, 3, jnp.eye(9), 1, 5)
    act = lambda key: agent.act(None, agent.memory(), jnp.int32(0), key)[0]
    actions = np.asarray(jax.vmap(act)(jax.random.split(key, 3_000)))
    assert stats.chisquare(np.bincount(actions, minlength=3)).pvalue > 1e-3


@pytest.mark.parametrize("schedule", ["budget", "constant", "measured"])
def test_the_step_size_falls_along_a_cosine_or_stays(schedule):
    config = replace(SMALL, learning_rate=0.1, gradient_steps=8, fall_steps=4, schedule=schedule)
    found_at = 2 if schedule == "measured" else allo_state.NEVER
    size = lambda t: float(allo.step_size(config, jnp.int32(t), jnp.int32(found_at)))
    cosine = lambda share: 0.5 * (1 + np.cos(np.pi * np.clip(share, 0, 1)))
    expected = {
        "budget": [0.1 * cosine(t / 8) for t in range(10)],
        "constant": [0.1] * 10,
        "measured": [0.1 * cosine(t / 8) * cosine((t - 2) / 4) for t in range(10)],
    }[schedule]
    np.testing.assert_allclose([size(t) for t in range(10)], expected, rtol=1e-4, atol=1e-7)
    state: Any = SimpleNamespace(learner=SimpleNamespace(found_at=jnp.int32(found_at)))
    is_settled = []
    for t in range(10):
        state.learner.steps = jnp.int32(t)
        is_settled.append(bool(allo_state.is_settled(config, state)))
    assert is_settled.index(True) == (6 if schedule == "measured" else 8)


def test_spare_features_are_no_more_than_states():
    assert outputs(SMALL) == 6
    assert outputs(SMALL, 5) == 5
    assert outputs(SMALL, 50) == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_features": 10}, "num_features is 10, but there are 9 states, .* ask for 9 or fewer"),
        ({"num_features": 0}, "num_features is 0, expected a number at least 1"),
        ({"spare_features": -1}, "spare_features is -1, expected a number at least 0"),
        ({"batch_size": 0}, "batch_size is 0, expected a number at least 1"),
        ({"capacity": 0}, "capacity is 0, expected a number at least 1"),
        ({"steps_per_update": 0}, "steps_per_update is 0, expected a number at least 1"),
        ({"turn_every": -1}, "turn_every is -1, expected a number at least 0"),
        ({"turn_pairs": 0}, "turn_pairs is 0, expected a number at least 1"),
        ({"schedule": "measured", "turn_every": 0}, "schedule measured needs rotations .* choose"),
        (
            {"turn_every": 15},
            "steps_per_update is 20, expected a multiple of turn_every=15",
        ),
        (
            {"turn_every": 40},
            "steps_per_update is 20, expected a multiple of turn_every=40",
        ),
        ({"discount": 1}, "discount is 1, expected a number at least 0.0 and below 1.0"),
        ({"discount": -0.1}, "discount is -0.1, expected a number at least 0.0 and below 1"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(change, message):
    config = replace(SMALL, **change)
    with pytest.raises(ValueError, match=message) as error:
        allo.make(Encoder(MLP((8,)), 6), config, 4, jnp.eye(9))
    assert "\n" not in str(error.value)


def test_exact_expectations_need_numbered_states():
    with pytest.raises(ValueError, match="needs numbered states: choose expectation sampled"):
        allo.make(Encoder(MLP((8,)), 6), SMALL, 4)


@pytest.mark.slow
def test_states_that_were_never_left_do_not_end_a_run():
    """Two walks in the left of a corridor: one cell is only ever entered, and four are never seen.

    What the turned features miss is that of float64, over the states that were left.
    """
    config = replace(SMALL, steps_per_update=10, schedule="measured")
    state = jnp.array([[0, 4], [1, 3], [0, 4], [1, 3]])
    next_state = jnp.array([[1, 3], [0, 4], [1, 3], [2, 2]])
    no = jnp.zeros((4, 2), bool)
    ends = no.at[-1].set(True)
    zeros = jnp.zeros((4, 2), jnp.int32)
    rollout = Transition(state, zeros, jnp.zeros((4, 2)), next_state, no, ends, ())
    corridor = training(config, parse("........."), (8,), 2, 4)
    start = corridor.agent.init(jax.random.key(0), jnp.int32(0))
    network = corridor.network

    @jax.jit
    def record_and_rotate(start, rollout):
        new_state = allo_walks.record_rollout(config, start, rollout)
        return new_state, *allo.rotate_to_ritz(
            network, config, new_state, new_state.learner, jax.random.key(1)
        )

    after, learner, error = record_and_rotate(start, rollout)
    law = np.asarray(allo_walks.pair_law(config, after), float)
    weight = law.sum(axis=1)
    np.testing.assert_array_equal(weight > 0, [True, True, False, True, True] + 4 * [False])
    np.testing.assert_array_equal(allo_walks.visits(config, after) > 0, weight > 0)
    u = np.asarray(network.apply(learner.params, after.inputs), float)
    was_left = weight > 0
    product = ((weight + law.sum(axis=0))[:, None] * u - (law + law.T) @ u)[was_left] / 2
    values = -np.diag(learner.multipliers.duals) / 4
    miss = product / weight[was_left, None] - values * u[was_left]
    residual = np.sqrt(np.sum(weight[was_left, None] * miss**2, axis=0))
    expected = objectives.eigenvector_errors(jnp.asarray(residual), jnp.asarray(values))
    np.testing.assert_allclose(error, expected, rtol=0.05, atol=1e-3)
    final, metrics = jax.jit(partial(corridor.agent.update, key=jax.random.key(2)))(start, rollout)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((final.learner, metrics)))
