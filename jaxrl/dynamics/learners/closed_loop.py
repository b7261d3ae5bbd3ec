"""A state-space learner in a closed loop with the world outside: an input for each observation.

`state_space_learner` acts and learns in one program with a simulated world. Outside, what the
policy asks for may not be what is given (`respond` asks, `absorb` is told), and no sample can wait:
not for a plan, which is made before the sample that it begins at (`plan_ahead`), and not for a fit.
Whoever calls these functions learns elsewhere, with `state_space_learner.learn`, and hands the
newer knowledge in. Between fits both absorb samples alike.

Letters: n channels, d dimensions of the state, m inputs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.learners.state_space_acting import (
    FRESH,
    UNFITTED,
    Knowledge,
    Memory,
    Policies,
    choose_input,
    perceive,
)
from jaxrl.dynamics.learners.state_space_config import Config
from jaxrl.dynamics.learners.state_space_learner import absorb_sample, sample_of
from jaxrl.dynamics.model_choice import select
from jaxrl.dynamics.state_space.filter import first_belief
from jaxrl.dynamics.state_space.model import StateSpace
from jaxrl.dynamics.state_space.online.choice import emission_mean, evaluate_chosen
from jaxrl.types import where_tree


class Response(NamedTuple):
    """What is made of an observation."""

    action: jax.Array  # [m] the input that the policy asks for
    expected: jax.Array  # [n] the mean observation that was expected here
    memory: Memory


def respond(
    config: Config,
    models: Sequence[StateSpace],
    policies: Policies,
    knowledge: Knowledge,
    memory: Memory,
    obs: jax.Array,
    key: jax.Array,
) -> Response:
    """The answer to an observation `[n]`, NaN where missing. Consumes `key`."""
    before = expected_state(models, knowledge, memory)
    expected = emission_mean(models, knowledge.choice, before)
    belief = perceive(models, knowledge, memory, obs)
    action, after = choose_input(config, policies, knowledge, memory, belief, key)
    return Response(action, expected, after)


def absorb(
    config: Config, models: Sequence[StateSpace], knowledge: Knowledge, obs: jax.Array, u: jax.Array
) -> Knowledge:
    """What is known after an observation `[n]` and the input `u` `[m]` that was given then."""
    return absorb_sample(config, models, knowledge, sample_of(obs, u))


def remember(knowledge: Knowledge, memory: Memory) -> Memory:
    """The memory for the next observation, after `absorb`, which has predicted its state."""
    expected = select(knowledge.choice.place, [x.expected for x in knowledge.choice.candidates])
    # Where a fit came in between, `fits` says so, and `perceive` takes the new coordinates.
    fits = jnp.where(memory.fits == FRESH, UNFITTED, memory.fits)
    return memory._replace(expected=expected, fits=fits)


def plan_ahead(
    config: Config,
    policies: Policies,
    knowledge: Knowledge,
    memory: Memory,
    key: jax.Array,
) -> Memory:
    """The memory with a plan from the state that is expected next, if one is due there.

    After `remember`, whose expectation it takes. Consumes `key`.
    """
    if config.policy.kind != "planned":
        return memory
    before = memory.stimulus
    _, after = policies.chosen.act(knowledge, memory.expected.mean, before, key)
    # As if the first action of the plan had not been taken yet.
    actions = jnp.roll(after.actions, 1, axis=0)
    whole = after._replace(actions=actions, steps_left=after.steps_left + 1)
    return memory._replace(stimulus=where_tree(before.steps_left <= 0, whole, before))


def expected_state(models: Sequence[StateSpace], knowledge: Knowledge, memory: Memory) -> jax.Array:
    """The mean `[d]` of the state, before it is observed."""
    refitted = select(knowledge.choice.place, [x.expected for x in knowledge.choice.candidates])
    first = evaluate_chosen(models, knowledge.choice, lambda _, params: first_belief(params))
    before = jnp.where(memory.fits == knowledge.fits, memory.expected.mean, refitted.mean)
    return jnp.where(memory.fits == FRESH, first.mean, before)
