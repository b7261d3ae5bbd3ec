"""State-space models that learn online from one stream of samples, with experiment design.

Nothing is known of how the state is observed. Each sample is filtered with the parameters so far
and tells of the field at once (`absorption`); at growing intervals all parameters are fitted to all
samples by a few steps of scoring from where they are, and samples are filtered again
(`candidates`). Models of several kinds of fields learn side by side; the one of the largest
marginal likelihood filters, plans and is shown (`choice`). How inputs follow from what is known is
in `state_space_acting`.

Letters: d dimensions of the state, m inputs, n channels, T samples.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.learners.state_space_acting import (
    Knowledge,
    Memory,
    choose_input,
    first_memory,
    make_policies,
    perceive,
)
from jaxrl.dynamics.learners.state_space_config import Config, check_config
from jaxrl.dynamics.planning import distillation
from jaxrl.dynamics.planning.stimulation import Constants, Extras
from jaxrl.dynamics.state_space.field_posterior import unit_of_inputs
from jaxrl.dynamics.state_space.filter import Record, predict
from jaxrl.dynamics.state_space.model import StateSpace
from jaxrl.dynamics.state_space.online import candidates, choice
from jaxrl.dynamics.state_space.online.candidates import Candidate
from jaxrl.dynamics.state_space.online.choice import Choice, evaluate_chosen
from jaxrl.numerics.batched_cond import cond_any, switch_max
from jaxrl.types import Agent, Metrics, Transition

SMALLEST, RATIO = 512, 8
"""Fits to fewer samples than there is room for are to a part of it, of 512, 4096, …"""


class State(NamedTuple):
    params: Knowledge
    known: Constants
    record: Record  # [T, ...]
    count: jax.Array  # int32, samples so far
    next_fit: jax.Array  # int32, samples at which it is due
    began: jax.Array  # int32, samples of the last fit that began with a guess


def make(config: Config, models: Sequence[StateSpace], constants: Constants) -> Agent:
    """An agent whose actions are inputs and which learns models of their effects.

    The models differ in their fields alone. Raises ValueError for settings that do not fit
    together, before anything is compiled.
    """
    models = tuple(models)
    check_config(config, models)
    largest = jnp.maximum(jnp.abs(constants.low), jnp.abs(constants.high))
    prior = config.prior.replace(input_unit=unit_of_inputs(largest))  # pyright: ignore
    config = config.replace(prior=prior)  # pyright: ignore
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


def empty_record(config: Config, model: StateSpace) -> Record:
    """Room for all samples."""
    size, count = config.capacity, len(model.is_count)
    y, u = jnp.zeros((size, count)), jnp.zeros((size, model.num_inputs))
    return Record(y, u, jnp.zeros((size, count), bool), jnp.zeros(size, bool))


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
