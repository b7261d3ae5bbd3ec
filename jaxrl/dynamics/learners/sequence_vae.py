"""A sequence VAE that learns online from one stream of data, with experiment design.

Each sample is filtered, stored and followed by gradient steps on the newest window and on older
ones (`jaxrl.dynamics.networks.latent`). Policies use the Fisher information of the field's
parameters along the filtered path, as if the latent states were observed
(`jaxrl.dynamics.networks.latent_information`). Since the latent space changes while it is learned,
that information is recomputed every `recount_steps` from newly filtered states.

Axes: d latent dimensions, m inputs, n channels, p parameters of the field, T steps, B
windows, W steps of a window, R steps that the information is recomputed from.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxrl.dynamics import kalman, sequence_elbo
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.learners.sequence_vae_config import Config, check_config, make_optimizer
from jaxrl.dynamics.networks import latent_filter, latent_information
from jaxrl.dynamics.networks.latent import SequenceVAE, Window
from jaxrl.dynamics.planning import distillation, stimulation, stimulation_config
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.planning.stimulation import Constants, Extras, Stimulus
from jaxrl.dynamics.posterior import Posterior
from jaxrl.numerics.batched_cond import cond_any
from jaxrl.replay import uniform
from jaxrl.replay.uniform import Indices, Replay
from jaxrl.types import Agent, Metrics, PyTree, Transition


class Step(NamedTuple):
    """What the replay stores of a step."""

    y: jax.Array  # [n]
    before: jax.Array  # [m] the input before it


class Knowledge(NamedTuple):
    """The inputs of the predictive model that a policy plans with."""

    params: PyTree
    information: Posterior  # of the field's parameters; only its covariance counts
    constants: Constants
    distilled: distillation.State | tuple[()] = ()


class State(NamedTuple):
    params: PyTree
    opt_state: PyTree
    memory: Replay  # of Step
    information: Posterior
    updates: jax.Array  # int32
    known: Constants
    distilled: distillation.State | tuple[()] = ()  # only for the objective rnd


class Memory(NamedTuple):
    """What an agent remembers of one stream."""

    filter: Any  # the filter's carry; the newest steps; or the expected state
    before: jax.Array  # [m] the last input
    stimulus: Stimulus


def make(config: Config, model: SequenceVAE, constants: Constants) -> Agent:
    """An agent whose actions are inputs and which learns a latent model of their effects.

    Raises:
      ValueError: settings that do not fit together, before anything is compiled.
    """
    check_config(config)
    config = replace(config, elbo=replace(config.elbo, dt=constants.dt))
    policy = stimulation.make(
        config.policy, partial(predictive_model, config, model), constants.low, constants.high
    )
    stimulation_config.check_goal(config.policy, model.decoder.channels)
    num_inputs = len(constants.low)

    # What an agent begins with: parameters, an empty replay, and a filter for each stream.
    def init(key: jax.Array, obs: jax.Array) -> State:
        distilled = ()
        if "rnd" in config.policy.objectives:
            novelty_key = jax.random.fold_in(jax.random.clone(key), 1)
            distilled = distillation.init(novelty_key, config.policy.rnd, model.latent)
        params = model.init(key, num_inputs)
        example = Step(jnp.zeros(model.decoder.channels), jnp.zeros(num_inputs))
        return State(
            params,
            make_optimizer(config).init(params),
            uniform.init(example, config.capacity, 1),
            latent_information.prior(model, params, constants, config.prior_speed, config.noise),
            jnp.zeros((), jnp.int32),
            constants,
            distilled,
        )

    def memory() -> Memory:
        start = latent_filter.start(config.state, model, config.window, num_inputs)
        return Memory(start, jnp.zeros(num_inputs), policy.init())

    # Acting filters the state, and gives the policy what it needs to know of the model.
    def act(state: State, memory: Memory, obs: jax.Array, key: jax.Array):
        filtered, belief = latent_filter.step(
            config.state, model, state.params, state.known, memory.filter, memory.before, obs
        )
        knowledge = Knowledge(state.params, state.information, state.known, state.distilled)
        action, stimulus = policy.act(knowledge, belief.mean, memory.stimulus, key)
        extras = Extras(belief, stimulus.plan.invalid)
        return action, Memory(filtered, action, stimulus), extras

    def update(state: State, rollout: Transition, key: jax.Array) -> tuple[State, Metrics]:
        return learn(config, model, state, rollout, key)

    return Agent(init, memory, act, update)


def learn(
    config: Config, model: SequenceVAE, state: State, rollout: Transition, key: jax.Array
) -> tuple[State, Metrics]:
    """Stores a rollout `[T, 1]`, learns from windows of the replay, and updates the information."""
    memory = uniform.add(state.memory, Step(rollout.next_obs, rollout.action))
    beta = sequence_elbo.beta_schedule(config.schedule, config.beta, config.warmup, config.period)

    def step(carry: tuple, index: jax.Array):
        params, opt_state, key = carry
        key, window_key, loss_key = jax.random.split(key, 3)
        windows = draw_windows(config, memory, window_key)
        weight = beta(state.updates * config.gradient_steps + index)
        params, opt_state, metrics = gradient_step(
            config, model, params, opt_state, windows, loss_key, weight
        )
        return (params, opt_state, key), metrics

    start = (state.params, state.opt_state, key)
    steps = jnp.arange(config.gradient_steps)
    (params, opt_state, _), metrics = jax.lax.scan(step, start, steps)
    updates = state.updates + 1
    means = rollout.extras.belief.mean.reshape(-1, model.latent)
    information = latent_information.update(
        model, params, state.known, state.information, means, config.noise
    )
    recount = partial(recompute_information, config, model)
    information = cond_any(
        updates % config.recount_steps == 0, recount, (params, state.known, memory), information
    )
    distilled = state.distilled
    if isinstance(distilled, distillation.State):
        visit_key = jax.random.fold_in(jax.random.clone(key), 1)
        distilled = distillation.learn_path(config.policy.rnd, distilled, means, visit_key)
    state = State(params, opt_state, memory, information, updates, state.known, distilled)
    metrics = jax.tree.map(jnp.mean, metrics)
    metrics["invalid_plans"] = jnp.max(rollout.extras.invalid_plans)
    return state, metrics


def gradient_step(
    config: Config,
    model: SequenceVAE,
    params: PyTree,
    opt_state: PyTree,
    windows: Window,
    key: jax.Array,
    beta: jax.Array,
) -> tuple[PyTree, PyTree, Metrics]:
    """`(params, opt_state, metrics)` after one step on windows `[B, W]`."""
    grads, metrics = jax.grad(mean_loss, has_aux=True)(params, config, model, windows, key, beta)
    changes, opt_state = make_optimizer(config).update(grads, opt_state, params)
    return optax.apply_updates(params, changes), opt_state, metrics


def mean_loss(
    params: PyTree,
    config: Config,
    model: SequenceVAE,
    windows: Window,
    key: jax.Array,
    beta: jax.Array,
) -> tuple[jax.Array, Metrics]:
    """Mean loss and metrics of windows `[B, W]`, each with its own key."""
    keys = jax.random.split(key, len(windows.y))
    loss = lambda window, key: model.loss(
        params, window, model.initial_carry(), key, config.elbo, beta
    )
    losses, metrics = jax.vmap(loss)(windows, keys)
    return jnp.mean(losses), jax.tree.map(jnp.mean, metrics)


def draw_windows(config: Config, memory: Replay, key: jax.Array) -> Window:
    """The newest window of memory, then `older_windows` from anywhere in it: `[B, W]`."""
    age = memory.size - config.window + jnp.arange(config.window)  # [W]
    newest = uniform.row_of(memory, jnp.maximum(age, 0))
    indices = Indices(newest[:, None], jnp.zeros(1, jnp.int32), (age >= 0)[:, None])
    if config.older_windows:
        older = uniform.draw(memory, key, config.older_windows, config.window, cross_episodes=True)
        indices = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=-1), indices, older)
    steps = uniform.take(memory, memory.data, indices.row, indices.env)
    by_window = lambda x: jnp.swapaxes(x, 0, 1)
    return Window(by_window(steps.y), by_window(steps.before), by_window(indices.mask))


def recompute_information(config: Config, model: SequenceVAE, operands: tuple) -> Posterior:
    """The information of the newest R steps of `(params, known, memory)`."""
    params, constants, memory = operands
    length = min(config.recount_over, config.capacity)
    age = memory.size - length + jnp.arange(length)
    row = uniform.row_of(memory, jnp.maximum(age, 0))
    steps = uniform.take(memory, memory.data, row, jnp.zeros(length, jnp.int32))
    window = Window(steps.y, steps.before, age >= 0)
    return latent_information.recompute(
        model, params, constants, window, config.prior_speed, config.noise
    )


def predictive_model(config: Config, model: SequenceVAE, knowledge: Knowledge) -> PredictiveModel:
    """The model that policies plan with."""
    params, information, constants, distilled = knowledge
    design = partial(latent_information.design, model, params, constants)

    def observation_information(z: jax.Array) -> jax.Array:
        exact = Belief(z, jnp.zeros((len(z), len(z))))
        fisher_information = kalman.information(exact, partial(model.emission, params))
        return fisher_information * config.noise * constants.dt

    def predictive_variance(z: jax.Array) -> jax.Array:
        if model.members > 1 and "disagreement" in config.policy.objectives:
            return jnp.mean(jnp.var(model.velocities(params, z), axis=0, ddof=1))
        return latent_information.uncertainty(
            model, params, constants, information, z, config.noise
        )

    return PredictiveModel(
        step=lambda z, u: latent_filter.next_state(model, params, constants, u, z),
        design=design,
        root=information.root,
        relative_noise=latent_information.relative_noise(model, params, config.noise),
        observation_information=observation_information,
        predictive_variance=predictive_variance,
        novelty=distillation.novelty_of(distilled),
        place=lambda z: model.emission(params, z)[0],
    )
