"""Parts of arrays: put together again whatever the cut; in processes see tests/train/host."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl import shards


@pytest.mark.parametrize("cuts", [(1, 1), (2, 1), (1, 3), (2, 3)])
def test_parts_make_the_whole_again(cuts):
    array = np.arange(24, dtype=np.uint16).reshape(4, 6)
    rows, cols = 4 // cuts[0], 6 // cuts[1]
    files = [
        {
            f"7@{r}:{r + rows},{c}:{c + cols}": array[r : r + rows, c : c + cols],
            f"71@{r}:{r + rows}": np.zeros(rows),  # of another array
        }
        for r in range(0, 4, rows)
        for c in range(0, 6, cols)
    ]
    np.testing.assert_array_equal(shards.join_parts("7", reversed(files)), array)
    assert shards.join_parts("7", files).dtype == array.dtype


def test_a_number_has_one_part():
    assert shards.join_parts("0", [{"1": np.ones(2)}, {"0@": np.array(3.0)}]) == 3


def test_a_single_process_writes_all_of_it():
    assert list(shards.local_parts("3", jnp.arange(4))) == ["3"]
    np.testing.assert_array_equal(shards.local_parts("3", np.arange(4))["3"], np.arange(4))


def test_a_missing_array_is_told():
    with pytest.raises(KeyError, match="2"):
        shards.join_parts("2", [{"1": np.ones(2)}])
