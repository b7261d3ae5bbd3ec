"""Factorisations written out against NumPy's, and their derivatives against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.state_space import small_matrices


def positive(size: int) -> np.ndarray:
    root = np.random.default_rng(size).normal(size=(size, size))
    return root @ root.T + np.eye(size)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_factors_and_solutions_are_those_of_numpy(size: int):
    batch = np.stack([positive(size), 3 * np.eye(size) + 0.1])
    right = np.random.default_rng(0).normal(size=(2, size, 3))
    with jax.enable_x64(True):
        lower = jax.vmap(small_matrices.cholesky)(jnp.asarray(batch))
        below = jax.vmap(small_matrices.solve_lower)(lower, jnp.asarray(right))
        above = jax.vmap(small_matrices.solve_upper)(lower, below)
        logs = jax.vmap(small_matrices.log_determinant)(lower)
    np.testing.assert_allclose(lower, np.linalg.cholesky(batch), atol=1e-12)
    np.testing.assert_allclose(below, np.linalg.solve(np.linalg.cholesky(batch), right), atol=1e-12)
    np.testing.assert_allclose(above, np.linalg.solve(batch, right), atol=1e-12)
    np.testing.assert_allclose(logs, np.linalg.slogdet(batch)[1], atol=1e-12)


def test_the_gradient_of_a_log_determinant_is_the_inverse():
    matrix = positive(4)
    with jax.enable_x64(True):
        slope = jax.grad(lambda x: small_matrices.log_determinant(small_matrices.cholesky(x)))(
            jnp.asarray(matrix)
        )
    np.testing.assert_allclose(slope + slope.T, 2 * np.linalg.inv(matrix), atol=1e-12)
