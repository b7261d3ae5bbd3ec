"""How state-space models that learn online act: beliefs, and inputs that follow from them.

Before the first fit `myopic` and policies that plan give random inputs at their bounds, and again
where the state has stood still (`standstill`).

Letters: d dimensions of the state, m inputs, n channels.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.learners.state_space_config import Config
from jaxrl.dynamics.model_choice import select
from jaxrl.dynamics.planning import distillation, standstill, stimulation
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.planning.standstill import Standstill
from jaxrl.dynamics.planning.stimulation import Policy, Stimulus
from jaxrl.dynamics.state_space.filter import correct, first_belief
from jaxrl.dynamics.state_space.model import StateSpace
from jaxrl.dynamics.state_space.online import choice
from jaxrl.dynamics.state_space.online.choice import Choice, evaluate_chosen
from jaxrl.types import where_tree

SHARPNESS = 2.0
"""Of the end of the region that plans are about."""
FRESH, UNFITTED = -1, -2
"""`Memory.fits` before the first observation, and after it until the coordinates are of a fit."""


class Knowledge(NamedTuple):
    """All that acting needs."""

    choice: Choice
    fits: jax.Array  # int32, so far; each has coordinates of its own
    region: jax.Array  # `Config.region`
    distilled: distillation.State | tuple[()] = ()  # only for the objective rnd


class Memory(NamedTuple):
    """What an agent remembers of one stream."""

    expected: Belief  # of the next state, in the coordinates of that fit
    fits: jax.Array  # int32
    random: Stimulus  # before the first fit, and while the state stands still
    standstill: Standstill
    stimulus: Stimulus


class Policies(NamedTuple):
    """Where inputs come from."""

    chosen: Policy  # of `Config.policy`
    random: Policy  # before the first fit, and while the state stands still


def make_policies(
    config: Config, models: Sequence[StateSpace], low: jax.Array, high: jax.Array
) -> Policies:
    """The policies of a learner, for inputs between `low` and `high` `[m]`."""
    random_config = replace(config.policy, kind="hold", hold_steps=config.random_hold, at_edge=True)
    model_of = partial(predictive_model, models)
    chosen, random = (
        stimulation.make(each, model_of, low, high) for each in (config.policy, random_config)
    )
    return Policies(chosen, random)


def first_memory(policies: Policies, dims: int) -> Memory:
    """Before anything is observed."""
    belief = Belief(jnp.zeros(dims), jnp.eye(dims))
    fits = jnp.asarray(FRESH, jnp.int32)
    stimuli = policies.random.init(), policies.chosen.init()
    return Memory(belief, fits, stimuli[0], standstill.begin(dims), stimuli[1])


def choose_input(
    config: Config,
    policies: Policies,
    knowledge: Knowledge,
    memory: Memory,
    belief: Belief,
    key: jax.Array,
) -> tuple[jax.Array, Memory]:
    """The input `[m]` in a state, and the memory, but that `expected` is still as it was.

    A random input replaces that of the policy before the first fit and while the state stands
    still. Consumes `key`.
    """
    random_key = jax.random.fold_in(jax.random.clone(key), 1)
    action, stimulus = policies.chosen.act(knowledge, belief.mean, memory.stimulus, key)
    standstill_state, random_stimulus = memory.standstill, memory.random
    if config.policy.kind != "hold":  # which is random anyway
        # Another fit has other coordinates, in which the states before would be elsewhere.
        is_planned = (knowledge.fits > 0) & (memory.fits == knowledge.fits)
        standstill_state, begins = standstill.watch(
            config.when_still, standstill_state, belief.mean, is_planned
        )
        random_stimulus = random_stimulus._replace(
            steps_left=jnp.where(begins, 0, random_stimulus.steps_left)
        )
        random_input, random_stimulus = policies.random.act(
            knowledge, belief.mean, random_stimulus, random_key
        )
        is_random = (knowledge.fits == 0) | (standstill_state.random_left > 0)
        action = jnp.where(is_random, random_input, action)
    after = Memory(memory.expected, knowledge.fits, random_stimulus, standstill_state, stimulus)
    return action, after


def perceive(
    models: Sequence[StateSpace], knowledge: Knowledge, memory: Memory, obs: jax.Array
) -> Belief:
    """The belief of the state after its observation `[n]`, NaN where missing.

    The memory holds what was expected; after a fit the learner has that in its new coordinates.
    """
    observed = jnp.isfinite(obs)
    y = jnp.where(observed, obs, 0.0)
    refitted_belief = select(
        knowledge.choice.place, [x.expected for x in knowledge.choice.candidates]
    )
    initial_belief = evaluate_chosen(
        models, knowledge.choice, lambda _, params: first_belief(params)
    )
    before = where_tree(memory.fits == knowledge.fits, memory.expected, refitted_belief)
    before = where_tree(memory.fits == FRESH, initial_belief, before)
    correct_belief = lambda model, params: correct(model, params, before, y, observed)[0]
    return evaluate_chosen(models, knowledge.choice, correct_belief)


def predictive_model(models: Sequence[StateSpace], knowledge: Knowledge) -> PredictiveModel:
    """The model that policies plan with.

    It asks for little far from where states have been: information falls beyond a ball of radius
    √(`Config.region` (d + 2)), as one of √(d + 2) is filled by states of unit covariance.
    """
    model = choice.predictive_model(models, knowledge.choice)

    def nearness(z: jax.Array) -> jax.Array:
        excess = jnp.sum(z**2) / (knowledge.region * (len(z) + 2)) - 1
        return jnp.exp(-SHARPNESS * jnp.maximum(excess, 0.0))

    def localise(
        function: Callable[..., jax.Array], power: float = 1.0
    ) -> Callable[..., jax.Array]:
        return lambda z, *u: nearness(z) ** power * function(z, *u)

    assert model.input_design is not None
    return model._replace(
        design=localise(model.design, 0.5),
        input_design=localise(model.input_design, 0.5),
        predictive_variance=localise(model.predictive_variance),
        novelty=distillation.novelty_of(knowledge.distilled),
    )
