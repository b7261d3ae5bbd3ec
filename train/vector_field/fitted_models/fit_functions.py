"""What a fit of a state-space model offers to `fitted`: filter, smoother, forecasts, simulations.

The field of the model is a displacement per step; here it is a velocity, per unit of the data's
time, or per step where that is not known.

Axes: T steps, n channels, m inputs, d latent dimensions, H steps ahead, Q levels, N simulations.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.state_space import channels, forecasts
from jaxrl.dynamics.state_space.field_posterior import (
    FieldPosterior,
    Prior,
    field_posterior,
    predictive_model,
    unit_of_inputs,
)
from jaxrl.dynamics.state_space.filter import (
    FilteredStates,
    Record,
    filter_states,
    first_belief,
)
from jaxrl.dynamics.state_space.fitting.units import units_of
from jaxrl.dynamics.state_space.information import gather_all
from jaxrl.dynamics.state_space.model import Params, StateSpace, displacement, step
from jaxrl.dynamics.state_space.smoother import smooth_states
from train.host.compilation import cpu_kernels
from train.vector_field.config import Config
from train.vector_field.data.sessions import map_sessions
from train.vector_field.learners.learner import LatentModel, StateSpaceFunctions
from train.vector_field.recorded import baselines, state_space
from train.vector_field.recorded.choices import trials
from train.vector_field.recorded.dynamics_problem import Problem, prediction_of

PARTICLES = 400
"""Of quantiles; means need fewer, `state_space.PARTICLES`."""
MOST_VALUES = 2**22
"""Expected observations of particles in memory at once."""
Filter = Callable[[jax.Array, jax.Array, jax.Array | None], FilteredStates]


def latent_model(
    config: Config,
    model: StateSpace,
    params: Params,
    posterior: Callable[[], FieldPosterior],
    dt: float,
) -> LatentModel:
    """The functions of one fit, whose field has a `posterior`; `dt` is the time of a step."""
    run_filter = filter_of(config, model, params)
    velocity = lambda z: displacement(model, params, z) / dt

    def smooth(y: jax.Array, u: jax.Array, observed: jax.Array | None) -> Belief:
        return smooth_states(run_filter(y, u, observed), jnp.ones(len(y), bool))

    def planning() -> PredictiveModel:
        plans = predictive_model(model, posterior())
        variance = plans.predictive_variance  # of a displacement
        return plans._replace(predictive_variance=lambda z: variance(z) / dt**2)

    return LatentModel(
        beliefs=lambda *record: run_filter(*record).belief,
        velocity=jnp.vectorize(velocity, signature="(d)->(d)"),
        emission_mean=partial(channels.mean, model.is_count, params),
        step=partial(step, model, params),
        planning=planning,
        state_space=StateSpaceFunctions(
            is_count=np.asarray(model.is_count),
            smooth=smooth,
            quantiles=partial(quantiles, model, params, run_filter),
            simulate=partial(simulate, model, params),
        ),
    )


def filter_of(config: Config, model: StateSpace, params: Params) -> Filter:
    """The filter of a record whose last argument says what was observed; None: everything."""

    def run_filter(y: jax.Array, u: jax.Array, observed: jax.Array | None) -> FilteredStates:
        observed = jnp.ones(y.shape, bool) if observed is None else observed
        record = Record(y, u, observed, jnp.ones(len(y), bool))
        return filter_states(model, params, record, prediction_of(config))

    return run_filter


def posterior_of(config: Config, problem: Problem, params: Params) -> FieldPosterior:
    """What the newest `trials.MOST_STEPS` steps of the training data leave unknown.

    Of several sessions the newest of each, with the information of all.
    """
    (newest,) = map_sessions(
        lambda data: (baselines.newest(data, trials.MOST_STEPS),), problem.training
    )
    gather = partial(gather_all, problem.model, prediction=prediction_of(config))
    gather = jax.jit(gather, compiler_options=cpu_kernels.small_products())
    record = state_space.record_of(newest)
    information = gather(params, record)
    size = units_of(record, problem.model.is_count, problem.model.effect).input_size
    prior = Prior(weights=config.state_space.prior)
    prior = prior.replace(input_unit=unit_of_inputs(size))  # pyright: ignore
    return jax.jit(partial(field_posterior, problem.model, prior=prior))(params, information)


def forecast(
    model: StateSpace,
    params: Params,
    run_filter: Filter,
    y: jax.Array,
    u: jax.Array,
    steps: int,
    observed: jax.Array | None = None,
) -> jax.Array:
    """`[T, H + 1, n]`, H = `steps`: means of observations from every step."""
    count = state_space.PARTICLES

    def forecast_block(beliefs: Belief, u: jax.Array, key: jax.Array) -> jax.Array:
        return forecasts.moments(model, params, beliefs, u, count, key).mean

    beliefs = run_filter(y, u, observed).belief
    return forecast_in_blocks(forecast_block, beliefs, u, steps, count * (steps + 1) * y.shape[1])


def quantiles(
    model: StateSpace,
    params: Params,
    run_filter: Filter,
    y: jax.Array,
    u: jax.Array,
    steps: int,
    levels: tuple[float, ...],
    observed: jax.Array | None,
) -> jax.Array:
    """`[T, H + 1, Q, n]`, H = `steps`: quantiles of observations from every step."""

    def forecast_block(beliefs: Belief, u: jax.Array, key: jax.Array) -> jax.Array:
        return forecasts.forecast(model, params, beliefs, u, PARTICLES, key, levels).quantiles

    beliefs = run_filter(y, u, observed).belief
    return forecast_in_blocks(
        forecast_block, beliefs, u, steps, PARTICLES * (steps + 1) * y.shape[1]
    )


def forecast_in_blocks(
    forecast_block: Callable[[Belief, jax.Array, jax.Array], jax.Array],
    beliefs: Belief,
    u: jax.Array,
    steps: int,
    values: int,
) -> jax.Array:
    """Forecasts `[T, ...]` from every belief `[T, ...]`, block after block.

    `forecast_block(beliefs [B, ...], inputs [B, H, m], key)` makes those of B starts, `values`
    numbers for each. The inputs are those that follow in `u` `[T, m]`, and 0 after the last. Every
    block draws from a key of its own.
    """
    length = len(u)
    size = min(max(1, MOST_VALUES // values), length)
    starts = np.minimum(np.arange(-(-length // size) * size), length - 1).reshape(-1, size)
    padded_inputs = jnp.pad(u, ((0, steps), (0, 0)))

    def run_block(block: tuple[jax.Array, jax.Array]) -> jax.Array:
        start, key = block
        inputs = padded_inputs[start[:, None] + jnp.arange(steps)[None]]
        return forecast_block(jax.tree.map(lambda x: x[start], beliefs), inputs, key)

    keys = jax.random.split(jax.random.key(0), len(starts))
    blocks = jax.lax.map(run_block, (jnp.asarray(starts), keys))  # [blocks, B, ...]
    return blocks.reshape(-1, *blocks.shape[2:])[:length]


def simulate(
    model: StateSpace,
    params: Params,
    z: jax.Array | None,
    u: jax.Array,
    key: jax.Array,
    count: int,
) -> tuple[jax.Array, jax.Array]:
    """Draws N = `count` records with the inputs `u` `[T, m]`: `(states, observations)`.

    From the state `z` `[d]`, or, if it is None, from one drawn as that before a record. Consumes
    `key`.
    """
    start_key, path_key, draw_key = jax.random.split(key, 3)
    if z is None:
        mean, covariance = first_belief(params)
        deviation = jnp.sqrt(jnp.diagonal(covariance))
        noise = jax.random.normal(start_key, (count, model.dims))
        start = mean[None] + deviation[None] * noise
    else:
        start = jnp.broadcast_to(z[None], (count, model.dims))
    states = forecasts.paths(model, params, start, u[:-1], path_key).swapaxes(0, 1)
    return states, channels.draw(model.is_count, params, states, draw_key)
