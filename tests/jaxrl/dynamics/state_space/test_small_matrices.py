"""Inverses against NumPy's, and their derivatives against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.state_space.small_matrices import inverse


def positive(dims: int, count: int = 20) -> np.ndarray:
    wide = np.random.default_rng(dims).standard_normal((count, dims, dims + 1))
    return wide @ wide.transpose(0, 2, 1)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("dims", [1, 2, 3, 5])
def test_inverses_and_determinants_are_those_of_numpy(dims):
    batch = positive(dims)
    with jax.enable_x64(True):
        inverted, logs = map(np.asarray, jax.vmap(inverse)(jnp.asarray(batch)))
    np.testing.assert_allclose(
        inverted @ batch, np.broadcast_to(np.eye(dims), batch.shape), atol=1e-9
    )
    np.testing.assert_allclose(logs, np.linalg.slogdet(batch)[1], atol=1e-11)
    np.testing.assert_array_equal(inverted, np.swapaxes(inverted, 1, 2))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_float32_holds_matrices_of_any_unit(scale):
    batch = (scale * (positive(3) + 0.1 * np.eye(3))).astype(np.float32)
    inverted, logs = jax.vmap(inverse)(jnp.asarray(batch))
    exact = np.linalg.inv(batch.astype(float))
    error = np.abs(inverted - exact).max((1, 2)) / np.abs(exact).max((1, 2))
    assert np.all(error < 1e-5 * np.linalg.cond(batch))
    np.testing.assert_allclose(logs, np.linalg.slogdet(batch.astype(float))[1], atol=1e-4)


def test_derivatives_are_those_of_differences():
    with jax.enable_x64(True):
        weights = jnp.asarray(np.random.default_rng(1).standard_normal((4, 4)))

        def value(matrix: jax.Array) -> jax.Array:
            inverted, log_determinant = inverse(matrix)
            return jnp.sum(weights * inverted) + log_determinant**2

        matrix = positive(4, 1)[0]
        slope = np.asarray(jax.grad(value)(jnp.asarray(matrix)))
        for direction in np.random.default_rng(2).standard_normal((4, 4, 4)):
            direction = direction + direction.T
            ahead, back = (value(matrix + sign * 1e-6 * direction) for sign in (1, -1))
            np.testing.assert_allclose(np.sum(slope * direction), (ahead - back) / 2e-6, rtol=1e-5)
