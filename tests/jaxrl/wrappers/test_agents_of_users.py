"""Wrappers take any object with the four functions of an agent, as the loop does."""

from types import SimpleNamespace

import jax.numpy as jnp
import pytest

from jaxrl.types import Agent
from jaxrl.wrappers import graph_cropping, normalisation, self_play

FUNCTIONS = {
    "init": lambda key, obs: {"params": jnp.zeros(())},
    "memory": lambda: (),
    "act": lambda state, memory, obs, key: (obs, memory, ()),
    "update": lambda state, rollout, key: (state, {}),
}
WRAPPERS = {
    "normalisation": lambda agent: normalisation.make(agent, normalisation.Config()),
    "self_play": lambda agent: self_play.make(
        agent, None, self_play.Config(), guest=lambda obs, key: obs
    ),
    "graph_cropping": graph_cropping.make,
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_an_agent_of_four_functions_is_wrapped(name):
    """It draws nothing and explains nothing, which it need not say."""
    wrapped = WRAPPERS[name](SimpleNamespace(**FUNCTIONS))
    assert isinstance(wrapped, Agent)
    assert wrapped.blocks is None
    assert WRAPPERS[name](SimpleNamespace(**FUNCTIONS, blocks=2)).blocks == 2


@pytest.mark.parametrize("name", WRAPPERS)
def test_what_is_no_agent_is_not_wrapped(name):
    with pytest.raises(ValueError, match="expected an object with init, memory, act, update"):
        WRAPPERS[name](SimpleNamespace(act=FUNCTIONS["act"]))
