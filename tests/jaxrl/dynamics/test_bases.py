"""Bases of fields against SciPy's polynomials, the Gaussian kernel and counting."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

from jaxrl.dynamics import bases, rbf
from jaxrl.dynamics.bases import Fourier, Polynomial


@pytest.mark.parametrize(("degree", "dims"), [(1, 1), (3, 1), (2, 3), (3, 2), (3, 8)])
def test_polynomials_are_all_products_of_legendre_s(degree, dims):
    """Up to the total degree, each once, in whatever order."""
    basis = Polynomial(degree=degree, dims=dims, half_width=2.5)
    assert basis.num_features == math.comb(degree + dims, degree) == bases._num_powers(degree, dims)
    z = np.random.default_rng(0).uniform(-3, 3, (4, 2, dims)).astype(np.float32)
    features = np.asarray(jax.jit(bases.features)(basis, z))
    assert features.shape == (4, 2, basis.num_features)
    expected = []
    for powers in np.ndindex(*(degree + 1,) * dims) if dims < 4 else sparse_powers(degree, dims):
        if sum(powers) <= degree:
            factors = (
                np.sqrt(2 * k + 1) * special.eval_legendre(k, z[..., i] / 2.5)
                for i, k in enumerate(powers)
            )
            expected.append(math.prod(factors))
    expected = np.stack(expected, axis=-1)
    sort_columns = lambda x: np.sort(x, axis=-1)
    np.testing.assert_allclose(sort_columns(features), sort_columns(expected), rtol=1e-3, atol=2e-4)


def sparse_powers(degree: int, dims: int):
    """All exponents of few terms, where a grid of them would be too long."""
    if dims == 0:
        yield ()
        return
    for first in range(degree + 1):
        for remainder in sparse_powers(degree - first, dims - 1):
            yield (first, *remainder)


def test_polynomials_have_mean_square_1_and_are_orthogonal_in_the_box():
    basis = Polynomial(degree=3, dims=1, half_width=2.0)
    for i in range(4):
        for j in range(4):
            f = lambda x, i=i, j=j: math.prod(
                np.asarray(bases.features(basis, jnp.array([x], jnp.float32)))[[i, j]].tolist()
            )
            mean = integrate.fixed_quad(np.vectorize(f), -2, 2, n=6)[0] / 4
            np.testing.assert_allclose(mean, float(i == j), atol=1e-4)
    assert bases.mean_square(basis) == 4


def test_waves_have_the_covariance_of_a_gaussian_process():
    basis = Fourier(count=20_000, dims=3, length=0.7, seed=1)
    z: Any = np.random.default_rng(2).normal(size=(8, 3)).astype(np.float32)
    rows = np.asarray(bases.features(basis, z), np.float64)
    squares = ((z[:, None] - z) ** 2).sum(axis=-1)
    np.testing.assert_allclose(rows @ rows.T, np.exp(-squares / (2 * 0.49)), atol=0.03)
    assert bases.mean_square(basis) == 1
    other = bases.features(Fourier(count=20_000, dims=3, length=0.7, seed=2), z)
    assert np.abs(rows - np.asarray(other)).max() > 1e-3


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "basis", [rbf.Grid(per_axis=4, dims=3), Fourier(count=7, dims=3), Polynomial(dims=3)]
)
def test_a_field_is_its_features_times_the_weights(basis):
    rng = np.random.default_rng(0)
    weights: Any = rng.normal(size=(basis.num_features, 2)).astype(np.float32)
    z: Any = rng.normal(size=(5, 3)).astype(np.float32)
    expected = np.asarray(bases.features(basis, z)) @ weights
    np.testing.assert_allclose(
        bases.weighted_sum(basis, weights, z), expected, rtol=1e-3, atol=1e-4
    )
    with pytest.raises(ValueError, match=r"states have shape \(4,\), expected \[..., 3\]"):
        bases.features(basis, jnp.zeros(4))


def test_too_many_features_are_refused():
    with pytest.raises(ValueError, match="features are more than 20000"):
        bases.check(Polynomial(degree=12, dims=12))
    with pytest.raises(ValueError, match=r"length is 0\.0, expected a number above 0"):
        bases.check(Fourier(length=0.0))
    with pytest.raises(ValueError, match=r"more than 2\*\*31"):
        bases.check(rbf.Grid(per_axis=20, dims=20))
