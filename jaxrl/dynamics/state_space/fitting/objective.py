"""What a fit minimises: marginal likelihood by the filter, and that of the steps ahead.

The marginal likelihood alone may end where everything is called noise; observations ten steps ahead
of what the filter knows cannot be explained without dynamics. Letters: B windows of T steps, K
steps ahead, n channels, d dimensions of the state.
"""

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl.checks import Count, CountOrZero, NonNegative, Positive
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.state_space import channels, forecasts
from jaxrl.dynamics.state_space.filter import FilteredStates, Prediction, Record, filter_states
from jaxrl.dynamics.state_space.model import Params, StateSpace

SETTLED = 5
"""Steps of a window after which the filter has forgotten how it began."""


@struct.dataclass
class Objective:
    """The terms, each per observed number."""

    prediction: Prediction = struct.field(pytree_node=False, default="extended")
    """How the filter predicts: extended or cubature."""
    ahead_steps: CountOrZero = struct.field(pytree_node=False, default=10)
    """K, of short windows fewer; 0: by marginal likelihood alone."""
    particles: Count = struct.field(pytree_node=False, default=8)
    """Over which an expectation ahead is averaged."""
    ahead_weight: NonNegative = 1.0
    """Weight of the steps ahead beside the marginal likelihood."""
    prior: Positive = 0.3
    """Standard deviation of the weights of the field."""


def loss(
    objective: Objective,
    model: StateSpace,
    params: Params,
    windows: Record,
    total: jax.Array | float,
    key: jax.Array,
) -> jax.Array:
    """The mean of the terms over windows `[B, T]`; consumes `key`.

    `total` is the number of numbers that were observed in all, of which the windows are a sample:
    the prior counts once for all of them.
    """
    filter_window = lambda record: filter_states(model, params, record, objective.prediction)
    states = jax.vmap(filter_window)(windows)
    value = -jnp.sum(states.log_likelihood) / jnp.maximum(jnp.sum(windows.observed), 1)
    value = value + penalty(objective, model, params) / total
    if not objective.ahead_steps:
        return value
    keys = jax.random.split(key, len(windows.y))
    ahead = lambda window, states, key: ahead_loss(objective, model, params, window, states, key)
    losses, counts = jax.vmap(ahead)(windows, states, keys)
    return value + objective.ahead_weight * jnp.sum(losses) / jnp.maximum(jnp.sum(counts), 1)


def penalty(objective: Objective, model: StateSpace, params: Params) -> jax.Array:
    """Minus the logarithm of the prior, up to a constant.

    That of C, N(0, 1) for counts, whose logarithms have a scale, keeps states from shrinking.
    """
    matrix = jnp.where(model.is_count[:, None], params.matrix, 0.0)
    squares = jnp.sum((params.weights / objective.prior) ** 2) + jnp.sum(matrix**2)
    return 0.5 * squares


def ahead_loss(
    objective: Objective,
    model: StateSpace,
    params: Params,
    window: Record,
    states: FilteredStates,
    key: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Minus the log-likelihood of the K steps after one random time, and how many numbers it is of.

    A window that is too short for a settled filter and K steps has as many as come after `SETTLED`,
    or one; none if it is a single step. Of Poisson counts at the mean rate of the particles, of a
    normal distribution with their mean and variance for the rest. Consumes `key`.
    """
    time_key, particle_key = jax.random.split(key)
    length = len(window.y)
    if length < 2:
        return jnp.zeros(()), jnp.zeros((), jnp.int32)
    steps = min(objective.ahead_steps, max(length - SETTLED - 1, 1))
    latest = length - 1 - steps
    time = jax.random.randint(time_key, (), min(SETTLED, latest), latest + 1)
    take_time = lambda x: jax.lax.dynamic_slice_in_dim(x, time, 1)[0]
    take_steps = lambda x, shift: jax.lax.dynamic_slice_in_dim(x, time + shift, steps)
    belief: Belief = jax.tree.map(take_time, states.belief)
    inputs = take_steps(window.u, 0)
    paths = forecasts.particles(model, params, belief, inputs, objective.particles, particle_key)
    expected = channels.mean(model.is_count, params, paths[1:])  # [K, M, n]
    observed = take_steps(window.observed, 1)
    y = jnp.where(observed, take_steps(window.y, 1), 0.0)  # as in `channels.response`
    rate = jnp.mean(expected, axis=1)
    variance = jnp.exp(2 * params.log_noise)[None] + jnp.var(expected, axis=1)
    count = rate - y * jnp.log(jnp.where(model.is_count[None], rate, 1.0))
    number = 0.5 * ((y - rate) ** 2 / variance + jnp.log(variance))
    losses = jnp.where(model.is_count[None], count, number)
    return jnp.sum(jnp.where(observed, losses, 0.0)), jnp.sum(observed)
