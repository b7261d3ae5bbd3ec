"""Prioritised replay at extreme masses, against cumulative sums in float64."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from jaxrl.replay import prioritised, uniform
from tests.jaxrl.extremes import (
    EPS,
    FUNCTION,
    assert_within,
    double,
    extreme,
    numbers,
    scales,
    seeds,
    single,
)

CAPACITY, N = 7, 5
exponents = st.sampled_from([0.0, 1e-12, 0.5, 0.6, 1.0, 2.0])
batches = st.sampled_from([0, 1, 16])


class Step(NamedTuple):
    terminated: jax.Array
    truncated: jax.Array


NO = jnp.zeros((CAPACITY, N), bool)
RING = uniform.Replay(Step(NO, NO), head=jnp.int32(3), size=jnp.int32(CAPACITY))
draw = jax.jit(prioritised.draw, static_argnames="length")
pick = jax.jit(prioritised.inverse_cdf_index)
mass_of = jax.jit(prioritised.mass_of)
importance_weights = jax.jit(prioritised.importance_weights)
update = jax.jit(prioritised.update)
add = jax.jit(prioritised.add, static_argnames="length")
edges = np.array([0.0, 1 - 2.0**-23, 1.0])


def masses(rng, shape, scale, live) -> Any:
    """At least 0; all but `live` of a row's entries are 0 where that is not None."""
    mass = np.abs(numbers(rng, shape, scale))
    if live is None:
        return mass
    order = np.argsort(rng.random(shape), axis=-1)
    return np.where(order < live, mass, np.float32(0))


def assert_reached(index, mass, share):
    """The running sum of `mass [K]` passes `share` of all at `index`, up to 2 K roundings of it."""
    total, cumulative = double(mass).sum(), np.cumsum(double(mass))
    off = 2 * len(mass) * EPS * total
    before = cumulative[index] - double(mass[index])
    assert mass[index] > 0
    assert before - off <= share * total <= cumulative[index] + off


@extreme(
    seed=seeds, size=st.sampled_from([1, 2, 100]), scale=scales, live=st.sampled_from([None, 1])
)
def test_picks_are_those_of_a_share_a_few_roundings_off(seed, size, scale, live):
    rng = np.random.default_rng(seed)
    mass = masses(rng, (1, size), scale, live)
    share = single(np.concatenate([edges, rng.random(13)]))
    for index, part in zip(np.asarray(pick(mass, share)), share, strict=True):
        assert_reached(index, mass[0], double(part))


@extreme(
    seed=seeds, scale=scales, batch=batches, live=st.sampled_from([None, 1, N]),
    length=st.sampled_from([1, 3]),
)  # fmt: skip
def test_draws_are_valid_and_as_likely_as_their_mass(seed, scale, batch, live, length):
    """Row and environment each as `inverse_cdf_index` finds them; a row's sum adds N roundings."""
    rng = np.random.default_rng(seed)
    mass = masses(rng, (CAPACITY, N), scale, live)
    share = single(rng.random((batch, 2)))
    share[:1] = 1 - 2.0**-24
    row, env, drawn_mass = draw(
        prioritised.Priorities(mass, mass.max()), RING, share, length=length
    )
    assert row.shape == env.shape == drawn_mass.shape == (batch,)
    valid = (np.arange(CAPACITY) - 3) % CAPACITY + length <= CAPACITY
    row_mass = np.where(valid, double(mass).sum(1), 0.0)
    for t, n, step_mass, (row_share, env_share) in zip(
        row, env, drawn_mass, double(share), strict=True
    ):
        assert valid[t]
        assert step_mass == mass[t, n] > 0
        assert_reached(int(t), row_mass, row_share)
        assert_reached(int(n), mass[t], env_share)


@extreme(seed=seeds, error_scale=scales, exponent=exponents)
def test_masses_of_errors(seed, error_scale, exponent):
    """Relatively: those of a power, and of the sum and the number 1e-6 that it is the power of."""
    error = np.abs(numbers(np.random.default_rng(seed), (8,), error_scale))
    error[0] = 0.0
    exact = (double(error) + 1e-6) ** exponent
    mass = mass_of(error, exponent)
    assert np.all(np.asarray(mass) > 0)
    assert_within(mass, exact, (FUNCTION + 2 * exponent) * EPS * exact)


@extreme(
    seed=seeds, scale=scales, batch=batches, exponent=st.sampled_from([0.0, 0.4, 1.0]),
    live=st.sampled_from([None, 1]),
)  # fmt: skip
def test_importance_weights(seed, scale, batch, exponent, live):
    """Relatively: those of a quotient and its power. At most 1, and the largest is 1."""
    mass = masses(np.random.default_rng(seed), (batch,), scale, None)
    if live and batch:
        mass[:] = mass[0]
    weights = np.asarray(importance_weights(mass, exponent))
    exact = (double(mass).min(initial=np.inf) / double(mass)) ** exponent
    assert_within(weights, exact, (FUNCTION + 2 * exponent) * EPS * exact)
    assert np.all(weights <= 1)
    assert batch == 0 or weights.max() == 1


@extreme(seed=seeds, scale=scales, batch=batches, unknown=st.sampled_from([0.0, 0.5, 1.0]))
def test_updates_change_what_was_drawn_and_nothing_else(seed, scale, batch, unknown):
    """Exactly; what is not finite changes nothing. New rows get the largest so far."""
    rng = np.random.default_rng(seed)
    before = masses(rng, (CAPACITY, N), scale, None)
    place = rng.permutation(CAPACITY * N)[:batch]
    row, env = (place // N).astype(np.int32), (place % N).astype(np.int32)
    mass = masses(rng, (batch,), scale, None)
    lost = rng.random(batch) < unknown
    mass[lost] = rng.choice([np.nan, np.inf], lost.sum())
    priorities = prioritised.Priorities(before, before.max())
    after = update(priorities, row, env, mass)
    expected = before.copy()
    expected[row[~lost], env[~lost]] = mass[~lost]
    largest = max(before.max(), mass[~lost].max(initial=0.0))
    np.testing.assert_array_equal(after.mass, expected)
    assert after.largest == largest
    extended = add(after, RING, length=2)
    expected[[1, 2]] = largest
    np.testing.assert_array_equal(extended.mass, expected)
