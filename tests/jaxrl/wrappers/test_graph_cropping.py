"""A cropping agent against the agent itself, which sees all slots."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest

from jaxrl.agents import ppo
from jaxrl.networks.graph import GraphActorCritic, GraphTorso, HybridActorCritic, PooledTorso
from jaxrl.types import Agent, Transition
from jaxrl.wrappers import graph_cropping
from jaxrl.wrappers.graph_cropping import crop, sizes_of
from tests.accelerator_branches import compile_as_on_accelerators

C, T, N = 48, 4, 3
SMALL, MIDDLE, LARGE = 6, 15, 47  # nodes of the largest graph; the sizes are 8, 16, 48
GRAPH: Any = GraphActorCritic(GraphTorso(8), 2, 0.0, 1.0, 3)
POOLED: Any = GraphActorCritic(PooledTorso(8), 2, 0.0, 1.0, 0)
CONFIG = ppo.Config(epochs=2, minibatches=2)


def graphs(largest: int, *leading: int, seed: int = 0) -> Any:
    """Paths `[*leading]` of 1 to `largest` nodes, at least one of them so large, in C slots."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, largest + 1, (*leading, 1))
    n.flat[-1] = largest
    e, node, ends = n - 1, np.arange(C + 1), np.arange(C)
    real, joined = node < n, ends < e
    random = lambda *shape: rng.normal(size=(*leading, *shape))
    arrays: dict[str, Any] = {
        "nodes": np.where(real[..., None], random(C + 1, 4), 0),
        "edges": np.where(joined[..., None], random(C, 3), 0),
        "globals": random(2, 5),
    }
    return jraph.GraphsTuple(
        **{name: jnp.asarray(x, jnp.float32) for name, x in arrays.items()},
        senders=jnp.asarray(np.where(joined, ends, C), jnp.int32),
        receivers=jnp.asarray(np.where(joined, ends + 1, C), jnp.int32),
        n_node=jnp.asarray(np.concatenate([n, C + 1 - n], -1), jnp.int32),
        n_edge=jnp.asarray(np.concatenate([e, C - e], -1), jnp.int32),
    )


def state_of(agent: Agent, seed: int) -> Any:
    """A state whose parameters matter: those at the start are nearly 0 in the last layer."""
    state = agent.init(jax.random.key(seed), graphs(SMALL))
    rng = np.random.default_rng(seed)
    perturb = lambda x: x + jnp.asarray(rng.normal(scale=0.3, size=x.shape), x.dtype)
    return state._replace(params=jax.tree.map(perturb, state.params))


def rollout_of(agent: Agent, state: Any, largest: int, seed: int = 0) -> Transition:
    """`[T, N]`, with `largest` nodes in the last of the successors only."""
    rng = np.random.default_rng(seed)
    obs = graphs(min(largest, 12), T, N, seed=seed)
    keys = jax.random.split(jax.random.key(seed), (T, N))
    act = jax.vmap(jax.vmap(agent.act, (None, None, 0, 0)), (None, None, 0, 0))
    action, _, extras = act(state, (), obs, keys)
    value = extras.value
    reward = jnp.asarray(rng.normal(size=value.shape), jnp.float32)
    next_obs, never = graphs(largest, T, N, seed=seed + 1), jnp.zeros((T, N), bool)
    ended = never.at[1, 0].set(True)
    return Transition(obs, action, reward, next_obs, ended, never, extras)


def close(actual: Any, expected: Any) -> None:
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("network", [GRAPH, POOLED], ids=["graph", "pooled"])
def test_the_same_agent(network):
    plain = ppo.make(network, CONFIG)
    agent = graph_cropping.make(plain)
    state = state_of(plain, 0)
    close(*(each.init(jax.random.key(0), graphs(SMALL)) for each in (agent, plain)))
    for largest in (SMALL, MIDDLE, LARGE):
        obs, rollout = graphs(largest, N), rollout_of(plain, state, largest)
        close(*(act_batch(each, state, obs) for each in (agent, plain)))
        close(*(update_agent(each, state, rollout) for each in (agent, plain)))


@partial(jax.jit, static_argnums=0)
def act_batch(agent: Agent, state: Any, obs: Any) -> Any:
    keys = jax.random.split(jax.random.key(1), N)
    return jax.vmap(agent.act, (None, None, 0, 0))(state, (), obs, keys)


@partial(jax.jit, static_argnums=0)
def update_agent(agent: Agent, state: Any, rollout: Transition) -> Any:
    return agent.update(state, rollout, jax.random.key(2))


@pytest.mark.slow
def test_members_with_numbers_of_their_own():
    """Three seeds and learning rates side by side, one of them with large graphs."""

    def act_and_update(wrap, rate, state, rollout, seed):
        agent = wrap(ppo.make(POOLED, ppo.Config(learning_rate=rate, epochs=1, minibatches=2)))
        act_key, update_key = jax.random.split(jax.random.key(seed))
        keys = jax.random.split(act_key, (T, N))
        act = jax.vmap(jax.vmap(agent.act, (None, None, 0, 0)), (None, None, 0, 0))
        return act(state, (), rollout.obs, keys), agent.update(state, rollout, update_key)

    plain, stack = ppo.make(POOLED, CONFIG), lambda *x: jnp.stack(x)
    states = [state_of(plain, seed) for seed in range(3)]
    cases = zip(states, (SMALL, MIDDLE, LARGE), range(3), strict=True)
    rollouts = [rollout_of(plain, *each) for each in cases]
    rates, seeds = jnp.array([1e-3, 1e-2, 3e-2]), jnp.arange(3)
    inputs = rates, jax.tree.map(stack, *states), jax.tree.map(stack, *rollouts), seeds
    run = lambda wrap: jax.jit(jax.vmap(lambda *each: act_and_update(wrap, *each)))(*inputs)
    close(run(graph_cropping.make), run(lambda agent: agent))


def test_only_the_size_that_is_needed_is_computed():
    """Seen by an agent that tells how many slots its graphs have."""
    sizes = []

    def record_slots(obs):
        jax.debug.callback(lambda: sizes.append(obs.nodes.shape[-2] - 1))

    def act(state, memory, obs, key):
        del key
        record_slots(obs)
        return state + obs.nodes.sum(), memory, ()

    def update(state, rollout, key):
        del key
        record_slots(rollout.obs)
        record_slots(rollout.next_obs)
        return state + rollout.next_obs.nodes.sum(), {}

    agent = graph_cropping.make(Agent(lambda key, obs: jnp.zeros(()), lambda: (), act, update))
    members = jnp.zeros(2)
    for largest, size in ((SMALL, 8), (MIDDLE, 16), (LARGE, C)):
        sizes.clear()
        obs = graphs(largest, 2, N)
        all_act = jax.vmap(jax.vmap(agent.act, (None, None, 0, None)), (0, None, 0, None))
        jax.block_until_ready(jax.jit(all_act)(members, (), obs, jax.random.key(0)))
        jax.effects_barrier()
        assert sizes == [size]
        next_obs = graphs(largest, 2, T, N)
        rollout = Transition(graphs(SMALL, 2, T, N), (), (), next_obs, (), (), ())  # pyright: ignore[reportArgumentType]
        all_update = jax.vmap(agent.update, (0, 0, None))
        jax.block_until_ready(jax.jit(all_update)(members, rollout, jax.random.key(0)))
        jax.effects_barrier()
        assert sizes == [size] * 3


def test_accelerators_do_not_choose_a_size():
    sizes = []

    def act(state, memory, obs, key):
        del key
        sizes.append(obs.nodes.shape[-2] - 1)
        return state + obs.nodes.sum(), memory, ()

    def update(state, rollout, key):
        del key
        sizes.append(rollout.obs.nodes.shape[-2] - 1)
        return state + rollout.next_obs.nodes.sum(), {}

    agent = graph_cropping.make(Agent(lambda key, obs: jnp.zeros(()), lambda: (), act, update))
    key, obs, next_obs = jax.random.key(0), graphs(SMALL, N), graphs(MIDDLE, T, N)
    act_all = jax.vmap(agent.act, (None, None, 0, None))
    action, *_ = compile_as_on_accelerators(act_all, jnp.zeros(()), (), obs, key)(
        jnp.zeros(()), (), obs, key
    )
    np.testing.assert_allclose(action, obs.nodes.sum((1, 2)), rtol=1e-5)
    rollout = Transition(graphs(SMALL, T, N), (), (), next_obs, (), (), ())  # pyright: ignore[reportArgumentType]
    state, _ = compile_as_on_accelerators(agent.update, jnp.zeros(()), rollout, key)(
        jnp.zeros(()), rollout, key
    )
    np.testing.assert_allclose(state, next_obs.nodes.sum(), rtol=1e-5)
    assert set(sizes) == {C}


def test_what_was_cropped_is_the_same_graph_in_fewer_slots():
    full_graph = graphs(MIDDLE, N)
    graph = crop(full_graph, 16)
    sizes = [x.shape[1] for x in (graph.nodes, graph.edges, graph.senders, graph.receivers)]
    assert sizes == [17, 16, 16, 16]
    assert graph.n_node.sum(-1).tolist() == [17] * N
    assert graph.n_edge.sum(-1).tolist() == [16] * N
    for i in range(N):
        n, e = int(graph.n_node[i, 0]), int(graph.n_edge[i, 0])
        assert (n, e) == (int(full_graph.n_node[i, 0]), int(full_graph.n_edge[i, 0]))
        np.testing.assert_array_equal(graph.nodes[i, :n], full_graph.nodes[i, :n])
        np.testing.assert_array_equal(graph.senders[i, :e], full_graph.senders[i, :e])
        assert np.all(graph.senders[i, e:] == 16)
        assert np.all(graph.receivers[i, e:] == 16)


@pytest.mark.parametrize(("nodes", "edges", "size"), [(6, 10, 10), (10, 6, 10), (6, 10, 8)])
def test_a_graph_with_more_slots_of_one_kind_stays_whole(nodes: int, edges: int, size: int):
    """Nodes and edges of the graph and of its padding are all there are, as jraph counts them."""
    graph: Any = jraph.GraphsTuple(
        nodes=jnp.ones((nodes + 1, 2)),
        edges=jnp.ones((edges, 2)),
        globals=jnp.ones((2, 1)),
        senders=jnp.full(edges, nodes, jnp.int32).at[0].set(0),
        receivers=jnp.full(edges, nodes, jnp.int32).at[0].set(1),
        n_node=jnp.array([2, nodes - 1], jnp.int32),
        n_edge=jnp.array([1, edges - 1], jnp.int32),
    )
    in_fewer = crop(graph, size)
    assert jnp.sum(in_fewer.n_node) == len(in_fewer.nodes) == min(nodes, size) + 1
    assert jnp.sum(in_fewer.n_edge) == len(in_fewer.edges) == len(in_fewer.senders)
    assert jnp.max(in_fewer.senders) < len(in_fewer.nodes)
    np.testing.assert_array_equal(jnp.asarray(jraph.get_node_padding_mask(in_fewer))[:3], [1, 1, 0])


def test_sizes():
    assert sizes_of(graphs(SMALL)) == (8, 16, C)
    assert sizes_of(crop(graphs(SMALL), 6)) == (6,)


def test_a_choice_for_each_node_is_refused():
    agent = graph_cropping.make(ppo.make(HybridActorCritic(PooledTorso(8), 1, 0.0, 1.0, 0), CONFIG))
    with pytest.raises(ValueError, match="an agent that decides for each node cannot be cropped"):
        agent.init(jax.random.key(0), graphs(SMALL))
