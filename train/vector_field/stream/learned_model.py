"""What a closed loop has learned, as a model for one's own data: see `train.vector_field.fitted`.

Letters: T samples, n channels, m inputs, d dimensions of the state.
"""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl import checkpoint
from jaxrl.checkpoint import CheckpointError
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.learners import state_space_acting
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.state_space.online import choice
from train.host.errors import UsageError
from train.host.files.run_directory import RunDirectory
from train.vector_field.data.step_time import StepTime
from train.vector_field.fitted_models.fitted_model import Allowance, FittedModel, Moment, make
from train.vector_field.learners.learner import make_latent_model
from train.vector_field.learners.state_space import own_variance
from train.vector_field.stream import settings
from train.vector_field.stream.guard import RigLimits
from train.vector_field.stream.journal import Journal
from train.vector_field.stream.learning.learner import first_state

TRAIL = 5_000
"""Newest samples that are filtered, to find where the state is."""


def load(directory: str | Path) -> FittedModel:
    """The model at the newest checkpoint of a stream, and where its samples end.

    Raises UsageError where there is no stream, or no checkpoint yet.
    """
    options, path = settings.read(directory), Path(directory)
    problem, limits = settings.problem(options), settings.rig_limits(options)
    template = first_state(problem, options)
    try:
        state, _, _ = checkpoint.restore(RunDirectory(path).checkpoints, template)
    except CheckpointError as error:
        raise UsageError(f"{directory} has no model yet: {error}") from error
    models, prediction, learned = problem.models, problem.config.prediction, state.params.choice
    unit, dt = jnp.asarray(problem.unit, jnp.float32), options.step_time

    def beliefs(y: jax.Array, u: jax.Array, observed: jax.Array | None) -> Belief:
        return choice.beliefs(models, prediction, learned, y, u / unit[None], observed)

    def forecast(y: jax.Array, u: jax.Array, steps: int, observed: jax.Array | None) -> jax.Array:
        return choice.forecast(models, prediction, learned, y, u / unit[None], steps, observed)

    latent_model = make_latent_model(
        beliefs,
        lambda z: choice.displace(models, learned, z) / dt,
        partial(choice.emission_mean, models, learned),
        in_user_units(state_space_acting.predictive_model(models, state.params), unit, dt),
        lambda z: own_variance(models, learned, z) / dt**2,
    )
    journal = Journal(path, options.channels, options.inputs)
    y, u = journal.rows(max(0, journal.count - TRAIL), journal.count)
    observed = np.isfinite(y)
    trail = jax.jit(beliefs)(np.where(observed, y, 0), u.astype(np.float32), observed).mean
    now = Moment(np.asarray(trail[-1]), u[-2] if len(u) > 1 else 0 * u[-1])
    low, high = np.array(limits.low), np.array(limits.high)
    time = StepTime() if dt == 1 else StepTime(dt, "")
    whole = make(latent_model, forecast, options.dims, low, high, dt, now, np.asarray(trail), time)
    return whole._replace(allowance=allowance(limits, journal))


def allowance(limits: RigLimits, journal: Journal) -> Allowance:
    """What the rig allows from its newest sample on, whose own input is not given yet."""
    end, window = max(0, journal.count - 1), limits.window
    inputs = journal.rows(max(0, end - window + 1), end).u
    spent = np.abs(inputs).sum(1) * limits.dt
    return Allowance(
        np.array(limits.rate), limits.charge, np.pad(spent, (window - 1 - len(spent), 0))
    )


def in_user_units(model: PredictiveModel, unit: jax.Array, dt: float) -> PredictiveModel:
    """The model of a learner for inputs in units of the user, and velocities per unit of time."""
    input_design = model.input_design
    assert input_design is not None
    return model._replace(
        step=lambda z, u: model.step(z, u / unit),
        input_design=lambda z, u: input_design(z, u / unit),
        predictive_variance=lambda z: model.predictive_variance(z) / dt**2,
    )
