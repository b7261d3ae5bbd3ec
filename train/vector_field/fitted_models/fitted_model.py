"""A learned model as functions of arrays, compiled and checked: what `fitted.load` returns.

Axes: T steps, n channels, m inputs, d latent dimensions, H steps ahead, Q levels, N simulations.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.numerics.precision import in_float32
from train.host.errors import UsageError
from train.vector_field.data.step_time import StepTime
from train.vector_field.fitted_models.arguments import (
    Sizes,
    array_of,
    inputs,
    probabilities,
    record_of,
    state,
    until_effect,
    whole_number,
)
from train.vector_field.learners.learner import LatentModel, StateSpaceFunctions


class Moment(NamedTuple):
    """The end of what was recorded; NumPy.

    The last row of `u` of a record, to be given after its last observation, is taken as not yet
    given: that input is the first one that is advised.
    """

    z: np.ndarray  # [d] the filtered state
    u: np.ndarray  # [m] the input before it, of the last row but one; 0 where there was none


class Allowance(NamedTuple):
    """What a rig allows beyond smallest and largest inputs; NumPy."""

    rate: np.ndarray  # [m] largest change of an input from a sample to the next; may be inf
    charge: float  # largest Σ |u| × time of a step in a window of W samples; may be inf
    spent: np.ndarray  # [W - 1] |u| × time of a step of the newest samples before `Moment`


class Simulation(NamedTuple):
    """Records that a model makes up."""

    states: jax.Array  # [N, T, d]
    observations: jax.Array  # [N, T, n]


class FittedModel(NamedTuple):
    """A learned model: pure functions, jitted, in the coordinates of its own latent state.

    Where y is NaN an observation is missing, unless the model sees the state itself. `smooth`,
    `quantiles` and `simulate` are those of a state-space model; other learners raise UsageError.
    Arguments of other shapes raise ValueError, in one line.
    """

    filter: Callable[[Any, Any], Belief]
    """`(y [T, n], u [T, m]) -> mean [T, d] and covariance [T, d, d]`: the state after each
    observation; u is the input given after it."""
    smooth: Callable[[Any, Any], Belief]
    """The same, given all observations, later ones included."""
    forecast: Callable[[Any, Any, int], jax.Array]
    """`(y [T, n], u [T, m], H) -> [T, H + 1, n]`: after each step, the expected observations now
    and up to H steps ahead, given the inputs, and 0 after the last. A state-space model averages
    over particles that move with its noise."""
    quantiles: Callable[..., jax.Array]
    """`(y [T, n], u [T, m], H, levels (0.05, 0.5, 0.95)) -> [T, H + 1, Q, n]`: below the first of
    these an observation is expected with a probability of 0.05."""
    predict: Callable[[Any, Any], tuple[jax.Array, jax.Array]]
    """`(z [d], u [H, m]) -> (states [H + 1, d], observations [H + 1, n])` that inputs lead to,
    without noise; u at the steps at which they act, if that is later than they are given."""
    simulate: Callable[..., Simulation]
    """`(z [d], u [T, m], key 0, count 1) -> states [N, T, d], observations [N, T, n]`: N = `count`
    records drawn with all noise; z None: they begin as a recording does. `key` is a whole number or
    a key of JAX."""
    velocity: Callable[[Any], jax.Array]
    """`z [..., d] -> [..., d]`: the field."""
    deviation: Callable[[Any], jax.Array]
    """`z [..., d] -> [...]`: standard deviation of a component of it."""
    make_planning: Callable[[], PredictiveModel]
    """Makes `planning`, once."""
    low: np.ndarray  # [m] smallest inputs that were given, or may be
    high: np.ndarray  # [m] largest
    dt: float  # time of a step, in the unit of time of velocities; of a state-space model `time`
    dims: int  # d
    now: Moment | None  # None if nothing is left of what was recorded
    trail: np.ndarray  # [T, d] filtered states, the newest last; may be empty
    time: StepTime  # of a step, in the unit of the data; of experiments `dt`
    allowance: Allowance | None = None  # of a stream

    @property
    def planning(self) -> PredictiveModel:
        """What plans are made with, and deviations, but for those of models that learn online: what
        these plan with loses its uncertainty far from where states have been.

        Fits of a state-space model first gather the information of at most 20,000 steps of their
        training data, which takes seconds.
        """
        return self.make_planning()


def make(
    latent_model: LatentModel,
    forecast: Callable,
    dims: int,
    low: np.ndarray,
    high: np.ndarray,
    dt: Any,
    now: Moment | None,
    trail: np.ndarray,
    time: StepTime | None = None,
    delays: tuple[int, ...] = (),
) -> FittedModel:
    """Compiles the functions of a learner, for NumPy arrays in which NaN is missing."""
    observation = jax.eval_shape(
        latent_model.emission_mean, jax.ShapeDtypeStruct((dims,), jnp.float32)
    )
    sizes = Sizes(observation.shape[0], len(high), dims, delays)
    beliefs, compiled_forecast = jax.jit(latent_model.beliefs), jax.jit(forecast, static_argnums=2)
    is_count = None if latent_model.state_space is None else latent_model.state_space.is_count
    record = lambda y, u: record_of(sizes, is_count, y, u)

    def forecast_of(y: Any, u: Any, steps: int) -> jax.Array:
        length = len(y)
        y, u, observed = record(*until_effect(y, u, sizes))
        return compiled_forecast(y, u, whole_number("H", steps, 0), observed)[:length]

    planning, velocity = cache(in_float32(latent_model.planning)), jax.jit(latent_model.velocity)
    as_states = lambda z: array_of("z", z, "[..., d]", (sizes.dims,))
    if latent_model.state_space is None:
        smooth, quantiles, simulate = map(refusal, ("smooth", "quantiles", "simulate"))
    else:
        smooth, quantiles, simulate = functions_of(latent_model.state_space, sizes, record)
    return FittedModel(
        filter=in_float32(lambda y, u: beliefs(*record(y, u))),
        smooth=in_float32(smooth),
        forecast=in_float32(forecast_of),
        quantiles=in_float32(quantiles),
        predict=in_float32(prediction(latent_model, sizes)),
        simulate=in_float32(simulate),
        velocity=in_float32(lambda z: velocity(as_states(z))),
        deviation=in_float32(deviation(latent_model.uncertainty, planning, as_states)),
        make_planning=planning,
        low=np.asarray(low, np.float32),
        high=np.asarray(high, np.float32),
        dt=float(dt),
        dims=dims,
        now=now,
        trail=trail,
        time=time or StepTime(float(dt), ""),
    )


def prediction(latent_model: LatentModel, sizes: Sizes) -> Callable:
    """`FittedModel.predict`."""

    def advance(z: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
        after = latent_model.step(z, u)
        return after, after

    @jax.jit
    def path(z: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
        states = jnp.concatenate([z[None], jax.lax.scan(advance, z, u)[1]])
        return states, jax.vmap(latent_model.emission_mean)(states)

    def predict(z: Any, u: Any) -> tuple[jax.Array, jax.Array]:
        return path(state(z, sizes), inputs(u, sizes))

    return predict


def deviation(
    uncertainty: Callable[[jax.Array], jax.Array] | None,
    planning: Callable[[], PredictiveModel],
    as_states: Callable,
) -> Callable:
    """`FittedModel.deviation`, which is compiled when it is first needed."""

    @cache
    def compiled_deviation() -> Callable[[jax.Array], jax.Array]:
        variance = uncertainty or planning().predictive_variance
        deviation_at = lambda z: jnp.sqrt(variance(z))
        return jax.jit(jnp.vectorize(deviation_at, signature="(d)->()"))

    return lambda z: compiled_deviation()(as_states(z))


def functions_of(
    functions: StateSpaceFunctions, sizes: Sizes, record: Callable
) -> tuple[Callable, ...]:
    """`FittedModel.smooth`, `quantiles` and `simulate`."""
    smooth = jax.jit(functions.smooth)
    compiled_quantiles = jax.jit(functions.quantiles, static_argnums=(2, 3))
    draw = jax.jit(functions.simulate, static_argnums=3)

    def quantiles(y: Any, u: Any, steps: int, levels: Any = (0.05, 0.5, 0.95)) -> jax.Array:
        length = len(y)
        y, u, observed = record(*until_effect(y, u, sizes))
        return compiled_quantiles(
            y, u, whole_number("H", steps, 0), probabilities(levels), observed
        )[:length]

    def simulate(z: Any, u: Any, key: Any = 0, count: int = 1) -> Simulation:
        start = None if z is None else state(z, sizes)
        key = key if isinstance(key, jax.Array) else jax.random.key(whole_number("key", key, 0))
        u = jnp.asarray(sizes.at_effect(inputs(u, sizes)))
        if not len(u):
            raise ValueError("u has no steps, expected [T, m]: give an input for each step")
        return Simulation(*draw(start, u, key, whole_number("count", count, 1)))

    return lambda y, u: smooth(*record(y, u)), quantiles, simulate


def refusal(name: str) -> Callable:
    """What stands in place of a function that a learner does not have."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise UsageError(
            f"this run has no {name}: only fits of a state-space model to data have it; fit one "
            "with --data FILE.npz"
        )

    return refuse
