"""Bayesian learning of an unknown vector field (`field_model`), with experiment design.

Several bases of the field may learn side by side; the one of the largest marginal likelihood so far
plans and is shown. The state is observed as it is, or filtered (`field_filter`).

Axes: d latent dimensions, m inputs, n channels, p parameters, T steps, N environments.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl import checks
from jaxrl.dynamics import bases, kalman, model_choice, posterior
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.latent_scores import forecasts
from jaxrl.dynamics.learners.field_filter import beliefs, expect, first_belief, perceive
from jaxrl.dynamics.learners.field_model import (
    Candidate,
    Config,
    State,
    System,
    candidates,
    design,
    dims_of,
    is_free,
    next_state,
    uncertainty,
    unroll,
    weight_variance,
    without_jumps,
    wrap,
)
from jaxrl.dynamics.planning import distillation, stimulation, stimulation_config
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.planning.stimulation import Constants, Extras, Stimulus
from jaxrl.dynamics.posterior import Posterior
from jaxrl.numerics.linalg import matmul
from jaxrl.types import Agent, Metrics, Transition

Datum = tuple[Belief, jax.Array, jax.Array]
"""A transition: the belief of a state, the action in it and the next observation."""


class Memory(NamedTuple):
    expected: Belief  # of the state that is observed next
    stimulus: Stimulus


def make(config: Config, system: System, constants: Constants) -> Agent:
    """An agent whose actions are inputs and which learns the field from each transition.

    Raises:
      ValueError: settings that do not fit together, before anything is compiled.
    """
    check_config(config, system)
    policy = stimulation.make(
        config.policy, partial(predictive_model, config, system), constants.low, constants.high
    )

    seeks_novelty = "rnd" in config.policy.objectives

    # What an agent begins with: the prior of the field, and that of the state of each stream.
    def init(key: jax.Array, obs: jax.Array) -> State:
        del obs
        distilled = ()
        if seeks_novelty:
            distilled = distillation.init(key, config.policy.rnd, config.functions.dims)
        return first_state(config, system, constants)._replace(distilled=distilled)

    def memory() -> Memory:
        return Memory(first_belief(config, system), policy.init())

    # Acting filters the state, asks the policy, and predicts the next state.
    def act(state: State, memory: Memory, obs: jax.Array, key: jax.Array):
        belief = perceive(config, system, state, memory.expected, obs)
        action, stimulus = policy.act(state, belief.mean, memory.stimulus, key)
        after = Memory(expect(config, system, state, belief, action), stimulus)
        return action, after, Extras(belief, stimulus.plan.invalid)

    return Agent(init, memory, act, partial(update, config, system, constants))


def update(
    config: Config,
    system: System,
    constants: Constants,
    state: State,
    rollout: Transition,
    key: jax.Array,
) -> tuple[State, Metrics]:
    """Takes transitions one by one: the field first, then the networks of novelty."""
    transitions = jax.tree.map(
        lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]),
        (rollout.extras.belief, rollout.action, rollout.next_obs),
    )

    def step(state: State, datum: Datum):
        return learn(config, system, state, datum), None

    state, _ = jax.lax.scan(step, state, transitions)
    if isinstance(state.distilled, distillation.State):
        path = without_jumps(system, transitions[0].mean)
        distilled = distillation.learn_path(config.policy.rnd, state.distilled, path, key)
        state = state._replace(distilled=distilled)
    noise = posterior.noise_variance(state.posterior) / constants.dt
    metrics = {
        "information": state.posterior.information,
        "process_noise": noise,
        "invalid_plans": jnp.max(rollout.extras.invalid_plans),
    }
    if state.candidates:
        metrics["kind"] = jnp.asarray(state.place, jnp.float32)
    return state, metrics


def first_state(config: Config, system: System, constants: Constants) -> State:
    """Before any data."""
    each = [first_posterior(x, system, constants) for x in candidates(config)]
    state = State(each[0], constants, jnp.ones(()))
    if len(each) == 1 or system.family is not None:
        return state
    return choose_likeliest(config, state, [Candidate(x, jnp.zeros(())) for x in each])


def choose_likeliest(config: Config, state: State, each: Sequence[Candidate]) -> State:
    """The state with these candidates; the likeliest one counts."""
    place = model_choice.likeliest_index([x.log_evidence for x in each])
    padded = [posterior.pad(x.posterior, config.num_features) for x in each]
    likeliest = model_choice.select(place, padded)
    return state._replace(posterior=likeliest, candidates=tuple(each), place=place)


def first_posterior(config: Config, system: System, constants: Constants) -> Posterior:
    """Independent parameters, scaled so that the field has the prior speed."""
    noise = config.process_noise * constants.dt
    if system.family is not None:
        variance = config.prior_speed**2 / noise
        belief = posterior.prior(
            len(system.family_start),
            config.functions.dims,
            variance,
            noise,
            config.noise_strength,
            shared=False,
        )
        return belief._replace(mean=jnp.array(system.family_start))
    variance = weight_variance(config) / noise
    size, dims = config.num_features, dims_of(config, system)
    return posterior.prior(size, dims, variance, noise, config.noise_strength)


def learn(config: Config, system: System, state: State, datum: Datum) -> State:
    """The state after learning from a transition."""
    if not state.candidates:
        return learn_one(config, system, state, datum)[0]
    each, noises = [], []
    for candidate_config, candidate in zip(candidates(config), state.candidates, strict=True):
        candidate_state = state._replace(posterior=candidate.posterior, candidates=(), place=())
        after, log_density = learn_one(candidate_config, system, candidate_state, datum)
        each.append(Candidate(after.posterior, candidate.log_evidence + log_density))
        noises.append(after.relative_noise)
    likeliest = choose_likeliest(config, state, each)
    assert not isinstance(likeliest.place, tuple)
    return likeliest._replace(relative_noise=model_choice.select(likeliest.place, noises))


def learn_one(
    config: Config, system: System, state: State, datum: Datum
) -> tuple[State, jax.Array]:
    """`learn` with one basis, and the logarithm of the density of what was observed."""
    belief, action, next_obs = datum
    constants, regressors = state.known, design(config, system, state, belief.mean)
    step = partial(next_state, config, system, state, action)
    if config.belief == "exact":
        error, relative_noise = next_obs - step(belief.mean), jnp.ones(())
    else:
        noise = posterior.noise_variance(state.posterior)
        expected = kalman.predict(belief, step, noise)
        emission = lambda z: system.emission(z, constants.numbers)
        unrolled_obs = unroll(system, next_obs, emission(expected.mean)[0])
        evidence = kalman.evidence(expected, unrolled_obs, emission)
        error, relative_noise = evidence.displacement, 1 / (evidence.weight * noise)
    error = wrap(system, error)
    free = is_free(system, constants, step(belief.mean) + error)
    counted = jnp.where(free, relative_noise, jnp.inf)
    explained = matmul(regressors, state.posterior.mean)
    row = regressors, explained + error, counted
    after = state._replace(
        posterior=posterior.update(state.posterior, *row), relative_noise=relative_noise
    )
    if system.family is not None:
        return after, jnp.zeros(())
    return after, posterior.log_density(state.posterior, *row)


def forecast(
    config: Config,
    system: System,
    state: State,
    obs: jax.Array,
    actions: jax.Array,
    steps: int,
    observed: jax.Array | None = None,
) -> jax.Array:
    """Expected observations `[T, K + 1, n]` now and up to K = `steps` steps later.

    The state is filtered along `obs` `[T, n]`, each followed by an action of `actions` `[T, m]`,
    without learning. After the last action inputs are 0. `observed`, bool `[T, n]`, is false where
    `obs` is missing; None: everything was observed.
    """
    means = beliefs(config, system, state, obs, actions, observed).mean
    step = lambda z, u: next_state(config, system, state, u, z)
    emission_mean = jax.vmap(lambda z: system.emission(z, state.known.numbers)[0])
    return forecasts(step, emission_mean, means, actions, steps)


def predictive_model(config: Config, system: System, state: State) -> PredictiveModel:
    """The model that policies plan with."""
    noise = posterior.noise_variance(state.posterior)
    emission = lambda z: system.emission(z, state.known.numbers)

    def observation_information(z: jax.Array) -> jax.Array:
        return kalman.information(Belief(z, jnp.zeros((len(z), len(z)))), emission) * noise

    return PredictiveModel(
        step=lambda z, u: next_state(config, system, state, u, z),
        design=partial(design, config, system, state),
        root=state.posterior.root,
        relative_noise=state.relative_noise,
        observation_information=observation_information,
        predictive_variance=partial(uncertainty, config, system, state),
        novelty=novelty_of(system, state),
        wrap=partial(wrap, system),
    )


def novelty_of(system: System, state: State) -> Callable[[jax.Array], jax.Array] | None:
    """`z [d] -> novelty`, which does not jump where an angle does; None without the objective."""
    novelty = distillation.novelty_of(state.distilled)
    return None if novelty is None else lambda z: novelty(without_jumps(system, z))


def check_config(config: Config, system: System) -> None:
    """Raises ValueError for out-of-range or inconsistent settings."""
    checks.config_of(Config, config)
    for each in candidates(config):
        bases.check(each.functions)
    stimulation.check_config(config.policy)
    stimulation_config.check_goal(config.policy, dims_of(config, system))
    if system.family is not None and not system.family_start:
        raise ValueError("a family of fields needs the prior mean of its parameters: family_start")
