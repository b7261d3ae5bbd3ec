"""The checker of agents: ours pass, and each broken promise is named in one line."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from gymnax.environments import spaces

import envs
from jaxrl.agent_checker import AgentError, agent_checker
from jaxrl.agents import ppo
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.types import Agent
from tests.train import tiny


class State(NamedTuple):
    params: Any
    updates: jax.Array


class Table(NamedTuple):
    table: jax.Array


def agent(**changes: Any) -> Agent:
    """One that keeps the contract, except for `changes`."""
    valid_agent = Agent(
        init=lambda key, obs: State({"w": jnp.zeros(2)}, jnp.int32(0)),
        memory=lambda: jnp.int32(0),
        act=lambda state, memory, obs, key: (obs @ state.params["w"], memory + 1, ()),
        update=lambda state, rollout, key: (State(state.params, state.updates + 1), {}),
    )
    return valid_agent._replace(**changes)


def act(action, memory=lambda x: x):
    return lambda state, past, obs, key: (action(state, obs, key), memory(past), ())


def update(after, metrics=lambda: {}):
    return lambda state, rollout, key: (after(state), metrics())


BROKEN = {
    "no params": (
        {"init": lambda key, obs: Table(jnp.zeros(2))},
        "no field of the state is named params",
    ),
    "memory": (
        {"act": act(lambda *_: jnp.float32(0), lambda x: x + 0.5)},
        "memory is float32[] after act, but int32[] before",
    ),
    "dtype": (
        {"update": update(lambda s: State(s.params, s.updates + 1.0))},
        "state.updates is float32[] after update, but int32[] before",
    ),
    "structure": ({"update": update(lambda s: s.params)}, "update changes the structure of the"),
    "shape": (
        {"update": update(lambda s: State({"w": jnp.zeros(3)}, s.updates))},
        "state.params['w'] is float32[3] after update, but float32[2] before",
    ),
    "NaN": (
        {"update": update(lambda s: State({"w": s.params["w"] / 0}, s.updates))},
        "state.params['w'] is not finite",
    ),
    "metric": ({"update": update(lambda s: s, lambda: {"x": jnp.inf})}, "metrics['x'] is not"),
    "text": (
        {"update": update(lambda s: s, lambda: {"x": "y"})},
        "update returns a str at [1]['x']; expected arrays",
    ),
    "no dict": (
        {"update": update(lambda s: s, lambda: ())},
        "metrics that update returns are 0 values; exp",
    ),
    "metric of two": (
        {
            "update": update(
                lambda s: s, lambda: {"losses": {"actor": jnp.zeros(()), "critic": 0.0}}
            )
        },
        "the metric 'losses' that update returns is a dict; expected an array",
    ),
    "no metric": (
        {"update": update(lambda s: s, lambda: {"x": None})},
        "the metric 'x' that update returns is a NoneType; expected an array",
    ),
    "action": ({"act": act(lambda *_: jnp.float32(jnp.nan))}, "action is not finite"),
    "pair": ({"act": lambda s, m, o, k: (jnp.float32(0), m)}, "act returns 2 values; expected (ac"),
    "state alone": (
        {"update": lambda s, r, k: s},
        "update returns a State; expected (state, metri",
    ),
}


@pytest.mark.slow
def test_an_agent_that_keeps_the_contract_passes():
    agent_checker(agent(), tiny.Walk(), (), agent())
    env, params = envs.make("Snake-v0", rows=4, cols=4, observation="features")
    network = ActorCritic(MLP((4,)), env.num_actions)
    one, greedy = (ppo.make(network, ppo.Config(minibatches=2), x) for x in (False, True))
    agent_checker(one, env, params, greedy)


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_promise_is_named_in_one_line(kind: str):
    changes, message = BROKEN[kind]
    with pytest.raises(AgentError) as error:
        agent_checker(agent(**changes), tiny.Walk(), ())
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda state, obs, key: jax.random.uniform(key), "two keys gave two different actions"),
        (lambda state, obs, key: 1.0 * state.updates, "reads what is not below a field named"),
    ],
)
def test_greedy_agents_act_by_the_parameters_alone(action, message: str):
    with pytest.raises(AgentError, match=message):
        agent_checker(agent(), tiny.Walk(), (), agent(act=act(action)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, tiny.Walk(), ()), AgentError, "the agent is a int, expected an object with init, mem"),
        ((Agent, tiny.Walk(), ()), AgentError, "the agent is the class Agent, expected an object"),
        ((agent(), 3, ()), AgentError, "the environment is a int, expected an object with reset"),
        ((agent(), tiny.Walk(), (), 3), AgentError, "the greedy agent is a int, expected an obje"),
        ((agent(), tiny.Walk(), (), None, 0), ValueError, "num_envs is 0, expected a number at le"),
        ((agent(), tiny.Walk(), (), None, 4, 0), ValueError, "num_steps is 0, expected a number"),
    ],
)
def test_what_cannot_be_checked_is_named(arguments, error, message: str):
    with pytest.raises(error, match=message):
        agent_checker(*arguments)


class Choices(tiny.Walk):
    """A walk that takes actions of a space."""

    def __init__(self, space: Any):
        self.space = space

    def action_space(self, params):
        return self.space


class Returns(tiny.Walk):
    """A walk whose first observation, or last step, has other values at some places."""

    def __init__(self, method: str, change: Any):
        self.method, self.change = method, change

    def reset(self, key, params):
        first = super().reset(key, params)
        return self.change(first) if self.method == "reset" else first

    def step(self, key, state, action, params):
        step = tiny.Walk().step(key, state, action, params)
        return self.change(step) if self.method == "step" else step


def refuse(step):
    raise TypeError("the action is float32[], expected int32[]\nand more")


@pytest.mark.parametrize(
    ("method", "change", "message"),
    [
        ("reset", lambda x: ("home", x[1]), "reset returns a str at [0]; expected arrays"),
        ("reset", refuse, "reset raises TypeError: the action is float32[], expected int32[]"),
        ("reset", lambda x: x[0], "reset returns float32[2]; expected (observation, state)"),
        ("step", lambda x: (*x[:2], "much", *x[3:]), "step returns a str at [2]; expected arrays"),
        ("step", lambda x: (*x[:2], None, *x[3:]), "step returns a NoneType as reward; expected"),
        ("step", lambda x: (*x[:2], x[2][None], *x[3:]), "step returns float32[1] as reward; expe"),
        ("step", lambda x: x[:5], "step returns 5 values; expected (observation, state, reward, t"),
        ("step", lambda x: (*x[:5], {}), "info has no final_observation, the true successor"),
        ("step", refuse, "step raises TypeError: the action is float32[], expected int32[]"),
    ],
)
def test_what_an_environment_breaks_is_named_in_one_line(method: str, change, message: str):
    with pytest.raises(AgentError) as error:
        agent_checker(agent(), Returns(method, change), ())
    assert str(error.value).startswith(f"the environment's {message.partition(' ')[0]}")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"act": lambda *_: "left"}, "act returns a str; expected arrays"),
        ({"memory": lambda: "much"}, "memory returns a str; expected arrays"),
        ({"init": lambda *_: State("x", jnp.int32(0))}, "init returns a str at .params; exp"),
    ],
)
def test_a_text_of_an_agent_is_named(changes, message: str):
    with pytest.raises(AgentError, match=message):
        agent_checker(agent(**changes), tiny.Walk(), ())


@pytest.mark.parametrize(
    ("space", "action", "message"),
    [
        (spaces.Discrete(2), jnp.float32(1), "action float32[], the environment takes an integer"),
        (spaces.Discrete(2), jnp.int32([1]), "action int32[1], the environment takes an integer"),
        (spaces.Discrete(2), jnp.int32(2), "actions from 2 to 2, the environment takes an integer"),
        (spaces.Box(-1, 1, (2,)), jnp.zeros(3), "float32[3], the environment takes an array [2]"),
        (spaces.Box(-1, 1, ()), jnp.int32(1), "action int32[], the environment takes an array []"),
        (spaces.Box(-1, 1, ()), jnp.float32(5), "returned 5.0 in an action, the environment takes"),
        (spaces.Box(-1, 1, ()), jnp.float32(-5), "and there -1.0 at least: bound the actions"),
    ],
)
def test_actions_that_the_environment_does_not_take_are_named(space, action, message: str):
    with pytest.raises(AgentError) as error:
        agent_checker(agent(act=act(lambda *_: action)), Choices(space), ())
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_agent_made_for_another_number_of_environments_is_told_to_name_it():
    def update(state, rollout, key):
        if rollout.reward.shape[1] != 2:
            raise ValueError("made for 2 environments")
        return state, {}

    agent_checker(agent(update=update), tiny.Walk(), (), num_envs=2)
    with pytest.raises(AgentError, match=r"rollout of 4 environments.*check with num_envs=N"):
        agent_checker(agent(update=update), tiny.Walk(), ())


def test_a_message_that_changes_with_the_environments_advises_their_number():
    def update(state, rollout, key):
        raise ValueError(f"{rollout.reward.shape[1]} columns, expected 2")

    with pytest.raises(
        AgentError, match=r"environments: 4 columns, expected 2; or check with num_"
    ):
        agent_checker(agent(update=update), tiny.Walk(), ())


def test_other_errors_of_an_update_are_passed_on_without_advice():
    def update(state, rollout, key):
        raise ValueError("the temperature is 0, expected a number above 0")

    with pytest.raises(AgentError) as error:
        agent_checker(agent(update=update), tiny.Walk(), ())
    expected = "update raises ValueError: the temperature is 0, expected a number above 0"
    assert str(error.value) == expected
