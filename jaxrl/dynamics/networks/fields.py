"""Learned vector fields f(z) and learned effects g(u) of actions on a latent state.

All are velocities: a step of length dt goes from z to z + dt (f(z) + g(u)). Fields are initialised
near 0. Written for one point `[d]`; leading axes are carried along.
"""

from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.dynamics import bases, rbf
from jaxrl.dynamics.bases import Fourier
from jaxrl.dynamics.rbf import Grid

SMALL = nn.initializers.normal(0.01)

Effect = Literal["identity", "linear", "mlp", "state_mlp"]


class LinearField(nn.Module):
    """f(z) = A z + b, `[..., d] -> [..., d]`."""

    latent: int
    """d."""

    @nn.compact
    def __call__(self, z: jax.Array) -> jax.Array:
        return nn.Dense(self.latent, kernel_init=SMALL, name="velocity")(z)


class MLPField(nn.Module):
    """Dense layers with tanh, whose gradient never vanishes exactly, under a linear one."""

    latent: int
    """d."""
    hidden: tuple[int, ...] = (16,)
    """Width of each layer."""

    @nn.compact
    def __call__(self, z: jax.Array) -> jax.Array:
        for width in self.hidden:
            z = nn.tanh(nn.Dense(width)(z))
        return nn.Dense(self.latent, kernel_init=SMALL, name="velocity")(z)


class RBFField(nn.Module):
    """f(z) = Wᵀ φ(z), where φ are the C features of `jaxrl.dynamics.rbf`: Gaussian bumps on a grid.

    The one parameter is W, `weights` `[C, d]`; f is 0 far from all centres.

    Raises ValueError for points with other dimensions than the grid.
    """

    grid: Grid
    """Where the centres are."""

    @property
    def latent(self) -> int:
        """d."""
        return self.grid.dims

    @nn.compact
    def __call__(self, z: jax.Array) -> jax.Array:
        if z.shape[-1] != self.latent:
            raise ValueError(
                f"points have shape {z.shape}, expected [..., {self.latent}]: use a grid of as "
                "many dimensions"
            )
        weights = self.param("weights", SMALL, (self.grid.num_features, self.latent))
        return rbf.weighted_sum(self.grid, weights, z)


class FourierField(nn.Module):
    """f(z) = Wᵀ φ(z), where φ are C random waves of `jaxrl.dynamics.bases`: for many dimensions.

    The one parameter is W, `weights` `[C, d]`. Raises ValueError for points with other dimensions.
    """

    basis: Fourier
    """The waves."""

    @property
    def latent(self) -> int:
        """d."""
        return self.basis.dims

    @nn.compact
    def __call__(self, z: jax.Array) -> jax.Array:
        weights = self.param("weights", SMALL, (self.basis.num_features, self.latent))
        return bases.weighted_sum(self.basis, weights, z)


class ActionEffect(nn.Module):
    """g(u) or g(u, z), `[..., m] -> [..., d]`: what an action adds to the velocity.

    Raises ValueError for an unknown kind, and for identity with m other than d.
    """

    latent: int
    """d."""
    kind: Effect = "identity"
    """identity, g(u) = u; linear, with a bias; mlp, one layer of 16 with relu under a linear one;
    state_mlp, h(u, z) - h(0, z) with h such layers: no effect without an action."""

    @property
    def depends_on_state(self) -> bool:
        """Whether the effect depends on the state."""
        return self.kind == "state_mlp"

    @nn.compact
    def __call__(self, action: jax.Array, z: Any = None) -> jax.Array:
        """`z` `[..., d]`, where the action acts, is only needed where it `depends_on_state`."""
        if self.kind not in get_args(Effect):
            raise ValueError(f"effect {self.kind!r} is unknown: use {', '.join(get_args(Effect))}")
        if self.kind == "identity" and action.shape[-1] != self.latent:
            raise ValueError(
                f"actions have {action.shape[-1]} numbers and the latent state {self.latent}: "
                "choose the effect linear or mlp"
            )
        if self.kind == "identity":
            return action
        if self.depends_on_state:
            hidden, out = nn.Dense(16), nn.Dense(self.latent, use_bias=False, name="velocity")
            h = lambda u: nn.relu(hidden(jnp.concatenate([u, z], axis=-1)))
            return out(h(action) - h(jnp.zeros_like(action)))
        if self.kind == "mlp":
            action = nn.relu(nn.Dense(16)(action))
        return nn.Dense(self.latent, name="velocity")(action)
