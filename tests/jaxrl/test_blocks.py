"""Blocks: what is drawn from each, against plain Python, and what is looked up within them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl import blocks
from jaxrl.losses import minibatches, n_step
from jaxrl.replay import prioritised, uniform
from jaxrl.spectral.learning import pair_replay
from jaxrl.types import Transition

K, N, R = 3, 12, 7
EACH = N // K


def block_indices(random: np.random.Generator, *shape: int, size: int = N) -> np.ndarray:
    """Indices below `size` whose last axis is by block."""
    per_block = shape[-1] // K
    own = random.integers(0, size // K, (*shape[:-1], K, per_block))
    return (own + np.arange(K)[:, None] * (size // K)).reshape(shape).astype(np.int32)


@pytest.mark.parametrize("trailing", [(), (2,)])
def test_entries_are_those_of_the_whole_array(trailing):
    random = np.random.default_rng(0)
    x = jnp.asarray(random.normal(size=(R, N, *trailing)))
    row, env = random.integers(0, R, (4, 2 * K)), block_indices(random, 2 * K)
    env = np.broadcast_to(env, row.shape)
    for count in (1, K):
        entries = blocks.take(x, (jnp.asarray(row), jnp.asarray(env)), 1, count)
        np.testing.assert_array_equal(entries, np.asarray(x)[row, env])
        entries = blocks.take(x, (None, jnp.asarray(env[0])), 1, count)
        np.testing.assert_array_equal(entries, np.asarray(x)[:, env[0]])
        entries = blocks.take(x.swapaxes(0, 1), (jnp.asarray(env[0]),), 0, count)
        np.testing.assert_array_equal(entries, np.asarray(x).swapaxes(0, 1)[env[0]])


def test_rows_of_the_own_block():
    random = np.random.default_rng(1)
    x, row = random.normal(size=(R, N)).astype(np.float32), random.integers(0, R, 2 * K)
    block_rows = blocks.take(jnp.asarray(x), (jnp.asarray(row), None), 1, K)
    expected = [x[row[i], i // 2 * EACH : (i // 2 + 1) * EACH] for i in range(2 * K)]
    np.testing.assert_array_equal(block_rows, expected)


def test_entries_are_put_where_they_are_found():
    random = np.random.default_rng(2)
    x, new = random.normal(size=(R, N)).astype(np.float32), jnp.arange(float(N))
    row, env = random.permutation(N) % R, np.arange(N)
    expected = x.copy()
    expected[row, env] = new
    for count in (1, K):
        updated = blocks.put(jnp.asarray(x), (jnp.asarray(row), jnp.asarray(env)), new, 1, count)
        np.testing.assert_array_equal(updated, expected)


def test_a_rollout_is_flattened_block_by_block():
    rollout = np.arange(R * N * 2).reshape(R, N, 2)
    batch = blocks.flatten(jnp.asarray(rollout), K)
    flat = np.asarray(batch.data)
    assert (batch.blocks, batch.size) == (K, R * N)
    for k in range(K):
        own = rollout[:, k * EACH : (k + 1) * EACH]
        np.testing.assert_array_equal(flat[k * R * EACH : (k + 1) * R * EACH], own.reshape(-1, 2))
    one_block = blocks.flatten(jnp.asarray(rollout), 1).data
    np.testing.assert_array_equal(one_block, rollout.reshape(-1, 2))
    with pytest.raises(ValueError, match="num_envs is 12, blocks is 5"):
        blocks.flatten(jnp.asarray(rollout), 5)


def visited_indices(key, num_epochs, num_minibatches, group=1, size=24):
    """What each step sees of a batch by block, `[E, M, K, B / M / K]`."""
    step = lambda carry, minibatch: (carry, minibatch.data)
    batch = blocks.BlockBatch(jnp.arange(size), K)
    sizes = (num_epochs, num_minibatches, group)
    run = lambda key: minibatches.epochs(step, (), batch, key, *sizes)[1]
    return np.asarray(jax.jit(run)(key)).reshape(num_epochs, num_minibatches, K, -1)


def test_every_minibatch_has_an_equal_part_of_every_block(key):
    indices = visited_indices(key, 5, 4)
    np.testing.assert_array_equal(
        indices // 8, np.broadcast_to(np.arange(K)[:, None], indices.shape)
    )
    sorted_indices = np.sort(indices.swapaxes(1, 2).reshape(5, K, 8), axis=-1)
    np.testing.assert_array_equal(
        sorted_indices, np.broadcast_to(np.arange(24).reshape(K, 8), sorted_indices.shape)
    )
    orders = indices.swapaxes(1, 2).reshape(5 * K, 8) % 8
    assert len({tuple(order) for order in orders}) == 5 * K  # each block has its own


def test_blocks_are_shuffled_fairly_and_independently():
    places = visited_indices(jax.random.key(1), 6_000, 2).swapaxes(1, 2).reshape(6_000, K, 8) % 8
    for place in places.reshape(6_000, -1).T:
        assert stats.chisquare(np.bincount(place, minlength=8)).pvalue > 1e-4
    pair_counts = np.bincount(places[:, 0, 0] * 8 + places[:, 1, 0], minlength=64)
    assert stats.chisquare(pair_counts).pvalue > 1e-4


def test_groups_stay_within_their_block(key):
    indices = visited_indices(key, 3, 2, group=2)
    np.testing.assert_array_equal(indices[..., 1::2], indices[..., ::2] + 1)
    assert np.all(indices[..., ::2] % 2 == 0)


def test_refuses_blocks_that_cannot_be_split(key):
    with pytest.raises(ValueError, match="of 8 transitions of each of 3 blocks cannot be split"):
        visited_indices(key, 1, 3)
    with pytest.raises(ValueError, match="of 4 transitions of each of 3 blocks cannot be made of"):
        visited_indices(key, 1, 2, group=3)


def ring_after(rows: int) -> uniform.Replay:
    """A ring whose observations and rewards name the step and the environment."""
    ring = uniform.init(n_step.example(jnp.zeros(1)), R, N, K)
    for t in range(rows):
        name = (t * N + jnp.arange(N, dtype=jnp.float32))[None]  # [1, N]
        no = jnp.zeros((1, N), bool)
        action = jnp.zeros((1, N), jnp.int32)
        steps = Transition(name[..., None], action, name, name[..., None], no, no, ())
        ring = uniform.add(ring, steps)
    return ring


@pytest.mark.parametrize("rows", [4, 10])
def test_minibatches_from_replay_are_uniform_in_equal_parts(rows):
    """Every step that may be drawn is as likely; a return holds the rewards that followed it."""
    n, batches, size = 2, 500, 4 * K
    draw = jax.jit(lambda ring, key: n_step.sample(ring, key, batches, size, n, 0.5))
    batch = jax.tree.map(np.asarray, draw(ring_after(rows), jax.random.key(0)))
    t, env = np.divmod(batch.obs[..., 0].astype(int), N)
    assert t.shape == (batches, size)
    np.testing.assert_array_equal(env // EACH, np.broadcast_to(np.arange(size) // 4, t.shape))
    first = max(rows - R, 0)
    counts = np.bincount(((t - first) * N + env).reshape(-1))
    assert len(counts) == (rows - 1 - first) * N
    assert stats.chisquare(counts).pvalue > 1e-3
    np.testing.assert_allclose(batch.return_, t * N + env + 0.5 * ((t + 1) * N + env))
    np.testing.assert_allclose(batch.next_obs[..., 0], (t + 1) * N + env)
    np.testing.assert_allclose(batch.discount, 0.25)


@pytest.mark.slow
def test_windows_end_with_their_episode_in_every_block():
    """Windows are those without blocks: the same indices looked up in the whole ring."""
    ring = ring_after(10)
    ended = jnp.asarray(np.random.default_rng(0).random((R, N)) < 0.3)
    ring = replace(ring, data=ring.data._replace(terminated=ended))
    window = uniform.sample(ring, jax.random.key(0), 200 * K, 3)
    end = np.asarray(window.data.terminated)
    for column in range(200 * K):
        at = int(np.argmax(end[:, column])) if end[:, column].any() else 2
        np.testing.assert_array_equal(window.mask[:, column], np.arange(3) <= at)


@pytest.mark.slow
def test_pairs_are_of_one_walk_of_their_block():
    ring = pair_replay.init(jnp.zeros((), jnp.int32), R * N, N, R, blocks=K)
    name = jnp.arange(R * N).reshape(R, N)
    ring = pair_replay.add(ring, name, name, jnp.zeros((R, N), bool))
    draw = jax.jit(lambda key: pair_replay.sample_pairs(ring, key, 2_000 * K, 0.9))
    (first, env), (last, same) = (np.divmod(x, N) for x in draw(jax.random.key(0)))
    np.testing.assert_array_equal(env, same)
    np.testing.assert_array_equal(env // EACH, np.arange(2_000 * K) // 2_000)
    assert np.all(last >= first)  # here a transition leads from its name to itself
    assert stats.chisquare(np.bincount(first * N + env, minlength=R * N)).pvalue > 1e-3
    states = pair_replay.sample_states(ring, jax.random.key(1), 2_000 * K)
    np.testing.assert_array_equal(states % N // EACH, np.arange(2_000 * K) // 2_000)


def test_batches_are_joined_and_dealt_in_each_block():
    one, two = np.arange(2 * K), 100 + np.arange(3 * K)
    joined = blocks.join((jnp.asarray(one), jnp.asarray(two)), K)
    expected = [[*one[2 * k : 2 * k + 2], *two[3 * k : 3 * k + 3]] for k in range(K)]
    np.testing.assert_array_equal(joined.data, np.reshape(expected, -1))
    np.testing.assert_array_equal(blocks.deal(joined, 5), np.transpose(expected))


def slow_draw(mass: np.ndarray, valid: np.ndarray, share: np.ndarray) -> list[tuple]:
    """`(row, env, probability)` of each draw by block, in float64: one cumulative sum at a time."""
    draws, per_block = [], len(share) // K
    for i, (of_row, of_env) in enumerate(share.astype(np.float64)):
        k = i // per_block
        own = np.where(valid[:, None], mass, 0.0)[:, k * EACH : (k + 1) * EACH].astype(np.float64)
        rows = np.cumsum(own.sum(axis=1))
        row = int(np.searchsorted(rows, of_row * rows[-1], side="right"))
        within = np.cumsum(own[row])
        env = int(np.searchsorted(within, of_env * within[-1], side="right"))
        draws.append((row, k * EACH + env, own[row, env] / own.sum() / K))
    return draws


@pytest.mark.slow
def test_priorities_are_drawn_from_in_each_block_as_by_a_slow_program():
    """And the importance weights are (n P)^-β over the largest, with P of the mixture."""
    random = np.random.default_rng(0)
    mass = random.gamma(0.5, size=(R, N)).astype(np.float32)
    mass[:, :EACH] *= 100.0  # blocks of unlike sums
    mass[2, EACH:] = 0.0
    ring = ring_after(R + 3)  # head at 3; with windows of 2 steps the newest row, 2, is no start
    valid = np.arange(R) != 2
    priorities = prioritised.Priorities(jnp.asarray(mass), jnp.float32(mass.max()), K)
    shares = prioritised.shares(priorities, jax.random.key(0), 40, 8 * K)
    parts = np.floor(np.asarray(shares)[..., 0] * 8)
    np.testing.assert_array_equal(parts, np.broadcast_to(np.arange(8 * K) % 8, parts.shape))
    draw = jax.jit(lambda share: prioritised.draw(priorities, ring, share, 2))
    sums = jnp.sum(prioritised.row_masses(priorities, ring, 2), axis=1)
    num_different = 0
    for share in shares:
        row, env, drawn_mass = draw(share)
        expected = slow_draw(mass, valid, np.asarray(share))
        num_different += sum((r, e) != x[:2] for r, e, x in zip(row, env, expected, strict=True))
        np.testing.assert_array_equal(drawn_mass, mass[row, env])
        np.testing.assert_array_equal(env // EACH, np.arange(8 * K) // 8)
        block_mass = np.where(valid[:, None], mass, 0.0).reshape(R, K, EACH).sum((0, 2))
        chance = mass[row, env].astype(np.float64) / block_mass[np.asarray(env) // EACH] / K
        weights = (valid.sum() * N * chance) ** -0.6
        actual = prioritised.importance_weights(drawn_mass, 0.6, sums)
        np.testing.assert_allclose(actual, weights / weights.max(), rtol=1e-4)
    assert num_different <= 1  # where a share falls on the border of two steps, rounding decides


@pytest.mark.slow
def test_weighted_draws_from_blocks_estimate_the_mean_of_all_steps():
    """At β = 1 the weights undo the mixture: Σ w x / Σ w is the mean of x over all steps."""
    random = np.random.default_rng(3)
    mass = random.gamma(2.0, size=(R, N)).astype(np.float32)
    mass[:, :EACH] *= 10.0
    x = random.normal(size=(R, N)) + np.arange(N)
    priorities = prioritised.Priorities(jnp.asarray(mass), jnp.float32(1.0), K)
    ring = ring_after(R)
    share = prioritised.shares(priorities, jax.random.key(1), 1, 30_000 * K)[0]
    row, env, drawn_mass = prioritised.draw(priorities, ring, share)
    sums = jnp.sum(prioritised.row_masses(priorities, ring), axis=1)
    weight = np.asarray(prioritised.importance_weights(drawn_mass, 1.0, sums), np.float64)
    estimate = np.sum(weight * x[row, env]) / np.sum(weight)
    spread = np.sqrt(np.sum((weight * (x[row, env] - x.mean())) ** 2)) / np.sum(weight)
    assert abs(estimate - x.mean()) < 4 * spread
    assert spread < 0.05


def test_priorities_are_updated_in_each_block():
    random = np.random.default_rng(4)
    mass = random.random((R, N)).astype(np.float32)
    priorities = prioritised.Priorities(jnp.asarray(mass), jnp.float32(1.0), K)
    row, env = np.arange(2 * K) % R, block_indices(random, 2 * K)
    new = np.array([2.0, np.nan, 3.0, np.inf, 5.0, 0.5], np.float32)
    after = prioritised.update(priorities, jnp.asarray(row), jnp.asarray(env), jnp.asarray(new))
    for i in np.flatnonzero(np.isfinite(new)):
        mass[row[i], env[i]] = new[i]
    np.testing.assert_array_equal(after.mass, mass)
    assert after.largest == 5.0


def test_what_is_written_keeps_its_blocks():
    """So a run, a resumed one and one of many members draw alike: it is no argument of a draw."""
    ring = ring_after(2)
    priorities = prioritised.add(prioritised.init(ring), ring, 2)
    assert (ring.blocks, priorities.blocks) == (K, K)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(ring)]
    assert paths[-2:] == [".head", ".size"]
    assert all(path.startswith(".data.") for path in paths[:-2])  # which checkpoints are keyed by
    with pytest.raises(ValueError, match="num_envs is 12, blocks is 5"):
        uniform.init(n_step.example(jnp.zeros(1)), R, N, 5)
