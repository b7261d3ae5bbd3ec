"""What a replay takes, against arithmetic on what a transition is."""

import math
from dataclasses import replace

import jax
import pytest

from bench import memory
from train.host.program import find
from train.snake.config import make_env

MILLION = 1_000_000


@pytest.mark.parametrize(("preset", "priority"), [("dqn", 0), ("rainbow", 4)])
def test_a_million_transitions_of_flood_snake(preset, priority):
    """Two observations, an action and a reward of 4 bytes, two flags of 1: nothing else.

    An observation twice is 1.84 times the least, an observation once.
    """
    program = find("snake", "a test")
    config = program.presets[preset].config
    config = replace(config, agent=replace(config.agent, capacity=MILLION))
    usage = memory.use(program, config)
    env, params = make_env(config.env, training=True)
    obs_bytes = 4 * math.prod(jax.eval_shape(env.reset, jax.random.key(0), params)[0].shape)
    assert config.env.observation == "flood"
    assert usage.transition == 2 * obs_bytes + 4 + 4 + 2 + priority
    assert usage.least == obs_bytes + 4 + 4 + 2
    assert MILLION <= usage.transitions < MILLION + config.loop.num_envs


def test_the_state_of_an_environment_is_all_that_is_side_by_side():
    """CartPole: four floats and a clock; what it shows; return and length of the episode."""
    program = find("gymnax", "a test")
    usage = memory.use(program, program.presets["dqn"].config)
    assert usage.environment == (4 * 4 + 4) + 4 * 4 + (4 + 4)
    assert memory.use(program, program.presets["ppo"].config).transitions == 0
