"""Factorisations: right, and never handed to LAPACK as a batch."""

import os
import re
import subprocess
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.networks.mlp import MLP
from jaxrl.numerics import linalg
from tests.accelerator_branches import compile_as_on_accelerators

MATRICES = np.random.default_rng(0).normal(size=(3, 5, 5)).astype(np.float32)


def test_many_factorisations_are_those_of_each_one():
    symmetric = MATRICES + MATRICES.transpose(0, 2, 1)
    values, vectors = jax.vmap(linalg.eigh)(symmetric)
    rebuilt = np.einsum("bij,bj,bkj->bik", vectors, values, vectors)
    np.testing.assert_allclose(rebuilt, symmetric, atol=1e-5)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(symmetric), atol=1e-5)
    singular_values = jax.vmap(linalg.singular_values)(MATRICES[:, :, :4])
    np.testing.assert_allclose(
        singular_values, np.linalg.svd(MATRICES[:, :, :4], compute_uv=False), atol=1e-5
    )
    u, s, vt = jax.vmap(linalg.svd)(MATRICES)
    np.testing.assert_allclose(np.einsum("bij,bj,bjk->bik", u, s, vt), MATRICES, atol=1e-5)
    values, vectors = jax.vmap(linalg.eig)(MATRICES)
    np.testing.assert_allclose(MATRICES @ vectors, vectors * values[:, None], atol=1e-5)
    product = jax.vmap(linalg.inverse)(MATRICES) @ MATRICES
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(5), (3, 5, 5)), atol=1e-4)


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
    factor = np.asarray(jax.jit(jax.vmap(linalg.root))(positive))
    np.testing.assert_allclose(factor @ factor.swapaxes(-1, -2), exact, rtol=1e-4, atol=1e-5)
    if size <= 2:
        np.testing.assert_allclose(factor, np.linalg.cholesky(exact), rtol=1e-4, atol=1e-5)


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


def test_root_of_an_inverse():
    positive = MATRICES @ MATRICES.transpose(0, 2, 1) + 0.1 * np.eye(5, dtype=np.float32)
    root = np.asarray(jax.jit(jax.vmap(linalg.inverse_root))(positive))
    np.testing.assert_allclose(root @ root.mT @ positive, np.eye(5)[None].repeat(3, 0), atol=1e-3)
    singular = np.ones((5, 5), np.float32)
    assert np.isfinite(linalg.inverse_root(singular)).all()


def test_a_loop_that_seldom_computes_an_inverse_root_does_not_transpose_it_at_every_step():
    def begin_again(root):
        return linalg.inverse_root(root @ root.T)

    def run(root, data):
        def step(root, i):
            root = root - jnp.outer(root @ data, root.T @ data)
            return jax.lax.cond(i % 9 == 0, begin_again, lambda root: root, root), ()

        return jax.lax.scan(step, root, jnp.arange(20))[0]

    text = jax.jit(run).lower(jnp.eye(40), jnp.ones(40)).compile().as_text() or ""
    (conditional,) = [line for line in text.splitlines() if " conditional(" in line]
    assert "f32[40,40]{1,0}" in conditional  # the order that products and updates have


@pytest.mark.slow
def test_explicit_meshes_keep_the_examples_where_they_are():
    """On two devices, in a process of its own: each loops over its half."""
    script = """
import jax, jax.numpy as jnp, numpy as np
from jaxrl.numerics import linalg
mesh = jax.make_mesh((2,), ("s",), axis_types=(jax.sharding.AxisType.Explicit,))
jax.set_mesh(mesh)
rng = np.random.default_rng(0)
rows = rng.normal(size=(4, 3, 5)).astype(np.float32)
rows = rows @ rows.swapaxes(1, 2)
placed = jax.device_put(rows, jax.P("s"))
values, vectors = jax.jit(jax.vmap(linalg.eigh))(placed)
assert values.sharding.spec[0] == "s", values.sharding
np.testing.assert_allclose(values, np.linalg.eigvalsh(rows), atol=1e-4)
shared = jax.jit(jax.vmap(lambda a, b: linalg.inverse(a + b), in_axes=(0, None)))
found = shared(placed, jnp.eye(3))
np.testing.assert_allclose(found, np.linalg.inv(rows + np.eye(3)), atol=1e-4)
whole = jax.jit(jax.vmap(linalg.singular_values))(jnp.asarray(rows))  # on one device or on all
np.testing.assert_allclose(whole, np.linalg.svd(rows, compute_uv=False), atol=1e-4)
"""
    flags = "--xla_force_host_platform_device_count=2"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=300)


def test_weights_start_orthogonal(key):
    weights = jax.vmap(lambda key: linalg.orthogonal_start(2.0)(key, (7, 4)))(
        jax.random.split(key, 3)
    )
    expected = np.broadcast_to(4 * np.eye(4), (3, 4, 4))
    np.testing.assert_allclose(jnp.swapaxes(weights, 1, 2) @ weights, expected, atol=1e-5)
    assert not np.allclose(weights[0], weights[1])


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (linalg.eigh, MATRICES),
        (linalg.singular_values, MATRICES),
        (linalg.svd, MATRICES),
        (linalg.eig, MATRICES),
        (linalg.inverse, MATRICES),
        (lambda key: MLP((8, 8)).init(key, jnp.zeros(3)), jax.random.split(jax.random.key(0), 3)),
    ],
    ids=["eigh", "singular_values", "svd", "eig", "inverse", "network"],
)
def test_lapack_sees_one_matrix_at_a_time(function, argument):
    """No operand of a LAPACK call under `vmap` has a third axis: two such calls could hang."""
    text = jax.jit(jax.vmap(function)).lower(argument).as_text()
    calls = re.findall(r"custom_call @(?:lapack|blas)\w*\(.*", text)
    assert calls
    operands = re.findall(r"tensor<((?:\d+x)*)[fis]\d+>", " ".join(calls))
    assert all(shape.count("x") <= 2 for shape in operands)


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
