"""What a run has learned, for one's own data and experiments.

    from train.vector_field import fitted

    model = fitted.load("runs/...")
    states = model.filter(y, u).mean

Axes: T steps, n channels, m inputs, d latent dimensions, H steps ahead.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.networks import latent_filter, latent_information
from jaxrl.dynamics.networks.latent import SequenceVAE, Window
from jaxrl.dynamics.planning.stimulation import Known
from jaxrl.numerics.precision import in_float32
from jaxrl.types import PyTree
from train.host.errors import UsageError, in_one_line
from train.host.program import Run
from train.host.running import runs
from train.vector_field import fitted_dynamics
from train.vector_field.config import make_env, make_learner, make_model, policies_of
from train.vector_field.data import recordings
from train.vector_field.data.recordings import Data
from train.vector_field.experiment import experiments, scores
from train.vector_field.fitted_model import Fitted, Moment, make
from train.vector_field.learners import Own, of_vae
from train.vector_field.recorded import dynamics_fit, vae_fit
from train.vector_field.training import samples_of


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
    """The model that seed `s` of a run fitted to recorded data, and where these end."""
    config = run.config
    data = recordings.load(config.data, config.env.bin_width)
    learner = of_state_space if config.learner == "state_space" else of_sequence_vae
    own, forecast, dt = learner(run, s, data)
    y, u, observed = data.episode(-1)
    trail = np.asarray(jax.jit(own.beliefs)(y, u, None if data.is_complete else observed).mean)
    before = u[-2] if len(u) > 1 else np.zeros_like(u[0])
    moment, time = Moment(trail[-1], before), vae_fit.step_time_of(config)
    dims = trail.shape[1]
    return make(own, forecast, dims, *input_range(data), dt, moment, trail, time)


def input_range(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest inputs `[m]` that data suggest."""
    given = data.u[np.arange(data.u.shape[1]) < data.lengths[:, None]]
    largest = np.abs(given).max(0)
    low = np.where(given.min(0) >= 0, 0.0, -largest)  # such as light, which is never negative
    return low, largest


def of_state_space(run: Run, s: int, data: Data) -> tuple[Own, Callable, float]:
    """Functions of a state-space model, its forecast, and the time of a step: that of the data."""
    dt = vae_fit.step_time_of(run.config).length
    problem, params = dynamics_fit.problem_of(run.config, data), run.agents[s].params
    filtered = fitted_dynamics.filter_of(run.config, problem.model, params)
    forecast = partial(fitted_dynamics.forecast, problem.model, params, filtered)
    return fitted_dynamics.own(run.config, problem, params, dt), forecast, dt


def of_sequence_vae(run: Run, s: int, data: Data) -> tuple[Own, Callable, float]:
    """Functions of a sequence VAE, its forecast, and the time of a step, which is its own."""
    config = vae_fit.fitting(run.config, data)
    model, params, known = make_model(config), run.agents[s].params, vae_fit.known_of(config)
    training, _ = vae_fit.split(config, data)
    information = latent_information.after(
        *(model, params, known, gathered(model, params, known, training)),
        *(config.vae.prior_speed, config.vae.noise),
    )
    own = of_vae(model, params, known, config.vae, information)
    return own, partial(latent_filter.forecast, model, params, known), config.env.dt


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
    return make(learner.own(agent), forecast, dims, -bound, bound, agent.known.dt, now, trail)
