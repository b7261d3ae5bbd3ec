"""With 64 bits on in JAX all is as without, bit for bit; what draws is not told its dtype."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl import evaluate, loop
from jaxrl.agent_checker import agent_checker
from jaxrl.agents import dqn, ppo, pqn, recurrent_ppo, sac
from jaxrl.losses.distributions.continuous import Normal, SquashedNormal
from jaxrl.losses.distributions.discrete import Categorical
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.numerics import precision
from jaxrl.types import Agent, where_tree
from jaxrl.wrappers import normalisation


class Drift:
    """A random walk as people write one who know nothing of 64 bits."""

    num_actions = 2

    def reset(self, key, params):
        x = jax.random.normal(key)
        return jnp.stack([x, 0.0]), (x, jnp.array(0))

    def step(self, key, state, action, params):
        step_key, reset_key = jax.random.split(key)
        x = state[0] + params["size"] * (2 * action - 1) + jax.random.uniform(step_key)
        after = (x, state[1] + 1)
        obs = jnp.stack([x, after[1] / 10])
        ended = after[1] == 10
        next_obs, after = where_tree(ended, self.reset(reset_key, params), (obs, after))
        info = {"final_observation": obs, "outcome": {"far": jnp.abs(x) > 1}}
        return next_obs, after, -jnp.abs(x), jnp.bool_(False), ended, info


def make_agent(greedy: bool = False) -> Agent:
    network: Any = ActorCritic(MLP((4,)), 2)
    agent = ppo.make(network, ppo.Config(epochs=1, minibatches=2), greedy)
    config = normalisation.Config(observations=True, rewards=True)
    return normalisation.make(agent, config, num_envs=4)


def train_and_evaluate() -> Any:
    """A training of two updates and an evaluation; numbers of the environment made as arrays."""
    env, params = Drift(), {"size": jnp.array(0.25)}
    train_loop = loop.make_loop(env, params, make_agent(), loop.Config(4, 8))
    state, metrics = jax.jit(loop.make_chunk(train_loop.update, 2))(
        train_loop.init(jax.random.key(0))
    )
    play = jax.jit(
        lambda agent, key: evaluate.evaluate(env, params, make_agent(True), agent, key, 3, 1, 20)
    )
    return (
        state._replace(key=jax.random.key_data(state.key)),
        metrics,
        play(state.agent, jax.random.key(1)),
    )


@pytest.mark.slow
def test_a_training_and_its_evaluation_are_the_same_with_64_bits_on():
    expected = train_and_evaluate()
    with jax.enable_x64(True):
        assert jnp.ones(()).dtype == np.float64
        wide = train_and_evaluate()
        agent_checker(make_agent(), Drift(), {"size": jnp.array(0.25)}, make_agent(True))
    assert max(x.dtype.itemsize for x in jax.tree.leaves(wide)) == 4
    jax.tree.map(np.testing.assert_array_equal, wide, expected)


def test_arrays_of_64_bits_are_rounded_and_nothing_else_is_touched():
    with jax.enable_x64(True):
        arrays = {
            "x": jnp.array([1 / 3]),
            "n": jnp.arange(2),
            "key": jax.random.key(0),
            "f": "text",
        }
        narrow = precision.narrow(arrays)
        assert precision.in_float32(lambda: jnp.ones(()))().dtype == np.float32
    assert (narrow["x"].dtype, narrow["n"].dtype) == (np.float32, np.int32)
    np.testing.assert_array_equal(narrow["x"], np.array([1 / 3], np.float32))
    assert (narrow["key"], narrow["f"]) == (arrays["key"], "text")


class Narrow:
    """A network for each kind of agent, with an output that has 16 bits."""

    def __init__(self, output: Any):
        self.output = output

    init = lambda self, key, obs, *others: {}
    apply = lambda self, params, obs, *others, **named: self.output
    initial_memory = lambda self: ()


HALF = jnp.zeros(2, jnp.bfloat16)
UNIT_BOX = SquashedNormal(Normal(HALF, HALF), -jnp.ones(2), jnp.ones(2))
WIDE_BOX = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), UNIT_BOX)


@pytest.mark.parametrize(
    ("agent", "network"),
    [
        (ppo.make(Narrow((Categorical(jnp.zeros(2)), HALF[0])), ppo.Config()), "network"),
        (ppo.make(Narrow((Categorical(HALF), jnp.zeros(()))), ppo.Config()), "network"),
        (
            recurrent_ppo.make(
                Narrow((Categorical(HALF), jnp.zeros(()), ())), recurrent_ppo.Config()
            ),
            "network",
        ),
        (dqn.make(Narrow(HALF), dqn.Config()), "network"),
        (sac.make(Narrow(UNIT_BOX), Narrow(jnp.zeros(2)), sac.Config()), "actor"),
        (sac.make(Narrow(WIDE_BOX), Narrow(HALF), sac.Config()), "critic"),
    ],
)
def test_a_network_that_returns_16_bits_is_refused_in_one_line(agent: Agent, network: str):
    """Losses and their metrics are float32."""
    message = rf"the {network} returns bfloat16 for one observation of shape \[3\], expected float"
    with pytest.raises(ValueError, match=message) as error:
        agent.init(jax.random.key(0), jnp.zeros(3))
    assert "\n" not in str(error.value)


def test_pqn_takes_a_network_that_returns_16_bits():
    pqn.make(Narrow(HALF), pqn.Config()).init(jax.random.key(0), jnp.zeros(3))
