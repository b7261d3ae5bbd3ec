"""Programs in which what a function closes over is an argument."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.host.compilation import ahead_of_time

DATA = np.random.default_rng(0).normal(size=(300, 100)).astype(np.float32)
TABLE = DATA[:3, :4]
EMBEDDED = ahead_of_time.LARGE
"""Characters of a program that holds a large array, at least."""


def add_rows(total: jax.Array, index: jax.Array) -> jax.Array:
    """Closes over arrays of NumPy and of JAX, a small one and a key, in a loop and a branch."""
    whole, key = jnp.asarray(DATA), jax.random.key(3)

    def step(total: jax.Array, k: jax.Array):
        drawn = jax.random.uniform(jax.random.fold_in(key, k))
        return total + drawn * whole[k] + jnp.matmul(total, DATA.T).mean() + TABLE.sum(), None

    total, _ = jax.lax.scan(step, total, jnp.arange(5))
    return jax.lax.cond(index > 0, lambda: total + whole[index], lambda: total)


def test_large_arrays_are_arguments_and_results_the_same():
    start = jnp.zeros(100)
    traced = ahead_of_time.trace(add_rows, start, np.int32(7))
    assert (
        len(traced.program.lower().as_text())
        < EMBEDDED
        < len(jax.jit(add_rows).lower(start, np.int32(7)).as_text())
    )
    assert {x.shape for x in traced.arrays} == {DATA.shape, DATA.T.shape}
    program = traced.compile()
    for index in (0, 7):
        np.testing.assert_array_equal(
            program(start, np.int32(index)), jax.jit(add_rows)(start, np.int32(index))
        )


def test_members_and_donated_states_are_as_without():
    starts = jnp.asarray(DATA[:3])
    every = jax.vmap(add_rows, in_axes=(0, None))
    expected = np.asarray(jax.jit(every)(starts, np.int32(7)))
    program = ahead_of_time.trace(every, starts, np.int32(7), donate_argnums=0).compile()
    for _ in range(2):  # the data are not given away with the state
        state = jnp.array(starts)
        np.testing.assert_array_equal(program(state, np.int32(7)), expected)
        assert state.is_deleted()


@pytest.mark.parametrize("data", [DATA, TABLE], ids=["large", "small"])
def test_a_function_is_traced_once(data):
    counts = []

    def body(x: jax.Array) -> dict[str, jax.Array]:
        counts.append(x)
        return {"sum": x @ data.T}

    results = ahead_of_time.trace(body, jnp.ones(data.shape[1])).compile()(jnp.ones(data.shape[1]))
    np.testing.assert_allclose(results["sum"], data.sum(1), rtol=1e-4, atol=1e-4)
    assert len(counts) == 1
