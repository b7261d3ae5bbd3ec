"""Runs on eight forced host devices: what they exchange, their numbers, their memory; layouts."""

from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from jaxrl import loop, sharding
from jaxrl.agents import dqn
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mlp import MLP
from tests.jaxrl import sharded_runs
from tests.jaxrl.sharded_runs import K, N, answers, assert_only_sums, make_run

QUICK = ("ppo", "ppo_microbatches", "dqn_prioritised")
OTHERS = ("ppo_grouped", "ppo_normalised", "recurrent_ppo", "pqn", "dqn", "dqn_n_step")
OTHERS += ("dqn_rainbow", "sac", "allo", "ppo_members", "dqn_prioritised_members")
ROUNDING = 1e-4
"""A sum over devices is rounded in another order: a relative 1e-7, which dividing a gradient by its
own size (Adam) and turning features to the eigenvectors of their span (ALLO) make up to a hundred
times as much in a few updates. Other draws would differ by 0.01 and more."""


@pytest.fixture(scope="module")
def quick() -> dict[str, Any]:
    questions = [f"collectives:{name}" for name in (*QUICK, "ppo_one_block", "dqn_one_block")]
    return answers(*questions, "differences:dqn", "memory:dqn")


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_devices_exchange_sums_alone(quick, name):
    assert_only_sums(*quick[f"collectives:{name}"])


@pytest.mark.slow
def test_without_blocks_devices_exchange_experience(quick):
    """So the test above would see it: as it is gathered, or as a sum of zeros and one of it."""
    collectives, params = quick["collectives:ppo_one_block"]
    assert collectives["all-gather"] > params
    collectives, params = quick["collectives:dqn_one_block"]
    assert collectives["all-reduce"] > 10 * params


@pytest.mark.slow
def test_devices_exchange_sums_alone_with_every_agent():
    for answer in answers(*(f"collectives:{name}" for name in OTHERS)).values():
        assert_only_sums(*answer)


@pytest.mark.slow
def test_the_same_blocks_give_the_same_numbers_on_any_devices(quick):
    assert set(quick["differences:dqn"]) == {"2", "4", "8"}
    assert max(quick["differences:dqn"].values()) < ROUNDING


@pytest.mark.slow
def test_the_same_blocks_give_the_same_numbers_with_every_agent():
    names = [*QUICK, *(x for x in OTHERS if not x.endswith("_members"))]
    for name, differences in answers(*(f"differences:{name}" for name in names)).items():
        assert max(differences.values()) < ROUNDING, name


@pytest.mark.slow
def test_the_same_blocks_give_the_same_numbers_for_long():
    """Until a rounding flips an action, after which runs differ as two seeds do."""
    for name, differences in answers("long_differences:pqn", "long_differences:dqn").items():
        assert max(differences.values()) < 1e-3, name


@pytest.mark.slow
def test_the_replay_is_written_in_place(quick):
    for bytes_ in quick["memory:dqn"].values():
        assert bytes_["aliased"] >= bytes_["replay"]
        assert bytes_["temporary"] < bytes_["replay"] / 2


def shapes(name: str) -> loop.TrainState:
    return jax.eval_shape(make_run(name).init, jax.random.key(0))


def test_layout_of_a_run_with_priorities():
    spec = sharding.layout(shapes("dqn_prioritised"))
    assert spec.obs == P("block")
    assert set(jax.tree.leaves((spec.env, spec.episode))) == {P("block")}
    assert set(jax.tree.leaves(spec.agent.replay.data)) == {P(None, "block")}
    priorities, ring = spec.agent.priorities, spec.agent.replay
    assert (priorities.mass, priorities.largest) == (P(None, "block"), P())
    counters = (ring.head, ring.size, spec.updates)
    others = (spec.agent.learner, counters, spec.key, spec.course)
    assert set(jax.tree.leaves(others)) == {P()}


def test_layout_of_memories_and_of_what_normalises():
    assert sharding.layout(shapes("recurrent_ppo")).memory == P("block")
    spec = sharding.layout(shapes("ppo_normalised")).agent
    assert spec.return_ == P("block")
    assert set(jax.tree.leaves((spec.params, spec.agent, spec.returns))) == {P()}


@pytest.mark.parametrize("name", ["dqn_rainbow", "recurrent_ppo", "ppo_normalised", "sac"])
def test_layout_splits_exactly_the_axes_of_environments(name):
    """Found independently: the axes that are larger where there are more environments."""
    small = shapes(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharded_runs, "N", 2 * N)
        larger_run = make_run(name, capacity=2 * sharded_runs.CAPACITY)  # so as many rows
        large = jax.eval_shape(larger_run.init, jax.random.key(0))
    axes = jax.tree.map(
        lambda a, b: [x != y for x, y in zip(a.shape, b.shape, strict=True)], small, large
    )
    layout = jax.tree.map(
        lambda spec, axis: [*spec] + [None] * (len(axis) - len(spec)),
        sharding.layout(small),
        axes,
        is_leaf=lambda x: isinstance(x, P),
    )
    expected = jax.tree.map(lambda differs: "block" if differs else None, axes)
    assert layout == expected


def test_members_come_first():
    run = make_run("dqn_prioritised")
    keys = jax.random.split(jax.random.key(0), 3)
    spec = sharding.layout(jax.eval_shape(jax.vmap(run.init), keys), members=True)
    assert spec.obs == P("member", "block")
    assert set(jax.tree.leaves(spec.agent.replay.data)) == {P("member", None, "block")}
    assert set(jax.tree.leaves((spec.agent.learner, spec.key))) == {P("member")}


def test_a_mesh_with_other_axes_is_refused():
    mesh = jax.make_mesh((1,), ("devices",), axis_types=(AxisType.Auto,))
    with pytest.raises(ValueError, match="expected \\('member', 'block'\\)"):
        sharding.shardings(mesh, shapes("ppo"))


def test_blocks_must_be_equal():
    env, params = gymnax.make("CartPole-v1")
    agent = sharded_runs.make_agent("ppo", 1, 0)
    with pytest.raises(ValueError, match="num_envs is 10, blocks is 4, expected blocks to divide"):
        loop.make_loop(env, params, agent, loop.Config(10, 2, 4))
    with pytest.raises(ValueError, match="blocks is 0"):
        loop.make_loop(env, params, agent, loop.Config(10, 2, 0))


def test_each_block_must_be_an_equal_part_of_a_minibatch():
    with pytest.raises(ValueError, match="num_envs is 16, blocks is 3, expected blocks to divide"):
        sharded_runs.make_agent("sac", 3, N)
    config = dqn.Config(batch_size=12)
    with pytest.raises(ValueError, match="batch_size is 12, blocks is 8, expected blocks to"):
        dqn.make(QNetwork(MLP((4,)), 2), config, num_envs=N, blocks=K)


@pytest.mark.slow
def test_blocks_are_learned_from_without_a_mesh():
    """And not as one: the draws differ, the environments do not."""
    runs = (make_run("ppo", blocks) for blocks in (1, K))
    one, eight = (jax.jit(run.update)(run.init(jax.random.key(0)))[0] for run in runs)
    np.testing.assert_array_equal(one.obs, eight.obs)
    differs = jax.tree.map(lambda a, b: jnp.any(a != b), one.agent.params, eight.agent.params)
    assert any(jax.tree.leaves(differs))
