"""The cosine of many numbers at once, against NumPy's in 64 bits."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.numerics.trigonometry import cosine

NEAR = np.linspace(-1000, 1000, 2_000_001).astype(np.float32)


def test_it_is_a_cosine_to_a_few_roundings():
    error = np.asarray(jax.jit(cosine)(jnp.array(NEAR)), np.float64) - np.cos(np.float64(NEAR))
    assert np.abs(error).max() < 2e-7
    far = np.array([1e4, -1e5, 4e5], np.float32)
    rounding = np.abs(far) * np.finfo(np.float32).eps
    assert (np.abs(cosine(jnp.array(far)) - np.cos(np.float64(far))) < rounding).all()


def test_it_is_even():
    np.testing.assert_array_equal(cosine(jnp.array(NEAR)), cosine(jnp.array(-NEAR)))


def test_angles_that_are_not_finite_have_none():
    assert np.isnan(cosine(jnp.array([jnp.nan, jnp.inf, -jnp.inf]))).all()


def test_its_derivative_is_minus_the_sine():
    points = NEAR[::1000]
    slope = jax.jit(jax.vmap(jax.grad(cosine)))(points)
    curvature = jax.jit(jax.vmap(jax.grad(jax.grad(cosine))))(points)
    np.testing.assert_allclose(slope, -np.sin(points.astype(np.float64)), atol=2e-6)
    np.testing.assert_allclose(curvature, -np.cos(points.astype(np.float64)), atol=2e-6)
