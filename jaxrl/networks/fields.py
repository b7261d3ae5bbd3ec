"""Learned vector fields f(z), and learned effects g(u) of actions: what moves a latent state.

All are velocities: a step of length dt goes from z to z + dt (f(z) + g(u)). Fields start small, so
that nothing moves much before something is learned. Written for one point `[d]`; leading axes are
carried along.
"""

from typing import Literal, get_args

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.rbf import Grid

SMALL = nn.initializers.normal(0.01)

Effect = Literal["identity", "linear", "mlp"]


class LinearField(nn.Module):
    """f(z) = A z + b, `[..., d] -> [..., d]`."""

    latent: int
    """d."""

    @nn.compact
    def __call__(self, z: jax.Array) -> jax.Array:
        return nn.Dense(self.latent, kernel_init=SMALL, name="velocity")(z)


class MLPField(nn.Module):
    """Dense layers with tanh, which has slopes everywhere, under a linear one."""

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
    """f(z) = Wᵀ φ(z), where φ are the C features of `jaxrl.rbf`: Gaussian bumps on a grid.

    The one parameter is W, `weights` `[C, d]`; f is 0 far from all centres. A bump is a product of
    one factor per axis, so W is summed over one axis after the other, and the C features, which
    would cost most of the time, are never written down.

    Raises ValueError for points that have not the grid's dimensions.
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
                f"points have shape {z.shape}, expected [..., {self.latent}]: give a grid of their "
                "dimensions"
            )
        weights = self.param("weights", SMALL, (self.grid.num_features, self.latent))
        points = z.reshape(-1, self.latent).T  # [d, P]
        distance = (points[:, None] - self.grid.axis()[None, :, None]) / self.grid.width
        bumps = jnp.exp(-0.5 * distance**2)  # [d, per_axis, P]
        return separable(weights, bumps).T.reshape(z.shape)


def separable(weights: jax.Array, bumps: jax.Array) -> jax.Array:
    """Σ over the grid of weights `[A^d, d]` times the product of `bumps` `[d, A, P]`: `[d, P]`."""
    dims, per_axis, num_points = bumps.shape
    # The first axis of the grid is summed by a matrix product, with the points in columns, which
    # is the layout that both directions of differentiation like best.
    table = weights.reshape(per_axis, -1).T  # [A^(d-1) d, A]
    left = jnp.matmul(table, bumps[0])
    for axis in range(1, dims):
        left = left.reshape(per_axis, -1, num_points)
        left = jnp.einsum("ajp,ap->jp", left, bumps[axis])
    return left.reshape(dims, num_points)


class ActionEffect(nn.Module):
    """g(u), `[..., m] -> [..., d]`: what an action adds to the velocity.

    Raises ValueError for an unknown kind, and for identity with m other than d.
    """

    latent: int
    """d."""
    kind: Effect = "identity"
    """identity, g(u) = u; linear, with a bias; mlp, one layer of 16 with relu under a linear one.
    """

    @nn.compact
    def __call__(self, action: jax.Array) -> jax.Array:
        if self.kind not in get_args(Effect):
            raise ValueError(f"effect {self.kind!r} is unknown: use {', '.join(get_args(Effect))}")
        if self.kind == "identity" and action.shape[-1] != self.latent:
            raise ValueError(
                f"actions have {action.shape[-1]} numbers and the latent state {self.latent}: "
                "choose the effect linear or mlp"
            )
        if self.kind == "identity":
            return action
        if self.kind == "mlp":
            action = nn.relu(nn.Dense(16)(action))
        return nn.Dense(self.latent, name="velocity")(action)
