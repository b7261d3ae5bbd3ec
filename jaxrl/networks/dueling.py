"""Action values, plain or as a value and advantages of two streams."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.networks.mlp import MLP, dense


class QNetwork(nn.Module):
    """Q(s, ·) on any torso: `obs [...] -> [..., A]`."""

    torso: nn.Module
    """`obs [...] -> [..., D]`, an `MLP` for instance."""
    num_actions: int
    """A."""
    dueling: bool = False
    """Estimate V and A apart (Wang et al. 2016)."""
    streams: tuple[int, ...] = (128,)
    """Widths of the hidden layers in each of the two dueling streams."""

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        x = self.torso(obs)
        if not self.dueling:
            return dense(self.num_actions, 1.0, name="q")(x)
        value = dense(1, 1.0, name="value")(MLP(self.streams, name="value_stream")(x))
        advantage = dense(self.num_actions, 1.0, name="advantage")(
            MLP(self.streams, name="advantage_stream")(x)
        )
        return combine(value, advantage)


def combine(value: jax.Array, advantage: jax.Array) -> jax.Array:
    """Q = V + A - mean A, so that V is the mean of Q (Wang et al. 2016, eq. 9).

    `value` is `[..., 1]`, `advantage` and the result are `[..., A]`.
    """
    return value + advantage - jnp.mean(advantage, axis=-1, keepdims=True)
