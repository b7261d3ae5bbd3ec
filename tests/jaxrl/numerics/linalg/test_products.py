"""Products: in full precision, and sums on accelerators where few terms are added."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.numerics import linalg
from tests.accelerator_branches import compile_as_on_accelerators


def test_products_ask_every_accelerator_for_full_precision():
    a, b = jnp.ones((3, 4)), jnp.ones((4, 2))
    text = jax.jit(linalg.matmul).trace(a, b).lower(lowering_platforms=("cuda", "tpu")).as_text()
    assert "precision = [HIGHEST, HIGHEST]" in text


@pytest.mark.parametrize("terms", [1, linalg.FEW, linalg.FEW + 1])
def test_sums_of_few_terms_are_products_on_every_platform(terms):
    rng = np.random.default_rng(terms)
    a, b = rng.normal(size=(5, terms)), rng.normal(size=(terms, 3))
    operands = jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)
    on_accelerators = compile_as_on_accelerators(linalg.matmul_of_few_terms, *operands)
    assert (" dot(" in on_accelerators.as_text()) == (terms > linalg.FEW)
    for function in (linalg.matmul_of_few_terms, on_accelerators):
        np.testing.assert_allclose(function(*operands), a @ b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("columns", [1, linalg.FEW, linalg.FEW + 1])
def test_a_derivative_of_few_columns_is_a_sum_on_accelerators(columns):
    rng = np.random.default_rng(columns)
    a, b = rng.normal(size=(5, 12)), rng.normal(size=(12, columns))
    operands = jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)
    loss = lambda a, b: jnp.sum(jnp.sin(linalg.matmul_of_few_columns(a, b)))
    derivative = jax.grad(loss)
    on_accelerators = compile_as_on_accelerators(derivative, *operands)
    assert (" dot(" in on_accelerators.as_text()) == (columns > linalg.FEW)
    for function in (derivative, on_accelerators):
        np.testing.assert_allclose(function(*operands), np.cos(a @ b) @ b.T, rtol=1e-4, atol=1e-5)
