"""What a run has learned, for one's own data and experiments.

    from train.vector_field import fitted

    model = fitted.load("runs/...")
    states = model.filter(y, u).mean

Axes: T steps, n channels, m inputs, d latent dimensions, H steps ahead.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics import stimulation
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.stimulation import Known, PredictiveModel
from jaxrl.networks import latent_filter, latent_information
from jaxrl.networks.latent import SequenceVAE, Window
from jaxrl.precision import in_float32
from jaxrl.types import PyTree
from train.host import runs
from train.host.errors import UsageError, in_one_line
from train.host.program import Run
from train.vector_field import experiments, recorded, recordings, scores
from train.vector_field.config import make_env, make_learner, make_model, policies_of
from train.vector_field.learners import Own, of_vae
from train.vector_field.recordings import Data
from train.vector_field.step_time import StepTime
from train.vector_field.training import samples_of


class Moment(NamedTuple):
    """The end of what was recorded; NumPy."""

    z: np.ndarray  # [d] the filtered state
    u: np.ndarray  # [m] the input before it, 0 where there was none


class Fitted(NamedTuple):
    """A learned model: pure functions, jitted, in the coordinates of its own latent state.

    Where y is NaN an observation is missing, unless the model sees the state itself.
    """

    filter: Callable[[Any, Any], Belief]
    """`(y [T, n], u [T, m]) -> mean [T, d] and covariance [T, d, d]`: the state after each
    observation; u is the input given after it."""
    forecast: Callable[[Any, Any, int], jax.Array]
    """`(y [T, n], u [T, m], H) -> [T, H + 1, n]`: after each step, the expected observations now
    and up to H steps ahead, given the inputs, and 0 after the last."""
    predict: Callable[[Any, Any], tuple[jax.Array, jax.Array]]
    """`(z [d], u [H, m]) -> (states [H + 1, d], observations [H + 1, n])` that inputs lead to."""
    velocity: Callable[[Any], jax.Array]
    """`z [..., d] -> [..., d]`: the field."""
    deviation: Callable[[Any], jax.Array]
    """`z [..., d] -> [...]`: standard deviation of a component of it."""
    planning: PredictiveModel
    """What plans are made with."""
    low: np.ndarray  # [m] smallest inputs that were given, or may be
    high: np.ndarray  # [m] largest
    dt: float  # time of a step of the model: velocities are per unit of it
    dims: int  # d
    now: Moment | None  # None if nothing is left of what was recorded
    trail: np.ndarray  # [T, d] filtered states, the newest last; may be empty
    time: StepTime  # of a step, in the unit of the data; of experiments `dt`


@in_float32
def load(run: str | Path, seed: int | None = None, policy: str = "", field: str = "") -> Fitted:
    """The model of a run of `train.vector_field`: a fit to data, or a learner of an experiment.

    Args:
      run: its directory.
      seed: of the run's seeds; None: the first.
      policy, field: of an experiment; empty: the first.

    Raises UsageError, in one line, for what the run does not have.
    """
    found = runs.load(run)
    if found.program.address != "vector_field":
        raise UsageError(f"{run} is a run of {found.program.address}, not of vector_field")
    seeds, config = list(found.seeds), found.config
    s = _place("seed", seeds[0] if seed is None else seed, seeds)
    if config.data:
        if policy or field:
            raise UsageError(f"{run} fits recorded data, which have no policy or field")
        try:
            return of_data(found, s)
        except ValueError as error:  # the files are gone, or others
            raise UsageError(f"the data of {run}: {in_one_line(error)}") from error
    p = _place("policy", policy or config.policies[0], config.policies)
    f = _place("field", field or config.env.fields[0], config.env.fields)
    return of_experiment(found, s, p, f)


def _place(what: str, wanted: Any, known: Any) -> int:
    if wanted not in known:
        raise UsageError(f"the run has no {what} {wanted}; it has {', '.join(map(str, known))}")
    return list(known).index(wanted)


def of_data(run: Run, s: int) -> Fitted:
    """The sequence VAE that seed `s` of a run fitted to recorded data, and where these end."""
    data = recordings.load(run.config.data, run.config.env.bin_width)
    config = recorded.fitting(run.config, data)
    model, params, known = make_model(config), run.agents[s].params, recorded.known_of(config)
    training, _ = recorded.split(config, data)
    information = latent_information.after(
        *(model, params, known, gathered(model, params, known, training)),
        *(config.vae.prior_speed, config.vae.noise),
    )
    own = of_vae(model, params, known, config.vae, information)
    y, u, observed = data.episode(-1)
    trail = np.asarray(jax.jit(own.beliefs)(y, u, None if data.is_complete else observed).mean)
    before = u[-2] if len(u) > 1 else np.zeros_like(u[0])
    given = data.u[np.arange(data.u.shape[1]) < data.lengths[:, None]]
    largest = np.abs(given).max(0)
    low = np.where(given.min(0) >= 0, 0.0, -largest)  # such as light, which is never negative
    forecast = partial(latent_filter.forecast, model, params, known)
    moment = Moment(trail[-1], before)
    time = recorded.step_time_of(config)
    return _made(own, forecast, low, largest, config.env.dt, model.latent, moment, trail, time)


def gathered(model: SequenceVAE, params: PyTree, known: Known, data: Data) -> jax.Array:
    """Information `[p, p]` about the field that all episodes together hold."""

    def of_episode(total: jax.Array, episode: tuple) -> tuple[jax.Array, None]:
        y, u, observed, valid = episode
        before = jnp.concatenate([jnp.zeros((1, u.shape[1])), u[:-1]])
        window = Window(y, before, valid, None if data.is_complete else observed)
        return total + latent_information.gathered(model, params, known, window), None

    valid = np.arange(data.y.shape[1]) < data.lengths[:, None]
    design = latent_information.design(model, params, known, jnp.zeros(model.latent))
    nothing = jnp.zeros((design.shape[-1], design.shape[-1]))
    seen = tuple(map(jnp.asarray, (data.y, data.u, data.observed, valid)))
    return jax.jit(lambda seen: jax.lax.scan(of_episode, nothing, seen)[0])(seen)


def of_experiment(run: Run, s: int, p: int, f: int) -> Fitted:
    """The learner of seed `s`, policy `p` and field `f`, and where its experiment ended."""
    config, learner, env = run.config, make_learner(run.config), make_env(run.config)
    group = next(g for g in experiments.groups(policies_of(config)) if config.policies[p] in g[0])
    place = group.policies.index(config.policies[p])
    agent = jax.tree.map(lambda x: x[place, f], run.agents[s][group.policies[0]])
    bound = np.broadcast_to(np.asarray(learner.world(agent).action_bound), (env.num_inputs,))
    latent = config.learner == "sequence_vae"
    dims = config.model.grid.dims if latent else config.env.dimension
    samples, now, trail = samples_of(run), None, np.zeros((0, dims))
    if samples is not None:
        taken = scores.samples_taken(run.directory, config)
        count = None if taken is None else taken[s, p, f]
        trail, u = (samples[name][s, p, f, :count] for name in ("belief", "u"))
        now = Moment(trail[-1], u[-2] if len(u) > 1 else 0 * u[-1])
    forecast = partial(learner.forecast, agent)
    return _made(learner.own(agent), forecast, -bound, bound, agent.known.dt, dims, now, trail)


def _made(
    own: Own,
    forecast: Callable,
    low: np.ndarray,
    high: np.ndarray,
    dt: Any,
    dims: int,
    now: Moment | None,
    trail: np.ndarray,
    time: StepTime | None = None,
) -> Fitted:
    """With functions of NumPy arrays, in which NaN is a missing observation."""
    filtered, ahead = jax.jit(own.beliefs), jax.jit(forecast, static_argnums=2)

    @jax.jit
    def predict(z: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
        states = stimulation.path(own.planning, z, u)
        return states, jax.vmap(own.emission_mean)(states)

    def seen(y: Any, u: Any) -> tuple[jax.Array, jax.Array, jax.Array | None]:
        y, u = np.asarray(y, np.float32), np.asarray(u, np.float32)
        if y.ndim != 2 or u.ndim != 2 or len(y) != len(u) or not np.isfinite(u).all():
            raise ValueError(
                f"y and u have shapes {y.shape} and {u.shape}; expected [T, n] and finite [T, m]"
            )
        observed = ~np.isnan(y)
        known = None if observed.all() else jnp.asarray(observed)
        return jnp.asarray(np.where(observed, y, 0)), jnp.asarray(u), known

    def forecast_of(y: Any, u: Any, steps: int) -> jax.Array:
        y, u, observed = seen(y, u)
        return ahead(y, u, steps, observed)

    of_one = lambda z: jnp.sqrt(own.planning.predictive_variance(z))
    deviation = jax.jit(jnp.vectorize(of_one, signature="(d)->()"))
    velocity = jax.jit(own.velocity)
    single = lambda *x: tuple(jnp.asarray(part, jnp.float32) for part in x)
    return Fitted(
        filter=in_float32(lambda y, u: filtered(*seen(y, u))),
        forecast=in_float32(forecast_of),
        predict=in_float32(lambda z, u: predict(*single(z, u))),
        velocity=in_float32(lambda z: velocity(*single(z))),
        deviation=in_float32(lambda z: deviation(*single(z))),
        planning=own.planning,
        low=np.asarray(low, np.float32),
        high=np.asarray(high, np.float32),
        dt=float(dt),
        dims=dims,
        now=now,
        trail=trail,
        time=time or StepTime(float(dt), ""),
    )
