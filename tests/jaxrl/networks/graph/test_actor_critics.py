"""Actor-critics on graphs, with padding and numbering varied."""

import collections
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.losses.distributions.continuous import SquashedNormal
from jaxrl.losses.distributions.joint import Joint
from jaxrl.networks.graph import (
    GraphActorCritic,
    GraphTorso,
    HybridActorCritic,
    PooledTorso,
)
from tests.jaxrl.networks.graph.graph_parts import (
    GRAPHS,
    C,
    W,
    any_params,
    close,
    graph,
    stack_trees,
)

LOW, HIGH = (0.0, -1.0), (1.0, 3.0)
HEADS: Any = GraphActorCritic(PooledTorso(W, layers=1), 2, LOW, HIGH, 3)
ACTOR = GraphActorCritic(GraphTorso(W, layers=1), 2, LOW, HIGH, 3)
POOLED = GraphActorCritic(PooledTorso(W), 1, 0.0, 1.0, 0)
HYBRID: Any = HybridActorCritic(GraphTorso(W, layers=1), 1, 0.0, 1.0, 1)
NETWORKS = {"graph": ACTOR, "pooled": POOLED, "hybrid": HYBRID}
networks = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS.keys())
TRACES = collections.Counter()


@functools.cache
def jitted_apply(network: Any) -> Any:
    """Compiled once for all tests; every trace is counted."""

    @jax.jit
    def apply(params, obs):
        TRACES[network, jnp.shape(obs.n_node)] += 1
        return network.apply(params, obs)

    return apply


@pytest.mark.slow
@networks
def test_one_at_a_time_is_the_same_as_a_batch(network):
    params, apply = any_params(network), jitted_apply(network)
    singles = stack_trees([apply(params, g) for g in GRAPHS[:4]])
    assert TRACES[network, (2,)] == 1
    batch = stack_trees(GRAPHS[:4])
    close(jax.jit(jax.vmap(network.apply, in_axes=(None, 0)))(params, batch), singles)
    square = jax.tree.map(lambda x: x.reshape(2, 2, *x.shape[1:]), batch)
    actual = apply(params, square)
    close(jax.tree.map(lambda x: x.reshape(4, *x.shape[2:]), actual), singles)


@pytest.mark.fast_cases(1)
@networks
def test_padding_is_inert(network):
    params = any_params(network)

    @jax.jit
    @jax.value_and_grad
    def loss(params, g):
        """The sum of all that a learner takes from a network."""
        policy, value = network.apply(params, g)
        other = jax.lax.stop_gradient(policy)
        mode = jax.lax.stop_gradient(policy.mode())
        total = policy.log_prob(mode) + 2.0 * policy.entropy() + 3.0 * policy.kl(other)
        return total + 4.0 * jnp.sum(jnp.square(value))

    for seed, sizes in enumerate([(5, 6), (2, 1), (1, 0), (0, 0)]):
        expected = loss(params, graph(seed, *sizes))
        assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(expected))
        for fill in (np.nan, 1e30):
            close(loss(params, graph(seed, *sizes, fill)), expected)


@networks
def test_new_numbers_for_the_nodes_move_nothing_else(network):
    params, (old, *_) = any_params(network), GRAPHS
    order = np.array([3, 0, 4, 1, 2, 5, 6])  # row i shows what was node order[i]
    rename, edges = np.argsort(order), np.array([2, 5, 0, 1, 3, 4])
    new = old._replace(
        nodes=old.nodes[order],
        edges=old.edges[edges],
        senders=rename[old.senders[edges]].astype(np.int32),
        receivers=rename[old.receivers[edges]].astype(np.int32),
    )
    policy, value = jitted_apply(network)(params, old)
    new_policy, new_value = jitted_apply(network)(params, new)
    close(new_value, value)
    if isinstance(policy, Joint):
        choice, new_choice = policy.parts[0], new_policy.parts[0]
        close(new_choice.logits[:5], choice.logits[order[:5]])
        close(new_policy.parts[1], policy.parts[1])
    else:
        close(new_policy, policy)


@pytest.mark.slow
def test_the_policy_starts_nearly_uniform_over_its_box():
    """Φ(-0.549) = 29 per cent in either outer quarter, since the logistic of 2 * -0.549 is 1/4."""
    params = jax.jit(HEADS.init)(jax.random.key(0), GRAPHS[0])
    policy, value = jitted_apply(HEADS)(params, stack_trees(GRAPHS))
    assert value.shape == (5, 3)
    assert isinstance(policy, SquashedNormal)
    close(policy.mode(), np.tile([0.5, 1.0], (5, 1)), atol=0.05)
    close(policy.raw.scale, np.ones((5, 2)), atol=0.05)
    keys = jax.random.split(jax.random.key(1), 4000)
    action = jax.jit(jax.vmap(policy.sample))(keys)[:, 0, 0]  # of the first graph
    share = np.histogram(action, [0.0, 0.25, 0.5, 0.75, 1.0])[0] / 4000
    np.testing.assert_allclose(share, [0.2914, 0.2086, 0.2086, 0.2914], atol=0.03)


def test_the_scale_stays_within_its_bounds():
    params = any_params(HEADS)
    for push, expected in ((1e3, np.e), (-1e3, np.exp(-3))):
        params["params"]["log_scale"]["bias"] = jnp.full(2, push)
        policy, _ = jitted_apply(HEADS)(params, GRAPHS[0])
        close(policy.raw.scale, np.full(2, expected))


@pytest.mark.slow
def test_the_hybrid_chooses_for_live_nodes_only():
    policy, value = jitted_apply(HYBRID)(any_params(HYBRID), stack_trees(GRAPHS))
    assert isinstance(policy, Joint)
    choice, spawn = policy.sample(jax.random.key(2))
    assert value.shape == (5, 1)
    assert choice.shape == (5, C)
    assert choice.dtype == jnp.int32
    assert spawn.shape == (5, 1)
    counts = [int(g.n_node[0]) for g in GRAPHS]
    assert policy.parts[0].live.sum(-1).tolist() == counts
    assert policy.log_prob((choice, spawn)).shape == (5,)
    for row, count in zip(np.asarray(choice), counts, strict=True):
        assert not np.any(row[count:])


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (GraphTorso(0), "width is 0"),
        (PooledTorso(W, 0), "layers is 0"),
        (GraphTorso(W, heads=0), "heads is 0"),
        (GraphActorCritic(GraphTorso(W), 2, (0.0,), 1.0), "give one number each"),
        (GraphActorCritic(GraphTorso(W), 1, 0.0, 1.0, -1), "num_values is -1"),
    ],
)
def test_impossible_sizes_are_refused(network, message):
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(network.init, jax.random.key(0), GRAPHS[0])


def test_graphs_without_padding_are_refused():
    bare = GRAPHS[0]._replace(n_node=np.array([C + 1], np.int32))
    with pytest.raises(ValueError, match="pad one graph"):
        jax.eval_shape(GraphTorso(W).init, jax.random.key(0), bare)
