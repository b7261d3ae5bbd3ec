"""Trials of state-space models: fitted to a part of the training data, they forecast the rest.

Letters: B starts of forecasts, K steps ahead, n channels.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.state_space.filter import Record
from jaxrl.dynamics.state_space.fitting import fit as fits
from jaxrl.dynamics.state_space.fitting.linear_fit import is_linear_gaussian
from jaxrl.dynamics.state_space.fitting.units import Units, scale_record, units_of, unscale_params
from jaxrl.dynamics.state_space.model import Params, StateSpace
from train.host.compilation import cpu_kernels, memory
from train.vector_field.config import Config, Dynamics
from train.vector_field.data import episodes
from train.vector_field.data.recordings import Data
from train.vector_field.experiment.held_out import AHEAD, SKIPPED
from train.vector_field.recorded import baselines
from train.vector_field.recorded.prediction_scores import Starts, rows_at_steps, starts_of
from train.vector_field.recorded.state_space import (
    beliefs_of,
    count_channels,
    first_guess,
    make_model,
    moments_of,
    record_of,
)

AT = (1, 3, 10, 30)
"""Steps ahead by which candidates are compared."""
INNER_SHARE = 0.2
MOST_STARTS = 1500
MOST_STEPS = 20_000
"""Newest steps of the training data that are used."""
PARTICLES = 40
STEPS, WINDOWS = 200, 32
"""Gradient steps of a trial, and windows in each: half of what the fit itself has by default."""
NEAR = 0.01
"""Factor of the learning rate where a fit begins at the largest likelihood, near which it stays, as
the linear-Gaussian model does."""


class Trial(NamedTuple):
    """One fit, and how well it forecasts."""

    dynamics: Dynamics  # without anything left open
    errors: np.ndarray  # [B] mean squares over channels and `AT`, in units of their variances

    @property
    def score(self) -> float:
        """The mean of R² at `AT`."""
        return float(1 - self.errors.mean())


class Problem(NamedTuple):
    """What candidates are fitted to and forecast."""

    dynamics: Dynamics
    is_count: np.ndarray  # bool [n]
    training: Data
    inner: Data
    starts: Starts
    record: Record  # of `training`, in `units`
    units: Units
    total_steps: int


def problem_of(config: Config, training: Data) -> Problem:
    """The inner parts of the training data."""
    newest = baselines.newest(training, MOST_STEPS)
    inner_training, inner = episodes.split(newest, INNER_SHARE, SKIPPED + AHEAD + 1)
    starts = starts_of(inner, AHEAD)
    is_count = count_channels(training, config.env.noise)
    record = record_of(inner_training)
    units = units_of(record, jnp.asarray(is_count), config.state_space.effect)
    chosen = np.linspace(0, len(starts.step) - 1, min(MOST_STARTS, len(starts.step))).astype(int)
    return Problem(
        config.state_space,
        is_count,
        inner_training,
        inner,
        Starts(*(x[chosen] for x in starts)),
        scale_record(record, units),
        units,
        config.run.total_steps,
    )


def run_parallel(work: Callable, items: Sequence) -> Iterable:
    """`work` of each item, on devices of their own if there are several."""
    devices = jax.local_devices()

    def on_device(place: int) -> Trial:
        with jax.default_device(devices[place % len(devices)]):
            trial = work(items[place])
        memory.return_free_memory()
        return trial

    with ThreadPoolExecutor(len(items)) as threads:
        return list(threads.map(on_device, range(len(items))))


def attempt(problem: Problem, dynamics: Dynamics) -> Trial:
    """Fits a candidate and forecasts the inner share."""
    model = make_model(dynamics, problem.is_count, problem.record.u.shape[-1])
    config = fit_config(model, dynamics, min(STEPS, dynamics.steps))
    config = config.replace(windows=min(WINDOWS, config.windows))  # pyright: ignore
    params = first_guess(model, problem.record, jax.random.key(0))
    fit = advance(config, model, fits.init(config, params), problem.record, jax.random.key(1))
    params = unscale_params(fit.params, problem.units)
    return Trial(dynamics, errors(problem, dynamics, model, params))


def fit_config(model: StateSpace, dynamics: Dynamics, steps: int) -> fits.Config:
    """The settings of a fit of so many steps, numbers of which may be traced."""
    fit = dynamics.fit
    objective = fit.objective.replace(prior=jnp.asarray(dynamics.prior))  # pyright: ignore
    rate = fit.learning_rate * (NEAR if is_linear_gaussian(model) else 1.0)
    return fit.replace(  # pyright: ignore
        objective=objective, steps=jnp.asarray(steps), learning_rate=rate
    )


def advance(
    config: fits.Config, model: StateSpace, fit: fits.Fit, record: Record, key: jax.Array
) -> fits.Fit:
    """All gradient steps of a fit."""
    options = cpu_kernels.small_products()
    return run_once(all_steps, config, model, fit, record, key, compiler_options=options)


def run_once(function: Callable, *arguments: Any, **options: Any) -> Any:
    """Compiles a function, calls it and forgets what was compiled, hundreds of megabytes.

    `jit` keeps that for as long as there is the function: here it is a new one each time.
    """
    return jax.jit(lambda *x: function(*x), **options)(*arguments)


def all_steps(
    config: fits.Config, model: StateSpace, fit: fits.Fit, record: Record, key: jax.Array
) -> fits.Fit:
    """The same, not compiled."""

    def step(i: jax.Array, fit: fits.Fit) -> fits.Fit:
        return fits.gradient_step(config, model, fit, record, jax.random.fold_in(key, i))[0]

    return jax.lax.fori_loop(0, config.steps, step, fit)


def errors(problem: Problem, dynamics: Dynamics, model: StateSpace, params: Params) -> np.ndarray:
    """Mean squares `[B]` of what forecasts of the inner share miss, in units of its variance."""
    inner, starts = problem.inner, problem.starts
    prediction = dynamics.fit.objective.prediction
    filter_inner = partial(beliefs_of, prediction=prediction)
    beliefs = run_once(filter_inner, model, params, record_of(inner))
    start_beliefs = jax.tree.map(lambda x: x[starts.episode, starts.step], beliefs)
    later_inputs = rows_at_steps(
        np.pad(inner.u, ((0, 0), (0, AHEAD), (0, 0))), starts, tuple(range(AHEAD))
    )
    forecast = partial(moments_of, count=PARTICLES, key=jax.random.key(2))
    expected = run_once(forecast, model, params, start_beliefs, later_inputs).mean
    y, observed = (rows_at_steps(x, starts, AT) for x in (inner.y, inner.observed))
    return relative_errors(y, observed, np.asarray(expected)[:, list(AT)])


def relative_errors(y: np.ndarray, observed: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Mean squares `[B]` of y `[B, A, n]` less what was expected, where it was observed.

    In units of the variance over all B, of what varies; infinite where a forecast is not finite.
    """
    y = y.astype(float)  # a float32 sum of large numbers is off by more than their spread
    count = np.maximum(observed.sum(0), 1)
    mean = np.where(observed, y, 0).sum(0) / count
    variance = np.where(observed, (y - mean) ** 2, 0).sum(0) / count
    varies = observed & (variance > 0)
    squared_errors = np.where(varies, (y - expected) ** 2, 0)
    relative = squared_errors / np.where(variance > 0, variance, 1)
    return np.nan_to_num(
        relative.sum((1, 2)) / np.maximum(varies.sum((1, 2)), 1), nan=np.inf, posinf=np.inf
    )
