"""Adapted environments are copied, and are used in other processes."""

import copy
import os
import pickle
import signal

import gymnasium
import gymnax
import jax
import numpy as np
import pytest

import envs
from envs.base import Environment
from envs.gymnasium_adapter import GymnasiumEnv, GymnasiumVectorEnv
from envs.snake import Snake
from envs.wrappers import ActionRepeat, FrameStack, LastAction, StickyActions
from tests.envs.gymnasium_adapter.environments import CARTPOLE, SNAKE

COPIERS = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("way", COPIERS)
@pytest.mark.parametrize("env_id", [*envs.ALL, "CartPole-v1", "wrapped"])
def test_environments_can_be_copied(env_id, way):
    if env_id == "wrapped":
        env = FrameStack(StickyActions(LastAction(ActionRepeat(Snake(), 2)), 0.1), 2)
        params = env.default_params
    else:
        env, params = gymnax.make(env_id)
    twin = COPIERS[way](env)
    if isinstance(env, Environment):
        assert (twin, hash(twin)) == (env, hash(env))
    for one, other in zip(
        jax.tree.leaves(params), jax.tree.leaves(COPIERS[way](params)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("way", COPIERS)
@pytest.mark.parametrize("vector", [False, True])
def test_a_copy_goes_on_as_its_original(vector, way):
    env = GymnasiumVectorEnv(CARTPOLE, 3) if vector else GymnasiumEnv(CARTPOLE)
    env.reset(seed=3)
    action = np.zeros(3, int) if vector else 0
    env.step(action)
    twin = COPIERS[way](env)
    for _ in range(3):
        for one, other in zip(env.step(action)[:4], twin.step(action)[:4], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda env: gymnasium.make("jaxrl/CartPole-v1"), id="make"),
        pytest.param(lambda env: GymnasiumVectorEnv(SNAKE, 2), id="vector"),
        pytest.param(lambda env: env.reset(), id="reset"),
        pytest.param(lambda env: env.step(0), id="step"),
    ],
)
def test_a_process_that_was_forked_is_told_that_it_would_hang(call):
    env = GymnasiumEnv(SNAKE)
    env.reset(seed=0)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            call(env)
        except RuntimeError as error:
            os._exit(7 if "start it by spawn" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.slow
def test_workers_may_be_spawned():
    name = "jaxrl/CartPole-v1"
    worker_options = {"context": "spawn"}
    apart = gymnasium.make_vec(name, 2, vectorization_mode="async", vector_kwargs=worker_options)
    together = gymnasium.make_vec(name, 2, vectorization_mode="sync")
    np.testing.assert_array_equal(apart.reset(seed=3)[0], together.reset(seed=3)[0])
    for _ in range(20):
        pairs = zip(apart.step([0, 1])[:4], together.step([0, 1])[:4], strict=True)
        for one, other in pairs:
            np.testing.assert_array_equal(one, other)
    apart.close()
