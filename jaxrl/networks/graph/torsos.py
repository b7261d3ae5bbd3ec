"""Torsos: features of every node of a graph, and of the whole, its token.

Modules are written for one graph (see `padded_graphs`); leading axes `[...]`, the same on every
leaf, are carried along. The content of padding, nan included, has no effect. Node outputs are
equivariant and the token invariant under permutations of the nodes. W is the width.
"""

import math

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.networks.graph.message_passing import (
    attention,
    broadcast_to_nodes,
    degree,
    pass_messages,
)
from jaxrl.networks.graph.padded_graphs import Graph, merge_graphs, split
from jaxrl.networks.mlp import MLP, dense


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


def check_positive(**sizes: int) -> None:
    """Raises ValueError unless each is at least 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size}; expected at least 1")
