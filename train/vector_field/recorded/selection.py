"""What a file does not say of a state-space model: dimensions, kind of field, prior, steps.

Chosen by forecasts of an inner share of the training data, which never sees the held-out data. Of
several that are as good within the error of their difference, the simplest one counts.

Letters: B starts of forecasts, K steps ahead, n channels.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from jaxrl.dynamics.state_space.filter import Record
from jaxrl.dynamics.state_space.fitting import fit as fits
from jaxrl.dynamics.state_space.fitting.linear_fit import is_linear_gaussian
from jaxrl.dynamics.state_space.fitting.units import Units, scale_record, units_of, unscale_params
from jaxrl.dynamics.state_space.model import Params, StateSpace
from train.host.compilation import compiled, memory
from train.vector_field.config import Config, Dynamics
from train.vector_field.data import episodes
from train.vector_field.data.recordings import Data
from train.vector_field.experiment.scores import AHEAD, SKIPPED
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

DIMENSIONS = (1, 2, 3, 4, 5)
AT = (1, 3, 10, 30)
"""Steps ahead by which candidates are compared."""
INNER_SHARE = 0.2
MOST_STARTS = 1500
MOST_STEPS = 20_000
"""Newest steps of the training data that are used."""
PARTICLES = 40
STEPS, WINDOWS = 200, 32
"""Gradient steps of a trial, and windows in each: half of what the fit itself has by default."""
SHORT = 0.35
"""Gradient steps of the candidate that stops early, as a share of those of others, `STEPS`."""
GRIDS_UP_TO = (1, 2, 3)
"""Dimensions in which a grid is tried: in more a network is cheaper."""
LITTLE = 0.01
"""Loss of R² that a simpler candidate may have, as a share of the R² of the best one."""
BLOCKS = 20
"""Stretches of time over which a difference of scores is compared with its error."""
NEAR = 0.01
"""Factor of the learning rate where a fit begins at the largest likelihood, near which it stays, as
the linear-Gaussian model does."""
USUAL_PRIOR, NARROW_PRIOR = 0.3, 0.1


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


def is_open(config: Config) -> bool:
    """Whether a configuration of data leaves something to be chosen by them."""
    dynamics = config.state_space
    chosen = dynamics.dims and dynamics.prior and dynamics.steps and dynamics.field != "auto"
    return bool(config.data) and config.learner == "state_space" and not chosen


def choose(config: Config, training: Data, say: Callable[[str], None]) -> tuple[Dynamics, Table]:
    """What the data say of all that `config.state_space` leaves open, and the trials as a table.

    `say` is told what is tried. Raises ValueError for data of which no inner share can be scored.
    """
    problem = problem_of(config, training)
    trials: list[Trial] = []

    def run(candidates: Sequence[Dynamics]) -> list[Trial]:
        names = " and ".join(f"{x.field} of {x.dims}" for x in candidates)
        say(f"trying {names} dimensions")
        trials.extend(run_parallel(lambda x: attempt(problem, x), candidates))
        return trials[-len(candidates) :]

    best_size = choose_dims(problem, run)
    kind = choose_kind(problem, best_size, run)
    if kind.dynamics.field != best_size.dynamics.field:
        kind = choose_fewer_dims(problem, kind, run)
    best = choose_strength(problem, kind, run)
    return best, table(trials, best)


def problem_of(config: Config, training: Data) -> Problem:
    """The inner parts of the training data."""
    newest = baselines.newest(training, MOST_STEPS)
    inner_training, inner = episodes.split(newest, INNER_SHARE, SKIPPED + AHEAD + 1)
    starts = starts_of(inner, AHEAD)
    is_count = count_channels(training, config.env.noise)
    record = record_of(inner_training)
    units = units_of(record, jnp.asarray(is_count))
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


def choose_dims(problem: Problem, run: Callable[[Sequence[Dynamics]], list[Trial]]) -> Trial:
    """The trial of the fewest dimensions that forecast as well as any; two that do worse end it."""
    request, most = problem.dynamics, len(problem.is_count)
    sizes = [request.dims] if request.dims else [d for d in DIMENSIONS if d <= most]
    trials: list[Trial] = []
    for pair in pairs(sizes):
        newest = run([fill_defaults(request, d) for d in pair])
        worse = trials and simplest([*trials, *newest]) in trials
        trials += newest
        if worse and len(trials) > 2:
            break
    return simplest(trials)


def choose_kind(
    problem: Problem,
    usual: Trial,
    run: Callable[[Sequence[Dynamics]], list[Trial]],
) -> Trial:
    """The trial of the kind of field that forecasts best; a linear one if it is as good."""
    if problem.dynamics.field != "auto":
        return usual
    kinds = ["linear", "polynomial", "mlp"] + ["rbf"] * (usual.dynamics.dims in GRIDS_UP_TO)
    others = [replace(usual.dynamics, field=x) for x in kinds if x != usual.dynamics.field]
    kind_trials = [usual, *(trial for pair in pairs(others) for trial in run(pair))]
    linear = next(x for x in kind_trials if x.dynamics.field == "linear")
    best = max(kind_trials, key=lambda x: x.score)
    return simplest([linear, best])


def choose_fewer_dims(
    problem: Problem, usual: Trial, run: Callable[[Sequence[Dynamics]], list[Trial]]
) -> Trial:
    """The same kind of field with as few dimensions as forecast as well: another kind was tried
    when their number was chosen."""
    fewest = usual
    for dims in reversed(range(1, 1 if problem.dynamics.dims else usual.dynamics.dims)):
        (fewer,) = run([replace(usual.dynamics, dims=dims)])
        if simplest([fewer, usual]) is not fewer:
            break
        fewest = fewer
    return fewest


def choose_strength(
    problem: Problem, usual: Trial, run: Callable[[Sequence[Dynamics]], list[Trial]]
) -> Dynamics:
    """Its prior and its steps: narrower and fewer where more overfits."""
    request, total = problem.dynamics, problem.total_steps
    if request.prior and request.steps:
        return usual.dynamics
    early = replace(
        usual.dynamics,
        prior=request.prior or NARROW_PRIOR,
        steps=request.steps or max(1, round(SHORT * STEPS)),
    )
    (trial,) = run([early])
    chosen = trial if trial.score > usual.score else usual
    steps = request.steps or max(1, round(total * chosen.dynamics.steps / STEPS))
    return replace(chosen.dynamics, steps=steps)


def fill_defaults(dynamics: Dynamics, dims: int) -> Dynamics:
    """The candidate of so many dimensions, with usual values for what is open."""
    usual = "rbf" if dims in GRIDS_UP_TO else "mlp"
    return replace(
        dynamics,
        dims=dims,
        field=usual if dynamics.field == "auto" else dynamics.field,
        prior=dynamics.prior or USUAL_PRIOR,
        steps=dynamics.steps or STEPS,
    )


def pairs(items: Sequence) -> Iterator[Sequence]:
    """Two at a time, as many as are tried side by side."""
    return (items[i : i + 2] for i in range(0, len(items), 2))


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
    options = compiled.small_products()
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
    return np.nan_to_num(relative.sum((1, 2)) / np.maximum(varies.sum((1, 2)), 1), nan=np.inf)


def simplest(trials: Sequence[Trial]) -> Trial:
    """The first that is as good as the best one within the error of their difference."""
    best = min(trials, key=lambda x: x.errors.mean())
    return next(x for x in trials if is_as_good(x.errors, best.errors))


def is_as_good(errors: np.ndarray, best_errors: np.ndarray) -> bool:
    """Whether the mean difference is at most one standard error, by means of stretches of time.

    Or at most `LITTLE` of what the best one explains.
    """
    if np.array_equal(errors, best_errors):
        return True
    difference = errors - best_errors
    if not np.isfinite(difference).all():
        return False
    means = np.array([x.mean() for x in np.array_split(difference, BLOCKS) if len(x)])
    error = means.std(ddof=1) / np.sqrt(len(means))
    return bool(means.mean() <= max(error, LITTLE * (1 - best_errors.mean())))


def table(trials: Sequence[Trial], best: Dynamics) -> Table:
    """A row for each trial."""
    steps_text = ", ".join(f"+{k}" for k in AT)
    result = Table(
        title="what forecasts of an inner share of the training data say",
        caption=f"mean R² at {steps_text}; taken: {best.field} of {best.dims} dimensions",
    )
    for heading in ("field", "dimensions", "prior", "gradient steps", "R²"):
        result.add_column(heading, justify="left" if heading == "field" else "right")
    for x in trials:
        numbers = (str(x.dynamics.dims), f"{x.dynamics.prior:g}", str(x.dynamics.steps))
        result.add_row(x.dynamics.field, *numbers, f"{x.score:.4f}")
    return result
