"""State-space models of recorded data: which channels count, the record, forecasts to be scored.

Letters: E episodes, T steps of the longest, n channels, m inputs, B starts, K steps ahead.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics import bases
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.state_space import channels, forecasts
from jaxrl.dynamics.state_space.filter import Prediction, Record, filter_states
from jaxrl.dynamics.state_space.fitting.initial_guess import SMOOTHING, initial_guess
from jaxrl.dynamics.state_space.fitting.linear_fit import is_linear_gaussian, linear_fit
from jaxrl.dynamics.state_space.model import Field, Network, Params, StateSpace
from train.vector_field.config import Dynamics
from train.vector_field.data.oddities import LARGEST_WHOLE
from train.vector_field.data.recordings import Data
from train.vector_field.recorded import predictive
from train.vector_field.recorded.prediction_scores import (
    Forecaster,
    Forecasts,
    Starts,
    interval_steps,
    rows_at_steps,
)

GRIDS = {1: 15, 2: 11, 3: 6, 4: 4, 5: 3}
"""Bumps along each dimension of a grid, by the number of dimensions."""
HALF_WIDTH = 3.0
"""Of the grid and of the box of polynomials; states have a standard deviation near 1."""
WAVES = 200
LARGEST_RATE, MOST_BEYOND = float(np.exp(channels.LOG_RATES[1])), 0.01
"""The largest expected count of a step, and the share of counts that may be above it."""
PARTICLES, LEAST_PARTICLES = 100, 30
MOST_VALUES = 3e9
"""Expected observations of particles that all forecasts together may need."""


def count_channels(data: Data, noise: str) -> np.ndarray:
    """Which channels hold counts, bool `[n]`; `noise` is poisson: all, gaussian: none, or auto.

    For auto those whose counts are larger than rates can be are numbers. Raises ValueError where
    channels that should hold counts hold other numbers or such counts, and for noise none.
    """
    if noise == "none":
        raise ValueError("recorded data are noisy; choose env.noise gaussian, poisson or auto")
    y, observed = data.y, data.observed
    whole = np.where(observed, (y >= 0) & (y == np.round(y)) & (y < LARGEST_WHOLE), True)
    could_count = np.asarray(whole.all((0, 1)) & observed.any((0, 1)))
    if noise == "gaussian":
        return np.zeros(len(could_count), bool)
    if noise == "poisson" and not could_count[observed.any((0, 1))].all():
        raise ValueError("y holds numbers that are not counts; choose env.noise gaussian or auto")
    share = (observed & (y > LARGEST_RATE)).sum((0, 1)) / np.maximum(observed.sum((0, 1)), 1)
    is_too_large = share > MOST_BEYOND
    if noise == "poisson" and is_too_large.any():
        raise ValueError(
            f"y holds counts above {LARGEST_RATE:,.0f} in a step, the largest rate of a count; "
            "choose env.noise gaussian or auto"
        )
    return could_count & ~is_too_large


def record_of(data: Data) -> Record:
    """The same data, on the device."""
    valid = np.arange(data.y.shape[1]) < data.lengths[:, None]
    return Record(*map(jnp.asarray, (data.y, data.u, data.observed, valid)))


def make_field(dynamics: Dynamics) -> Field:
    """The nonlinear part of the field, of `dynamics.dims` dimensions."""
    dims = dynamics.dims
    fields: dict[str, Field] = {
        "rbf": bases.Grid(GRIDS.get(dims, 3), dims, HALF_WIDTH),
        "fourier": bases.Fourier(WAVES, dims, length=1.5),
        "polynomial": bases.Polynomial(3, dims, HALF_WIDTH),
        "mlp": Network(dims=dims),
        "linear": None,
    }
    return fields[dynamics.field]


def make_model(dynamics: Dynamics, is_count: np.ndarray, num_inputs: int) -> StateSpace:
    """The model of data with these channels."""
    with jax.ensure_compile_time_eval():  # what is fitted depends on it, in a sweep's trace, too
        counts = jnp.asarray(is_count)
    return StateSpace(
        counts,
        dynamics.dims,
        num_inputs,
        make_field(dynamics),
        dynamics.effect,
    )


def first_guess(
    model: StateSpace, record: Record, key: jax.Array, smoothing: float = SMOOTHING
) -> Params:
    """Where a fit begins: at the largest likelihood, if there is a way to it but gradients."""
    if is_linear_gaussian(model):
        return linear_fit(model, record)
    return initial_guess(model, record, key, smoothing)


@partial(jax.jit, static_argnames="prediction")
def beliefs_of(model: StateSpace, params: Params, record: Record, prediction: Prediction) -> Belief:
    """What the filter believes after each step of episodes, `[E, T, ...]`."""
    run = lambda record: filter_states(model, params, record, prediction).belief
    return jax.vmap(run)(record)


@partial(jax.jit, static_argnames="count")
def moments_of(
    model: StateSpace, params: Params, beliefs: Belief, u: jax.Array, count: int, key: jax.Array
) -> forecasts.Moments:
    """Compiles `forecasts.moments`."""
    return forecasts.moments(model, params, beliefs, u, count, key)


def forecaster(
    model: StateSpace, params: Params, data: Data, ahead: int, prediction: Prediction
) -> Forecaster:
    """Forecasts of a model from steps of `data`, as `prediction_scores` compares them.

    Numbers are normal, and counts negative binomial, with the mean and the variance of particles.
    Each block of starts draws from a key of its own.
    """
    record, (u, is_count) = record_of(data), (data.u, np.asarray(model.is_count))
    beliefs = jax.tree.map(np.asarray, beliefs_of(model, params, record, prediction))
    u = np.pad(u, ((0, 0), (0, ahead), (0, 0)))
    values = float(np.sum(data.lengths)) * (ahead + 1) * len(is_count)
    count = int(np.clip(MOST_VALUES / values, LEAST_PARTICLES, PARTICLES))
    steps = interval_steps(ahead)

    def forecast(starts: Starts) -> Forecasts:
        key = jax.random.fold_in(jax.random.key(0), int(starts.episode[0]))
        key = jax.random.fold_in(key, int(starts.step[0]))
        start_beliefs = jax.tree.map(lambda x: x[starts.episode, starts.step], beliefs)
        later_inputs = rows_at_steps(u, starts, tuple(range(ahead)))
        moments = moments_of(model, params, start_beliefs, later_inputs, count, key)
        mean, variance = (np.asarray(x) for x in moments)
        y = rows_at_steps(data.y, starts, steps)
        mean_then, variance_then = (x[:, steps].astype(float) for x in (mean, variance))
        places = predictive.place(is_count, mean_then, variance_then, y)
        return Forecasts(mean, places.below, places.at_most, places.log_likelihood[:, 0])

    return forecast
