"""Networks for the spaces of an environment: what is observed chooses the torso."""

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from gymnax.environments import spaces

from envs.wrappers.flatten_observation import size
from jaxrl.checks import Count
from jaxrl.networks.continuous import GaussianActor, QFunctions
from jaxrl.networks.conv import Conv
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.heads import HeadedActorCritic
from jaxrl.networks.inputs import Flatten, OneHot, UnitScale
from jaxrl.networks.mlp import MLP, Activation, ActorCritic, GaussianActorCritic, WeightInit
from jaxrl.networks.parts import Parts
from jaxrl.networks.recurrent import RecurrentActorCritic
from train.gymnax.actions import algorithms_for, box, has_parts, head
from train.host.environments.joined import JoinedBox, ends, is_image, is_scaled


@dataclass(frozen=True)
class Network:
    """Dense layers; for images, with axes [rows, cols, channels], convolutions come first."""

    hidden: tuple[Count, ...] = (64, 64)
    """Width of each dense layer."""
    activation: Activation = "tanh"
    """relu, tanh, elu, silu or gelu, after each layer."""
    layer_norm: bool = False
    """Apply layer normalisation before each activation."""
    weight_init: WeightInit = "orthogonal"
    """How weights of dense layers start, the last ones apart: orthogonal; he, independent with the
    variance 2 / inputs."""
    channels: tuple[Count, ...] = (16,)
    """Channels of each convolution over images, 3 by 3 cells; none: images become vectors."""
    shared: bool = False
    """Share all layers but the last between policy and value; with ppo and discrete actions."""
    memory: Count = 64
    """Units of the recurrent layer; with recurrent."""


def torso(network: Network, observation: Any) -> nn.Module:
    """`obs [...] -> [..., D]` for the space of observations.

    Of several parts with an image among them, each has its first layers, and all the dense ones in
    common. Raises ValueError for arrays of more than three axes.
    """
    dense = MLP(
        network.hidden,
        network.activation,
        network.layer_norm,
        weight_init=network.weight_init,
    )
    layers = first_layers(network, observation)
    return nn.Sequential((*layers, dense)) if layers else dense


def first_layers(network: Network, observation: Any) -> tuple[nn.Module, ...]:
    """What makes observations vectors, `[...] -> [..., D]`, if they are none, and scales them."""
    if isinstance(observation, JoinedBox):
        return (part_layers(network, observation),)
    if isinstance(observation, spaces.Discrete):
        return (OneHot(observation.n),)
    shape = tuple(observation.shape)
    if len(shape) > 3:
        raise ValueError(
            f"observations have the shape {list(shape)}, expected at most [rows, cols, channels]"
        )
    layers = () if (scale := unit_scale(observation)) is None else (scale,)
    if len(shape) == 3:
        conv = Conv(network.channels, activation=network.activation, layer_norm=network.layer_norm)
        layers += (conv,)
    elif len(shape) != 1:
        layers += (Flatten(shape),)
    return layers


def part_layers(network: Network, observation: JoinedBox) -> Parts:
    """The first layers of each part: of images those of images; categories are one-hot by now."""
    shapes, layers = [], []
    for part in observation.parts:
        shapes.append(part.shape if is_image(part) else (size(part),))
        is_number = isinstance(part, spaces.Box)
        first = ()
        if is_number:  # of all frames, beside each other along the last axis
            bounds = (np.tile(x.reshape(shapes[-1]), observation.frames) for x in ends(part))
            low, high = map(jnp.asarray, bounds)
            first = first_layers(network, spaces.Box(low, high, low.shape, part.dtype))
        layers.append(nn.Sequential(first) if first else None)
    return Parts(tuple(shapes), tuple(layers), observation.frames)


def unit_scale(observation: spaces.Box) -> UnitScale | None:
    """The layer that brings grey values and counts to 0 to 1; None: there are none.

    Each number by its own bounds: beside grey values a flag stays a flag. See `is_scaled`.
    """
    chosen = is_scaled(observation)
    if not chosen.any():
        return None
    low, high = ends(observation)
    return UnitScale(
        nested_tuples(np.where(chosen, low, 0.0)), nested_tuples(np.where(chosen, high, 1.0))
    )


def nested_tuples(x: np.ndarray) -> float | tuple:
    """An array as nested tuples, which can be hashed; the number itself where all are equal."""
    if np.all(x == x.flat[0]):
        return float(x.flat[0])
    to_tuples = lambda y: tuple(map(to_tuples, y)) if isinstance(y, list) else y
    first = x[(0,) * (x.ndim - 1)]  # along the last axis
    return to_tuples((first if np.all(x == first) else x).tolist())


def actor_critic(network: Network, observation: Any, action: Any) -> nn.Module:
    """A policy and a value, of actions of any kind."""
    below = torso(network, observation)
    if has_parts(action):
        return HeadedActorCritic(below, below.copy(), head(action))
    if isinstance(action, spaces.Box):
        return GaussianActorCritic(below, below.copy(), **box(action))
    return ActorCritic(below, action.n, shared=network.shared)


def recurrent(network: Network, observation: Any, action: Any) -> RecurrentActorCritic:
    """The same with a memory."""
    heads = actor_critic(replace(network, hidden=(), shared=False), VECTOR, action)
    return RecurrentActorCritic(torso(network, observation), heads, network.memory)


VECTOR = spaces.Box(-np.inf, np.inf, (1,))
"""What is remembered, as an observation."""


def q_network(network: Network, observation: Any, action: Any) -> QNetwork:
    """Values of discrete actions. Raises ValueError for others."""
    if not isinstance(action, spaces.Discrete):
        raise ValueError(f"actions are {action}, expected Discrete: use {algorithms_for(action)}")
    return QNetwork(torso(network, observation), action.n)


def actor_and_critics(
    network: Network, observation: Any, action: Any
) -> tuple[GaussianActor, QFunctions]:
    """The networks of SAC.

    Raises ValueError unless observations are vectors and actions lie in a box.
    """
    if not isinstance(action, spaces.Box) or has_parts(action):
        raise ValueError(
            f"actions are {action}, expected a Box of floats: use {algorithms_for(action)}"
        )
    size = box(action)
    if "low" not in size or not np.all(np.isfinite([size["low"], size["high"]])):
        raise ValueError(f"actions are {action}, expected a finite Box: use ppo")
    has_image = isinstance(observation, JoinedBox) and observation.has_image
    if len(getattr(observation, "shape", ())) != 1 or has_image:
        raise ValueError(f"observations are {observation}, expected vectors: use ppo")
    below = torso(network, observation)
    return GaussianActor(below, **size), QFunctions(below.copy())
