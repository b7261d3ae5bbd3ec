"""How the state of a learned vector field is filtered: a measurement update, then a time update.

Axes: d latent dimensions, m inputs, n channels, T steps.
"""

from functools import partial

import jax
import jax.numpy as jnp

from jaxrl.dynamics import kalman, posterior
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.learners.field_model import (
    Config,
    State,
    System,
    dims_of,
    next_state,
    uncertainty,
    unroll,
    wrap,
)


def first_belief(config: Config, system: System) -> Belief:
    """The prior belief of the state, before anything is observed."""
    d = dims_of(config, system)
    return Belief(jnp.zeros(d), config.first_variance * jnp.eye(d))


def perceive(
    config: Config,
    system: System,
    state: State,
    expected: Belief,
    obs: jax.Array,
    observed: jax.Array | None = None,
) -> Belief:
    """Measurement update: the belief of the state after its observation.

    Of `obs` `[n]` what is not `observed`, bool `[n]`, does not count; None: all is. Raises
    ValueError for another `observed` than None where the observation is the state.
    """
    if config.belief == "exact":
        if observed is not None:
            raise ValueError("a learner that sees the state itself cannot miss any of it")
        return Belief(obs, jnp.zeros_like(expected.covariance))

    def emission(z: jax.Array) -> tuple[jax.Array, jax.Array]:
        mean, variance = system.emission(z, state.known.numbers)
        return mean, variance if observed is None else jnp.where(observed, variance, jnp.inf)

    obs = unroll(system, obs, emission(expected.mean)[0])
    belief = kalman.correct(expected, obs, emission)
    return belief._replace(mean=wrap(system, belief.mean))


def expect(
    config: Config, system: System, state: State, belief: Belief, action: jax.Array
) -> Belief:
    """Time update: the belief of the next state, including the uncertainty of the field."""
    if config.belief == "exact":
        return belief  # the next observation is exact
    noise = posterior.noise_variance(state.posterior)
    from_field = uncertainty(config, system, state, belief.mean) * state.known.dt**2
    step = partial(next_state, config, system, state, action)
    return kalman.predict(belief, step, noise + from_field)


def beliefs(
    config: Config,
    system: System,
    state: State,
    obs: jax.Array,
    actions: jax.Array,
    observed: jax.Array | None = None,
) -> Belief:
    """The filtered states, `[T, d]` and `[T, d, d]`, along `obs`; arguments as of `forecast`."""

    def filter_step(expected: Belief, datum: tuple):
        obs, action, observed = datum
        belief = perceive(config, system, state, expected, obs, observed)
        return expect(config, system, state, belief, action), belief

    return jax.lax.scan(filter_step, first_belief(config, system), (obs, actions, observed))[1]
