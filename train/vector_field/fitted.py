"""What a run has learned, for one's own data and experiments.

    from train.vector_field import fitted

    model = fitted.load("runs/...")
    states = model.filter(y, u).mean

Axes: T steps, n channels, m inputs, d latent dimensions, H steps ahead.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.networks import latent_filter, latent_information
from jaxrl.dynamics.networks.latent import SequenceVAE, Window
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.dynamics.state_space.field_posterior import FieldPosterior
from jaxrl.dynamics.state_space.fitting.sessions import session_model, session_params
from jaxrl.numerics.precision import in_float32
from jaxrl.types import PyTree
from train.host.errors import UsageError, in_one_line
from train.host.program import Run
from train.host.running import saved_runs
from train.vector_field.config import Config
from train.vector_field.data.input_delays import delays_of
from train.vector_field.data.reading import read_data, step_time_of
from train.vector_field.data.recordings import Data
from train.vector_field.data.sessions import parts_of
from train.vector_field.experiment import run_record
from train.vector_field.experiment.policy_groups import select_experiment
from train.vector_field.factories import (
    learns_observation,
    make_env,
    make_learner,
    make_model,
    policies_of,
)
from train.vector_field.fitted_models import fit_functions
from train.vector_field.fitted_models.fitted_model import FittedModel, Moment, make
from train.vector_field.learners.learner import LatentModel
from train.vector_field.learners.sequence_vae import vae_model
from train.vector_field.recorded import dynamics_problem, session_fits, vae_fit
from train.vector_field.stream import learned_model, settings
from train.vector_field.training import samples_of


@in_float32
def load(
    run: str | Path,
    seed: int | None = None,
    policy: str = "",
    field: str = "",
    session: str = "",
) -> FittedModel:
    """The model of a run of `train.vector_field`: a fit to data, or a learner of an experiment.

    Args:
      run: its directory, or that of a stream.
      seed: of the run's seeds; None: the first.
      policy, field: of an experiment; empty: the first.
      session: of data of several, the name of its file, whose channels the model has; empty: the
        first.

    Raises UsageError, in one line, for what the run does not have.
    """
    if settings.is_stream(run):
        if seed is not None or policy or field or session:
            raise UsageError(
                f"{run} is a stream, which has no seed, policy, field or session to choose"
            )
        return learned_model.load(run)
    loaded_run = saved_runs.load(run)
    if loaded_run.program.address != "vector_field":
        raise UsageError(f"{run} is a run of {loaded_run.program.address}, not of vector_field")
    seeds, config = list(loaded_run.seeds), loaded_run.config
    s = _index_of("seed", seeds[0] if seed is None else seed, seeds)
    if config.data:
        if policy or field:
            raise UsageError(f"{run} fits recorded data, which have no policy or field")
        try:
            return data_model(loaded_run, s, session)
        except ValueError as error:  # the files are gone, or others
            raise UsageError(f"the data of {run}: {in_one_line(error)}") from error
    if session:
        raise UsageError(f"{run} makes experiments, which have no session")
    p = _index_of("policy", policy or config.policies[0], config.policies)
    f = _index_of("field", field or config.env.fields[0], config.env.fields)
    return experiment_model(loaded_run, s, p, f)


def _index_of(what: str, choice: Any, choices: Any) -> int:
    if choice not in choices:
        raise UsageError(f"the run has no {what} {choice}; it has {', '.join(map(str, choices))}")
    return list(choices).index(choice)


def data_model(run: Run, s: int, session: str = "") -> FittedModel:
    """The model that seed `s` of a run fitted to recorded data, and where these end.

    Of several sessions it is the model of one of them.
    """
    config, data = run.config, read_data(run.config)
    names = data.sessions.names if data.sessions else ()
    if session and not names:
        raise UsageError("the data have no sessions: leave the session out")
    place = _index_of("session", session or names[0], names) if names else 0
    if config.learner == "state_space":
        latent_model, forecast, dt = state_space_model(run, s, data, place)
    else:
        latent_model, forecast, dt = sequence_vae_model(run, s, data)
    data = parts_of(data)[place]
    y, u, observed = data.episode(-1)
    trail = np.asarray(
        jax.jit(latent_model.beliefs)(y, u, None if data.is_complete else observed).mean
    )
    delay = config.state_space.delay if config.learner == "state_space" else ()
    delays = delays_of(delay, u.shape[-1])
    moment, time = moment_of(config, place, latent_model, trail[-1], delays), step_time_of(config)
    dims = trail.shape[1]
    return make(latent_model, forecast, dims, *input_range(data), dt, moment, trail, time, delays)


def moment_of(
    config: Config,
    session: int,
    latent_model: LatentModel,
    z: np.ndarray,
    delays: tuple[int, ...],
) -> Moment | None:
    """From where the next input acts: the last state, moved on by the inputs that are on their way.

    None where inputs act after different numbers of steps.
    """
    if len({*delays}) > 1:
        return None
    at_once = replace(config, state_space=replace(config.state_space, delay=()))
    _, u, _ = parts_of(read_data(at_once))[session].episode(-1)
    before, pending = u[-2] if len(u) > 1 else np.zeros_like(u[0]), max(delays, default=0)
    under_way = np.concatenate([np.repeat(u[:1], pending, axis=0), u])[len(u) - 1 :][:pending]
    for row in under_way:
        z = np.asarray(latent_model.step(jnp.asarray(z), jnp.asarray(row)))
    return Moment(z, before)


def input_range(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest inputs `[m]` that data suggest."""
    inputs = data.u[np.arange(data.u.shape[1]) < data.lengths[:, None]]
    largest = np.abs(inputs).max(0)
    low = np.where(inputs.min(0) >= 0, 0.0, -largest)  # such as light, which is never negative
    return low, largest


def state_space_model(
    run: Run, s: int, data: Data, session: int
) -> tuple[LatentModel, Callable, float]:
    """Functions of a state-space model of one session's channels, its forecast, and the time of a
    step: that of the data."""
    dt = step_time_of(run.config).length
    problem, params = dynamics_problem.problem_of(run.config, data), run.agents[s].params
    channels = session_fits.channels_of(data, session)
    model, own = session_model(problem.model, channels), session_params(params, channels)
    run_filter = fit_functions.filter_of(run.config, model, own)
    forecast = partial(fit_functions.forecast, model, own, run_filter)

    # How uncertain the field is comes from all sessions.
    def posterior() -> FieldPosterior:
        whole = fit_functions.posterior_of(run.config, problem, params)
        return whole._replace(params=session_params(whole.params, channels))

    return fit_functions.latent_model(run.config, model, own, posterior, dt), forecast, dt


def sequence_vae_model(run: Run, s: int, data: Data) -> tuple[LatentModel, Callable, float]:
    """Functions of a sequence VAE, its forecast, and the time of a step, which is its own."""
    config = vae_fit.match_data_sizes(run.config, data)
    model, params, constants = (
        make_model(config),
        run.agents[s].params,
        vae_fit.constants_of(config),
    )
    training, _ = vae_fit.split(config, data)
    information = latent_information.to_posterior(
        *(model, params, constants, gather_information(model, params, constants, training)),
        *(config.vae.prior_speed, config.vae.noise),
    )
    latent_model = vae_model(model, params, constants, config.vae, information)
    return latent_model, partial(latent_filter.forecast, model, params, constants), config.env.dt


def gather_information(
    model: SequenceVAE, params: PyTree, constants: Constants, data: Data
) -> jax.Array:
    """Information `[p, p]` about the field that all episodes together hold."""

    def add_episode(total: jax.Array, episode: tuple) -> tuple[jax.Array, None]:
        y, u, observed, valid = episode
        before = jnp.concatenate([jnp.zeros((1, u.shape[1])), u[:-1]])
        window = Window(y, before, valid, None if data.is_complete else observed)
        return total + latent_information.gather(model, params, constants, window), None

    valid = np.arange(data.y.shape[1]) < data.lengths[:, None]
    design = latent_information.design(model, params, constants, jnp.zeros(model.latent))
    no_information = jnp.zeros((design.shape[-1], design.shape[-1]))
    episodes = tuple(map(jnp.asarray, (data.y, data.u, data.observed, valid)))
    return jax.jit(lambda episodes: jax.lax.scan(add_episode, no_information, episodes)[0])(
        episodes
    )


def experiment_model(run: Run, s: int, p: int, f: int) -> FittedModel:
    """The learner of seed `s`, policy `p` and field `f`, and where its experiment ended."""
    config, learner, env = run.config, make_learner(run.config), make_env(run.config)
    agent = select_experiment(policies_of(config), run.agents[s], config.policies[p], f)
    bound = np.broadcast_to(np.asarray(learner.world(agent).action_bound), (env.num_inputs,))
    latent = config.learner == "sequence_vae"
    dims = config.model.grid.dims if latent else config.env.dimension
    samples, now, trail = samples_of(run), None, np.zeros((0, dims))
    latent_model = learner.latent_model(agent)
    if samples is not None:
        sample_counts = run_record.samples_taken(run.directory, config)
        count = None if sample_counts is None else sample_counts[s, p, f]
        samples = {name: x[s, p, f, :count] for name, x in samples.items()}
        trail, u = trail_of(config, latent_model, samples), samples["u"]
        now = Moment(trail[-1], u[-2] if len(u) > 1 else 0 * u[-1])
    forecast = partial(learner.forecast, agent)
    return make(latent_model, forecast, dims, -bound, bound, agent.known.dt, now, trail)


def trail_of(
    config: Config, latent_model: LatentModel, samples: dict[str, np.ndarray]
) -> np.ndarray:
    """The states `[T, d]` that an experiment went through, in the coordinates of the model.

    A learner of how the state is observed has had others with every fit, in which it kept where it
    took the state to be then: `samples` `[T, ...]` are filtered anew.
    """
    if not learns_observation(config):
        return samples["belief"]
    return np.asarray(jax.jit(latent_model.beliefs)(samples["y"], samples["u"], None).mean)
