"""Against the distributions that the docstrings promise, and a plain-Python εz-greedy."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

from jaxrl.agent_checker import agent_checker
from jaxrl.agents import dqn, pqn
from jaxrl.losses import exploration
from tests.jaxrl import toy_environments as toys

STEPS = 20_000


def walk(step, memory, key, steps=STEPS):
    """`step(key, memory) -> (output, memory)` carried along: the outputs, `[T, ...]`."""

    def body(memory, key):
        output, memory = step(key, memory)
        return memory, output

    return jax.lax.scan(body, memory, jax.random.split(key, steps))[1]


def noise(correlation, size):
    def step(key, memory):
        memory = exploration.correlated_noise(key, correlation, memory)
        return memory.value, memory

    return step, exploration.memory_of_noise(size)


@pytest.mark.parametrize("exponent", [1.5, 2.0, 3.0])
def test_durations_have_the_tail_of_a_power(exponent, key):
    steps = np.asarray(exploration.durations(key, exponent, (200_000,)))
    assert steps.dtype == np.int32
    assert steps.min() == 1
    assert steps.max() <= exploration.LONGEST
    for k in (2, 3, 5, 10):
        expected = k ** (1.0 - exponent)
        error = 5 * np.sqrt(expected * (1 - expected) / len(steps))
        assert np.mean(steps >= k) == pytest.approx(expected, abs=error)


def runs_of(repeating):
    """Lengths of the runs of True."""
    padded = np.flatnonzero(np.diff(np.concatenate([[0], repeating.astype(int), [0]])))
    return padded[1::2] - padded[::2]


@pytest.mark.slow
def test_a_random_action_is_kept_until_its_time_is_over(key):
    """A slow player follows the same draws, kept apart from the actions."""
    q, epsilon, exponent = jnp.array([0.0, 0.0, 1.0]), 0.3, 2.0
    memory, steps_left, held_action = exploration.memory_of_repeats(exponent), 0, 0
    for step_key in jax.random.split(key, 200):
        begin_key, action_key, length_key = jax.random.split(jax.random.clone(step_key), 3)
        if steps_left == 0 and float(jax.random.uniform(begin_key)) < epsilon:
            steps_left = int(exploration.durations(length_key, exponent))
            held_action = int(jax.random.randint(action_key, (), 0, 3))
        expected, steps_left = (held_action, steps_left - 1) if steps_left else (2, 0)
        action, memory = exploration.epsilon_greedy(step_key, q, epsilon, exponent, memory)
        assert (int(action), int(memory.left)) == (expected, steps_left)


def test_repeats_go_farther_than_single_random_actions(key):
    """The mean run of a worse action: 2 steps at best if drawn anew, far more if repeated."""
    q = jnp.array([0.0, 1.0])

    def step(exponent):
        return lambda key, memory: exploration.epsilon_greedy(key, q, 0.1, exponent, memory)

    single_runs, repeated_runs = (
        runs_of(
            np.asarray(walk(step(exponent), exploration.memory_of_repeats(exponent), each)) == 0
        )
        for exponent, each in zip((None, 2.0), jax.random.split(key), strict=True)
    )
    assert single_runs.mean() < 1.2
    assert repeated_runs.mean() > 3
    assert repeated_runs.max() > 50


def test_without_chance_it_is_greedy(key):
    memory = exploration.memory_of_repeats(2.0)
    for step_key in jax.random.split(key, 20):
        action, memory = exploration.epsilon_greedy(step_key, jnp.arange(4.0), 0.0, 2.0, memory)
        assert (int(action), int(memory.left)) == (3, 0)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
def test_noise_is_standard_normal_and_forgets_as_a_power(correlation, key):
    values = np.asarray(walk(*noise(correlation, size=4_000), key, 40))  # [T, A]
    tolerance = 5 / np.sqrt(4_000)
    for t in (0, 1, 39):  # from the first step on
        assert abs(values[t].mean()) < tolerance
        assert abs(values[t].var() - 1) < 2 * tolerance
    for k in (1, 5, 20):
        assert abs(np.mean(values[10] * values[10 + k]) - correlation**k) < 2 * tolerance
    assert abs(np.mean(values[10, :2_000] * values[10, 2_000:])) < 2 * tolerance  # coordinates


def test_correlated_uniform_actions_are_uniform(key):
    """What SAC squashes before its warm-up ends: the logistic function of it is the normal CDF."""
    values = walk(*noise(0.9, 1), key, 200)
    below, above = (jax.scipy.special.log_ndtr(x) for x in (values, -values))
    np.testing.assert_allclose(jax.nn.sigmoid(below - above), norm.cdf(values), rtol=1e-4)


def q_learners(exponent):
    network = nn.Dense(2)
    config = dqn.Config(repeat_exponent=exponent, warmup=8, batch_size=4, capacity=64)
    yield [dqn.make(network, config, greedy, num_envs=4) for greedy in (False, True)]
    config = pqn.Config(repeat_exponent=exponent)
    yield [pqn.make(network, config, greedy) for greedy in (False, True)]


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [None, 2.0])
def test_q_learners_keep_the_contract(exponent):
    for agent, greedy in q_learners(exponent):
        with jax.debug_key_reuse(False):  # a DQN folds the key of its noise from the same one
            agent_checker(agent, toys.ActionObservationReward(), (), greedy)
        assert greedy.memory() == ()
        assert (agent.memory() == ()) == (exponent is None)
