"""Features of a state: a torso under a linear head, and Fourier features as its input."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul
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


class TwoSided(nn.Module):
    """Two encoders of d features each, `[...] -> [..., 2, d]`: of where a pair begins and ends.

    Both linear heads are below `head`, so that `rotate_head` turns them alike.
    """

    first: nn.Module
    """`obs [...] -> [..., D]`, for states that begin a pair."""
    second: nn.Module
    """The same for states that end one; another instance, with parameters of its own."""
    num_features: int
    """d."""

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        return Heads(self.num_features, name="head")(self.first(obs), self.second(obs))


class Heads(nn.Module):
    """A linear head for each of two inputs, `[..., D]` twice to `[..., 2, d]`."""

    num_features: int
    """d."""

    @nn.compact
    def __call__(self, first: jax.Array, second: jax.Array) -> jax.Array:
        heads = (nn.Dense(self.num_features, name=name) for name in ("first", "second"))
        return jnp.stack([head(x) for head, x in zip(heads, (first, second), strict=True)], -2)


class Fourier(nn.Module):
    """Coordinates and waves along each of them, `[..., D] -> [..., D (1 + K)]`.

    cos(k π (x + 1) / 2) for k = 1..K: on -1..1 the k-th has k half waves and zero slope at both
    ends, like the eigenvectors of an interval. A network on coordinates alone learns low spatial
    frequencies long before high ones (Tancik et al. 2020).
    """

    num_frequencies: int = 16
    """K."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        k = jnp.arange(1, self.num_frequencies + 1, dtype=x.dtype)
        k = k.reshape((1,) * x.ndim + (-1,))
        waves = jnp.cos(jnp.pi / 2 * k * (x[..., None] + 1))
        return jnp.concatenate([x, waves.reshape(*x.shape[:-1], -1)], axis=-1)


class Standardise(nn.Module):
    """(x - middle) / scale of each number of an observation, which learning leaves as they are.

    Both begin as 0 and 1. They are parameters so that they are kept with the network; see
    `with_range`. Booleans and integers become float32.
    """

    axes: int = 1
    """How many axes an observation has."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        shape = x.shape[-self.axes :] if self.axes else ()
        middle = self.param("middle", nn.initializers.zeros, shape)
        scale = self.param("scale", nn.initializers.ones, shape)
        middle, scale = (
            jax.lax.stop_gradient(part).reshape((1,) * (x.ndim - len(shape)) + shape)
            for part in (middle, scale)
        )
        return (x.astype(jnp.float32) - middle) / scale


def encode(network: Any, params: PyTree, inputs: Any, state: PyTree) -> jax.Array:
    """Features `[B, d]` of states `[B, ...]`: by index, of all S at once where that is less."""
    if isinstance(inputs, tuple):
        return network.apply(params, state)
    if len(inputs) <= len(state):
        return network.apply(params, inputs)[state]
    return network.apply(params, inputs[state])


def with_head(params: PyTree, change: Callable[[jax.Array], jax.Array]) -> PyTree:
    """Parameters of an `Encoder`, after `change` to its head: kernel `[D, d]` and bias `[d]`."""
    inner = params["params"]
    return {**params, "params": {**inner, "head": jax.tree.map(change, inner["head"])}}


def with_range(params: PyTree, middle: jax.Array, scale: jax.Array) -> PyTree:
    """Parameters of an `Encoder` whose torso begins with `Standardise`, with these numbers."""
    inner = params["params"]
    torso = {**inner["torso"], "layers_0": {"middle": middle, "scale": scale}}
    return {**params, "params": {**inner, "torso": torso}}


def rotate_head(params: PyTree, opt_state: PyTree, rotation: jax.Array) -> tuple[PyTree, PyTree]:
    """Parameters with features times `rotation` `[d, d]`, and the optimizer state that suits them.

    With W' = W R for the rotation R, the gradient by W' is the gradient by W times R⁻ᵀ, and so is
    its running mean `mu`. Without that, momentum would point along the old axes for a while.
    """
    inverse_transpose = linalg.inverse(rotation).T

    def rotated_momentum(path: tuple, x: jax.Array) -> jax.Array:
        names = {getattr(entry, "name", getattr(entry, "key", None)) for entry in path}
        return matmul(x, inverse_transpose) if {"mu", "head"} <= names else x

    momentum = jax.tree_util.tree_map_with_path(rotated_momentum, opt_state)
    return with_head(params, lambda x: matmul(x, rotation)), momentum
