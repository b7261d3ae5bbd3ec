"""Networks for continuous actions in a box: a Gaussian actor and critics of state and action.

Written for one observation `[D]`; leading axes `[..., D]` are carried along.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from jaxrl.losses.distributions.continuous import Normal, SquashedNormal
from jaxrl.networks.mlp import bounds, dense


class GaussianActor(nn.Module):
    """A normal policy squashed into a box; mean and scale both depend on the observation.

    It starts close to the standard normal, whose squashed density is almost flat over the box.
    """

    torso: nn.Module
    """`obs [...] -> [..., D]`, an `MLP` for instance."""
    action_size: int
    """A, the coordinates of an action."""
    low: float | tuple[float, ...]
    """Smallest action, one number or one for each coordinate."""
    high: float | tuple[float, ...]
    """Largest action, likewise."""
    log_scale_range: tuple[float, float] = (-5.0, 2.0)
    """Lowest and highest log standard deviation of the raw sample, on both sides of 0."""

    @nn.compact
    def __call__(self, obs: jax.Array) -> SquashedNormal:
        """The policy over actions `[..., A]`."""
        box = bounds(self.low, self.high, self.action_size)
        if box is None or not np.all(np.isfinite(box)):
            raise ValueError(
                f"GaussianActor has the bounds low={self.low} and high={self.high}, expected a "
                "finite box: give both"
            )
        x = self.torso(obs)
        mean = dense(self.action_size, 0.01, name="mean")(x)
        log_scale = smooth_clip(
            dense(self.action_size, 0.01, name="log_scale")(x), self.log_scale_range
        )
        low, high = (jnp.broadcast_to(end, mean.shape) for end in box)
        return SquashedNormal(Normal(mean, jnp.exp(log_scale)), low, high)


class QFunctions(nn.Module):
    """K estimates of Q(s, a) that share nothing; two are twin critics (Fujimoto et al. 2018)."""

    torso: nn.Module
    """`[..., D + A] -> [..., D']`, an `MLP` for instance; each critic has its own copy."""
    size: int = 2
    """K."""

    @nn.compact
    def __call__(self, obs: jax.Array, action: jax.Array) -> jax.Array:
        """`(obs [..., D], action [..., A]) -> q [..., K]`; obs and action are concatenated."""
        if self.size < 1:
            raise ValueError(f"QFunctions size is {self.size}, expected at least 1: 2 are twins")
        x = jnp.concatenate([jnp.asarray(obs, jnp.float32), action], axis=-1)
        critics = nn.vmap(
            lambda network, x: dense(1, 1.0, name="q")(network.torso(x))[..., 0],
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=None,  # pyright: ignore[reportArgumentType]
            out_axes=-1,
            axis_size=self.size,
        )
        return critics(self, x)


def smooth_clip(x: jax.Array, ends: tuple[float, float]) -> jax.Array:
    """A smooth, rising function of `x` from one end to the other; 0 where `x` is 0.

    Unlike a clip it has a gradient everywhere, so that a scale can come back from an end. Raises
    ValueError unless 0 lies between the ends.
    """
    low, high = ends
    if not -math.inf < low < 0.0 < high < math.inf:
        raise ValueError(
            f"log_scale_range is {low} to {high}, expected a number below 0 and one above: the "
            "scale starts at 1"
        )
    return low + (high - low) * jax.nn.sigmoid(x + math.log(-low / high))


def example_action(policy: Any) -> jax.Array:
    """Zeros `[A]`. Raises ValueError unless the policy for one observation is over such actions."""
    if not isinstance(policy, SquashedNormal) or policy.raw.mean.ndim != 1:
        raise ValueError(
            f"the actor returns {policy} for one observation, expected a SquashedNormal policy "
            "over actions [A]: use networks.continuous.GaussianActor"
        )
    return jnp.zeros(policy.raw.mean.shape)


def check_critic(q: Any) -> None:
    """Raises ValueError unless the output for one observation and action is `[K]`."""
    if getattr(q, "ndim", None) != 1:
        raise ValueError(
            f"the critic returns {q} for one observation and action, expected a value of each of K "
            "critics, [K]: use networks.continuous.QFunctions"
        )
