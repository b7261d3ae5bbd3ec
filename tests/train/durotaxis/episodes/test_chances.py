"""The probability of each node to be deleted, against the frequencies of deletions drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.durotaxis import rules
from jaxrl.losses.distributions.continuous import Normal, SquashedNormal
from train.durotaxis.episodes import chances

DRAWS = 20_000


@pytest.mark.parametrize(
    ("mean", "deviation", "low", "high"),
    [(0.0, 1.0, 0.0, 0.7), (-0.8, 0.3, 0.0, 0.7), (1.5, 2.0, 0.2, 1.0), (3.0, 0.1, 0.42, 0.6)],
)
def test_a_node_is_deleted_as_often_as_is_said(mean, deviation, low, high):
    x = np.array([5.0, 1.0, 9.0, 1.0, 3.0, 7.5, 2.0], np.float32)  # two at one place
    colony = rules.Colony(
        x=jnp.asarray(x),
        y=jnp.zeros(7),
        parent=jnp.full(7, -1),
        birth=jnp.zeros(7, jnp.int32),
        num_nodes=jnp.int32(7),
    )
    share = SquashedNormal(*(Normal(jnp.array([mean]), jnp.array([deviation])), jnp.array([low])),
                     high=jnp.array([high]))  # fmt: skip

    def draw_deleted(key: jax.Array) -> jax.Array:
        count = rules.delete_count(share.sample(key)[0], colony.num_nodes)
        return rules.leftmost(colony.x, rules.alive(colony), count)

    deleted = jax.jit(jax.vmap(draw_deleted))(jax.random.split(jax.random.key(1), DRAWS))
    probabilities = chances.leftmost_probabilities(x, mean, deviation, low, high)
    margin = 5 * np.sqrt(probabilities * (1 - probabilities) / DRAWS) + 1e-9
    assert (np.abs(np.asarray(deleted).mean(0) - probabilities) <= margin).all()
    order = np.lexsort((np.arange(7), x))
    assert (np.diff(probabilities[order]) <= 0).all(), "the farther right, the safer"
    assert 0 < probabilities.sum() < 7


def test_bounds_are_certain():
    """A share of at least a half always takes the left one of two, one below 1 never both."""
    np.testing.assert_array_equal(
        chances.leftmost_probabilities(np.array([2.0, 1.0]), 0, 1, 0.5, 0.9), [0, 1]
    )
    assert chances.leftmost_probabilities(np.zeros(0), 0, 1, 0, 1).shape == (0,)
