"""One element of every leaf of a tree, as indexing takes it."""

from typing import Any

import jax
import numpy as np

from jaxrl.numerics.trees import take


def test_an_element_of_every_leaf_and_one_program_for_all(key):
    numbers = np.arange(24.0).reshape(2, 3, 4)
    tree = {"x": numbers, "keys": jax.random.split(key, (2, 3)), "flags": numbers[..., 0] > 5}
    place, member = {}, {}
    programs: Any = take
    before = programs._cache_size()
    for i, j in np.ndindex(2, 3):
        place[i, j] = take(tree, (i, j))
    for i in range(2):
        member[i] = take(tree, i)
    assert programs._cache_size() == before + 2  # one for places, one for members
    for (i, j), leaves in place.items():
        np.testing.assert_array_equal(leaves["x"], numbers[i, j])
        assert leaves["flags"] == (numbers[i, j, 0] > 5)
        expected = jax.random.key_data(tree["keys"])[i, j]
        np.testing.assert_array_equal(jax.random.key_data(leaves["keys"]), expected)
    for i, leaves in member.items():
        np.testing.assert_array_equal(leaves["x"], numbers[i])
