"""The compiled functions of a closed loop: all of them are made, and called once, beforehand.

Letters: n channels, m inputs, T samples.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.learners import closed_loop, state_space_acting
from jaxrl.dynamics.learners.closed_loop import Response
from jaxrl.dynamics.learners.state_space_acting import Knowledge, Memory
from jaxrl.numerics.precision import in_float32
from train.vector_field.stream import settings
from train.vector_field.stream.journal import Rows
from train.vector_field.stream.settings import Options

BLOCK = 16
"""Samples that are absorbed in one call, at most."""
TRIAL = 30
"""Samples of the trial before the first real one."""


class Programs(NamedTuple):
    """What is compiled, once for all loops of the same settings."""

    respond: Callable[[Knowledge, Memory, np.ndarray, np.uint32], Response]
    absorb: Callable[[Knowledge, np.ndarray, np.ndarray, np.int32], Knowledge]  # uses it up
    remember: Callable[[Knowledge, Memory], Memory]
    plan_ahead: Callable[[Knowledge, Memory, np.uint32], Memory]
    copy: Callable[[Knowledge], Knowledge]
    first_memory: Callable[[], Memory]


def programs(options: Options) -> Programs:
    """The programs for these settings."""
    return _programs(settings.learning(options))


@lru_cache(4)
def _programs(options: Options) -> Programs:
    config, models, constants, _ = settings.problem(options)
    policies = state_space_acting.make_policies(config, models, constants.low, constants.high)
    root, plan_root = jax.random.split(jax.random.key(options.seed))

    def respond(knowledge: Knowledge, memory: Memory, obs: jax.Array, number: jax.Array):
        key = jax.random.fold_in(root, number)
        return closed_loop.respond(config, models, policies, knowledge, memory, obs, key)

    def absorb(knowledge: Knowledge, y: jax.Array, u: jax.Array, count: jax.Array) -> Knowledge:
        one = lambda i, x: closed_loop.absorb(config, models, x, y[i], u[i])
        return jax.lax.fori_loop(0, count, one, knowledge)

    def plan_ahead(knowledge: Knowledge, memory: Memory, number: jax.Array) -> Memory:
        key = jax.random.fold_in(plan_root, number)
        return closed_loop.plan_ahead(config, policies, knowledge, memory, key)

    return Programs(
        respond=in_float32(jax.jit(respond)),
        absorb=in_float32(jax.jit(absorb, donate_argnums=0)),
        remember=in_float32(jax.jit(closed_loop.remember)),
        plan_ahead=in_float32(jax.jit(plan_ahead)),
        copy=in_float32(jax.jit(lambda x: jax.tree.map(jnp.copy, x))),
        first_memory=in_float32(partial(state_space_acting.first_memory, policies, options.dims)),
    )


class Live:
    """What answers samples: knowledge and memory, and how they change.

    Inputs are those of the learner, see `settings.Problem.unit`.
    """

    def __init__(self, options: Options, knowledge: Knowledge):
        self._programs, self._options = programs(options), options
        self.memory = self._programs.first_memory()
        self.knowledge = self._programs.copy(knowledge)
        self.has_fit = int(knowledge.fits) > 0

    def respond(self, y: np.ndarray, number: int) -> Response:
        """The response to sample `number`, an observation `[n]`, NaN where missing."""
        response = self._programs.respond(self.knowledge, self.memory, y, np.uint32(number))
        self.memory = response.memory
        return response

    def absorb(self, rows: Rows) -> None:
        """Learns from samples, all that were missing included, and expects the next one."""
        self.knowledge = self.after(self.knowledge, rows)
        self.memory = self._programs.remember(self.knowledge, self.memory)

    def plan_ahead(self, number: int) -> None:
        """Makes the plan that sample `number` begins, if one is due."""
        self.memory = self._programs.plan_ahead(self.knowledge, self.memory, np.uint32(number))
        jax.block_until_ready(self.memory)

    def copy(self, knowledge: Knowledge) -> Knowledge:
        """A copy that `after` may use up, of arrays of JAX or of NumPy, in one call."""
        return self._programs.copy(knowledge)

    def after(self, knowledge: Knowledge, rows: Rows) -> Knowledge:
        """The knowledge after samples; that before is used up."""
        for start in range(0, len(rows.y), BLOCK):
            part = slice(start, start + BLOCK)
            count = len(rows.y[part])
            y = np.full((BLOCK, self._options.channels), np.nan, np.float32)
            u = np.zeros((BLOCK, self._options.inputs), np.float32)
            y[:count], u[:count] = rows.y[part], rows.u[part]
            knowledge = self._programs.absorb(knowledge, y, u, np.int32(count))
        return knowledge

    def replace(self, knowledge: Knowledge) -> None:
        """Takes over what was learned elsewhere from the same samples."""
        self.knowledge = knowledge
        self.memory = self._programs.remember(self.knowledge, self.memory)
        self.has_fit = int(knowledge.fits) > 0

    def rehearse(self) -> None:
        """Compiles everything, and calls it as often as caches need; nothing of that stays."""
        knowledge, memory = self.copy(jax.tree.map(np.asarray, self.knowledge)), self.memory
        random = np.random.default_rng(0)
        for number in range(TRIAL):
            y = random.poisson(1.0, (1, self._options.channels)).astype(np.float32)
            action = np.asarray(self.respond(y[0], number).action)
            self.absorb(Rows(y, action[None]))
            self.plan_ahead(number + 1)
        jax.block_until_ready(self.knowledge)
        self.knowledge, self.memory = knowledge, memory
