"""Roots and solutions of positive definite matrices: right, and computed without LAPACK."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.numerics import linalg
from tests.accelerator_branches import compile_as_on_accelerators


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("size", [1, 2, 6])
def test_positive_matrices_are_factorised_together(size):
    """However many axes are mapped over, and of which argument; nothing is handed to LAPACK."""
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(3, 4, size, size + 1)).astype(np.float32)
    positive = rows @ rows.swapaxes(-1, -2) + 0.1 * np.eye(size, dtype=np.float32)  # [3, 4, d, d]
    right = rng.normal(size=(4, size, 2)).astype(np.float32)

    def all_three(positive, right):
        lower = linalg.root1p(linalg.root(positive))
        return linalg.solve_positive(positive, right), linalg.solve_lower(lower, right)

    inner = jax.vmap(all_three, in_axes=(0, None))  # maps over the 3
    mapped = jax.jit(jax.vmap(inner, in_axes=(1, 0), out_axes=1)).lower(positive, right).compile()
    assert "custom-call" not in str(mapped.as_text())
    exact = positive.astype(np.float64)
    rights = np.broadcast_to(right, (3, 4, size, 2))
    lower = np.linalg.cholesky(np.eye(size) + exact)
    answers = (np.linalg.solve(exact, rights), np.linalg.solve(lower, rights))
    for solutions in (mapped(positive, right), jax.jit(all_three)(positive, right)):
        chex.assert_trees_all_close(solutions, answers, rtol=2e-4, atol=2e-4)
    for scale in (1e-30, 1e30):  # of which a determinant would be 0, or infinite
        solution = linalg.solve_positive(positive * np.float32(scale), rights)
        np.testing.assert_allclose(solution * scale, answers[0], rtol=2e-4, atol=2e-4)
    factor = np.asarray(jax.jit(jax.vmap(linalg.root))(positive))
    np.testing.assert_allclose(factor @ factor.swapaxes(-1, -2), exact, rtol=1e-4, atol=1e-5)
    if size <= 2:
        np.testing.assert_allclose(factor, np.linalg.cholesky(exact), rtol=1e-4, atol=1e-5)


def test_equations_without_unknowns_have_a_solution_without_numbers():
    for batch in ((), (2,)):
        solution = linalg.solve_positive(jnp.zeros((*batch, 0, 0)), jnp.zeros((*batch, 0, 3)))
        assert solution.shape == (*batch, 0, 3)


@pytest.mark.parametrize("size", [2, 5])
def test_root_of_a_semidefinite_matrix(size):
    row = (
        np.arange(1.0, size + 1, dtype=np.float32)[:, None]
        * np.array([[1.0], [0.0], [1e-4]])[:, None]
    )
    matrices = (row @ row.swapaxes(-1, -2)).astype(np.float32)  # of rank 1, of rank 0, and tiny
    factor = np.asarray(jax.jit(linalg.root)(matrices))
    scale = np.array([1.0, 1.0, 1e-8])[:, None, None]
    np.testing.assert_allclose(
        factor @ factor.swapaxes(-1, -2) / scale, matrices / scale, atol=1e-5
    )
    np.testing.assert_allclose(factor[..., 1:], 0.0)


@pytest.mark.parametrize(("size", "rank"), [(3, 2), (6, 3), (10, 2)])
def test_root_of_a_singular_matrix_whose_first_block_is_nearly_singular(size, rank):
    """To some roundings of the matrix, whatever the order and the scales of its rows."""
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(500, size, rank))
    rows[:, 1] = rows[:, 0] + 10.0 ** rng.uniform(-4, -1, (500, 1)) * rows[:, 1]
    rows = rows * 10.0 ** rng.uniform(-6, 6, (500, size, 1))
    matrices = (rows @ rows.mT).astype(np.float32)
    right = (rows @ rng.normal(size=(500, rank, 1))).astype(np.float32)
    both = jax.jit(jax.vmap(linalg.root_and_coordinates))(matrices, right)
    factor, coordinates = (np.asarray(x, np.float64) for x in both)
    deviation = np.sqrt(np.diagonal(matrices.astype(np.float64), axis1=1, axis2=2))[:, :, None]
    off = (factor @ factor.mT - matrices) / deviation / deviation.mT
    assert np.abs(off).max() < 4 * size * 2.0**-23
    residual = (factor @ coordinates - right) / deviation
    assert np.abs(residual).max() < 1e-3 * np.abs(right / deviation).max()


def test_nothing_is_added_by_a_factor_without_columns():
    for shape in ((3, 0), (2, 3, 0)):
        factor = jnp.zeros(shape)
        expected = np.broadcast_to(np.eye(3), (*shape[:-2], 3, 3))
        np.testing.assert_array_equal(linalg.root1p(factor), expected)
        np.testing.assert_array_equal(linalg.log_determinant1p(factor), np.zeros(shape[:-2]))


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("scale", [1e-20, 1e-4, 1.0, 1e4, 1e6])
@pytest.mark.parametrize("size", [1, 2, 6])
def test_root_of_one_plus_a_product(size, scale):
    """The 1 is not lost beside a large product of low rank, which float64 has room for."""
    rng = np.random.default_rng(size)
    factor = (scale * rng.normal(size=(4, size, 1))).astype(np.float32)
    wide = (scale * rng.normal(size=(4, size, size + 2))).astype(np.float32)
    for rows in (factor, wide, np.zeros_like(wide)):
        lower = np.asarray(jax.jit(jax.vmap(linalg.root1p))(rows), np.float64)
        np.testing.assert_array_equal(lower, np.tril(lower))
        values = np.linalg.svd(rows.astype(np.float64), compute_uv=False)
        expected = np.sum(np.log1p(values**2), axis=1)
        log_determinant = jax.jit(jax.vmap(linalg.log_determinant1p))(rows)
        # roundings of the factor beside the 1
        np.testing.assert_allclose(log_determinant, expected, rtol=1e-5, atol=1e-6 * scale)
        product = np.eye(size) + rows.astype(np.float64) @ rows.astype(np.float64).mT
        np.testing.assert_allclose(lower @ lower.mT, product, rtol=1e-5, atol=1e-6 * product.max())


def test_small_factorisations_of_accelerators_are_those_of_a_cpu():
    """Where they are not a loop."""
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(7, 6, 6)).astype(np.float32)
    positive = factor @ factor.mT

    def factorise(factor, positive):
        lower = linalg.root1p(factor)
        solved = linalg.solve_lower(lower, factor)
        return linalg.root(positive), lower, linalg.log_determinant1p(factor), solved

    on_accelerators = compile_as_on_accelerators(factorise, factor, positive)
    assert " while(" not in on_accelerators.as_text()
    for actual, expected in zip(
        on_accelerators(factor, positive), jax.jit(factorise)(factor, positive), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
