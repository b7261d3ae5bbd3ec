"""Against a plain loop over the members, and by counting how often the work is done."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.numerics.batched_cond import cond_any, switch_max


def sums(due, numbers, otherwise):
    return cond_any(
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
            held = cond_any(time % 4 == 0, draw, draw_key, held)
            return (key, time + 1, held), held

        return jax.lax.scan(step, (key, 0, jnp.zeros(())), length=8)[1]

    held = jax.jit(jax.vmap(experiment))(jax.random.split(jax.random.key(0), 3))
    jax.effects_barrier()
    assert len(done) == 2  # once for all three members together
    assert np.unique(held).size == 6
    np.testing.assert_array_equal(held, np.repeat(held[:, ::4], 4, axis=1))


def first_sum(index, numbers, shift):
    """The sum of the first 1, 2 or 4 numbers, the others being 0, and how many it looked at."""

    def sum_branch(size):
        return lambda x: {"sum": x[:size].sum() + shift, "size": jnp.array(size)}

    return switch_max(index, [sum_branch(size) for size in (1, 2, 4)], numbers)


NUMBERS = jnp.array([[3.0, 0, 0, 0], [5, 7, 0, 0], [2, 0, 0, 0]])


@pytest.mark.parametrize(("index", "size"), [(0, 1), (1, 2), (2, 4)])
def test_a_scalar_chooses_among_several(index, size):
    result = jax.jit(first_sum)(index, NUMBERS[1], 1.0)
    assert result["size"] == size
    assert result["sum"] == NUMBERS[1, :size].sum() + 1


@pytest.mark.parametrize(("index", "size"), [([0, 1, 0], 2), ([2, 1, 0], 4)])
def test_the_largest_index_counts_for_all_members(index, size):
    """What a branch closes over may have an axis of its own, or one that the operands lack."""
    index, shift = jnp.array(index), jnp.array([10.0, 20.0])
    inner = jax.vmap(first_sum, in_axes=(0, 0, None))
    result = jax.jit(jax.vmap(inner, in_axes=(None, None, 0)))(index, NUMBERS, shift)
    np.testing.assert_array_equal(result["size"], np.full((2, 3), size))
    np.testing.assert_array_equal(result["sum"], np.add.outer(shift, NUMBERS.sum(1)))


def test_one_branch_for_members_that_differ_in_nothing_but_the_index():
    result = jax.vmap(first_sum, in_axes=(0, None, None))(jnp.array([0, 1, 0]), NUMBERS[1], 0.0)
    np.testing.assert_array_equal(result["size"], [2, 2, 2])


def test_no_other_branch_is_computed():
    """In a scan over three steps, for two members, twice."""
    done = []

    def named_branch(name):
        def work(x):
            jax.debug.callback(lambda: done.append(name))
            return x + 1.0

        return work

    def experiment(start, indices):
        step = lambda x, index: (switch_max(index, [named_branch("a"), named_branch("b")], x), ())
        return jax.lax.scan(step, start, indices)[0]

    indices = jnp.array([[0, 1, 0], [0, 0, 0]])
    end = jax.jit(jax.vmap(experiment))(jnp.zeros(2), indices)
    jax.effects_barrier()
    assert sorted(done) == ["a", "a", "b"]  # once for both members together
    np.testing.assert_array_equal(end, [3, 3])
