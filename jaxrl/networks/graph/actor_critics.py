"""Actor-critics on graphs: policies and values of what a torso makes of them.

Policy and value are invariant under permutations of the nodes, but for choices of each node, which
go with it.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.losses.distributions.continuous import Normal, PartlyFixedPolicy, SquashedNormal
from jaxrl.losses.distributions.discrete import PerNode
from jaxrl.losses.distributions.joint import Joint
from jaxrl.networks.continuous import smooth_clip
from jaxrl.networks.graph.padded_graphs import Graph, live_mask
from jaxrl.networks.mlp import bounds, dense

LOG_SCALES = (-3.0, 1.0)
"""Bounds of the logarithm of a policy's scale, before the squash."""


class GraphActorCritic(nn.Module):
    """A policy over the box of actions of the whole graph, and its values, on one torso."""

    torso: nn.Module
    """`GraphTorso` or `PooledTorso`."""
    action_size: int
    """Coordinates of an action."""
    low: float | tuple[float, ...]
    """Smallest action, one number or one for each coordinate."""
    high: float | tuple[float, ...]
    """Largest action, likewise."""
    num_values: int = 1
    """Values, say one for each component of a reward; 0 is one value without an axis of its own."""
    fixed: tuple[float | None, ...] = ()
    """Values that coordinates are held at, see `PartlyFixedPolicy`; None: never. Empty: none
    is."""

    @nn.compact
    def __call__(self, graph: Graph) -> tuple[Any, jax.Array]:
        """`(policy over actions [..., action_size], values [..., num_values] or [...])`."""
        _, token = self.torso(graph)
        policy = box_policy(token, self.action_size, self.low, self.high)
        return hold_policy(self, policy, self.fixed), values(token, self.num_values)


class HybridActorCritic(nn.Module):
    """A binary choice for every node, and one vector of spawn parameters for the whole graph."""

    torso: nn.Module
    """`GraphTorso` or `PooledTorso`."""
    spawn_size: int
    """Spawn parameters."""
    low: float | tuple[float, ...]
    """Smallest spawn parameters, one number or one for each."""
    high: float | tuple[float, ...]
    """Largest spawn parameters, likewise."""
    num_values: int = 1
    """Values, say one for each component of a reward; 0 is one value without an axis of its own."""
    fixed: tuple[float | None, ...] = ()
    """Values that spawn parameters are held at, see `PartlyFixedPolicy`; None: never. Empty:
    none is."""

    @nn.compact
    def __call__(self, graph: Graph) -> tuple[Joint, jax.Array]:
        """`(policy over (int32 [..., C], [..., spawn_size]), values [..., num_values] or [...])`.

        The first action is 0 or 1 for each node, and 0 where there is none.
        """
        h, token = self.torso(graph)
        h, live = h[..., :-1, :], live_mask(graph)[..., :-1]  # the last row never lives
        shared = dense(2, 0.01, name="choice_of_all")(token)[..., None, :]
        choice = PerNode(dense(2, 0.01, name="choice")(h) + shared, live)
        spawn = box_policy(token, self.spawn_size, self.low, self.high)
        spawn = hold_policy(self, spawn, self.fixed)
        return Joint((choice, spawn)), values(token, self.num_values)


def box_policy(
    token: jax.Array,
    size: int,
    low: float | tuple[float, ...],
    high: float | tuple[float, ...],
) -> SquashedNormal:
    """A policy over the box `[..., size]`, its mean and its scale linear in the token `[..., W]`.

    It starts with mean 0 and scale 1, before the squash: nearly uniform over the box, with 29, 21,
    21 and 29 per cent of the actions in its quarters.

    Raises ValueError for bounds that make no box. Called while a module is set up.
    """
    box = bounds(low, high, size)
    if box is None:
        raise ValueError(f"got low={low} and high={high}: the policy needs a box, give both ends")
    mean = dense(size, 0.01, name="policy")(token)
    scale = jnp.exp(smooth_clip(dense(size, 0.01, name="log_scale")(token), LOG_SCALES))
    return SquashedNormal(Normal(mean, scale), *(jnp.broadcast_to(end, mean.shape) for end in box))


def hold_policy(
    module: nn.Module, policy: SquashedNormal, fixed: tuple[float | None, ...]
) -> SquashedNormal | PartlyFixedPolicy:
    """The policy, which can be held at the numbers among `fixed`; as it is, if there are none.

    Whether it is held is the variable `held` of the collection `stage`, a number that no gradient
    reaches: 1 at first; `set_held` changes it. Called while a module is set up.
    """
    if all(value is None for value in fixed):
        return policy
    is_held = module.variable("stage", "held", lambda: jnp.ones(())).value
    is_held = jax.lax.stop_gradient(is_held) > 0
    can_be_held = jnp.array([value is not None for value in fixed])
    fixed_values = jnp.stack(
        [jnp.asarray(0.0 if value is None else value, jnp.float32) for value in fixed]
    )
    shape = policy.low.shape
    return PartlyFixedPolicy(
        policy,
        jnp.broadcast_to(~(is_held & can_be_held), shape),
        jnp.broadcast_to(fixed_values, shape),
    )


def set_held(params: Any, is_held: jax.Array) -> Any:
    """Parameters of a network whose policy is held at fixed values, or free from now on."""
    return {**params, "stage": {"held": jnp.asarray(is_held, jnp.float32)}}


def values(token: jax.Array, count: int) -> jax.Array:
    """`[..., count]`, or `[...]` where `count` is 0. Called while a module is set up.

    Raises ValueError for a negative count.
    """
    if count < 0:
        raise ValueError(f"num_values is {count}; expected 0, for a plain value, or how many")
    value = dense(max(count, 1), 1.0, name="value")(token)
    return value if count else value[..., 0]
