"""Parts of a vector against slices of it in NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxrl.networks.parts import Parts


class WeightedSum(nn.Module):
    """`[..., rows, cols, C] -> [..., C]`: a different factor for each cell, summed."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        rows, cols = x.shape[-3:-1]
        weights = jnp.arange(rows * cols, dtype=jnp.float32).reshape(rows, cols)
        return jnp.einsum("...ijc,ij->...c", x, weights)


@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
def test_frames_of_a_part_lie_beside_each_other(batch):
    """Two frames, each of a vector of 2, an image of 2 by 3 with two channels, and a number."""
    x = np.random.default_rng(0).normal(size=(*batch, 2 * 15)).astype(np.float32)
    first, second = x[..., :15], x[..., 15:]
    image = lambda frame: frame[..., 2:14].reshape(*batch, 2, 3, 2)
    cells = np.arange(6).reshape(2, 3, 1)
    weighted_sum = lambda frame: (image(frame) * cells).sum((-3, -2))
    pairs = [(frame[..., :2], weighted_sum(frame), frame[..., 14:]) for frame in (first, second)]
    expected = np.concatenate([piece for part in zip(*pairs, strict=True) for piece in part], -1)
    model = Parts(((2,), (2, 3, 2), (1,)), (None, WeightedSum(), None), frames=2)
    joined: Any = model.apply({}, jnp.asarray(x))
    np.testing.assert_allclose(joined, expected, rtol=1e-5, atol=1e-6)


def test_vectors_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"vectors of 2 times 3, got \[5\]"):
        Parts(((3,),), (None,), 2).apply({}, jnp.zeros(5))
