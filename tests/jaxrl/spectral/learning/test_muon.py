"""Muon of matrices side by side, against optax's, which does one after the other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optax import contrib

from jaxrl.spectral.learning.muon import ITERATIONS, muon, orthogonalise
from tests.accelerator_branches import compile_as_on_accelerators

SHAPES = {"first": (34, 24), "bias": (24,), "square": (24, 24), "head": (24, 5), "wide": (3, 30)}


def gradient(seed: int, scale: float = 1.0) -> dict[str, jax.Array]:
    keys = jax.random.split(jax.random.key(seed), len(SHAPES))
    draw = lambda key, shape: scale * jax.random.normal(key, shape)
    return dict(zip(SHAPES, map(draw, keys, SHAPES.values()), strict=True))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("platform", ["cpu", "accelerator"])
def test_steps_and_state_are_those_of_optax(platform):
    params, reference = gradient(0), contrib.muon(1.0, ns_steps=ITERATIONS)
    state = expected_state = muon().init(params)
    assert jax.tree.structure(state) == jax.tree.structure(reference.init(params))
    if platform == "cpu":
        step, tolerance = jax.jit(muon().update), 0.0
    else:
        step = compile_as_on_accelerators(muon().update, params, state, params)
        tolerance = 2e-4  # of iterations that each raise rounding to the fifth power
    for seed in range(1, 4):
        # the second gradient is as small as they get
        grads = gradient(seed, 1e-5 if seed == 2 else 3.0)
        updates, state = step(grads, state, params)
        expected, expected_state = jax.jit(reference.update)(grads, expected_state, params)
        for name in SHAPES:
            np.testing.assert_allclose(updates[name], expected[name], atol=tolerance, rtol=0)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6), state, expected_state)


def test_singular_values_end_near_the_norm_and_vectors_stay():
    """Each singular value of X, over the norm of X, goes through the polynomial each time."""
    matrices = [np.asarray(x) for x in gradient(5).values() if x.ndim == 2]
    for actual, matrix in zip(
        orthogonalise(list(map(jnp.asarray, matrices))), matrices, strict=True
    ):
        norm = np.linalg.norm(matrix)
        left, values, right = np.linalg.svd(matrix.astype(np.float64), full_matrices=False)
        x = values / norm
        for _ in range(ITERATIONS):
            x = 3.4445 * x - 4.775 * x**3 + 2.0315 * x**5
        np.testing.assert_allclose(actual, norm * (left * x) @ right, atol=1e-3 * float(norm))


def test_a_gradient_of_zero_changes_nothing():
    zeros = [jnp.zeros((4, 3)), jnp.zeros((2, 7))]
    for x, y in zip(orthogonalise(zeros), zeros, strict=True):
        np.testing.assert_array_equal(x, y)
