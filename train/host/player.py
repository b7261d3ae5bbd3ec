"""Who plays an environment step by step, for all that goes beyond a score."""

from collections.abc import Callable
from typing import NamedTuple

import jax

from jaxrl.types import Agent, AgentState, Environment, PyTree


class Player(NamedTuple):
    """An agent in its environment.

    A training has one (`Training.player`); its policies are compiled, loaded, watched and shown in
    a report by it.
    """

    env: Environment
    env_params: PyTree
    agent: Agent
    acting_state: Callable[[AgentState], AgentState] = lambda state: state
    """The state that `agent` acts by, made of that of a run's agent: a pure function."""

    def observation(self) -> PyTree:
        """The shapes and dtypes of one observation."""
        return jax.eval_shape(self.env.reset, jax.random.key(0), self.env_params)[0]
