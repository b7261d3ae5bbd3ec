"""Shuffled minibatches: what they visit, and what they refuse."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.blocks import BlockBatch, flatten
from jaxrl.losses import minibatches

BATCH = {"index": jnp.arange(12), "row": jnp.arange(12)[:, None] * jnp.ones((1, 2))}


def visited_items(key, num_epochs=5, num_minibatches=4, group=1):
    """How often the carry was passed on, and what each step saw `[E, M, B / M]`."""

    def step(count, minibatch):
        return count + 1, minibatch.data

    run = jax.jit(minibatches.epochs, static_argnums=(0, 4, 5, 6))
    return run(step, jnp.int32(0), BlockBatch(BATCH), key, num_epochs, num_minibatches, group)


def test_each_epoch_visits_every_item_once_in_an_order_of_its_own(key):
    count, items = visited_items(key)
    assert count == 5 * 4
    assert items["index"].shape == (5, 4, 3)
    orders = np.asarray(items["index"]).reshape(5, 12)
    np.testing.assert_array_equal(np.sort(orders), np.tile(np.arange(12), (5, 1)))
    assert len({tuple(order) for order in orders}) == 5


def test_what_belongs_together_stays_together(key):
    _, items = visited_items(key)
    np.testing.assert_array_equal(items["row"], np.asarray(items["index"])[..., None] * [1.0, 1.0])


def test_every_item_is_as_likely_in_every_place():
    _, items = visited_items(jax.random.key(1), num_epochs=6_000, num_minibatches=12)
    places = np.asarray(items["index"]).reshape(6_000, 12)
    counts = np.array([np.bincount(column, minlength=12) for column in places.T])
    assert np.sum((counts - 500) ** 2 / 500) < 180  # χ² of 121 degrees of freedom: p < 0.0004


def test_refuses_a_batch_that_cannot_be_split(key):
    with pytest.raises(ValueError, match="12 transitions cannot be split into 5 equal minibatches"):
        visited_items(key, num_minibatches=5)


def test_groups_stay_together_and_are_as_likely_in_every_place():
    _, items = visited_items(jax.random.key(1), num_epochs=6_000, num_minibatches=2, group=3)
    places = np.asarray(items["index"]).reshape(6_000, 4, 3)
    np.testing.assert_array_equal(places[..., 1:] - places[..., :1], np.tile([1, 2], (6_000, 4, 1)))
    firsts = places[..., 0]
    np.testing.assert_array_equal(np.sort(firsts), np.tile([0, 3, 6, 9], (6_000, 1)))
    counts = np.array([np.bincount(column // 3, minlength=4) for column in firsts.T])
    assert np.sum((counts - 1_500) ** 2 / 1_500) < 30  # χ² of 9 degrees of freedom: p < 0.0005


def test_refuses_minibatches_that_groups_do_not_fill(key):
    with pytest.raises(ValueError, match="of 6 transitions cannot be made of groups of 4"):
        visited_items(key, num_minibatches=2, group=4)


class Sizes(NamedTuple):
    """What `group_size` reads of a configuration."""

    shuffle_group: int
    minibatches: int


def test_a_group_is_as_large_as_one_step_of_a_block_and_a_minibatch_allow():
    for steps, envs, blocks, parts, largest in itertools.product(
        (1, 4, 6), (1, 2, 3, 6, 16), (1, 2), (1, 2, 4), (1, 3, 4, 16)
    ):
        if envs % blocks or steps * envs // blocks % parts:
            continue  # refused
        rollout = flatten(jnp.zeros((steps, envs)), blocks)
        group = minibatches.group_size(Sizes(largest, parts), rollout, envs)
        time = np.arange(steps)[:, None] + np.zeros((1, envs // blocks), int)  # of one block
        minibatch = steps * envs // blocks // parts
        possible = [
            size
            for size in range(1, largest + 1)
            if time.size % size == 0
            and minibatch % size == 0
            and (np.ptp(time.reshape(-1, size), axis=1) == 0).all()
        ]
        assert group == max(possible), (steps, envs, blocks, parts, largest)


@pytest.mark.parametrize(("blocks", "size"), [(1, 4), (1, 12), (2, 2), (2, 6), (3, 1)])
def test_the_mean_of_parts_is_that_of_all(blocks, size):
    mean_square = lambda batch: jnp.mean(batch["row"] ** 2, axis=0)
    mean = minibatches.mean_of_parts(mean_square, BlockBatch(BATCH, blocks), size)
    np.testing.assert_allclose(mean, np.mean(np.asarray(BATCH["row"]) ** 2, axis=0), rtol=1e-6)
