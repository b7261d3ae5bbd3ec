"""Vector fields against formulas in the complex plane, what is known of them, and SciPy."""

import cmath
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from envs.vector_field import fields, landscape


def limit_cycle(w, radius_squared=1.0, spin=1.0, scale=0.1):
    return scale * w * (radius_squared - abs(w) ** 2 + 1j * spin)


def double_limit_cycle(w, radius=1.0, spin=1.0, scale=0.1761):
    return scale * w * (radius - abs(w) + 1j * spin * (2 * radius - abs(w)))


def van_der_pol(w, damping=1.0, stiffness=1.0, scale=0.26):
    x, y = w.real, w.imag
    return scale * complex(y, damping * (y - x * x * y) - stiffness * x)


def duffing(w, damping=-0.5, linear=-1.0, cubic=0.5, scale=0.5):
    x, y = w.real, w.imag
    return scale * complex(y, damping * y - linear * x - cubic * x**3)


def snowman(w, radius=1.0, spin=1.0, steepness=10.0, scale=0.22):
    right = limit_cycle(w - radius, radius**2, spin, scale)
    left = limit_cycle(w + radius, radius**2, -spin, scale)
    return (right + left) / 2 + math.tanh(steepness * w.real / 2) * (right - left) / 2


@pytest.mark.parametrize(
    ("oracle", "other"),
    [
        (limit_cycle, {"radius_squared": 2.0, "spin": -0.5, "scale": 1.0}),
        (double_limit_cycle, {"radius": 0.7, "spin": -2.0, "scale": 1.0}),
        (van_der_pol, {"damping": 0.3, "stiffness": 2.0, "scale": 1.0}),
        (duffing, {"damping": 0.1, "linear": 0.4, "cubic": 0.1, "scale": 10.0}),
        (snowman, {"radius": 0.5, "spin": 2.0, "steepness": 3.0, "scale": 1.0}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_field_is_its_formula(oracle, other):
    f = jax.jit(fields.FIELDS[oracle.__name__])
    z = np.random.default_rng(0).uniform(-2, 2, (3, 4, 2)).astype(np.float32)
    for arguments in ({}, other):
        slow = np.vectorize(lambda x, y, a=arguments: oracle(complex(x, y), **a))(
            z[..., 0], z[..., 1]
        )
        expected = np.stack([slow.real, slow.imag], axis=-1)
        np.testing.assert_allclose(f(z, **arguments), expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(f(z[0, 0], **other), expected[0, 0], rtol=2e-5, atol=2e-6)


def test_circles_attract_and_rotation_reverses():
    """In polar terms: the radial speed and the turning, at given radii."""

    def polar(f, radius):
        w = cmath.rect(radius, 0.7)
        velocity = complex(*np.asarray(f(jnp.asarray([w.real, w.imag]))))
        polar_velocity = velocity / w * abs(w)
        return polar_velocity.real, polar_velocity.imag

    cycle = lambda z: fields.limit_cycle(z, radius_squared=2.25, spin=0.5, scale=0.4)
    np.testing.assert_allclose(polar(cycle, 1.5), (0.0, 0.4 * 0.5 * 1.5), atol=1e-6)
    assert polar(cycle, 1.4)[0] > 0 > polar(cycle, 1.6)[0]
    double = fields.double_limit_cycle
    np.testing.assert_allclose(polar(double, 1.0), (0.0, 0.1761), atol=1e-6)
    np.testing.assert_allclose(polar(double, 2.0)[1], 0.0, atol=1e-6)
    assert polar(double, 1.9)[1] > 0 > polar(double, 2.1)[1]
    for x in (0.0, math.sqrt(2), -math.sqrt(2)):
        np.testing.assert_allclose(fields.duffing(jnp.asarray([x, 0.0])), 0.0, atol=1e-6)


def test_speeds():
    """Published largest speeds before scaling, and what the default scales make of the mean."""
    axis = np.linspace(-2, 2, 40)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    speed = lambda name, **a: np.linalg.norm(jax.jit(fields.FIELDS[name])(grid, **a), axis=-1)
    assert speed("limit_cycle", scale=1.0).max() == pytest.approx(20.0, abs=5e-3)
    assert speed("double_limit_cycle", scale=1.0).max() == pytest.approx(5.678, abs=5e-4)
    for name in ("van_der_pol", "snowman"):
        mean = fields.mean_speed(fields.FIELDS[name])
        assert mean == pytest.approx(speed(name).mean(), rel=1e-5)
        assert mean == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("name", fields.FIELDS)
def test_slopes_are_finite_at_the_origin(name):
    dims = {"lorenz": 3, "saddle_cycle": 3, "coupled_cycles": 8, "network": 5}.get(name, 2)
    fields.check_dimension(name, dims)
    field_parameters = {"multi_attractor": jnp.ones((40, 40, 2)), "network": jnp.ones((dims, dims))}
    extra = (field_parameters[name],) if name in field_parameters else ()
    slope = jax.jit(jax.jacfwd(fields.FIELDS[name]))(jnp.zeros(dims), *extra)
    assert slope.shape == (dims, dims)
    assert np.isfinite(slope).all()


def test_the_drawn_field_has_its_covariance():
    """4,000 draws on a 10 x 10 grid, whose kernel needs its least eigenvalues raised."""
    draws, n = 4_000, 10
    keys = jax.random.split(jax.random.key(1), draws)
    process = lambda key: landscape.gaussian_process(key, n, 2.0, 0.9)
    samples = np.asarray(jax.jit(jax.vmap(process))(keys)).reshape(draws, n * n, 2)
    axis = np.linspace(-2, 2, n)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    distance = np.sum((points[:, None] - points[None]) ** 2, axis=-1)
    values, vectors = np.linalg.eigh(0.5 * np.exp(-distance / (2 * 0.9**2)))
    assert values.min() < 1e-5
    kernel = vectors * np.maximum(values, 1e-4) @ vectors.T
    error = 5 * 0.5 * math.sqrt(2 / draws)  # five standard deviations of the largest entries
    for component in (0, 1):
        covariance = samples[..., component].T @ samples[..., component] / draws
        np.testing.assert_allclose(covariance, kernel, atol=error)
    cross = samples[..., 0].T @ samples[..., 1] / draws
    np.testing.assert_allclose(cross, 0.0, atol=error)
    white = samples[..., 0] @ vectors / np.sqrt(np.maximum(values, 1e-4))  # also the raised ones
    np.testing.assert_allclose(np.mean(white**2, axis=0), 1.0, atol=0.1)


def test_the_landscape_is_interpolated_as_by_scipy():
    grid = jax.jit(landscape.draw)(jax.random.key(2))
    assert grid.shape == (40, 40, 2)
    np.testing.assert_allclose(np.linalg.norm(grid, axis=-1), 0.25, rtol=1e-5)
    axis = np.linspace(-2, 2, 40)
    slow = RegularGridInterpolator((axis, axis), np.asarray(grid, float))
    z = np.random.default_rng(3).uniform(-2.5, 2.5, (300, 2)).astype(np.float32)
    z[:4] = axis[[[0, 0], [39, 39], [3, 39], [39, 7]]]  # on the grid, and on its border
    assert (abs(z) > 2).any(axis=1).sum() > 50
    pull = 0.1 * z * np.linalg.norm(z, axis=-1, keepdims=True)
    expected = slow(np.clip(z, -2, 2)) - pull
    velocity = jax.jit(landscape.multi_attractor)(z, grid)
    np.testing.assert_allclose(velocity, expected, atol=2e-5)
    np.testing.assert_allclose(velocity[2], grid[3, 39] - pull[2], atol=2e-5)  # not mirrored
