"""Networks for the spaces of an environment: what is observed chooses the torso."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from flax import linen as nn
from gymnax.environments import spaces

from jaxrl.checks import Count
from jaxrl.networks.continuous import GaussianActor, QFunctions
from jaxrl.networks.conv import Conv
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.inputs import Flatten, OneHot
from jaxrl.networks.mlp import MLP, Activation, ActorCritic, GaussianActorCritic, WeightInit
from jaxrl.networks.recurrent import RecurrentActorCritic


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

    Raises ValueError for arrays of more than three axes.
    """
    dense = MLP(
        network.hidden,
        network.activation,
        network.layer_norm,
        weight_init=network.weight_init,
    )
    if isinstance(observation, spaces.Discrete):
        return nn.Sequential((OneHot(observation.n), dense))
    shape = tuple(observation.shape)
    if len(shape) == 1:
        return dense
    if len(shape) == 3:
        conv = Conv(network.channels, activation=network.activation, layer_norm=network.layer_norm)
        return nn.Sequential((conv, dense))
    if len(shape) > 3:
        raise ValueError(
            f"observations have the shape {list(shape)}, expected at most [rows, cols, channels]"
        )
    return nn.Sequential((Flatten(shape), dense))


def box(action: Any) -> dict[str, Any]:
    """Size and bounds of continuous actions, as networks are given them."""
    low, high = (
        tuple(np.broadcast_to(np.asarray(end, float), action.shape).ravel().tolist())
        for end in (action.low, action.high)
    )
    if len(action.shape) != 1:
        raise ValueError(f"actions have the shape {list(action.shape)}, expected vectors")
    if not all(map(math.isfinite, low + high)):
        return {"action_size": action.shape[0]}
    return {"action_size": action.shape[0], "low": low, "high": high}


def actor_critic(network: Network, observation: Any, action: Any) -> nn.Module:
    """A policy and a value, of discrete or continuous actions."""
    below = torso(network, observation)
    if isinstance(action, spaces.Box):
        return GaussianActorCritic(below, below.copy(), **box(action))
    return ActorCritic(below, action.n, shared=network.shared)


def recurrent(network: Network, observation: Any, action: Any) -> RecurrentActorCritic:
    """The same with a memory."""
    heads = ActorCritic(MLP(()), getattr(action, "n", 0))
    if isinstance(action, spaces.Box):
        heads = GaussianActorCritic(MLP(()), MLP(()), **box(action))
    return RecurrentActorCritic(torso(network, observation), heads, network.memory)


def q_network(network: Network, observation: Any, action: Any) -> QNetwork:
    """Values of discrete actions. Raises ValueError for others."""
    if not isinstance(action, spaces.Discrete):
        raise ValueError("actions are continuous, expected discrete ones: use ppo or sac")
    return QNetwork(torso(network, observation), action.n)


def actor_and_critics(
    network: Network, observation: Any, action: Any
) -> tuple[GaussianActor, QFunctions]:
    """Of SAC. Raises ValueError unless observations are vectors and actions lie in a box."""
    if not isinstance(action, spaces.Box):
        raise ValueError("actions are discrete, expected continuous ones: use ppo, dqn or pqn")
    size = box(action)
    if "low" not in size or len(getattr(observation, "shape", ())) != 1:
        raise ValueError("sac expects observations that are vectors and actions in a finite box")
    below = torso(network, observation)
    return GaussianActor(below, **size), QFunctions(below.copy())
