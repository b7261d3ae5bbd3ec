"""Against a plain loop over the members, and by counting how often the work is done."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.due import when


def sums(due, numbers, otherwise):
    return when(
        due, lambda operands: operands[0].sum() * operands[1], (numbers, jnp.array(2.0)), otherwise
    )


def test_a_scalar_chooses():
    numbers = jnp.arange(4.0)
    assert jax.jit(sums)(True, numbers, -1.0) == 12
    assert jax.jit(sums)(False, numbers, -1.0) == -1


@pytest.mark.parametrize("due", [[[0, 1, 0], [0, 0, 0]], [[0] * 3] * 2, [[1] * 3] * 2])
def test_two_vmaps_choose_for_each_member(due):
    """The second axis of the numbers is shared, as parameters of one experiment would be."""
    due = jnp.array(due, bool)
    numbers = jnp.arange(8.0).reshape(2, 4)
    otherwise = -jnp.arange(6.0).reshape(2, 3)
    result = jax.jit(jax.vmap(jax.vmap(sums, in_axes=(0, None, 0))))(due, numbers, otherwise)
    totals = np.broadcast_to(2 * np.asarray(numbers).sum(1, keepdims=True), (2, 3))
    np.testing.assert_array_equal(result, np.where(due, totals, otherwise))


def test_work_that_is_due_for_nobody_is_not_done():
    """In a scan over eight steps, for three members with keys of their own, twice."""
    done = []

    def draw(key):
        jax.debug.callback(lambda: done.append(1))
        return jax.random.uniform(key)

    def experiment(key):
        def step(carry, _):
            key, time, held = carry
            key, draw_key = jax.random.split(key)
            held = when(time % 4 == 0, draw, draw_key, held)
            return (key, time + 1, held), held

        return jax.lax.scan(step, (key, 0, jnp.zeros(())), length=8)[1]

    held = jax.jit(jax.vmap(experiment))(jax.random.split(jax.random.key(0), 3))
    jax.effects_barrier()
    assert len(done) == 2  # once for all three members together
    assert np.unique(held).size == 6
    np.testing.assert_array_equal(held, np.repeat(held[:, ::4], 4, axis=1))
