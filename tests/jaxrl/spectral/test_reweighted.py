"""Importance weights of recorded walks against an enumeration of all trajectories.

Every sequence of actions occurs as often as the behaviour policy takes it, so that weighted sums
must be the law of the uniform walk exactly.
"""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.networks.mlp import MLP
from jaxrl.spectral import laplacian, pairs, reweighted
from jaxrl.spectral.learning import allo, allo_walks, objectives, pair_replay
from jaxrl.spectral.learning.encoder import Encoder
from jaxrl.types import Transition
from tests.jaxrl.spectral.learning.allo_parts import SMALL

T, S, A, DISCOUNT = 3, 3, 2, 0.7
NEXT = np.array([[1, 2], [2, 2], [0, 1]])  # successor of state and action, not symmetric
EIGHTHS = np.array([[6, 2], [1, 7], [4, 4]])  # b(a|s) in eighths


def enumerate_trajectories() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`(state, next_state, done, ratio)` `[T, N]`: all trajectories, as often as b takes them."""
    rows = []
    for start, actions in product(range(S), product(range(A), repeat=T)):
        state, transitions, ratio, count = start, [], [], 1
        for action in actions:
            count *= EIGHTHS[state, action]
            ratio.append(np.log(0.5 / (EIGHTHS[state, action] / 8)))
            transitions.append((state, NEXT[state, action]))
            state = NEXT[state, action]
        first, second = zip(*transitions, strict=True)
        rows += [(first, second, ratio)] * count
    state, next_state, ratio = (np.array(x).T for x in zip(*rows, strict=True))
    done = np.zeros(state.shape, bool)
    done[-1] = True
    return state.astype(np.int32), next_state.astype(np.int32), done, ratio.astype(np.float32)


def chain_of(policy: np.ndarray) -> np.ndarray:
    P = np.zeros((S, S))
    for state, action in np.ndindex(S, A):
        P[state, NEXT[state, action]] += policy[state, action]
    return P


UNIFORM = laplacian.sampled_pairs(chain_of(np.full((S, A), 0.5)), np.full(S, 1 / 3), T, DISCOUNT)
BEHAVIOUR = laplacian.sampled_pairs(chain_of(EIGHTHS / 8), np.full(S, 1 / 3), T, DISCOUNT)


@pytest.fixture(scope="module")
def rollout():
    return tuple(map(jnp.asarray, enumerate_trajectories()))


def test_the_weighted_chain_gives_the_law_of_the_uniform_walk(rollout):
    walk = reweighted.record(reweighted.empty_walk(S, T), *rollout)
    law = reweighted.pair_distribution(walk, DISCOUNT)
    np.testing.assert_allclose(law, UNIFORM, atol=2e-6)
    assert int(walk.visits.sum()) == rollout[0].size
    assert int(walk.starts.sum()) == rollout[0].shape[1]
    assert np.abs(UNIFORM - BEHAVIOUR).max() > 0.02  # there is something to correct


@pytest.mark.slow
def test_without_weights_it_is_the_law_of_the_behaviour(rollout):
    state, next_state, done, ratio = rollout
    walk = reweighted.record(reweighted.empty_walk(S, T), state, next_state, done, 0 * ratio)
    np.testing.assert_allclose(reweighted.pair_distribution(walk, DISCOUNT), BEHAVIOUR, atol=2e-6)
    plain = pairs.record(pairs.empty_walk(S, T), state, next_state, done)
    np.testing.assert_allclose(pairs.pair_distribution(plain, DISCOUNT), BEHAVIOUR, atol=2e-6)
    counts = pairs.add_counts(pairs.empty_counts(S), state, next_state, done, DISCOUNT)
    np.testing.assert_allclose(counts.table / counts.table.sum(), BEHAVIOUR, atol=2e-6)


@pytest.mark.slow
def test_weights_of_recorded_pairs_sum_to_the_law_of_the_uniform_walk(rollout):
    """All pairs of times of all trajectories, each with its probability times its weight."""
    state, next_state, done, ratio = rollout
    walk = reweighted.record(reweighted.empty_walk(S, T), *rollout)
    visit = reweighted.visit_ratio(walk)
    total, left = reweighted.cumulative_ratio(done, ratio), pairs.transitions_left(done)
    table, state_weights = np.zeros((S, S)), np.zeros(S)
    for i in range(T):
        own = visit[state[i], left[i] - 1]
        state_weights += np.bincount(state[i], own, minlength=S)
        for j in range(i, T):
            weight = reweighted.pair_weights(total[i], total[j], ratio[i], own)
            chance = pairs.offset_law(left[i], jnp.full_like(left[i], j - i + 1), DISCOUNT)
            np.add.at(table, (state[i], next_state[j]), np.asarray(weight * chance, float))
    np.testing.assert_allclose(table / table.sum(), UNIFORM, atol=5e-6)
    np.testing.assert_allclose(state_weights / state_weights.sum(), UNIFORM.sum(axis=1), atol=5e-6)


@pytest.mark.slow
def test_sampled_pairs_have_these_weights(rollout):
    state, next_state, done, ratio = rollout
    ring = pair_replay.init(state[0, 0], state.size, state.shape[1], T, weighted=True)
    ring = pair_replay.add(ring, state, next_state, done, ratio)
    walk = reweighted.record(reweighted.empty_walk(S, T), *rollout)
    visit, count = reweighted.visit_ratio(walk), 200_000
    first, second, weight = pair_replay.weighted_pairs(
        ring, jax.random.key(0), count, DISCOUNT, visit
    )
    table = np.zeros((S, S))
    np.add.at(table, (np.asarray(first), np.asarray(second)), np.asarray(weight, float))
    spread = float(jnp.std(weight)) / np.sqrt(count)
    np.testing.assert_allclose(table / table.sum(), UNIFORM, atol=6 * spread)
    same = pair_replay.sample_pairs(ring, jax.random.key(0), count, DISCOUNT)
    np.testing.assert_array_equal(first, same[0])
    np.testing.assert_array_equal(second, same[1])
    states, weight = pair_replay.weighted_states(ring, jax.random.key(1), count, visit)
    share = np.bincount(states, np.asarray(weight, float), minlength=S)
    np.testing.assert_allclose(share / share.sum(), UNIFORM.sum(axis=1), atol=0.01)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("starts", "room"), [((2, 0, 1, 2), 3), ((0, 1, 2), 5)], ids=["overwritten", "part written"]
)
def test_weights_are_those_of_all_rollouts_that_are_remembered(rollout, starts, room):
    """A rollout for the trajectories from each state: together, and only so, they are all.

    The replay has room for so many rollouts.
    """
    num_envs = rollout[0].shape[1] // S
    sampled = replace(SMALL, expectation="sampled", importance=True, num_features=2)
    config = replace(sampled, capacity=room * T * num_envs)
    walk = lambda obs, key: (jnp.int32(0), jnp.float32(0))
    network = Encoder(MLP((8,)), 3)
    agent = allo.make(network, config, A, jnp.eye(S), num_envs, T, walk)

    @jax.jit
    def remember():
        state = agent.init(jax.random.key(0), jnp.int32(0))
        for start in starts:
            columns = slice(start * num_envs, (start + 1) * num_envs)
            first, second, done, ratio = (x[:, columns] for x in rollout)
            zeros = jnp.zeros(first.shape)
            part = Transition(first, zeros, zeros, second, done, done & False, ratio)
            state = allo_walks.record_rollout(config, state, part)
        return state

    state = remember()
    data = state.walk.data
    weight = jnp.where(data.left > 0, state.law[data.state, data.left - 1], 0)
    share = np.bincount(data.state.ravel(), np.asarray(weight, float).ravel(), minlength=S)
    np.testing.assert_allclose(share / share.sum(), UNIFORM.sum(axis=1), atol=2e-6)


@pytest.mark.slow
def test_moments_with_weights_are_those_of_repeated_samples():
    rng = np.random.default_rng(0)
    u = jnp.asarray(rng.normal(size=(4, 5, 2)), jnp.float32)  # pairs, and two batches of states
    times = rng.integers(0, 4, (3, 5))
    pair_weights, weights_a, weights_b = (jnp.asarray(x, jnp.float32) * 7 for x in times)
    moments = objectives.weighted_moments(
        (u[0], u[1]), (u[2], u[3]), (pair_weights, weights_a, weights_b), True
    )
    copies = [jnp.asarray(np.repeat(u[i], times[j], axis=0)) for i, j in enumerate((0, 0, 1, 2))]
    spread = jnp.mean((copies[0] - copies[1]) ** 2, axis=0)
    np.testing.assert_allclose(moments.spread, spread, rtol=1e-5)
    for error, x in zip((moments.error, moments.other_error), copies[2:], strict=True):
        np.testing.assert_allclose(error, x.T @ x / len(x) - np.eye(2), atol=1e-5)
    whole = objectives.sampled_eigenpairs(copies[0], copies[1])
    part = objectives.sampled_eigenpairs(u[0], u[1], jnp.asarray(times[0], jnp.float32))
    np.testing.assert_allclose(whole[1], part[1], rtol=1e-4)


def test_shares_of_no_weights_are_equal_and_the_effective_share_counts():
    np.testing.assert_allclose(objectives.shares(jnp.zeros(4)), 0.25)
    assert float(reweighted.effective_share(jnp.ones(8))) == pytest.approx(1)
    assert float(reweighted.effective_share(jnp.eye(8)[0])) == pytest.approx(1 / 8)
    assert float(reweighted.effective_share(jnp.zeros(8))) == 0
