"""Pairs against plain Python: loops over all starts and offsets, and the law term by term."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.spectral import laplacian, pairs
from tests.jaxrl.extremes import single

DISCOUNTS = [0.0, 0.2, 0.9, 1.0]
ALMOST_ONE = np.float32(1 - 2**-24)


def law(n: int, discount: float) -> list[float]:
    """p(k | n) for k = 1..n, as shares of a sum."""
    shares = [discount ** (k - 1) for k in range(1, n + 1)]
    return [share / sum(shares) for share in shares]


def random_walks(steps: int, num_envs: int, num_states: int, ending: float = 0.0, seed: int = 0):
    """State, next state and done `[T, N]`; an ending starts anew from a random state."""
    rng = np.random.default_rng(seed)
    state, next_state = np.zeros((2, steps, num_envs), np.int32)
    done = rng.random((steps, num_envs)) < ending
    at = rng.integers(0, num_states, num_envs)
    for t in range(steps):
        state[t] = at
        at = (at + rng.integers(0, 3, num_envs)) % num_states  # uneven, and one way
        next_state[t] = at
        at = np.where(done[t], rng.integers(0, num_states, num_envs), at)
    return jnp.asarray(state), jnp.asarray(next_state), jnp.asarray(done)


def count_by_loops(state, next_state, done, discount: float, num_states: int) -> np.ndarray:
    out = np.zeros((num_states, num_states))
    steps, num_envs = state.shape
    state, next_state, done = (np.asarray(x) for x in (state, next_state, done))
    for i in range(num_envs):
        for t in range(steps):
            n = 1
            while not done[t + n - 1, i] and t + n < steps:
                n += 1
            for k, p in enumerate(law(n, discount), start=1):
                out[state[t, i], next_state[t + k - 1, i]] += p
    return out


def test_remaining_ends_at_done_and_at_the_last_row():
    done = jnp.array([[0, 0, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 1]], bool).T
    expected = [[3, 2, 1, 2, 1], [1] * 5, [5, 4, 3, 2, 1], [2, 1, 3, 2, 1]]
    left = jax.jit(pairs.transitions_left)(done)
    assert left.dtype == jnp.int32
    np.testing.assert_array_equal(left.T, expected)


@pytest.mark.parametrize("discount", [*DISCOUNTS, 1e-6, 0.999999])
def test_offset_law_is_the_share_of_each_term(discount):
    n, k = np.meshgrid(np.arange(0, 60), np.arange(-1, 62), indexing="ij")
    expected = [
        [law(n, discount)[k - 1] if 1 <= k <= n else 0.0 for k in range(-1, 62)] for n in range(60)
    ]
    law_table = jax.jit(pairs.offset_law)(n, k, discount)
    np.testing.assert_allclose(law_table, expected, rtol=1e-5, atol=1e-30)
    if discount == 0:
        np.testing.assert_array_equal(law_table, (k == 1) & (n >= 1))
    host = laplacian.offset_law(59, discount)  # the two programs agree on what the law is
    np.testing.assert_allclose(host, np.asarray(expected)[1:, 2:61], rtol=1e-12)


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("n", [1, 3, 50])
def test_offsets_follow_the_law(discount, n, key):
    draws = 100_000
    k = jax.jit(pairs.geometric)(key, jnp.full(draws, n), discount)
    assert k.dtype == jnp.int32
    expected = draws * np.asarray(law(n, discount))
    counts = np.bincount(k, minlength=n + 1)[1:]
    assert len(counts) == n
    frequent = expected >= 5  # the rest are one class
    counts = np.append(counts[frequent], counts[~frequent].sum())
    expected = np.append(expected[frequent], expected[~frequent].sum())
    if expected[-1] < 1e-3:
        assert counts[-1] == 0
        counts, expected = counts[:-1], expected[:-1]
    if len(counts) > 1:
        assert stats.chisquare(counts, expected * (counts.sum() / expected.sum())).pvalue > 1e-3


@pytest.mark.parametrize("discount", [*DISCOUNTS, 1e-30, 1e-6, 0.5, 0.999999, 1 - 2**-24])
def test_offsets_stay_inside_at_the_edges_of_uniform(discount):
    n = jnp.repeat(jnp.array([1, 2, 3, 50, 1000, 100_000]), 4)
    uniform = jnp.tile(jnp.array([0.0, 1e-38, 1 - 2**-23, ALMOST_ONE], jnp.float32), 6)
    k = np.asarray(jax.jit(pairs.quantile)(uniform, n, discount)).reshape(6, 4)
    assert (k >= 1).all()
    assert (k <= np.asarray(n).reshape(6, 4)).all()
    np.testing.assert_array_equal(k[:, :2], 1)
    if discount == 1:
        np.testing.assert_array_equal(k[:5, 3], [1, 2, 3, 50, 1000])
    if discount == 0:
        np.testing.assert_array_equal(k, 1)


@pytest.mark.parametrize("discount", [0.2, 0.9, 1.0])
def test_quantiles_invert_the_distribution_function(discount):
    uniform = np.linspace(0.001, 0.999, 997).astype(np.float32)
    for n in (1, 2, 7, 50):
        edges = np.cumsum(law(n, discount))
        expected = 1 + np.searchsorted(edges[:-1], uniform, side="right")
        clear = np.abs(uniform[:, None] - edges[None]).min(axis=1) > 1e-6  # not on a step
        offsets = pairs.quantile(jnp.asarray(uniform), jnp.full(997, n), discount)
        np.testing.assert_array_equal(offsets[clear], expected[clear])


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize(("steps", "num_envs", "ending"), [(1, 3, 0.0), (6, 5, 0.3), (7, 4, 0.1)])
def test_count_is_the_sum_over_all_starts_and_offsets(discount, steps, num_envs, ending):
    walks = random_walks(steps, num_envs, num_states=5, ending=ending)
    counts = jax.jit(pairs.count, static_argnums=4)(*walks, discount, 5)
    np.testing.assert_allclose(counts, count_by_loops(*walks, discount, 5), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(counts.sum(), steps * num_envs, rtol=1e-6)


def test_count_rounds_little_where_many_pairs_meet_in_a_cell():
    steps, num_states, discount = 10, 3, 0.9
    walks = random_walks(steps, 20_000, num_states)
    counts = jax.jit(pairs.count, static_argnums=4)(*walks, discount, num_states)
    exact = np.zeros(num_states**2)
    for t in range(steps):
        for k, p in enumerate(law(steps - t, discount), start=1):
            cell = np.asarray(walks[0][t] * num_states + walks[1][t + k - 1])
            exact += p * np.bincount(cell, minlength=num_states**2)
    np.testing.assert_allclose(counts.ravel(), exact, rtol=1e-5)


@pytest.mark.slow
def test_drawn_pairs_approach_the_count(key):
    steps, num_envs, draws = 6, 40, 400_000
    state, next_state, done = random_walks(steps, num_envs, num_states=4, ending=0.15)
    start_key, offset_key = jax.random.split(key)
    start = jax.random.randint(start_key, (draws,), 0, steps * num_envs)
    left = pairs.transitions_left(done).reshape(-1)
    k = pairs.geometric(offset_key, left[start], 0.8)
    cell = state.reshape(-1)[start] * 4 + next_state.reshape(-1)[start + num_envs * (k - 1)]
    expected = np.asarray(pairs.count(state, next_state, done, 0.8, 4), float).ravel()
    counts = np.bincount(cell, minlength=16)
    expected = expected * (draws / expected.sum())
    assert (counts[expected == 0] == 0).all()
    is_possible = expected > 0
    assert stats.chisquare(counts[is_possible], expected[is_possible]).pvalue > 1e-3


def test_counts_of_many_trajectories_approach_the_exact_law():
    num_states, steps = 5, 8
    walks = random_walks(steps, 20_000, num_states)
    P = np.mean([np.roll(np.eye(num_states), shift, axis=1) for shift in (0, 1, 2)], axis=0)
    exact = laplacian.sampled_pairs(P, np.full(num_states, 1 / num_states), steps, 0.9)
    frequencies = np.asarray(pairs.count(*walks, 0.9, num_states)) / (steps * 20_000)
    np.testing.assert_allclose(frequencies, exact, atol=1.5e-3)


def test_one_compilation_serves_every_discount():
    walks = random_walks(4, 3, num_states=3)
    count = jax.jit(chex.assert_max_traces(lambda discount: pairs.count(*walks, discount, 3), n=1))
    for discount in (0.0, 0.5, 1.0):
        counts = count(discount)
        np.testing.assert_allclose(
            counts, count_by_loops(*walks, discount, 3), rtol=1e-5, atol=1e-7
        )


def test_arrays_of_different_shape_are_refused():
    one, two = jnp.zeros((4, 3), jnp.int32), jnp.zeros((5, 3), jnp.int32)
    with pytest.raises(ValueError, match="expected one shape \\[T, N\\]"):
        pairs.count(one, two, one == 1, 0.9, 2)


# The chain that most likely made the trajectories.

CHAIN = np.array(  # one way round, slow and quick states, and a rare leap
    [
        [0.5, 0.5, 0.0, 0.0, 0.0],
        [0.0, 0.2, 0.8, 0.0, 0.0],
        [0.0, 0.0, 0.1, 0.9, 0.0],
        [0.3, 0.0, 0.0, 0.0, 0.7],
        [0.9, 0.0, 0.1, 0.0, 0.0],
    ]
)
STARTS = np.array([0.4, 0.0, 0.1, 0.2, 0.3])


def chain_walks(steps: int, num_envs: int, every: int, chain=CHAIN, seed: int = 0):
    """State, next state and done `[T, N]`: walks of `every` transitions, one after the other."""
    rng = np.random.default_rng(seed)
    state, next_state = np.zeros((2, steps, num_envs), np.int32)
    draw = lambda law: (rng.random(len(law))[:, None] > np.cumsum(law, axis=1)).sum(axis=1)
    draw_starts = lambda: draw(np.tile(STARTS, (num_envs, 1)))
    for t in range(steps):
        state[t] = draw_starts() if t % every == 0 else next_state[t - 1]
        next_state[t] = draw(chain[state[t]])
    done = np.broadcast_to((np.arange(steps) % every == every - 1)[:, None], state.shape)
    return jnp.asarray(state), jnp.asarray(next_state), jnp.asarray(done)


def walk_of(walks, num_states: int = 5, length: int | None = None) -> pairs.Walk:
    length = length or walks[0].shape[0]
    return jax.jit(pairs.record)(pairs.empty_walk(num_states, length), *walks)


def expected_by_loops(state, next_state, done, discount: float, num_states: int) -> np.ndarray:
    """Each transition begins pairs that go on by the recorded frequencies, in float64."""
    state, next_state, left = map(np.asarray, (state, next_state, pairs.transitions_left(done)))
    steps = np.zeros((num_states, num_states))
    np.add.at(steps, (state, next_state), 1)
    is_absorbing = steps.sum(axis=1) == 0
    steps[is_absorbing, is_absorbing] = 1
    chain = steps / steps.sum(axis=1, keepdims=True)
    powers = [np.linalg.matrix_power(chain, k) for k in range(1, len(state) + 1)]
    out = np.zeros((num_states, num_states))
    for s, n in zip(state.ravel(), left.ravel(), strict=True):
        for p, power in zip(law(n, discount), powers, strict=False):
            out[s] += p * power[s]
    return out / state.size


def test_record_counts_transitions_and_what_is_left():
    walks = random_walks(7, 4, num_states=5, ending=0.2)
    walk = walk_of(walks)
    state, next_state, left = map(np.asarray, (*walks[:2], pairs.transitions_left(walks[2])))
    steps, begins = np.zeros((5, 5), int), np.zeros((5, 7), int)
    for cell in np.ndindex(7, 4):
        steps[state[cell], next_state[cell]] += 1
        begins[state[cell], left[cell] - 1] += 1
    np.testing.assert_array_equal(walk.steps, steps)
    np.testing.assert_array_equal(walk.begins, begins)
    assert walk.steps.dtype == walk.begins.dtype == jnp.int32


def test_record_adds_over_rollouts_of_any_length_that_fits():
    walks = random_walks(9, 4, num_states=5, ending=0.2)
    first, last = ([x[rows] for x in walks] for rows in (slice(0, 3), slice(3, 9)))
    cut = (*walks[:2], walks[2].at[2].set(True))  # the end of a rollout ends trajectories
    both = pairs.record(walk_of(first, length=9), *last)
    chex.assert_trees_all_equal(both, walk_of(cut))


def test_a_rollout_too_long_for_the_walk_is_refused():
    walks = random_walks(6, 2, num_states=5)
    with pytest.raises(ValueError, match="6 steps, the walk was made for 5: begin with") as error:
        pairs.record(pairs.empty_walk(5, 5), *walks)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("ending", [0.0, 0.3])
def test_the_distribution_goes_on_by_recorded_frequencies(discount, ending):
    walks = random_walks(6, 5, num_states=5, ending=ending)
    distribution = jax.jit(pairs.pair_distribution)(walk_of(walks), discount)
    np.testing.assert_allclose(distribution, expected_by_loops(*walks, discount, 5), atol=1e-6)
    np.testing.assert_allclose(distribution.sum(), 1, rtol=1e-6)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_the_distribution_is_the_exact_law_of_a_chain_without_chance(discount):
    """There the recorded visits are those of the recorded chain, so nothing is left to noise."""
    ring = np.roll(np.eye(5), 1, axis=1)
    walks = chain_walks(12, 30, every=4, chain=ring)
    start_counts = np.bincount(np.ravel(walks[0][::4]), minlength=5)
    exact = laplacian.sampled_pairs(ring, start_counts / start_counts.sum(), 4, discount)
    np.testing.assert_allclose(pairs.pair_distribution(walk_of(walks), discount), exact, atol=1e-6)


def test_the_distribution_is_nearer_to_the_exact_law_than_the_count():
    """The chain is uneven; its 80,000 transitions are recorded in walks of 10."""
    walks = chain_walks(20, 4_000, every=10)
    exact = laplacian.sampled_pairs(CHAIN, STARTS, 10, 0.9)
    distribution = np.asarray(pairs.pair_distribution(walk_of(walks), 0.9))
    np.testing.assert_allclose(distribution, exact, atol=2e-3)
    count_frequencies = np.asarray(pairs.count(*walks, 0.9, 5)) / (20 * 4_000)
    assert np.linalg.norm(distribution - exact) < 0.9 * np.linalg.norm(count_frequencies - exact)


def test_chains_whose_states_have_few_and_many_predecessors():
    """Sums over predecessors, and products where a state has more; side by side, too."""
    size, rng = pairs.MANY_STATES, np.random.default_rng(0)
    ring = np.roll(np.eye(size), 1, axis=1)
    few = 0.3 * ring + 0.5 * ring.T + 0.2 * np.eye(size)
    many = few.copy()
    many[:, 0] += rng.random(size)
    chains = np.stack([few, many / many.sum(axis=1, keepdims=True)])
    assert [int((x > 0).sum(axis=0).max()) for x in chains] == [3, size]
    begins = rng.random((size, 7))
    distribution = jax.jit(pairs.chain_distribution)
    alone = [distribution(single(begins), single(chain), 0.8) for chain in chains]
    for chain, actual in zip(chains, alone, strict=True):
        expected = np.zeros((size, size))
        for n in range(1, 8):
            for k, p in enumerate(law(n, 0.8), start=1):
                expected += np.diag(p * begins[:, n - 1]) @ np.linalg.matrix_power(chain, k)
        np.testing.assert_allclose(actual, expected / expected.sum(), rtol=1e-5, atol=1e-10)
    side_by_side = jax.vmap(distribution, (None, 0, None))(single(begins), single(chains), 0.8)
    np.testing.assert_allclose(side_by_side, np.stack(alone), rtol=1e-5, atol=1e-10)


@pytest.mark.slow
def test_a_state_that_nothing_left_stays():
    """0 -> 1 -> 2, and 2 is never left: who comes there is there at every later offset."""
    state, next_state = jnp.array([[0], [1]], jnp.int32), jnp.array([[1], [2]], jnp.int32)
    walk = walk_of((state, next_state, jnp.zeros((2, 1), bool)), num_states=4)
    one, two = law(2, 0.5)
    expected = np.zeros((4, 4))
    expected[0, 1], expected[0, 2], expected[1, 2] = one / 2, two / 2, 1 / 2
    np.testing.assert_allclose(pairs.pair_distribution(walk, 0.5), expected, atol=1e-6)
    other_walk = walk._replace(begins=walk.begins.at[1, 0].set(0).at[1, 1].set(1))  # two left at 1
    np.testing.assert_allclose(
        pairs.pair_distribution(other_walk, 0.5)[1], [0, 0, 0.5, 0], atol=1e-6
    )
