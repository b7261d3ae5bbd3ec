"""Deletion alone is learned first, with spawn parameters held; then all of the action."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bench import traced_numbers
from envs.durotaxis.actions import FIXED
from jaxrl import checkpoint
from jaxrl.agents import ppo
from jaxrl.loop import LoopMetrics
from jaxrl.networks.graph import set_held
from train.durotaxis.config import check, held_spawn
from train.durotaxis.program import PROGRAM
from train.durotaxis.training import make_curriculum, make_network, make_parts, make_training
from train.host.command_line import command
from train.host.files import policy_files

SMALL = (
    "two_stage --env.capacity=12 --env.threshold-nodes=12 --env.observation=local --env.width=80 "
    "--network.torso=pooled --network.width=8 --loop.num-envs=8 --loop.num-steps=16 "
    "--agent.minibatches=4 --agent.epochs=1 --run.total-steps=512 --curriculum.hold-spawn=0.5"
)


def parse_config(flags: str = "") -> Any:
    return command.parse(PROGRAM, (SMALL + " " + flags).split())[0]


def head(state: Any, name: str) -> np.ndarray:
    """The columns of a head of the policy, `[W, P]`."""
    return np.asarray(state.agent.params["params"][name]["kernel"])


@pytest.mark.slow
def test_the_first_stage_learns_the_share_alone_and_goes_on_bit_for_bit(tmp_path: Path):
    config = parse_config()
    training = make_training(config)
    update = jax.jit(training.update)
    states, stages = [jax.jit(training.init)(jax.random.key(0))], []
    for _ in range(4):
        state, metrics = update(states[-1])
        states.append(state)
        stages.append(float(metrics.agent["stage"]))
        if len(states) <= 3:  # acted in with held parameters
            spawn = np.array([0.5, 2.0, 0.1, 0.0], np.float32)
            for name in ("action_min", "action_max"):
                np.testing.assert_allclose(metrics.agent[name][1:], spawn, rtol=1e-6)
    assert stages == [1, 1, 2, 2]
    for name in ("policy", "log_scale"):
        columns = [head(state, name) for state in states]
        for before, after in pairwise(columns[:3]):
            np.testing.assert_array_equal(before[:, 1:], after[:, 1:])
            assert (before[:, 0] != after[:, 0]).any()
        assert (columns[2][:, 1:] != columns[3][:, 1:]).any(axis=0).all()
    assert [float(s.agent.params["stage"]["held"]) for s in states] == [1, 1, 0, 0, 0]

    checkpoint.save(tmp_path / "state", 1, states[1], {})
    restored_state, *_ = checkpoint.restore(tmp_path / "state", states[1])
    for _ in range(3):
        restored_state, _ = update(restored_state)
    chex.assert_trees_all_equal(restored_state, states[-1])


def test_spawn_parameters_are_free_once_the_first_stage_is_over():
    config = parse_config()
    _, params, _ = make_parts(config)
    curriculum = make_curriculum(config, params)
    assert curriculum
    course, stages = curriculum.init(), []
    state = ppo.State({"params": {}, "stage": {"held": jnp.ones(())}}, (), jnp.zeros(()))
    for _ in range(4):
        course, state, metrics = curriculum.advance(
            course, state, LoopMetrics(jnp.zeros(()), {}, {})
        )
        stages.append((float(metrics["stage"]), float(state.params["stage"]["held"])))
    assert stages == [(1, 1), (1, 0), (2, 0), (2, 0)], "of each update, and what comes after it"


@pytest.mark.slow
@pytest.mark.parametrize("is_held", [True, False])
def test_an_exported_policy_acts_as_it_did(is_held: bool):
    config = parse_config()
    env, params, agent = make_parts(config, greedy=True)
    obs, _ = env.reset(jax.random.key(1), params)
    state = agent.init(jax.random.key(2), obs)
    state = state._replace(params=set_held(state.params, jnp.asarray(is_held)))
    arrays = {name: np.asarray(x) for name, x in policy_files.parameters(state).items()}
    template = jax.eval_shape(agent.init, jax.random.key(0), obs)
    restored_state = policy_files.with_parameters(template, arrays)
    act = jax.jit(agent.act)
    action, *_ = act(state, (), obs, jax.random.key(3))
    restored_action, *_ = act(restored_state, (), obs, jax.random.key(3))
    np.testing.assert_array_equal(action, restored_action)
    assert (float(action[1]) == FIXED["directed"].gamma) == is_held


@pytest.mark.slow
def test_the_probability_of_an_action_is_that_of_its_share():
    config = parse_config()
    env, params, agent = make_parts(config)
    obs, _ = env.reset(jax.random.key(1), params)
    state = agent.init(jax.random.key(2), obs)
    action, _, extras = jax.jit(agent.act)(state, (), obs, jax.random.key(3))
    fixed = FIXED["directed"]
    np.testing.assert_allclose(action[1:], [fixed.gamma, fixed.alpha, fixed.noise, fixed.theta])
    policy, _ = make_network(config, env).apply(state.params, obs)
    share = jax.tree.map(lambda x: x[:1], policy.policy)
    np.testing.assert_allclose(extras.log_prob, share.log_prob(action[:1]), rtol=1e-5)
    np.testing.assert_allclose(policy.entropy(), share.entropy(), rtol=1e-6)


@pytest.mark.slow
def test_single_nodes_are_chosen_while_spawning_is_held():
    config = parse_config("--env.action=nodes")
    env, params, agent = make_parts(config)
    obs, _ = env.reset(jax.random.key(1), params)
    state = agent.init(jax.random.key(2), obs)
    (choice, spawn), _, extras = jax.jit(agent.act)(state, (), obs, jax.random.key(3))
    np.testing.assert_allclose(spawn, held_spawn(config.env))
    policy, _ = make_network(config, env).apply(state.params, obs)
    np.testing.assert_allclose(extras.log_prob, policy.parts[0].log_prob(choice), rtol=1e-5)
    assert jnp.all(choice[5:] == 0)


@pytest.mark.slow
def test_held_numbers_may_be_traced_and_must_be_in_their_bounds():
    config = parse_config()
    for field in ("env.spawn.gamma", "curriculum.hold_spawn"):
        assert traced_numbers.is_traceable(PROGRAM, config, field)
    message = "env.spawn.gamma is 20.0, expected a number at least 0.5 and at most 15.0"
    with pytest.raises(ValueError, match=re.escape(message)):
        check(parse_config("--env.spawn.gamma=20"))
    with pytest.raises(ValueError, match=r"holds spawn parameters, but env\.action ratio has none"):
        check(parse_config("--env.action=ratio"))
