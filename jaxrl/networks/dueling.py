"""Action values, or distributions of them, plain or as a value and advantages of two streams."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.networks.mlp import MLP, dense


class QNetwork(nn.Module):
    """Q(s, ·) on any torso: `obs [...] -> [..., A]`, or logits `[..., A, K]` of K > 1 atoms."""

    torso: nn.Module
    """`obs [...] -> [..., D]`, an `MLP` for instance."""
    num_actions: int
    """A."""
    dueling: bool = False
    """Estimate V and A apart (Wang et al. 2016)."""
    streams: tuple[int, ...] = (128,)
    """Widths of the hidden layers in each of the two dueling streams."""
    noisy: bool = False
    """Learn noise in the weights above the torso; `MLP(noisy=True)` does it in the torso."""
    atoms: int = 1
    """K: 1 for values, more for a distribution of returns on a grid (Bellemare et al. 2017)."""

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        if self.atoms < 1:
            raise ValueError(f"QNetwork atoms is {self.atoms}, expected at least 1: 1 gives values")
        x = self.torso(obs)
        if not self.dueling:
            return self.head(x, self.num_actions, "q")
        value = self.head(self.stream(x, "value_stream"), 1, "value")
        advantage = self.head(self.stream(x, "advantage_stream"), self.num_actions, "advantage")
        return combine(value, advantage, axis=-1 if self.atoms == 1 else -2)

    def stream(self, x: jax.Array, name: str) -> jax.Array:
        """The hidden layers between the torso and one of the two heads."""
        return MLP(self.streams, noisy=self.noisy, name=name)(x)

    def head(self, x: jax.Array, rows: int, name: str) -> jax.Array:
        """`[..., rows]`, or logits `[..., rows, K]`, which start almost uniform."""
        scale = 1.0 if self.atoms == 1 else 0.01
        out = dense(rows * self.atoms, scale, name, self.noisy)(x)
        return out if self.atoms == 1 else out.reshape(*out.shape[:-1], rows, self.atoms)


def combine(value: jax.Array, advantage: jax.Array, axis: int = -1) -> jax.Array:
    """Q = V + A - mean A, so that V is the mean of Q (Wang et al. 2016, eq. 9).

    `advantage` and the result have A along `axis`, `value` has 1 there: `[..., 1]` and `[..., A]`.
    Logits `[..., 1, K]` and `[..., A, K]` are combined atom by atom, along axis -2 (Hessel et al.
    2018).
    """
    return value + advantage - jnp.mean(advantage, axis=axis, keepdims=True)
