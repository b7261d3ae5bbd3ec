"""Distributions of returns against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.losses import action_values

SUPPORT = np.linspace(-2.0, 6.0, 9)  # a grid of ones
MOVES = {  # return, discount
    "between the atoms": (0.3, 0.9),
    "onto the grid": (2.0, 1.0),
    "half a step": (-0.5, 1.0),
    "all on one atom": (3.0, 0.0),
    "all between two": (3.25, 0.0),
    "beyond the low end": (-50.0, 0.9),
    "beyond the high end": (50.0, 0.9),
    "one end beyond": (5.0, 1.0),
}


def project_by_loop(probabilities, return_, discount) -> np.ndarray:
    """Atom by atom: what is left of the floor goes to the ceiling."""
    out = np.zeros(len(SUPPORT))
    spacing = SUPPORT[1] - SUPPORT[0]
    for mass, atom in zip(probabilities, SUPPORT, strict=True):
        b = (np.clip(return_ + discount * atom, SUPPORT[0], SUPPORT[-1]) - SUPPORT[0]) / spacing
        low = int(np.floor(b))
        if low == b:
            out[low] += mass
        else:
            out[low] += mass * (low + 1 - b)
            out[low + 1] += mass * (b - low)
    return out


def test_projection_equals_a_loop_over_atoms():
    random = np.random.default_rng(0)
    probabilities = random.dirichlet(np.full(9, 0.5), (2, len(MOVES)))
    return_, discount = (np.tile(x, (2, 1)) for x in zip(*MOVES.values(), strict=True))
    projection = jax.jit(action_values.project)(
        *(jnp.asarray(x, jnp.float32) for x in (probabilities, return_, discount)),
        action_values.support(-2.0, 6.0, 9),
    )
    assert projection.shape == (2, len(MOVES), 9)
    for i in np.ndindex(2, len(MOVES)):
        expected = project_by_loop(probabilities[i], return_[i], discount[i])
        np.testing.assert_allclose(projection[i], expected, atol=1e-5)
    np.testing.assert_allclose(projection.sum(-1), 1.0, atol=1e-6)  # no mass is lost anywhere


def test_a_point_on_a_fine_wide_grid_stays_a_point():
    """51 atoms from -20 to 500, whose spacing 10.4 is no float: every atom comes back alone."""
    support = action_values.support(-20.0, 500.0, 51)
    projection = jax.jit(action_values.project)(jnp.eye(51), jnp.zeros(51), jnp.ones(51), support)
    np.testing.assert_allclose(projection, np.eye(51), atol=2e-5)
    np.testing.assert_allclose(projection.sum(-1), 1.0, atol=1e-6)


def test_expectation_and_choice_of_distributions():
    logits = np.random.default_rng(1).normal(size=(4, 3, 9))
    weights = np.exp(logits)
    mean = (weights * SUPPORT).sum(-1) / weights.sum(-1)
    support = action_values.support(-2.0, 6.0, 9)
    np.testing.assert_allclose(support, SUPPORT, rtol=1e-6)
    expectation = action_values.expectation(jnp.asarray(logits), support)
    np.testing.assert_allclose(expectation, mean, rtol=1e-4, atol=1e-5)
    action = jnp.array([0, 2, 1, 1])
    chosen = action_values.logits_of_action(jnp.asarray(logits), action)
    np.testing.assert_allclose(chosen, logits[range(4), action], rtol=1e-6)


def test_a_support_needs_two_ends():
    with pytest.raises(ValueError, match="a support of 1 atoms, expected at least 2"):
        action_values.support(0.0, 1.0, 1)


@pytest.mark.parametrize("delta", [1e-3, 1.0, 1e6, 1e9, 1e30, np.inf])
def test_huber_loss_is_that_of_float64_whatever_its_delta(delta):
    """Loss and gradient; one far above the errors is the squared error, small ones included."""
    error = np.array([0.0, 1e-6, -0.3, 1e-3, 0.7, -1.0, 5.0, -2e3, 1e7], np.float32)
    exact = error.astype(np.float64)
    size = np.abs(exact)
    with np.errstate(invalid="ignore"):
        expected = np.where(size <= delta, size**2 / 2, delta * (size - delta / 2))
    loss = jax.jit(action_values.huber_loss)(jnp.asarray(error), delta)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    slope = jax.jit(jax.vmap(jax.grad(action_values.huber_loss), in_axes=(0, None)))
    expected = np.clip(exact, -delta, delta)
    np.testing.assert_allclose(slope(jnp.asarray(error), delta), expected, rtol=1e-6)
