"""Prioritised replay: frequencies against exact probabilities, and what may never be drawn."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.replay import prioritised, uniform

CAPACITY, N = 7, 5


class Step(NamedTuple):
    terminated: jax.Array
    truncated: jax.Array


def ring_after(rows: int) -> uniform.Replay:
    """A ring that `rows` rows were written to, one at a time."""
    no = jnp.zeros((1, N), bool)
    ring = uniform.init(Step(no[0, 0], no[0, 0]), CAPACITY, N)
    for _ in range(rows):
        ring = uniform.add(ring, Step(no, no))
    return ring


@pytest.mark.parametrize(
    ("rows", "length", "invalid"),
    [
        (4, 1, [4, 5, 6]),  # not written yet
        (CAPACITY + 3, 3, [1, 2]),  # the newest two rows, 1 and 2: no two rows follow them
    ],
)
def test_steps_are_drawn_in_proportion_to_their_mass(rows, length, invalid):
    ring = ring_after(rows)
    mass = np.random.default_rng(rows).gamma(0.5, size=(CAPACITY, N)).astype(np.float32)
    mass[0, 0], mass[3, :4] = 0.0, 0.0
    priorities = prioritised.Priorities(jnp.asarray(mass), jnp.float32(mass.max()))
    shares = prioritised.shares(priorities, jax.random.key(0), 400, 64)
    draw = jax.jit(jax.vmap(lambda share: prioritised.draw(priorities, ring, share, length)))
    row, env, drawn_mass = (np.asarray(x) for x in draw(shares))
    np.testing.assert_array_equal(drawn_mass, mass[row, env])

    exact = mass.astype(np.float64)
    exact[invalid] = 0.0
    exact /= exact.sum()
    counts = np.zeros((CAPACITY, N))
    np.add.at(counts, (row, env), 1)
    assert counts[exact == 0].sum() == 0
    possible = exact > 0
    expected = row.size * exact[possible]
    assert stats.chisquare(counts[possible], expected).pvalue > 1e-3
    # Stratified: in every minibatch, a row has its share of the 64 up to the strata at its edges.
    share = 64 * exact.sum(axis=1)
    row_counts = np.stack([np.bincount(r, minlength=CAPACITY) for r in row])
    assert np.all(np.abs(row_counts - share) < 2)


def test_no_rounding_reaches_an_entry_without_mass():
    """At the ends of what a share may be, and where running sums stand still, up to rounding."""
    random = np.random.default_rng(0)
    mass = random.gamma(0.5, size=(2_000, 100)).astype(np.float32)
    mass[random.random(mass.shape) < 0.7] = 0.0
    pick, cumulative = jax.jit(prioritised.inverse_cdf_index), jnp.cumsum(mass, axis=1)
    edges = cumulative[:, 1:60:10] / jnp.max(cumulative, axis=1, keepdims=True)
    for share in (jnp.zeros(2_000), jnp.ones(2_000), *edges.T):
        assert np.all(mass[range(2_000), pick(mass, share)] > 0)
    np.testing.assert_array_equal(pick(mass, jnp.zeros(2_000)), (mass > 0).argmax(axis=1))


def test_importance_weights_are_those_of_the_paper():
    """(N P)^-β, with N = 20 steps whose masses sum to 37, over the largest of the batch."""
    mass = np.array([0.5, 2.0, 1.25, 2.0])
    weights = (20 * mass / 37) ** -0.6
    actual = prioritised.importance_weights(jnp.asarray(mass), 0.6)
    np.testing.assert_allclose(actual, weights / weights.max(), rtol=1e-5)
    np.testing.assert_array_equal(prioritised.importance_weights(jnp.asarray(mass), 0.0), 1.0)


def test_new_steps_get_the_largest_mass_so_far():
    """Across the end of the ring, and even when the step that had it is no more."""
    ring = ring_after(6)
    priorities = prioritised.add(prioritised.init(ring), ring, 6)
    np.testing.assert_array_equal(priorities.mass, [[1.0] * N] * 6 + [[0.0] * N])
    row, env = jnp.array([0, 3]), jnp.array([1, 2])
    mass = prioritised.mass_of(jnp.array([4.0, 0.0]), 0.5)
    np.testing.assert_allclose(mass, [2.0, 1e-3], rtol=1e-5)
    priorities = prioritised.update(priorities, row, env, mass)
    assert (priorities.mass[0, 1], priorities.mass[3, 2]) == (mass[0], mass[1])
    priorities = prioritised.add(priorities, ring_after(8), 2)  # rows 6 and 0
    np.testing.assert_allclose(priorities.mass[jnp.array([6, 0])], 2.0, rtol=1e-5)
    np.testing.assert_array_equal(priorities.mass[1], 1.0)
    assert priorities.largest == mass[0]


def test_errors_that_are_no_numbers_leave_priorities_as_they_were():
    ring = ring_after(3)
    before = prioritised.add(prioritised.init(ring), ring, 3)
    row, env = jnp.array([0, 1, 2]), jnp.array([1, 2, 3])
    error = jnp.array([jnp.nan, jnp.inf, 9.0])
    after = prioritised.update(before, row, env, prioritised.mass_of(error, 0.5))
    changed = np.argwhere(np.asarray(after.mass != before.mass))
    np.testing.assert_array_equal(changed, [[2, 3]])
    np.testing.assert_allclose([after.mass[2, 3], after.largest], 3.0, rtol=1e-5)
    unchanged = prioritised.update(before, row[:2], env[:2], jnp.full(2, jnp.nan))
    np.testing.assert_array_equal(unchanged.mass, before.mass)
    assert unchanged.largest == before.largest == 1.0
