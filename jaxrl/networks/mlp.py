"""Dense networks: the torso, and the actor-critic heads that sit on any torso.

Written for one observation `[D]`; leading axes `[..., D]` are carried along. Weights start
orthogonal: √2 inside, 0.01 for a policy, so that it starts almost uniform, and 1 for a value
(Huang et al. 2022, "The 37 implementation details of PPO", detail 2). A torso may start with
independent weights instead (He et al. 2015): orthogonal ones preserve norms, so a wide layer over
few inputs starts with small units, and a Q-network that is not given normalised observations then
learns later.
"""

import math
from collections.abc import Callable
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from jaxrl.losses.distributions.continuous import ClippedNormal, Normal, SquashedNormal
from jaxrl.losses.distributions.discrete import Categorical, masked
from jaxrl.networks.noisy import NoisyDense
from jaxrl.numerics import linalg

Activation = Literal["relu", "tanh", "elu", "silu", "gelu"]
WeightInit = Literal["orthogonal", "he"]


class MLP(nn.Module):
    """Dense layers, an activation after each: `[..., D] -> [..., features[-1]]`.

    Observations of any type, bool and uint8 included, are converted to float32.
    """

    features: tuple[int, ...]
    """Width of each layer."""
    activation: Activation = "relu"
    """One of relu, tanh, elu, silu, gelu."""
    layer_norm: bool = False
    """Normalise before each activation (Ba et al. 2016)."""
    noisy: bool = False
    """Learn noise in the weights, to explore by (Fortunato et al. 2018); see `NoisyDense`."""
    weight_init: WeightInit = "orthogonal"
    """How weights start: orthogonal; he, independent with the variance 2 / inputs."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        activate = activation_function(self.activation)
        if isinstance(x, dict | tuple):
            raise TypeError(
                f"the network is given a {type(x).__name__}, expected one array: make it one by "
                "envs.wrappers.FlattenObservation"
            )
        x = jnp.asarray(x, jnp.float32)
        if not x.ndim:
            raise ValueError(
                "the network is given a single number, expected a vector [D]: make it one, such as "
                "jax.nn.one_hot of a category or x[None] of a quantity"
            )
        for width in self.features:
            x = dense(width, math.sqrt(2), None, self.noisy, self.weight_init)(x)
            x = nn.LayerNorm()(x) if self.layer_norm else x
            x = activate(x)
        return x


class ActorCritic(nn.Module):
    """A policy over discrete actions and a value, each on a torso of its own.

    The critic has a torso like the actor's, but other weights: errors of values, which may be far
    larger than those of the policy, then change nothing that the policy depends on.
    """

    torso: nn.Module
    """`obs [...] -> [..., D]`, an `MLP` for instance."""
    num_actions: int
    """A."""
    allowed: Callable[[jax.Array], jax.Array] | None = None
    """`obs [...] -> bool [..., A]`: the actions to choose from; None: all."""
    shared: bool = False
    """Whether actor and critic share the torso: about half the work, where values are small."""

    @nn.compact
    def __call__(self, obs: jax.Array) -> tuple[Categorical, jax.Array]:
        """`(policy with logits [..., A], value [...])`."""
        x = y = self.torso(obs)
        if not self.shared:
            y = self.torso.copy(name="critic")(obs)
        logits = dense(self.num_actions, 0.01, name="policy")(x)
        policy = Categorical(logits) if self.allowed is None else masked(logits, self.allowed(obs))
        return policy, dense(1, 1.0, name="value")(y)[..., 0]


class GaussianActorCritic(nn.Module):
    """A policy over continuous actions and a value, each on a torso of its own.

    The scale is a parameter, the same for all observations. With finite bounds, the policy is
    squashed into them; it is clipped where some are infinite.
    """

    actor: nn.Module
    """`obs [...] -> [..., D]`, under the policy."""
    critic: nn.Module
    """`obs [...] -> [..., D]`, under the value."""
    action_size: int
    """Coordinates of an action."""
    low: float | tuple[float, ...] | None = None
    """Smallest action, one number or one for each coordinate; without bounds None, or -inf."""
    high: float | tuple[float, ...] | None = None
    """Largest action, likewise."""

    @nn.compact
    def __call__(self, obs: jax.Array) -> tuple[Normal | SquashedNormal | ClippedNormal, jax.Array]:
        """`(policy over actions [..., action_size], value [...])`."""
        mean = dense(self.action_size, 0.01, name="policy")(self.actor(obs))
        log_scale = self.param("log_scale", nn.initializers.zeros, (self.action_size,))
        value = dense(1, 1.0, name="value")(self.critic(obs))[..., 0]
        return gaussian(mean, log_scale, self.low, self.high), value


def gaussian(
    mean: jax.Array,
    log_scale: jax.Array,
    low: float | tuple[float, ...] | None = None,
    high: float | tuple[float, ...] | None = None,
) -> Normal | SquashedNormal | ClippedNormal:
    """The policy over actions `[..., A]` with outputs `mean [..., A]` and `log_scale [A]`.

    Normal without bounds, squashed into a finite box, and clipped where some bounds are infinite.
    The clipped one starts in the middle of finite bounds, and 1 inside of a single one.
    """
    scale = jnp.broadcast_to(jnp.exp(log_scale), mean.shape)
    box = bounds(low, high, mean.shape[-1])
    if box is None or not np.any(np.isfinite(box)):
        return Normal(mean, scale)
    ends = [jnp.broadcast_to(end, mean.shape) for end in box]
    if np.all(np.isfinite(box)):
        return SquashedNormal(Normal(mean, scale), *ends)
    middle, half = middles(*box)
    broadcast = lambda x: jnp.broadcast_to(x, mean.shape)
    return ClippedNormal(
        Normal(broadcast(middle) + broadcast(half) * mean, broadcast(half) * scale), *ends
    )


def middles(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(middle, half-width)` of finite bounds; 1 inside of a single one; 0 and 1 without any."""
    below = np.where(np.isfinite(high), high - 2.0, -1.0)
    low = np.where(np.isfinite(low), low, below)
    high = np.where(np.isfinite(high), high, low + 2.0)
    middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    return np.asarray(middle, np.float32), np.asarray(half, np.float32)


def dense(
    features: int,
    scale: float,
    name: str | None = None,
    noisy: bool = False,
    weight_init: WeightInit = "orthogonal",
) -> nn.Dense | NoisyDense:
    """A dense layer whose weights start with gain `scale`, and whose biases at 0.

    A noisy one starts with the same means, so that it differs by its noise only.
    """
    layer = NoisyDense if noisy else nn.Dense
    return layer(features, kernel_init=weight_initializer(weight_init, scale), name=name)


def weight_initializer(weight_init: str, scale: float) -> Callable[..., jax.Array]:
    """The flax initializer of that name with gain `scale`. Raises ValueError for others."""
    if weight_init not in get_args(WeightInit):
        raise ValueError(f"unknown weight_init {weight_init!r}: use orthogonal or he")
    if weight_init == "he":
        return nn.initializers.variance_scaling(scale**2, "fan_in", "truncated_normal")
    return linalg.orthogonal_start(scale)


def bounds(
    low: float | tuple[float, ...] | None, high: float | tuple[float, ...] | None, size: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Both ends `[size]` of a box of actions, from one number or `size` of them; None without.

    Raises ValueError for one end alone, for other shapes, and unless `low` is below `high`.
    """
    if low is None and high is None:
        return None
    if low is None or high is None:
        raise ValueError(f"got low={low} and high={high}: bound actions on both sides or on none")
    ends = np.asarray(low, np.float32), np.asarray(high, np.float32)
    if any(end.shape not in ((), (size,)) for end in ends):
        raise ValueError(f"got low={low} and high={high}: give one number each, or {size}")
    if not np.all(ends[0] < ends[1]):
        raise ValueError(f"got low={low} and high={high}: low must be below high")
    return np.broadcast_to(ends[0], size), np.broadcast_to(ends[1], size)


def activation_function(name: str) -> Callable[[jax.Array], jax.Array]:
    """The activation of that name, elementwise. Raises ValueError for an unknown name."""
    if name not in get_args(Activation):
        raise ValueError(f"unknown activation {name!r}: use {', '.join(get_args(Activation))}")
    return getattr(nn, name)
