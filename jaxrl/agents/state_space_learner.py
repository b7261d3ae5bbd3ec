"""A state-space model that learns online from one stream of samples, with experiment design.

Nothing is known of how the state is observed. Each sample is filtered with the parameters so far
and tells of the field at once (`absorption`); at growing intervals all parameters are fitted to all
samples by a few steps of scoring from where they are (`scoring`), and the samples are filtered
again. Several kinds of fields learn side by side; the one of the largest marginal likelihood
filters, plans and is shown (`candidates`). Policies plan with its posterior. Before the first fit
those that plan give random inputs at their bounds.

Letters: d dimensions of the state, m inputs, n channels, T samples.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, Range
from jaxrl.due import largest, when
from jaxrl.dynamics import distillation, latent_scores, stimulation
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.state_space import candidates, channels, field_posterior
from jaxrl.dynamics.state_space.candidates import Candidate, at
from jaxrl.dynamics.state_space.field_posterior import Prior
from jaxrl.dynamics.state_space.filter import (
    Prediction,
    Record,
    correct,
    filter_states,
    first_belief,
    predict,
)
from jaxrl.dynamics.state_space.model import Params, StateSpace, check, displacement, step
from jaxrl.dynamics.stimulation import Extras, Known, PredictiveModel, Stimulus
from jaxrl.types import Agent, Metrics, PyTree, Transition

SMALLEST, RATIO = 512, 4
"""Fits to fewer samples than a part of the buffer are to that part: the first 512 or 4, 16, …
times as many."""
FRESH = -1
"""`Memory.fits` where nothing was observed yet."""


@struct.dataclass
class Config:
    """How the model learns and how inputs are chosen."""

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
    """Of each later fit, which begins where the last one ended; the better one of both counts."""
    prior: Prior = Prior(weights=0.1)
    """Standard deviations before any data; states have a variance near 1."""
    prediction: Prediction = struct.field(pytree_node=False, default="extended")
    """How the filter predicts: extended or cubature."""
    first_hold: Count = 20
    """Steps for which inputs are held before the first fit, by policies that plan."""
    policy: stimulation.Config = stimulation.Config()
    """How inputs are chosen."""


class Knowledge(NamedTuple):
    """All that acting needs."""

    candidates: tuple[Candidate, ...]
    chosen: jax.Array  # int32, the place of the one that counts
    fits: jax.Array  # int32, so far; each has coordinates of its own
    distilled: distillation.State | tuple[()] = ()  # only for the objective rnd


class State(NamedTuple):
    params: Knowledge
    known: Known
    record: Record  # [T, ...]
    count: jax.Array  # int32, samples so far
    next_fit: jax.Array  # int32, samples at which it is due
    began: jax.Array  # int32, samples of the last fit that began with a guess


class Memory(NamedTuple):
    """Of one stream."""

    expected: Belief  # of the next state, in the coordinates of that fit
    fits: jax.Array  # int32
    first: Stimulus  # before the first fit
    stimulus: Stimulus


def make(config: Config, models: Sequence[StateSpace], known: Known) -> Agent:
    """An agent whose actions are inputs and which learns models of their effects.

    The models differ in their fields alone. Raises ValueError for settings that do not fit
    together, before anything is compiled.
    """
    models = tuple(models)
    check_config(config, models)
    before = replace(config.policy, kind="hold", hold_steps=config.first_hold, at_edge=True)
    model_of = partial(predictive_model, models)
    policy = stimulation.make(config.policy, model_of, known.low, known.high)
    first = stimulation.make(before, model_of, known.low, known.high)
    plans = config.policy.kind != "hold"

    def init(key: jax.Array, obs: jax.Array) -> State:
        del obs
        layer_key, novelty_key = jax.random.split(key)
        distilled = ()
        if "rnd" in config.policy.objectives:
            distilled = distillation.init(novelty_key, config.policy.rnd, models[0].dims)
        each = tuple(candidates.begin(model, config.prior, layer_key) for model in models)
        zero = jnp.zeros((), jnp.int32)
        knowledge = Knowledge(each, zero, zero, distilled)
        record, due = empty_record(config, models[0]), jnp.asarray(config.first_fit, jnp.int32)
        return State(knowledge, known, record, zero, due, zero)

    def memory() -> Memory:
        d = models[0].dims
        belief = Belief(jnp.zeros(d), jnp.eye(d))
        return Memory(belief, jnp.asarray(FRESH, jnp.int32), first.init(), policy.init())

    def act(state: State, memory: Memory, obs: jax.Array, key: jax.Array):
        knowledge = state.params
        belief = perceive(models, knowledge, memory, obs)
        action, stimulus = policy.act(knowledge, belief.mean, memory.stimulus, key)
        random, beginning = first.act(
            knowledge, belief.mean, memory.first, jax.random.fold_in(jax.random.clone(key), 1)
        )
        if plans:
            action = jnp.where(knowledge.fits > 0, action, random)
        expected = at(knowledge.chosen, [
            predict(model, x.posterior.params, belief, action, config.prediction)[0]
            for model, x in zip(models, knowledge.candidates, strict=True)
        ])
        after = Memory(expected, knowledge.fits, beginning, stimulus)
        return action, after, Extras(belief, stimulus.plan.invalid)

    def update(state: State, rollout: Transition, key: jax.Array) -> tuple[State, Metrics]:
        return learn(config, models, state, rollout, key)

    return Agent(init, memory, act, update)


def empty_record(config: Config, model: StateSpace) -> Record:
    """Room for all samples."""
    size, count = config.capacity, len(model.is_count)
    return Record(
        jnp.zeros((size, count)),
        jnp.zeros((size, model.num_inputs)),
        jnp.zeros((size, count), bool),
        jnp.zeros(size, bool),
    )


def perceive(
    models: Sequence[StateSpace], knowledge: Knowledge, memory: Memory, obs: jax.Array
) -> Belief:
    """The belief of the state after its observation, by the chosen model."""
    observed = jnp.isfinite(obs)
    y = jnp.where(observed, obs, 0.0)

    def of_one(model: StateSpace, candidate: Candidate) -> Belief:
        params = candidate.posterior.params
        is_fresh, is_old = memory.fits == FRESH, memory.fits != knowledge.fits
        choose = lambda where, a, b: jax.tree.map(partial(jnp.where, where), a, b)
        before = choose(is_old, candidate.expected, memory.expected)
        before = choose(is_fresh, first_belief(params), before)
        return correct(model, params, before, y, observed)[0]

    pairs = zip(models, knowledge.candidates, strict=True)
    return at(knowledge.chosen, [of_one(*pair) for pair in pairs])


def learn(
    config: Config,
    models: tuple[StateSpace, ...],
    state: State,
    rollout: Transition,
    key: jax.Array,
) -> tuple[State, Metrics]:
    """Takes the samples of a rollout `[T, 1]` one by one, and fits again if that is due."""
    if rollout.obs.shape[1] != 1:
        raise ValueError(f"{rollout.obs.shape[1]} streams, expected 1: use num_envs 1")
    fit_key, novelty_key = jax.random.split(key)
    samples = jax.tree.map(lambda x: x[:, 0], (rollout.obs, rollout.action))
    state, _ = jax.lax.scan(lambda state, x: (take(config, models, state, *x), None), state, samples)
    is_due = (state.count >= state.next_fit) & (state.count <= config.capacity)
    state = when(is_due, fit_all, (config, models, state, fit_key), state)
    knowledge = state.params
    if isinstance(knowledge.distilled, distillation.State):
        path = rollout.extras.belief.mean[:, 0]
        visited = distillation.visited(config.policy.rnd, knowledge.distilled, path, novelty_key)
        state = state._replace(params=knowledge._replace(distilled=visited))
    metrics = {
        "information": nats(state),
        "fits": state.params.fits.astype(jnp.float32),
        "kind": state.params.chosen.astype(jnp.float32),
        "invalid_plans": jnp.max(rollout.extras.invalid_plans),
    }
    return state, metrics


def take(
    config: Config,
    models: Sequence[StateSpace],
    state: State,
    obs: jax.Array,
    action: jax.Array,
) -> State:
    """The state after one sample: an observation `[n]`, then an action `[m]`."""
    observed = jnp.isfinite(obs)
    y = jnp.where(observed, obs, 0.0)
    sample = Record(y, action, observed, jnp.ones((), bool))
    record = jax.tree.map(
        lambda rows, row: rows.at[state.count].set(row, mode="drop"), state.record, sample
    )
    knowledge = state.params
    # Before the first fit the model is none, and learns nothing.
    learns = observed & (knowledge.fits > 0)
    after = tuple(
        candidates.take(model, x, y, action, learns, config.prediction)
        for model, x in zip(models, knowledge.candidates, strict=True)
    )
    knowledge = knowledge._replace(candidates=after)
    return state._replace(params=knowledge, record=record, count=state.count + 1)


def fit_all(operands: tuple) -> State:
    """The state after a fit of all models to all samples: of `(config, models, state, key)`."""
    config, models, state, key = operands
    sizes = parts(config.capacity)

    def fit_part(size: int, given: tuple) -> tuple[Candidate, ...]:
        config, models, state, key = given
        record = jax.tree.map(lambda x: x[:size], state.record)
        settings = config.prior, config.prediction
        steps = steps_of(config, state)
        return tuple(
            candidates.refit(model, old, record, steps, *settings, jax.random.clone(key))
            for model, old in zip(models, state.params.candidates, strict=True)
        )

    place = jnp.sum(state.count > jnp.asarray(sizes[:-1], jnp.int32)).astype(jnp.int32)
    each = largest(place, [partial(fit_part, size) for size in sizes], operands)
    knowledge = state.params._replace(
        candidates=each, chosen=candidates.most_likely(each), fits=state.params.fits + 1
    )
    later = jnp.ceil(state.count * config.growth).astype(jnp.int32)
    began = jnp.where(steps_of(config, state)[0] > 0, state.count, state.began)
    next_fit = jnp.maximum(later, state.count + 1)
    return state._replace(params=knowledge, next_fit=next_fit, began=began)


def steps_of(config: Config, state: State) -> jax.Array:
    """How many steps of scoring there are from a guess and from the last parameters, int32 `[2]`.

    Guesses are made anew whenever samples have doubled.
    """
    is_first = state.params.fits == 0
    begins = is_first | (state.count >= 2 * state.began)
    steps = jnp.where(begins, config.first_steps, 0), jnp.where(is_first, 0, config.steps)
    return jnp.stack(steps).astype(jnp.int32)


def parts(capacity: int) -> list[int]:
    """Sizes of the parts of the buffer that fits are to, ascending, the last one all of it."""
    sizes = [SMALLEST]
    while sizes[-1] < capacity:
        sizes.append(RATIO * sizes[-1])
    return [*sizes[:-1], capacity]


def nats(state: State) -> jax.Array:
    """Nats gained about the field from all samples, a scalar."""
    gained = [x.posterior.information for x in state.params.candidates]
    return at(state.params.chosen, gained)


def predictive_model(models: Sequence[StateSpace], knowledge: Knowledge) -> PredictiveModel:
    """The model that policies plan with."""
    model = candidates.predictive_model(models, knowledge.candidates, knowledge.chosen)
    return model._replace(novelty=distillation.novelty_of(knowledge.distilled))


def params_of(state: State) -> list[Params]:
    """The parameters of each model."""
    return [x.posterior.params for x in state.params.candidates]


def velocity(models: Sequence[StateSpace], state: State, z: jax.Array) -> jax.Array:
    """The learned field per unit of time, `[..., d]` at `z` `[..., d]`, in its own coordinates."""

    def of_one(model: StateSpace, params: Params) -> jax.Array:
        return jnp.vectorize(partial(displacement, model, params), signature="(d)->(d)")(z)

    pairs = zip(models, params_of(state), strict=True)
    return at(state.params.chosen, [of_one(*pair) for pair in pairs]) / state.known.dt


def covariance(models: Sequence[StateSpace], state: State, z: jax.Array) -> jax.Array:
    """Covariance `[d, d]` of the learned velocity at `z` `[d]`, in its own coordinates."""
    pairs = zip(models, state.params.candidates, strict=True)
    each = [field_posterior.predictive_covariance(model, x.posterior, z) for model, x in pairs]
    return at(state.params.chosen, each) / state.known.dt**2


def emission_mean(models: Sequence[StateSpace], state: State, z: jax.Array) -> jax.Array:
    """The mean observation `[..., n]` at `z` `[..., d]`."""
    pairs = zip(models, params_of(state), strict=True)
    each = [channels.mean(model.is_count, params, z) for model, params in pairs]
    return at(state.params.chosen, each)


def beliefs(
    config: Config,
    models: Sequence[StateSpace],
    state: State,
    obs: jax.Array,
    actions: jax.Array,
    observed: jax.Array | None = None,
) -> Belief:
    """The filtered states, `[T, d]` and `[T, d, d]`, along `obs` `[T, n]`, without learning.

    Each is followed by an action of `actions` `[T, m]`. `observed`, bool `[T, n]`, is false where
    `obs` is missing; None: everything was observed.
    """
    seen = jnp.ones(obs.shape, bool) if observed is None else observed
    record = Record(obs, actions, seen, jnp.ones(len(obs), bool))
    pairs = zip(models, params_of(state), strict=True)
    each = [filter_states(*pair, record, config.prediction).belief for pair in pairs]
    return at(state.params.chosen, each)


def forecast(
    config: Config,
    models: Sequence[StateSpace],
    state: State,
    obs: jax.Array,
    actions: jax.Array,
    steps: int,
    observed: jax.Array | None = None,
) -> jax.Array:
    """Expected observations `[T, K + 1, n]` now and up to K = `steps` steps later.

    Along the path of the mean; after the last action inputs are 0. Arguments as of `beliefs`.
    """
    means = beliefs(config, models, state, obs, actions, observed).mean
    pairs = list(zip(models, params_of(state), strict=True))
    move = lambda z, u: at(state.params.chosen, [step(*pair, z, u) for pair in pairs])
    mean = partial(emission_mean, models, state)
    return latent_scores.forecasts(move, mean, means, actions, steps)


def check_config(config: Config, models: Sequence[StateSpace]) -> None:
    """Raises ValueError for out-of-range or inconsistent settings."""
    checks.config(config)
    stimulation.check_config(config.policy)
    if not models:
        raise ValueError("no model to learn: give at least one")
    for model in models:
        check(model)
    sizes = {(x.dims, x.num_inputs, len(x.is_count), x.effect) for x in models}
    if len(sizes) > 1:
        raise ValueError("models differ in more than their fields: give them the same sizes")
    stimulation.check_goal(config.policy, len(models[0].is_count))
