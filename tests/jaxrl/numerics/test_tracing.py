"""By counting how often Python goes through a function, in every place that may call it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.numerics.tracing import trace_once


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def add(calls: list[str]):
    @trace_once
    def add(numbers: dict, key: jax.Array):
        calls.append("x")
        return {"sum": numbers["a"] + numbers["b"]}, jax.random.split(jax.random.clone(key))

    return add


def test_one_trace_serves_every_caller(add, calls: list[str]):
    """Shapes, `jit`, two levels of `vmap`, a scan, and a `shard_map`."""
    numbers = {"a": jnp.arange(6.0).reshape(2, 3, 1), "b": jnp.ones((2, 3, 1))}
    keys = jax.random.split(jax.random.key(0), (2, 3))
    first = {name: x[0, 0] for name, x in numbers.items()}, keys[0, 0]
    jax.eval_shape(add, *first)
    total, _ = jax.jit(add)(*first)
    np.testing.assert_array_equal(total["sum"], [1.0])

    def scan(numbers, keys):
        add_all = lambda carry, key: (carry, jax.vmap(jax.vmap(add))(numbers, key)[0]["sum"])
        return jax.lax.scan(add_all, None, keys[None])[1][0]

    mesh = jax.make_mesh((1,), ("member",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.P("member")
    shards = jax.shard_map(
        scan, mesh=mesh, in_specs=(split, split), out_specs=split, check_vma=False
    )
    expected = np.arange(6.0).reshape(2, 3, 1) + 1
    np.testing.assert_array_equal(jax.jit(scan)(numbers, keys), expected)
    np.testing.assert_array_equal(jax.jit(shards)(numbers, keys), expected)
    assert len(calls) == 1


def test_other_shapes_dtypes_and_names_are_traced_anew(add, calls: list[str]):
    key = jax.random.key(0)
    for value in (jnp.zeros(2), jnp.zeros(3), jnp.zeros(3, int)):
        result, keys = add({"a": value, "b": value}, key)
        assert result["sum"].dtype == value.dtype
        np.testing.assert_array_equal(result["sum"], value)
        assert (keys == jax.random.split(jax.random.clone(key))).all()
    assert len(calls) == 3
    with pytest.raises(KeyError):
        add({"a": key}, key)


def test_what_is_closed_over_may_be_traced(calls: list[str]):
    """The numbers of a member of a sweep are, for example."""

    def scale_all(factor, x):
        scale = trace_once(lambda x: (calls.append("x"), factor * x)[1])
        return scale(x) + jax.vmap(scale)(jnp.stack([x, 2 * x]))

    result = jax.jit(jax.vmap(scale_all, in_axes=(0, None)))(jnp.array([2.0, 3.0]), jnp.array(5.0))
    np.testing.assert_array_equal(result, [[20, 30], [30, 45]])
    assert len(calls) == 1


def test_gradients_pass():
    square = trace_once(lambda x: x**2)
    assert jax.grad(lambda x: square(x) + square(x))(3.0) == 12
