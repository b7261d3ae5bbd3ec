import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.numerics import recurrence

METHODS = {
    "on this platform": recurrence.linear_recurrence,
    "step by step": recurrence._step_by_step,
    "in parallel": recurrence._in_parallel,
}


def reference(decay, addition, start, reverse):
    """The same in float64, a row at a time."""
    values, before = np.empty(addition.shape), np.asarray(start, float)
    for t in range(len(addition))[:: -1 if reverse else 1]:
        before = addition[t] + np.where(decay[t] == 0, 0.0, decay[t] * before)
        values[t] = before
    return values


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7, 128])
def test_values_are_those_of_a_loop(method, reverse, length):
    rng = np.random.default_rng(length)
    decay = rng.uniform(0.8, 1.0, (length, 3, 2)) * rng.integers(0, 5, (length, 3, 2)).clip(0, 1)
    addition, start = rng.normal(size=(length, 3, 2)), rng.normal(size=(3, 2))
    inputs = [x.astype(np.float32) for x in (decay, addition, start)]
    values = jax.jit(METHODS[method], static_argnames="reverse")(*inputs, reverse=reverse)
    np.testing.assert_allclose(values, reference(*inputs, reverse=reverse), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_decay_of_zero_drops_even_what_is_not_finite(method):
    decay, addition = jnp.array([0.9, 0.0, 0.9, 0.0]), jnp.array([np.nan, 1.0, np.inf, 2.0])
    values = METHODS[method](decay, addition, jnp.zeros(()), reverse=False)
    np.testing.assert_array_equal(values[1::2], [1.0, 2.0])


def test_no_rows_give_none():
    rows = jnp.zeros((0, 3))
    assert recurrence.linear_recurrence(rows, rows, jnp.zeros(3)).shape == (0, 3)
