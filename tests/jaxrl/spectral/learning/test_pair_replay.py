"""The replay of walks, against the transitions that went into it."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.spectral import pairs
from jaxrl.spectral.learning import pair_replay


def fill_ring(state, next_state, done, capacity: int, steps: int):
    """The ring after whole rollouts `[R T, N]` of `steps` each."""

    @jax.jit
    def remember(state, next_state, done):
        ring = pair_replay.init(jnp.int32(0), capacity, state.shape[1], steps)
        for start in range(0, len(state), steps):
            rows = slice(start, start + steps)
            ring = pair_replay.add(ring, state[rows], next_state[rows], done[rows])
        return ring

    return remember(*map(jnp.asarray, (state, next_state, done)))


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [2 * 8 * 6 + 7, 10**4])
def test_pairs_never_cross_trajectories_and_follow_the_law(capacity):
    """The state is the number of the transition, so a pair says where it begins and ends.

    Rings that keep three of five rollouts, and one of which most is never written.
    """
    steps, num_envs, rollouts, discount = 8, 6, 5, 0.7
    rng = np.random.default_rng(0)
    times = np.arange(rollouts * steps, dtype=np.int32)[:, None] * num_envs
    number = times + np.arange(num_envs, dtype=np.int32)  # of each transition [5 T, N]
    done = rng.random(number.shape) < 0.15
    total = number.size
    ring = fill_ring(number, number, done, capacity, steps)
    num_kept = min(rollouts, -(-capacity // (num_envs * steps)))
    ends = done.copy()
    ends[steps - 1 :: steps] = True  # a rollout ends trajectories
    draw = jax.jit(pair_replay.sample_pairs, static_argnums=2)
    first, last = map(np.asarray, draw(ring, jax.random.key(1), 20_000, discount))
    start_counts = Counter(first.tolist())
    assert set(start_counts) == set(range(total - num_kept * steps * num_envs, total))
    count = num_kept * steps * num_envs
    assert stats.chisquare(list(start_counts.values())).pvalue > 1e-3
    np.testing.assert_array_equal((last - first) % num_envs, 0)
    row, env = np.divmod(first, num_envs)
    offset = (last - first) // num_envs + 1
    left = np.asarray(pairs.transitions_left(jnp.asarray(ends)))[row, env]
    assert (offset >= 1).all()
    assert (offset <= left).all()
    for n in (2, 5, 8):
        expected = discount ** np.arange(n) / np.sum(discount ** np.arange(n))
        offset_counts = np.bincount(offset[left == n], minlength=n + 1)[1:]
        assert stats.chisquare(offset_counts, expected * offset_counts.sum()).pvalue > 1e-3
    states = np.asarray(
        jax.jit(pair_replay.sample_states, static_argnums=2)(ring, jax.random.key(2), 20_000)
    )
    assert set(states.tolist()) == set(start_counts)
    visits = np.asarray(pair_replay.visits(ring, total))
    assert visits.sum() == count
    assert visits[:10].sum() == (10 if num_kept == rollouts else 0)


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [2 * 6 * 20, 10**4])
def test_the_law_of_sampled_pairs_is_that_of_what_the_ring_holds(capacity):
    """The last two of three rollouts, or all three and many rows that nothing was written to."""
    rng = np.random.default_rng(0)
    state = rng.integers(0, 5, (18, 20)).astype(np.int32)
    next_state = (state + rng.integers(0, 3, state.shape)).astype(np.int32) % 5
    done = rng.random(state.shape) < 0.1
    ring = fill_ring(state, next_state, done, capacity, 6)
    first = 6 if capacity < state.size else 0
    begins = range(first, 18, 6)
    one, two, ends = (
        jnp.asarray(np.concatenate([x[t : t + 6] for t in begins], axis=1))
        for x in (state, next_state, done)
    )
    counts = np.asarray(pairs.count(one, two, ends, 0.9, 5))
    np.testing.assert_allclose(pair_replay.law(ring, 0.9, 5), counts / counts.sum(), atol=1e-6)
    visits = np.bincount(np.ravel(state[first:]), minlength=5)
    np.testing.assert_array_equal(pair_replay.visits(ring, 5), visits)
