"""Bumps on a grid, against the formula of one centre at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics import rbf


@pytest.mark.parametrize("grid", [rbf.Grid(5, 1, 1.5), rbf.Grid(4, 2, 2.0, 0.8), rbf.Grid(3, 3)])
def test_features_are_gaussian_bumps(grid):
    axis = np.linspace(-grid.half_width, grid.half_width, grid.per_axis)
    centres = np.stack(np.meshgrid(*grid.dims * [axis], indexing="ij"), axis=-1).reshape(
        -1, grid.dims
    )
    np.testing.assert_allclose(grid.centres(), centres, atol=1e-6)
    z = np.random.default_rng(0).normal(size=(2, 7, grid.dims))
    width = grid.overlap * (axis[1] - axis[0])
    square = np.sum((z[..., None, :] - centres) ** 2, axis=-1)
    features = jax.jit(rbf.features)(grid, z.astype(np.float32))
    assert features.shape == (2, 7, grid.num_features)
    np.testing.assert_allclose(features, np.exp(-square / (2 * width**2)), atol=1e-5)


def test_what_makes_no_grid_is_refused():
    with pytest.raises(ValueError, match="per_axis is 1, expected a number at least 2"):
        rbf.Grid(per_axis=1).centres()
    with pytest.raises(ValueError, match=r"overlap is 0\.0, expected a number above 0"):
        rbf.features(rbf.Grid(overlap=0.0), jnp.zeros(2))
    with pytest.raises(ValueError, match="100 centres along 5 axes are more than 2"):
        rbf.weighted_sum(rbf.Grid(100, dims=5), jnp.zeros((1, 1)), jnp.zeros(5))
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        rbf.features(rbf.Grid(), jnp.zeros(3))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_a_combination_is_the_features_times_the_weights(dims):
    grid = rbf.Grid(per_axis=4, dims=dims)
    weights = jax.random.normal(jax.random.key(0), (grid.num_features, 2))
    z = jax.random.uniform(jax.random.key(1), (3, 5, dims), minval=-3.0, maxval=3.0)
    expected = np.asarray(rbf.features(grid, z), float) @ np.asarray(weights, float)
    np.testing.assert_allclose(rbf.weighted_sum(grid, weights, z), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_a_combination_at_no_points_is_empty(dims):
    grid = rbf.Grid(per_axis=4, dims=dims)
    weights = jnp.ones((grid.num_features, 5))
    assert rbf.weighted_sum(grid, weights, jnp.zeros((0, dims))).shape == (0, 5)
    assert rbf.weighted_sum(grid, weights, jnp.zeros((3, 0, dims))).shape == (3, 0, 5)
