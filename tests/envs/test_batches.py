"""Functions that know their batch: any number of `vmap`s, and tiles, against plain `vmap`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs import batches

WIDE = 600
"""Numbers in a row; six rows fill a tile."""


def halvings(row: jax.Array) -> tuple[jax.Array, jax.Array]:
    """How often to halve until all are below 1, and what is then left."""
    return jax.lax.while_loop(
        lambda carry: jnp.max(carry[1]) >= 1,
        lambda carry: (carry[0] + 1, carry[1] / 2),
        (jnp.int32(0), row),
    )


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("batch", [(), (1,), (6,), (7,), (2, 5), (3, 2, 4)])
def test_tiles_give_what_vmap_gives(batch):
    rows = jax.random.exponential(jax.random.key(0), (*batch, WIDE)) * 10
    counts, remainders = jax.jit(lambda rows: batches.map_in_tiles(halvings, rows))(rows)
    assert counts.shape == batch
    for index in np.ndindex(*batch):
        row, count = np.asarray(rows[index]), 0
        while row.max() >= 1:
            row, count = row / 2, count + 1
        assert counts[index] == count
        np.testing.assert_array_equal(remainders[index], row)


def test_a_function_sees_all_batches_at_once():
    shapes = []

    @batches.with_batch_axes
    def centre_batch(x, shift):
        shapes.append((x.shape, shift.shape))
        return x - jnp.max(x) + shift[..., None]  # of the whole batch

    x = jnp.arange(24.0).reshape(2, 3, 4)
    assert np.all(jax.vmap(centre_batch)(x[0], jnp.arange(3.0)) == x[0] - 11 + np.c_[:3])
    centred_rows = jax.jit(jax.vmap(jax.vmap(centre_batch, (0, None)), (0, None)))(x, jnp.ones(()))
    assert np.all(centred_rows == x - 23 + 1)
    assert shapes[-1] == ((2, 3, 4), (2, 3))
    assert np.all(centre_batch(x[0, 0], jnp.zeros(())) == x[0, 0] - 3)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_accelerators_take_the_whole_batch(platform):
    rows = jnp.ones((64, WIDE))
    traced = jax.jit(lambda rows: batches.map_in_tiles(halvings, rows)).trace(rows)
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    assert text.count("stablehlo.while") == 1  # that of the function, and none over tiles
    assert traced.lower(lowering_platforms=("cpu",)).as_text().count("stablehlo.while") == 2
