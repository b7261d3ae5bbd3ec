"""Heads for actions of any kind: what a torso returns becomes a policy, `[..., D] -> policy`.

`JointHead` puts several of them together, for actions that are a tuple or a dict, and
`HeadedActorCritic` puts one on a torso, beside a critic.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from jaxrl.losses.distributions.continuous import ClippedNormal, Normal, SquashedNormal
from jaxrl.losses.distributions.discrete import Categorical, PerNode
from jaxrl.losses.distributions.joint import Joint
from jaxrl.networks.mlp import dense, gaussian


class DiscreteHead(nn.Module):
    """One of A actions."""

    num_actions: int
    """A."""

    @nn.compact
    def __call__(self, x: jax.Array) -> Categorical:
        """The policy with logits `[..., A]`."""
        return Categorical(dense(self.num_actions, 0.01, name="policy")(x))


class MultiDiscreteHead(nn.Module):
    """Several discrete choices that are one vector of integers, independent of each other."""

    num_actions: tuple[int, ...]
    """How many actions each of the C choices has."""

    @nn.compact
    def __call__(self, x: jax.Array) -> PerNode:
        """The policy over int32 `[..., C]`; logits `[..., C, A]`, those of no action -inf."""
        sizes = np.array(self.num_actions)
        logits = dense(int(sizes.sum()), 0.01, name="policy")(x)
        column = np.arange(sizes.max())
        exists = column < sizes[:, None]  # [C, A]
        offsets = np.cumsum(sizes) - sizes
        indices = np.where(exists, offsets[:, None] + column, 0)
        batch = (1,) * (logits.ndim - 1)
        logits = jnp.where(exists.reshape(*batch, *exists.shape), logits[..., indices], -jnp.inf)
        return PerNode(logits, jnp.ones(logits.shape[:-1], bool))


class BoxHead(nn.Module):
    """A vector of real numbers; the scale is a parameter, the same for all observations."""

    action_size: int
    """Coordinates of an action."""
    low: float | tuple[float, ...] | None = None
    """Smallest action, one number or one for each coordinate; without bounds None, or -inf."""
    high: float | tuple[float, ...] | None = None
    """Largest action, likewise."""

    @nn.compact
    def __call__(self, x: jax.Array) -> Normal | SquashedNormal | ClippedNormal:
        """The policy over actions `[..., action_size]`."""
        mean = dense(self.action_size, 0.01, name="policy")(x)
        log_scale = self.param("log_scale", nn.initializers.zeros, (self.action_size,))
        return gaussian(mean, log_scale, self.low, self.high)


class JointHead(nn.Module):
    """Independent parts: actions are a tuple, or a dict where the parts have names."""

    parts: tuple[nn.Module, ...]
    """A head for each part."""
    names: tuple[str, ...] | None = None
    """The names of the parts; None: they are a tuple."""

    def __call__(self, x: jax.Array) -> Joint:
        """The policy over all parts."""
        policies = tuple(head(x) for head in self.parts)
        if self.names is None:
            return Joint(policies)
        return Joint(dict(zip(self.names, policies, strict=True)))


class HeadedActorCritic(nn.Module):
    """A policy by any head, and a value, each on a torso of its own."""

    actor: nn.Module
    """`obs [...] -> [..., D]`, under the policy."""
    critic: nn.Module
    """`obs [...] -> [..., D]`, under the value."""
    head: nn.Module
    """`[..., D] -> policy`."""

    @nn.compact
    def __call__(self, obs: Any) -> tuple[Any, jax.Array]:
        """`(policy, value [...])`."""
        value = dense(1, 1.0, name="value")(self.critic(obs))[..., 0]
        return self.head(self.actor(obs)), value
