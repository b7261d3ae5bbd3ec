"""Action values and distributions of returns at extreme scales, against sums in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from jaxrl.losses import action_values
from tests.jaxrl.extremes import (
    EPS,
    FUNCTION,
    TINY,
    assert_within,
    double,
    extreme,
    numbers,
    scales,
    seeds,
    shares,
    single,
)

B = 3
atoms_of = st.sampled_from([2, 3, 51])
support = jax.jit(action_values.support, static_argnums=2)
project = jax.jit(action_values.project)
expectation = jax.jit(action_values.expectation)


def ends(rng, low_scale, width) -> tuple[float, float]:
    low = float(numbers(rng, (), low_scale))
    return low, low + width * rng.uniform(0.1, 1.0)


@extreme(seed=seeds, atoms=atoms_of, low_scale=scales, width=scales)
def test_supports_are_grids_or_refused(seed, atoms, low_scale, width):
    """Atoms are off by five roundings; refused where float32 cannot tell neighbours apart."""
    low, high = ends(np.random.default_rng(seed), low_scale, width)
    if (high - low) / (atoms - 1) <= 8 * EPS * max(abs(low), abs(high)):
        with pytest.raises(ValueError, match="atoms"):
            action_values.support(low, high, atoms)
        return
    grid = np.asarray(action_values.support(low, high, atoms))
    assert np.all(np.diff(grid) > 0)
    exact = np.linspace(low, high, atoms)
    assert_within(grid, exact, 5 * EPS * (abs(low) + np.linspace(0, abs(high - low), atoms)))
    traced = support(single(low), single(high), atoms)
    assert_within(traced, exact, 7 * EPS * (abs(low) + abs(high)))


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 1.0), (1.0, -1.0), (0.0, np.inf), (np.nan, 1.0), (1e12, 1e12 + 1)]
)
def test_ends_that_make_no_grid_are_refused(low, high):
    with pytest.raises(ValueError, match="atoms"):
        action_values.support(low, high, 51)


@extreme(
    seed=seeds, atoms=atoms_of, low_scale=scales, width=scales, return_scale=scales,
    discount=shares, kind=st.sampled_from(["spread", "one atom", "tiny tail"]),
)  # fmt: skip
def test_projection(seed, atoms, low_scale, width, return_scale, discount, kind):
    """Mass is kept, and lies where float64 puts it up to a shift of each atom by its roundings."""
    rng = np.random.default_rng(seed)
    low, high = ends(rng, low_scale, width)
    grid = np.asarray(support(single(low), single(high), atoms))
    p = rng.dirichlet(np.full(atoms, 0.5), B)
    if kind == "one atom":
        p = np.eye(atoms)[rng.integers(atoms, size=B)]
    elif kind == "tiny tail":
        p = np.where(np.arange(atoms) == 0, 1 - 1e-12, 1e-12 / (atoms - 1)) * np.ones((B, 1))
    p, return_ = single(p), numbers(rng, (B,), return_scale)
    gamma = single(np.full(B, discount))
    projection = np.asarray(project(p, return_, gamma, grid))
    assert np.all(projection >= 0)
    mass = double(p).sum(-1)
    assert_within(double(projection).sum(-1), mass, (atoms + 4) * EPS * mass)
    assume(grid[-1] > grid[0])

    z, last = double(grid), atoms - 1
    spacing = (z[-1] - z[0]) / last
    r, g = double(return_)[:, None], double(gamma)[:, None]
    position = np.clip((r + g * z - z[0]) / spacing, 0, last)  # [B, K]
    share = np.maximum(1 - np.abs(position[..., None] - np.arange(atoms)), 0)
    exact = np.sum(double(p)[..., None] * share, axis=1)
    shift = 3 * EPS * (abs(r) + g * abs(z) + abs(z[0])) / spacing + 6 * EPS * last
    bound = np.sum(double(p) * np.minimum(shift, 1), axis=1)[:, None]
    assert_within(projection, exact, bound + (atoms + 3) * EPS * exact)


def test_a_support_that_is_a_point_keeps_all_mass():
    """Ends that are traced cannot be refused; where they coincide, any atom is right."""
    grid = support(jnp.float32(1e12), jnp.float32(1e12), 3)
    projection = project(jnp.full((1, 3), 1 / 3), jnp.ones(1), jnp.ones(1), grid)
    np.testing.assert_allclose(projection.sum(), 1.0, rtol=1e-6)


@extreme(seed=seeds, atoms=atoms_of, logit_scale=scales, low_scale=scales, width=scales)
def test_expectations(seed, atoms, logit_scale, low_scale, width):
    """Roundings of Σ p |z|; a probability has those of the logit's distance from the largest."""
    rng = np.random.default_rng(seed)
    low, high = ends(rng, low_scale, width)
    grid = np.asarray(support(single(low), single(high), atoms))
    logits = numbers(rng, (B, atoms), logit_scale)
    actual = expectation(logits, grid)
    x = double(logits) - double(logits).max(-1, keepdims=True)
    p = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    off = FUNCTION + 2 * atoms + np.sum(p * abs(x), -1, keepdims=True) + abs(x)
    bound = np.sum((EPS * off * p + TINY) * abs(double(grid)), -1)
    assert_within(actual, np.sum(p * double(grid), -1), bound)


huber = jax.jit(jax.vmap(jax.value_and_grad(action_values.huber_loss), in_axes=(0, None)))


@extreme(
    seed=seeds, error_scale=scales, delta=st.one_of(scales, st.sampled_from([0.0, float("inf")]))
)
def test_huber_loss_and_its_gradient(seed, error_scale, delta):
    """To four roundings, relatively: nothing is subtracted."""
    error, delta = numbers(np.random.default_rng(seed), (8,), error_scale), single(delta)
    loss, slope = huber(error, delta)
    e, d = double(error), double(delta)
    clipped = np.clip(e, -d, d)
    exact = clipped * (e - clipped / 2)
    assert_within(loss, exact, 4 * EPS * exact)
    assert_within(slope, clipped, 4 * EPS * abs(clipped))


choose = jax.jit(
    lambda q, target, action: (
        action_values.value_of_action(target, action),
        action_values.max_value(target),
        action_values.double_value(q, target),
    )
)
epsilon_greedy = jax.jit(action_values.epsilon_greedy)


@extreme(seed=seeds, actions=st.sampled_from([1, 4]), scale=scales, batch=st.sampled_from([0, B]))
def test_choices_are_exact(seed, actions, scale, batch):
    rng = np.random.default_rng(seed)
    q, target = (numbers(rng, (batch, actions), scale) for _ in range(2))
    action = rng.integers(actions, size=batch).astype(np.int32)
    action_value, largest, double_value = choose(q, target, action)
    rows = np.arange(batch)
    np.testing.assert_array_equal(action_value, target[rows, action])
    np.testing.assert_array_equal(largest, target.max(-1))
    np.testing.assert_array_equal(double_value, target[rows, q.argmax(-1)])
    for row in q:
        key = jax.random.key(seed)
        greedy, chance = (epsilon_greedy(jax.random.clone(key), row, e) for e in (0.0, 1.0))
        assert greedy == row.argmax()
        assert 0 <= chance < actions
