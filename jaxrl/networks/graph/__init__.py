"""Networks on graphs of up to C nodes: torsos, and actor-critics on any of them."""

from jaxrl.networks.graph.actor_critics import (
    LOG_SCALES,
    GraphActorCritic,
    HybridActorCritic,
    box_policy,
    hold_policy,
    set_held,
    values,
)
from jaxrl.networks.graph.message_passing import (
    attention,
    broadcast_to_nodes,
    degree,
    pass_messages,
    sum_messages,
)
from jaxrl.networks.graph.padded_graphs import (
    Graph,
    MergedGraphs,
    live_mask,
    merge_graphs,
    prefix_mask,
    split,
)
from jaxrl.networks.graph.torsos import GraphTorso, PooledTorso, check_positive

__all__ = [
    "LOG_SCALES",
    "Graph",
    "GraphActorCritic",
    "GraphTorso",
    "HybridActorCritic",
    "MergedGraphs",
    "PooledTorso",
    "attention",
    "box_policy",
    "broadcast_to_nodes",
    "check_positive",
    "degree",
    "hold_policy",
    "live_mask",
    "merge_graphs",
    "pass_messages",
    "prefix_mask",
    "set_held",
    "split",
    "sum_messages",
    "values",
]
