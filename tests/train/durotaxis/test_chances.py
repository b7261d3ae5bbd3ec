"""The probability of each node to be deleted, against the frequencies of deletions drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.durotaxis import rules
from jaxrl.losses.distributions import Normal, Squashed
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
    share = Squashed(*(Normal(jnp.array([mean]), jnp.array([deviation])), jnp.array([low])),
                     high=jnp.array([high]))  # fmt: skip

    def drawn(key: jax.Array) -> jax.Array:
        count = rules.delete_count(share.sample(key)[0], colony.num_nodes)
        return rules.leftmost(colony.x, rules.alive(colony), count)

    deleted = jax.jit(jax.vmap(drawn))(jax.random.split(jax.random.key(1), DRAWS))
    found = chances.of_share(x, mean, deviation, low, high)
    margin = 5 * np.sqrt(found * (1 - found) / DRAWS) + 1e-9
    assert (np.abs(np.asarray(deleted).mean(0) - found) <= margin).all()
    order = np.lexsort((np.arange(7), x))
    assert (np.diff(found[order]) <= 0).all(), "the farther right, the safer"
    assert 0 < found.sum() < 7


def test_bounds_are_certain():
    """A share of at least a half always takes the left one of two, one below 1 never both."""
    np.testing.assert_array_equal(chances.of_share(np.array([2.0, 1.0]), 0, 1, 0.5, 0.9), [0, 1])
    assert chances.of_share(np.zeros(0), 0, 1, 0, 1).shape == (0,)
