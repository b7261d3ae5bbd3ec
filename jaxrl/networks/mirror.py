"""An actor-critic that respects the mirror of a game by its weights.

A game is the same in a mirror if left and right change places in what is seen and in what is done.
Hidden units come in pairs here: what one of them computes of an observation, the other computes of
its mirror image (a group convolution over two elements, Cohen and Welling 2016, arXiv:1602.07576).
So the policy of a mirrored game is the mirror image of the policy, and its value is the same,
exactly; every step teaches as much as it and its mirror image. Sums and differences of pairs do not
mix, so layers between hidden units take half of the arithmetic of dense ones.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.losses.distributions.discrete import Categorical, masked
from jaxrl.networks.mlp import dense
from jaxrl.networks.noisy import align_axes
from jaxrl.numerics.linalg import orthogonal_start

ROOT_HALF = math.sqrt(0.5)
"""Of sums and differences, so that they have the norm of the pair."""


class MirrorActorCritic(nn.Module):
    """A policy over forward, left and right, and a value, on one torso of dense layers."""

    features: tuple[int, ...]
    """Width of each layer, one at least; even numbers."""
    reflect: Callable[[jax.Array], jax.Array]
    """`obs [D] -> [D]` of the mirrored game: entries change places or signs, and doing it twice
    undoes it."""
    allowed: Callable[[jax.Array], jax.Array] | None = None
    """`obs [...] -> bool [..., 3]`: the actions to choose from; None: all."""

    @nn.compact
    def __call__(self, obs: jax.Array) -> tuple[Categorical, jax.Array]:
        """`(policy with logits [..., 3], value [...])` of observations `[..., D]`.

        Raises ValueError for an odd width, and without a layer.
        """
        if not have_pairs(self.features):
            raise ValueError(f"features are {self.features}: pairs of units need even widths")
        first, *others = (width // 2 for width in self.features)
        pair = MirrorDense(first, self.reflect, name="first")(jnp.asarray(obs, jnp.float32))
        even, odd = sum_and_difference(*pair)
        for i, width in enumerate(others):
            even = dense(width, 1.0, name=f"even_{i}")(even)
            odd = dense_without_bias(width, 1.0, name=f"odd_{i}")(odd)
            even, odd = sum_and_difference(even + odd, even - odd)
        forward, aside = jnp.split(dense(2, 0.01, name="policy")(even), 2, axis=-1)
        turn = dense_without_bias(1, 0.01, name="turn")(odd)
        logits = jnp.concatenate([forward, aside + turn, aside - turn], axis=-1)
        policy = Categorical(logits) if self.allowed is None else masked(logits, self.allowed(obs))
        return policy, dense(1, 1.0, name="value")(even)[..., 0]


class MirrorDense(nn.Module):
    """A dense layer whose units come in pairs, one of which sees the mirror image."""

    num_pairs: int
    """F."""
    reflect: Callable[[jax.Array], jax.Array]
    """`[D] -> [D]`, as in `MirrorActorCritic`."""

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The outputs `[..., F]` for `x [..., D]`, and those for its mirror image."""
        start = orthogonal_start(math.sqrt(2))  # of both units of each pair
        shape = (x.shape[-1], 2 * self.num_pairs)
        one_of_each = lambda key: start(key, shape)[:, : self.num_pairs]
        kernel = self.param("kernel", one_of_each)
        bias = self.param("bias", nn.initializers.zeros, (self.num_pairs,), jnp.float32)
        # weights of the mirror image, which are cheaper to reorder than observations
        image = jax.vmap(self.reflect, in_axes=1, out_axes=1)(kernel)
        own, other = jnp.split(x @ jnp.concatenate([kernel, image], axis=1), 2, axis=-1)
        return own + align_axes(bias, own), other + align_axes(bias, other)


def have_pairs(widths: tuple[int, ...]) -> bool:
    """Whether units of layers of these widths come in pairs; there is one layer at least."""
    return bool(widths) and not any(width % 2 for width in widths)


def sum_and_difference(one: jax.Array, other: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What the mirror leaves of a pair of units after ReLU, and what it turns into its negative."""
    one, other = nn.relu(one), nn.relu(other)
    return ROOT_HALF * (one + other), ROOT_HALF * (one - other)


def dense_without_bias(features: int, scale: float, name: str) -> nn.Dense:
    """A dense layer for differences of pairs, in which a bias would favour one side."""
    return nn.Dense(features, use_bias=False, kernel_init=orthogonal_start(scale), name=name)
