"""State-space models that learn online from one stream of samples, with experiment design.

Nothing is known of how the state is observed. Each sample is filtered with the parameters so far
and tells of the field at once (`absorption`); at growing intervals all parameters are fitted to all
samples by a few steps of scoring from where they are, and samples are filtered again
(`candidates`). Models of several kinds of fields learn side by side; the one of the largest
marginal likelihood filters, plans and is shown (`choice`). Before the first fit policies that plan
give random inputs at their bounds, and again wherever plans would not move the state
(`standstill`).

Letters: d dimensions of the state, m inputs, n channels, T samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, Positive, Range
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.model_choice import select
from jaxrl.dynamics.planning import distillation, standstill, stimulation
from jaxrl.dynamics.planning.standstill import Standstill
from jaxrl.dynamics.planning.stimulation import Constants, Extras, Policy, PredictiveModel, Stimulus
from jaxrl.dynamics.state_space.field_posterior import Prior
from jaxrl.dynamics.state_space.filter import Prediction, Record, correct, first_belief, predict
from jaxrl.dynamics.state_space.model import StateSpace, check
from jaxrl.dynamics.state_space.online import candidates, choice
from jaxrl.dynamics.state_space.online.candidates import Candidate
from jaxrl.dynamics.state_space.online.choice import Choice, evaluate_chosen
from jaxrl.numerics.batched_cond import cond_any, switch_max
from jaxrl.types import Agent, Metrics, Transition, where_tree

SMALLEST, RATIO = 512, 8
"""Fits to fewer samples than there is room for are to a part of it, of 512, 4096, …"""
SHARPNESS = 2.0
"""Of the end of the region that plans are about."""
FRESH, UNFITTED = -1, -2
"""`Memory.fits` before the first observation, and after it until the coordinates are of a fit."""


@struct.dataclass
class Config:
    """How the models learn and how inputs are chosen."""

    capacity: Count = struct.field(pytree_node=False, default=2_000)
    """T, the first samples that are stored; later ones are learned from once, as they come."""
    first_fit: Count = 100
    """Samples before the first fit."""
    growth: Annotated[float, Range(least=1.01)] = 1.25
    """How many times more samples there are at the next fit."""
    first_steps: Count = 6
    """Steps of scoring of fits that begin with principal components: the first one, and another one
    whenever samples have doubled."""
    steps: Count = 2
    """Of each later fit, which begins where the last one ended; the likelier one of both counts."""
    prior: Prior = Prior(weights=0.1)
    """Standard deviations before any data; states have a variance near 1."""
    prediction: Prediction = struct.field(pytree_node=False, default="extended")
    """How the filter predicts: extended or cubature."""
    region: Positive = 3.0
    """How far from the mean of all states so far plans ask for information: the square of the
    distance, in units of that of the rim of a ball that states of their covariance would fill
    uniformly. Below 1 it shrinks; well above 1 plans drive the state ever farther, if they can."""
    random_hold: Count = 20
    """Steps for which policies that plan hold random inputs: before the first fit and when the
    state has stood still."""
    when_still: standstill.Config = standstill.Config()
    """When plans have kept the state where it is, in units of all states' standard deviation."""
    policy: stimulation.Config = stimulation.Config()
    """How inputs are chosen."""


class Knowledge(NamedTuple):
    """All that acting needs."""

    choice: Choice
    fits: jax.Array  # int32, so far; each has coordinates of its own
    region: jax.Array  # `Config.region`
    distilled: distillation.State | tuple[()] = ()  # only for the objective rnd


class State(NamedTuple):
    params: Knowledge
    known: Constants
    record: Record  # [T, ...]
    count: jax.Array  # int32, samples so far
    next_fit: jax.Array  # int32, samples at which it is due
    began: jax.Array  # int32, samples of the last fit that began with a guess


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


def make(config: Config, models: Sequence[StateSpace], constants: Constants) -> Agent:
    """An agent whose actions are inputs and which learns models of their effects.

    The models differ in their fields alone. Raises ValueError for settings that do not fit
    together, before anything is compiled.
    """
    models = tuple(models)
    check_config(config, models)
    policies = make_policies(config, models, constants.low, constants.high)
    d = models[0].dims

    # What an agent begins with: candidates that know nothing, and an empty record.
    def init(key: jax.Array, obs: jax.Array) -> State:
        del obs
        layer_key, novelty_key = jax.random.split(key)
        distilled = ()
        if "rnd" in config.policy.objectives:
            distilled = distillation.init(novelty_key, config.policy.rnd, d)
        each = tuple(
            candidates.begin(model, config.prior, jax.random.clone(layer_key)) for model in models
        )
        zero, due = jnp.zeros((), jnp.int32), jnp.asarray(config.first_fit, jnp.int32)
        region = jnp.asarray(config.region, jnp.float32)
        knowledge = Knowledge(Choice(each, zero), zero, region, distilled)
        return State(knowledge, constants, empty_record(config, models[0]), zero, due, zero)

    # Acting filters the state, chooses an input, and predicts the next state.
    def act(state: State, memory: Memory, obs: jax.Array, key: jax.Array):
        knowledge = state.params
        belief = perceive(models, knowledge, memory, obs)
        action, after = choose_input(config, policies, knowledge, memory, belief, key)
        move = lambda model, params: predict(model, params, belief, action, config.prediction)[0]
        expected = evaluate_chosen(models, knowledge.choice, move)
        after = after._replace(expected=expected)
        return action, after, Extras(belief, after.stimulus.plan.invalid)

    def update(state: State, rollout: Transition, key: jax.Array) -> tuple[State, Metrics]:
        return learn(config, models, state, rollout, key)

    return Agent(init, partial(first_memory, policies, d), act, update)


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


def empty_record(config: Config, model: StateSpace) -> Record:
    """Room for all samples."""
    size, count = config.capacity, len(model.is_count)
    y, u = jnp.zeros((size, count)), jnp.zeros((size, model.num_inputs))
    return Record(y, u, jnp.zeros((size, count), bool), jnp.zeros(size, bool))


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


def learn(
    config: Config,
    models: tuple[StateSpace, ...],
    state: State,
    rollout: Transition,
    key: jax.Array,
) -> tuple[State, Metrics]:
    """Takes the samples of a rollout `[T, 1]` one by one, and fits again if that is due.

    Raises ValueError for more than one environment.
    """
    if rollout.obs.shape[1] != 1:
        raise ValueError(f"{rollout.obs.shape[1]} streams, expected 1: use num_envs 1")
    fit_key, novelty_key = jax.random.split(key)
    samples = rollout.obs[:, 0], rollout.action[:, 0]
    state, _ = jax.lax.scan(
        lambda state, sample: (add_sample(config, models, state, *sample), None), state, samples
    )
    is_due = (state.count >= state.next_fit) & (state.count <= config.capacity)
    state = cond_any(is_due, fit_again, (config, models, state, fit_key), state)
    knowledge = state.params
    if isinstance(knowledge.distilled, distillation.State):
        path = rollout.extras.belief.mean[:, 0]
        distilled = distillation.learn_path(
            config.policy.rnd, knowledge.distilled, path, novelty_key
        )
        state = state._replace(params=knowledge._replace(distilled=distilled))
    metrics = {
        "information": choice.nats(state.params.choice),
        "fits": state.params.fits.astype(jnp.float32),
        "kind": state.params.choice.place.astype(jnp.float32),
        "invalid_plans": jnp.max(rollout.extras.invalid_plans),
    }
    return state, metrics


def add_sample(
    config: Config, models: Sequence[StateSpace], state: State, obs: jax.Array, action: jax.Array
) -> State:
    """The state after one sample: an observation `[n]`, NaN where missing, and the action `[m]`."""
    sample = sample_of(obs, action)
    record = jax.tree.map(
        lambda rows, row: rows.at[state.count].set(row, mode="drop"), state.record, sample
    )
    knowledge = absorb_sample(config, models, state.params, sample)
    return state._replace(params=knowledge, record=record, count=state.count + 1)


def sample_of(obs: jax.Array, action: jax.Array) -> Record:
    """A row of a record: an observation `[n]`, NaN where missing, and the action `[m]`."""
    observed = jnp.isfinite(obs)
    return Record(jnp.where(observed, obs, 0.0), action, observed, jnp.ones((), bool))


def absorb_sample(
    config: Config, models: Sequence[StateSpace], knowledge: Knowledge, sample: Record
) -> Knowledge:
    """What is known after one sample, without a fit."""
    # Before the first fit the models know no channels.
    learned_from = sample.observed & (knowledge.fits > 0)
    new_candidates = tuple(
        candidates.add_sample(model, x, sample._replace(observed=learned_from), config.prediction)
        for model, x in zip(models, knowledge.choice.candidates, strict=True)
    )
    return knowledge._replace(choice=knowledge.choice._replace(candidates=new_candidates))


def fit_again(operands: tuple) -> State:
    """The state after a fit of all models to all samples: of `(config, models, state, key)`."""
    config, _, state, _ = operands
    sizes = fit_sizes(config.capacity)

    def fit_part(size: int, arguments: tuple) -> tuple[Candidate, ...]:
        config, models, state, key = arguments
        record = jax.tree.map(lambda x: x[:size], state.record)
        settings = steps_of(config, state), config.prior, config.prediction
        return tuple(
            candidates.refit(model, old, record, *settings, jax.random.clone(key))
            for model, old in zip(models, state.params.choice.candidates, strict=True)
        )

    place = jnp.sum(state.count > jnp.asarray(sizes[:-1], jnp.int32)).astype(jnp.int32)
    each = switch_max(place, [partial(fit_part, size) for size in sizes], operands)
    knowledge = state.params._replace(choice=choice.choose(each), fits=state.params.fits + 1)
    next_fit = jnp.ceil(state.count * config.growth).astype(jnp.int32)
    begins = steps_of(config, state)[0] > 0
    return state._replace(
        params=knowledge,
        next_fit=jnp.maximum(next_fit, state.count + 1),
        began=jnp.where(begins, state.count, state.began),
    )


def steps_of(config: Config, state: State) -> jax.Array:
    """Steps of scoring of a fit from a guess, and from the last parameters: int32 `[2]`."""
    is_first = state.params.fits == 0
    begins = is_first | (state.count >= 2 * state.began)
    steps = jnp.where(begins, config.first_steps, 0), jnp.where(is_first, 0, config.steps)
    return jnp.stack(steps).astype(jnp.int32)


def fit_sizes(capacity: int) -> list[int]:
    """Numbers of samples that fits are to, ascending, the last one all that there is room for."""
    sizes = [SMALLEST]
    while sizes[-1] < capacity:
        sizes.append(RATIO * sizes[-1])
    return [*sizes[:-1], capacity]


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


def check_config(config: Config, models: Sequence[StateSpace]) -> None:
    """Raises ValueError for out-of-range or inconsistent settings."""
    checks.config_of(Config, config)
    stimulation.check_config(config.policy)
    if not models:
        raise ValueError("no model to learn: give at least one")
    for model in models:
        check(model)
    sizes = {(x.dims, x.num_inputs, len(x.is_count), x.effect) for x in models}
    if len(sizes) > 1:
        raise ValueError("models differ in more than their fields: give them the same sizes")
    stimulation.check_goal(config.policy, len(models[0].is_count))
