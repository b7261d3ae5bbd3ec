"""Features of a state: a torso under a linear head, and Fourier features to stand before them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl import linalg
from jaxrl.types import PyTree


class Encoder(nn.Module):
    """d features of an observation, `[...] -> [..., d]`; the head is linear and called `head`."""

    torso: nn.Module
    """`obs [...] -> [..., D]`, an `MLP` for instance."""
    num_features: int
    """d."""

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        return nn.Dense(self.num_features, name="head")(self.torso(obs))


class Fourier(nn.Module):
    """Coordinates and waves along each of them, `[..., D] -> [..., D (1 + K)]`.

    cos(k π (x + 1) / 2) for k = 1..K: on -1..1 the k-th has k half waves, and none has a slope at
    either end, like the eigenvectors of an interval. A network on coordinates alone learns what
    varies slowly in space long before what does not (Tancik et al. 2020).
    """

    num_frequencies: int = 16
    """K."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        k = jnp.arange(1, self.num_frequencies + 1, dtype=x.dtype)
        k = k.reshape((1,) * x.ndim + (-1,))
        waves = jnp.cos(jnp.pi / 2 * k * (x[..., None] + 1))
        return jnp.concatenate([x, waves.reshape(*x.shape[:-1], -1)], axis=-1)


def with_head(params: PyTree, change: Callable[[jax.Array], jax.Array]) -> PyTree:
    """Parameters of an `Encoder`, after `change` to its head: kernel `[D, d]` and bias `[d]`."""
    inner = params["params"]
    return {**params, "params": {**inner, "head": jax.tree.map(change, inner["head"])}}


def turned(params: PyTree, opt_state: PyTree, turn: jax.Array) -> tuple[PyTree, PyTree]:
    """Parameters whose features are those of `params` times `turn` `[d, d]`, and their optimiser.

    With W' = W turn the slope by W' is the slope by W times turn⁻ᵀ, and so is its running mean
    `mu`. Without that, steps go on for a while in directions that mean something else by now.
    """
    times = lambda x, matrix: jnp.matmul(x, matrix, precision="highest")
    back = linalg.inverse(turn).T

    def turned_momentum(path: tuple, x: jax.Array) -> jax.Array:
        names = {getattr(entry, "name", getattr(entry, "key", None)) for entry in path}
        return times(x, back) if {"mu", "head"} <= names else x

    momentum = jax.tree_util.tree_map_with_path(turned_momentum, opt_state)
    return with_head(params, lambda x: times(x, turn)), momentum
