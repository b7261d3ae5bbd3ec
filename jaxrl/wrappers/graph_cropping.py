"""Graphs in as few slots as the largest of a batch needs, for any agent that sees padded graphs.

`make(agent)` is that agent, faster. A graph has room for C nodes, and most have few: a colony of 6
in 100 slots is 94 per cent padding. The shapes of a compiled program are fixed, so it holds `act`
and `update` for a few sizes, and picks one when it runs. Padding has no effect
(`jaxrl.networks.graph.torsos`), so neither has the size, up to rounding. The state is that of the
agent.

Only on a CPU: among the many graphs of an accelerator is always a large one, and it would wait for
the choice. There the agent sees all slots.
"""

import jax
import jax.numpy as jnp

from jaxrl.networks.graph import Graph
from jaxrl.numerics import batched_cond
from jaxrl.types import Agent, AgentState, Memory, Metrics, Observation, Transition, as_agent

PARTS = (6, 3, 1)
"""The sizes are C over each of these."""
LEAST_SLOTS = 8
"""Smaller sizes are not worth a choice."""


def make(agent: Agent) -> Agent:
    """`agent`, whose observation is one padded graph, on cropped graphs.

    `act` takes the least size that holds every graph of a batch, `update` that of a whole rollout.
    Raises ValueError for what is no agent; `init` does for one whose action, memory or extras have
    an entry for each slot: they would change their shape.
    """
    agent = as_agent(agent)
    # traced once for each size, as several places below may call them with the same
    agent = agent._replace(act=jax.jit(agent.act), update=jax.jit(agent.update))

    def init(key: jax.Array, obs: Observation) -> AgentState:
        state = jax.eval_shape(agent.init, key, obs)
        check(agent, state, obs, key)
        return agent.init(key, obs)

    def act(state: AgentState, memory: Memory, obs: Observation, key: jax.Array):
        def act_branch(size: int):
            return lambda inputs: agent.act(inputs[0], inputs[1], crop(inputs[2], size), inputs[3])

        def act_in_fewest(*inputs):
            sizes = sizes_of(obs)
            return batched_cond.switch_max(
                size_index(sizes, obs), [act_branch(size) for size in sizes], inputs
            )

        return jax.lax.platform_dependent(
            *(state, memory, obs, key), cpu=act_in_fewest, default=agent.act
        )

    def update(
        state: AgentState, rollout: Transition, key: jax.Array
    ) -> tuple[AgentState, Metrics]:
        def update_branch(size: int):
            return lambda inputs: agent.update(inputs[0], crop_all(inputs[1], size), inputs[2])

        def update_in_fewest(*inputs):
            sizes = sizes_of(rollout.obs)
            index = jnp.maximum(size_index(sizes, rollout.obs), size_index(sizes, rollout.next_obs))
            return batched_cond.switch_max(index, [update_branch(size) for size in sizes], inputs)

        return jax.lax.platform_dependent(
            *(state, rollout, key), cpu=update_in_fewest, default=agent.update
        )

    return Agent(init, agent.memory, act, update, agent.explain, agent.blocks)


def crop(graph: Graph, size: int) -> Graph:
    """The graph `[...]`, of at most `size` nodes and edges, in `size` slots of each, or all it has.

    One more row of nodes follows these; it is always padding, and padding edges end there.
    """
    node_slots, edge_slots = (
        min(size, slots) for slots in (graph.nodes.shape[-2] - 1, graph.senders.shape[-1])
    )
    crop_ends = lambda ends: jnp.minimum(ends[..., :edge_slots], node_slots)
    n, e = graph.n_node[..., 0], graph.n_edge[..., 0]
    return graph._replace(
        nodes=graph.nodes[..., : node_slots + 1, :],
        edges=graph.edges[..., :edge_slots, :],
        senders=crop_ends(graph.senders),
        receivers=crop_ends(graph.receivers),
        n_node=jnp.stack([n, node_slots + 1 - n], axis=-1),
        n_edge=jnp.stack([e, edge_slots - e], axis=-1),
    )


def crop_all(rollout: Transition, size: int) -> Transition:
    """A rollout of graphs that have at most `size` nodes and edges, in `size` slots."""
    return rollout._replace(obs=crop(rollout.obs, size), next_obs=crop(rollout.next_obs, size))


def sizes_of(graph: Graph) -> tuple[int, ...]:
    """The sizes to choose from, in ascending order; the last holds every graph."""
    capacity = max(graph.nodes.shape[-2] - 1, graph.senders.shape[-1])
    sizes = {-(-capacity // part) for part in PARTS}
    return tuple(sorted(size for size in sizes if size >= LEAST_SLOTS or size == capacity))


def size_index(sizes: tuple[int, ...], graph: Graph) -> jax.Array:
    """The index of the least of the sizes that holds all graphs `[...]`; int32."""
    needed = jnp.maximum(jnp.max(graph.n_node[..., 0]), jnp.max(graph.n_edge[..., 0]))
    return jnp.sum(needed > jnp.array(sizes[:-1], jnp.int32), dtype=jnp.int32)


def check(agent: Agent, state: AgentState, obs: Observation, key: jax.Array) -> None:
    """Raises ValueError unless what `act` returns has the same shapes for every size."""

    def shapes(size: int) -> list[tuple[int, ...]]:
        act = lambda state, obs, key: agent.act(state, agent.memory(), crop(obs, size), key)
        return [x.shape for x in jax.tree.leaves(jax.eval_shape(act, state, obs, key))]

    sizes = sizes_of(obs)
    cropped_shapes, full_shapes = shapes(sizes[0]), shapes(sizes[-1])
    if cropped_shapes != full_shapes:
        raise ValueError(
            f"act returns shapes {full_shapes} for graphs in all slots, but {cropped_shapes} for "
            "cropped graphs: an agent that decides for each node cannot be cropped"
        )
