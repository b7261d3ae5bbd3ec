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

from jaxrl.losses.distributions import Held, Joint, Normal, PerNode, Squashed
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
        positive(width=self.width, layers=self.layers, heads=self.heads)
        whole = merged(graph)
        h = MLP((self.width,), name="nodes")(whole.nodes)
        token = MLP((self.width,), name="globals")(whole.globals)
        ways = [(whole.senders, whole.receivers), (whole.receivers, whole.senders)]
        shares = [1 / jnp.maximum(degree(into, len(h)), 1) for _, into in ways]
        for _ in range(self.layers):
            update = dense(self.width, math.sqrt(2))(h)
            for (of, into), share in zip(ways, shares, strict=True):
                message = dense(self.width, 1.0)(whole.edges)
                heard = share * passed(h, message, of, into)
                update += dense(self.width, math.sqrt(2))(heard)
            update += to_nodes(dense(self.width, math.sqrt(2))(token), len(h))
            h = nn.LayerNorm()(h + nn.relu(update))
            queries = dense(self.heads * self.width, 1.0)(token)
            seen = jnp.concatenate([token, attention(h, whole.live, queries)], axis=-1)
            token = nn.LayerNorm()(token + nn.relu(dense(self.width, math.sqrt(2))(seen)))
        return split(jnp.where(whole.live[:, None], h, 0.0), token, graph)


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
        positive(width=self.width, layers=self.layers)
        whole = merged(graph)
        h = MLP((self.width,) * self.layers, name="nodes")(whole.nodes)
        h = jnp.where(whole.live[:, None], h, 0.0)
        total = jnp.sum(h.reshape(len(whole.globals), -1, self.width), axis=1)
        mean = total / jnp.maximum(whole.num_nodes, 1)[:, None]
        token = MLP((self.width,), name="token")(jnp.concatenate([mean, whole.globals], axis=-1))
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
    """Values that coordinates are held at, see `Held`; None: never. Empty: none is."""

    @nn.compact
    def __call__(self, graph: Graph) -> tuple[Any, jax.Array]:
        """`(policy over actions [..., action_size], values [..., num_values] or [...])`."""
        _, token = self.torso(graph)
        policy = box_policy(token, self.action_size, self.low, self.high)
        return holding(self, policy, self.fixed), values(token, self.num_values)


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
    """Values that spawn parameters are held at, see `Held`; None: never. Empty: none is."""

    @nn.compact
    def __call__(self, graph: Graph) -> tuple[Joint, jax.Array]:
        """`(policy over (int32 [..., C], [..., spawn_size]), values [..., num_values] or [...])`.

        The first action is 0 or 1 for each node, and 0 where there is none.
        """
        h, token = self.torso(graph)
        h, live = h[..., :-1, :], living(graph)[..., :-1]  # the last row never lives
        shared = dense(2, 0.01, name="choice_of_all")(token)[..., None, :]
        choice = PerNode(dense(2, 0.01, name="choice")(h) + shared, live)
        spawn = box_policy(token, self.spawn_size, self.low, self.high)
        spawn = holding(self, spawn, self.fixed)
        return Joint((choice, spawn)), values(token, self.num_values)


class Merged(NamedTuple):
    """B padded graphs as one: dense layers are several times faster on one matrix of all nodes."""

    nodes: jax.Array  # [B (C + 1), F]; zeros in padding, as everywhere here
    edges: jax.Array  # [B K, G]
    globals: jax.Array  # [B, D]
    senders: jax.Array  # int32 [B, K], rows of their own graph
    receivers: jax.Array  # int32 [B, K]
    live: jax.Array  # bool [B (C + 1)]
    num_nodes: jax.Array  # int32 [B]


def merged(graph: Graph) -> Merged:
    """All graphs of a batch as one of B components; B is the product of the leading axes.

    Raises ValueError unless there are two graphs in each, the second one being padding.
    """
    pairs = [x.shape[-1:] for x in (graph.n_node, graph.n_edge)] + [graph.globals.shape[-2:-1]]
    if pairs != [(2,)] * 3:
        raise ValueError(
            f"got {pairs} graphs in n_node, n_edge and globals; expected 2, the graph and its "
            "padding: pad one graph with jraph.pad_with_graphs"
        )
    live, real = living(graph), first(graph.n_edge[..., 0], graph.senders.shape[-1])
    slots = real.shape[-1]
    context = graph.globals[..., 0, :]
    context = context.reshape(-1, context.shape[-1])
    return Merged(
        nodes=jnp.where(live[..., None], graph.nodes, 0.0).reshape(-1, graph.nodes.shape[-1]),
        edges=jnp.where(real[..., None], graph.edges, 0.0).reshape(-1, graph.edges.shape[-1]),
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


def living(graph: Graph) -> jax.Array:
    """bool `[..., C + 1]`: which rows are nodes."""
    return first(graph.n_node[..., 0], graph.nodes.shape[-2])


def first(count: jax.Array, size: int) -> jax.Array:
    """bool `[..., size]`: the first `count` `[...]`."""
    slot = jax.lax.broadcasted_iota(jnp.int32, (*count.shape, size), count.ndim)
    return slot < count[..., None]


def passed(h: jax.Array, edge: jax.Array, of: jax.Array, into: jax.Array) -> jax.Array:
    """Σ over the edges into each node of relu(h of where it comes from + edge), `[rows, W]`.

    `h` is `[rows, W]`, `edge` `[B K, W]`; `of` and `into` are rows of their own graph, int32
    `[B, K]`, so that graphs on different devices exchange nothing.
    """
    # rows of W numbers are scattered fast: one-hot products take five times as long on a CPU
    heard = jax.vmap(lambda h, of: h[of])(h.reshape(len(of), -1, h.shape[-1]), of)
    return summed(nn.relu(heard.reshape(edge.shape) + edge), into, len(h))


def degree(into: jax.Array, rows: int) -> jax.Array:
    """How many edges lead into each node, float `[rows, 1]`."""
    return summed(jnp.ones((into.size, 1)), into, rows)


def summed(message: jax.Array, into: jax.Array, rows: int) -> jax.Array:
    """Messages `[B K, W]` added up in the rows of their own graph that they go to: `[rows, W]`."""
    message = message.reshape(*into.shape, -1)
    own = rows // len(into)
    each = lambda message, into: jraph.segment_sum(message, into, own)
    return jax.vmap(each)(message, into).reshape(rows, -1)


def to_nodes(token: jax.Array, rows: int) -> jax.Array:
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
    seen = jnp.einsum("bnh,bnw->bhw", jnp.where(live, weight, 0.0), h)
    return seen.reshape(len(queries), -1)


def box_policy(
    token: jax.Array,
    size: int,
    low: float | tuple[float, ...],
    high: float | tuple[float, ...],
) -> Squashed:
    """A policy over the box `[..., size]`, its mean and its scale linear in the token `[..., W]`.

    It starts with mean 0 and scale 1, before the squash: nearly uniform over the box, with 29, 21,
    21 and 29 per cent of the actions in its quarters.

    Raises ValueError for bounds that make no box. Called while a module is set up.
    """
    box = bounds(low, high, size)
    if box is None:
        raise ValueError(f"got low={low} and high={high}: the policy needs a box, give both ends")
    mean = dense(size, 0.01, name="policy")(token)
    least, most = LOG_SCALES
    start = math.log(-least / most)  # an output of 0 gives a log scale of 0
    raw = dense(size, 0.01, name="log_scale")(token)
    scale = jnp.exp(least + (most - least) * jax.nn.sigmoid(raw + start))
    return Squashed(Normal(mean, scale), *(jnp.broadcast_to(end, mean.shape) for end in box))


def holding(
    module: nn.Module, policy: Squashed, fixed: tuple[float | None, ...]
) -> Squashed | Held:
    """The policy, which can be held at the numbers among `fixed`; as it is, if there are none.

    Whether it is held is the variable `held` of the collection `stage`, a number that no gradient
    reaches: 1 at first; `held` changes it. Called while a module is set up.
    """
    if all(value is None for value in fixed):
        return policy
    is_held = module.variable("stage", "held", lambda: jnp.ones(())).value
    is_held = jax.lax.stop_gradient(is_held) > 0
    can_be = jnp.array([value is not None for value in fixed])
    at = jnp.stack([jnp.asarray(0.0 if value is None else value, jnp.float32) for value in fixed])
    shape = policy.low.shape
    return Held(policy, jnp.broadcast_to(~(is_held & can_be), shape), jnp.broadcast_to(at, shape))


def held(params: Any, is_held: jax.Array) -> Any:
    """Parameters of a network whose policy is held at fixed values, or free from now on."""
    return {**params, "stage": {"held": jnp.asarray(is_held, jnp.float32)}}


def values(token: jax.Array, count: int) -> jax.Array:
    """`[..., count]`, or `[...]` where `count` is 0. Called while a module is set up."""
    if count < 0:
        raise ValueError(f"num_values is {count}; expected 0, for a plain value, or how many")
    value = dense(max(count, 1), 1.0, name="value")(token)
    return value if count else value[..., 0]


def positive(**sizes: int) -> None:
    """Raises ValueError unless each is at least 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size}; expected at least 1")
