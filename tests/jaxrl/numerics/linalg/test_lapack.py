"""Factorisations of LAPACK: right, and never handed to it as a batch."""

import os
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.networks.mlp import MLP
from jaxrl.numerics import linalg

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
