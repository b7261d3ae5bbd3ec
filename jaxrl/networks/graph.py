"""Networks on graphs of up to C nodes: torsos, and actor-critics on any of them.

An observation is one `jraph.GraphsTuple`, padded as `jraph.pad_with_graphs` does it: the graph
itself, then one graph that takes up the room left. With E edges among N ≤ C nodes:

    nodes    float [..., C + 1, F]       the last row is always padding
    edges    float [..., K, G]           K slots, the E real ones first
    senders, receivers  int32 [..., K]   padding edges join padding nodes only
    globals  float [..., 2, D]           only the first row is read
    n_node   int32 [..., 2]              N and C + 1 - N
    n_edge   int32 [..., 2]              E and K - E

Modules are written for one graph; leading axes `[...]`, the same on every leaf, are carried along.
The content of padding, nan included, has no effect. Node outputs are equivariant and the token, and
so policy and value, invariant under permutations of the nodes. W is the width.
"""

import math
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import jraph
from flax import linen as nn

from jaxrl.losses.distributions.continuous import Normal, PartlyFixedPolicy, SquashedNormal
from jaxrl.losses.distributions.discrete import PerNode
from jaxrl.losses.distributions.joint import Joint
from jaxrl.networks.continuous import smooth_clip
from jaxrl.networks.mlp import MLP, bounds, dense

Graph: TypeAlias = Any
"""A `jraph.GraphsTuple`, whose own annotations allow None and whole trees for every array."""

LOG_SCALES = (-3.0, 1.0)
"""Bounds of the logarithm of a policy's scale, before the squash."""


class GraphTorso(nn.Module):
    """Message passing along the edges, both ways, and a global token that attends to all nodes.

    h ← LN(h + relu(A h + B mean of messages in + C mean of messages back + D token)), where a
    message is relu(h of its sender + edge); then token ← LN(token + relu(E [token, attention])),
    where `heads` queries made of the token look at all nodes. Messages as Hu et al. (2020, GINE),
    the token as Gilmer et al. (2017, "master node").

    Raises ValueError for sizes below 1 and for graphs that are not padded as above.
    """

    width: int = 32
    """W."""
    layers: int = 1
    """Rounds of messages: the receptive field in edges; the token connects all nodes."""
    heads: int = 2
    """Queries of the token."""

    @nn.compact
    def __call__(self, graph: Graph) -> tuple[jax.Array, jax.Array]:
        """`(nodes [..., C + 1, W], 0 in padding; token [..., W])`."""
        check_positive(width=self.width, layers=self.layers, heads=self.heads)
        graphs = merge_graphs(graph)
        h = MLP((self.width,), name="nodes")(graphs.nodes)
        token = MLP((self.width,), name="globals")(graphs.globals)
        directions = [(graphs.senders, graphs.receivers), (graphs.receivers, graphs.senders)]
        shares = [1 / jnp.maximum(degree(receivers, len(h)), 1) for _, receivers in directions]
        for _ in range(self.layers):
            update = dense(self.width, math.sqrt(2))(h)
            for (senders, receivers), share in zip(directions, shares, strict=True):
                message = dense(self.width, 1.0)(graphs.edges)
                received = share * pass_messages(h, message, senders, receivers)
                update += dense(self.width, math.sqrt(2))(received)
            update += broadcast_to_nodes(dense(self.width, math.sqrt(2))(token), len(h))
            h = nn.LayerNorm()(h + nn.relu(update))
            queries = dense(self.heads * self.width, 1.0)(token)
            token_inputs = jnp.concatenate([token, attention(h, graphs.live, queries)], axis=-1)
            token = nn.LayerNorm()(token + nn.relu(dense(self.width, math.sqrt(2))(token_inputs)))
        return split(jnp.where(graphs.live[:, None], h, 0.0), token, graph)


class PooledTorso(nn.Module):
    """No messages: dense layers on each node, then their mean, concatenated with the globals.

    The baseline of `GraphTorso`. Raises ValueError as it does.
    """

    width: int = 32
    """W."""
    layers: int = 2
    """Dense layers that every node goes through."""

    @nn.compact
    def __call__(self, graph: Graph) -> tuple[jax.Array, jax.Array]:
        """`(nodes [..., C + 1, W], 0 in padding; token [..., W])`."""
        check_positive(width=self.width, layers=self.layers)
        graphs = merge_graphs(graph)
        h = MLP((self.width,) * self.layers, name="nodes")(graphs.nodes)
        h = jnp.where(graphs.live[:, None], h, 0.0)
        total = jnp.sum(h.reshape(len(graphs.globals), -1, self.width), axis=1)
        mean = total / jnp.maximum(graphs.num_nodes, 1)[:, None]
        token = MLP((self.width,), name="token")(jnp.concatenate([mean, graphs.globals], axis=-1))
        return split(h, token, graph)


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


class MergedGraphs(NamedTuple):
    """B padded graphs as one: dense layers are several times faster on one matrix of all nodes."""

    nodes: jax.Array  # [B (C + 1), F]; zeros in padding, as everywhere here
    edges: jax.Array  # [B K, G]
    globals: jax.Array  # [B, D]
    senders: jax.Array  # int32 [B, K], rows of their own graph
    receivers: jax.Array  # int32 [B, K]
    live: jax.Array  # bool [B (C + 1)]
    num_nodes: jax.Array  # int32 [B]


def merge_graphs(graph: Graph) -> MergedGraphs:
    """All graphs of a batch as one of B components; B is the product of the leading axes.

    Raises ValueError unless there are two graphs in each, the second one being padding.
    """
    pairs = [x.shape[-1:] for x in (graph.n_node, graph.n_edge)] + [graph.globals.shape[-2:-1]]
    if pairs != [(2,)] * 3:
        raise ValueError(
            f"got {pairs} graphs in n_node, n_edge and globals; expected 2, the graph and its "
            "padding: pad one graph with jraph.pad_with_graphs"
        )
    live, real_edges = live_mask(graph), prefix_mask(graph.n_edge[..., 0], graph.senders.shape[-1])
    slots = real_edges.shape[-1]
    context = graph.globals[..., 0, :]
    context = context.reshape(-1, context.shape[-1])
    return MergedGraphs(
        nodes=jnp.where(live[..., None], graph.nodes, 0.0).reshape(-1, graph.nodes.shape[-1]),
        edges=jnp.where(real_edges[..., None], graph.edges, 0.0).reshape(-1, graph.edges.shape[-1]),
        globals=context,
        senders=graph.senders.reshape(-1, slots),
        receivers=graph.receivers.reshape(-1, slots),
        live=live.reshape(-1),
        num_nodes=graph.n_node[..., 0].reshape(-1),
    )


def split(h: jax.Array, token: jax.Array, graph: Graph) -> tuple[jax.Array, jax.Array]:
    """`(nodes [..., C + 1, W], token [..., W])`, with the leading axes of `graph` again."""
    leading = graph.n_node.shape[:-1]
    return h.reshape(*leading, -1, h.shape[-1]), token.reshape(*leading, -1)


def live_mask(graph: Graph) -> jax.Array:
    """bool `[..., C + 1]`: which rows are nodes."""
    return prefix_mask(graph.n_node[..., 0], graph.nodes.shape[-2])


def prefix_mask(count: jax.Array, size: int) -> jax.Array:
    """bool `[..., size]`: the first `count` `[...]`."""
    slot = jax.lax.broadcasted_iota(jnp.int32, (*count.shape, size), count.ndim)
    return slot < count[..., None]


def pass_messages(
    h: jax.Array, edge: jax.Array, senders: jax.Array, receivers: jax.Array
) -> jax.Array:
    """Σ over the edges into each node of relu(h of where it comes from + edge), `[rows, W]`.

    `h` is `[rows, W]`, `edge` `[B K, W]`; `senders` and `receivers` are rows of their own graph,
    int32 `[B, K]`, so that graphs on different devices exchange nothing.
    """
    # rows of W numbers are scattered fast: one-hot products take five times as long on a CPU
    sender_features = jax.vmap(lambda h, senders: h[senders])(
        h.reshape(len(senders), -1, h.shape[-1]), senders
    )
    return sum_messages(nn.relu(sender_features.reshape(edge.shape) + edge), receivers, len(h))


def degree(receivers: jax.Array, rows: int) -> jax.Array:
    """How many edges lead into each node, float `[rows, 1]`."""
    return sum_messages(jnp.ones((receivers.size, 1)), receivers, rows)


def sum_messages(message: jax.Array, receivers: jax.Array, rows: int) -> jax.Array:
    """Messages `[B K, W]` added up in the rows of their own graph that they go to: `[rows, W]`."""
    message = message.reshape(*receivers.shape, -1)
    graph_rows = rows // len(receivers)
    sum_graph = lambda message, receivers: jraph.segment_sum(message, receivers, graph_rows)
    return jax.vmap(sum_graph)(message, receivers).reshape(rows, -1)


def broadcast_to_nodes(token: jax.Array, rows: int) -> jax.Array:
    """A token `[B, W]` for each graph, broadcast to all of its nodes: `[rows, W]`."""
    return jnp.repeat(token, rows // len(token), axis=0)


def attention(h: jax.Array, live: jax.Array, queries: jax.Array) -> jax.Array:
    """Attention: the mean of h, weighted by softmax(h · query / √W) for each query, `[B, H W]`.

    `h` is `[B (C + 1), W]`, `live` bool `[B (C + 1)]`, `queries` `[B, H W]`. Without live nodes it
    is 0.
    """
    width = h.shape[-1]
    queries = queries.reshape(len(queries), -1, width)
    h, live = h.reshape(len(queries), -1, width), live.reshape(len(queries), -1, 1)
    score = jnp.einsum("bnw,bhw->bnh", h, queries) / math.sqrt(width)
    lowest = jnp.finfo(score.dtype).min  # finite: a softmax of nothing but -inf is nan
    weight = jax.nn.softmax(jnp.where(live, score, lowest), axis=1)
    means = jnp.einsum("bnh,bnw->bhw", jnp.where(live, weight, 0.0), h)
    return means.reshape(len(queries), -1)


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


def check_positive(**sizes: int) -> None:
    """Raises ValueError unless each is at least 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size}; expected at least 1")
