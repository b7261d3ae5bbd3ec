"""After how many steps inputs act: the delay by which the training data are likeliest.

For each input in turn, models that differ in its delay alone are fitted side by side: they have as
many parameters, so that their likelihoods can be compared. Letters: D delays, E episodes, T steps,
m inputs.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from jaxrl.dynamics.state_space.filter import Record, filter_states
from jaxrl.dynamics.state_space.fitting import fit as fits
from jaxrl.dynamics.state_space.fitting.units import scale_record, units_of
from jaxrl.dynamics.state_space.model import StateSpace
from train.host.compilation import cpu_kernels
from train.vector_field.config import Config
from train.vector_field.data.input_delays import delay_rows
from train.vector_field.data.recordings import Data
from train.vector_field.recorded import baselines
from train.vector_field.recorded.choices import trials
from train.vector_field.recorded.choices.selection import fill_defaults
from train.vector_field.recorded.state_space import (
    count_channels,
    first_guess,
    make_model,
    record_of,
)

STEPS, MORE_STEPS = 120, 400
"""Gradient steps of each fit, and of those that decide between the delays that are likely then:
before a fit has learned how the state moves, an earlier input looks likelier."""
USUAL_DIMS = 2
SURE = 5.0
"""Log-likelihood, in nats of the whole training data, that a delay must have more than none to be
taken: a factor of 150."""


def is_open(config: Config) -> bool:
    """Whether delays are to be found."""
    dynamics = config.state_space
    is_fit = bool(config.data) and config.learner == "state_space"
    return is_fit and dynamics.most_delay > 0 and not dynamics.delay


def choose(
    config: Config, training: Data, say: Callable[[str], None]
) -> tuple[tuple[int, ...], Table]:
    """The delay of each input, up to `most_delay`, and what speaks for it.

    Inputs that never change have none.
    """
    inputs, most = training.u.shape[-1], config.state_space.most_delay
    delays, gains = [0] * inputs, np.full((most + 1, inputs), np.nan)
    is_inside = np.arange(training.u.shape[1]) < training.lengths[:, None]
    for k in np.flatnonzero(np.ptp(training.u[is_inside], axis=0) > 0):
        say(f"trying delays of input {k}")
        with_delay = lambda delay, k=k: (*delays[:k], delay, *delays[k + 1 :])
        candidates = [with_delay(delay) for delay in range(most + 1)]
        likelihoods = likelihoods_of(config, training, candidates, STEPS)
        gains[:, k] = (likelihoods - likelihoods[:1]).sum(1)
        left = still_likely(likelihoods.sum(1))
        if len(left) > 1:
            candidates = [*map(with_delay, left)]
            likelihoods = likelihoods_of(config, training, candidates, MORE_STEPS)
            delays[k] = left[likeliest(likelihoods)]
    return tuple(delays), table(gains, delays)


def likelihoods_of(
    config: Config, training: Data, candidates: list[tuple[int, ...]], steps: int
) -> np.ndarray:
    """Log-likelihoods `[D, T]` of all T steps, after so many gradient steps with each candidate."""
    newest = baselines.newest(training, trials.MOST_STEPS)
    is_count = count_channels(training, config.env.noise)
    record = record_of(newest)
    units = units_of(record, jnp.asarray(is_count), config.state_space.effect)
    record = scale_record(record, units)
    dims = config.state_space.dims or min(USUAL_DIMS, len(is_count))
    dynamics = fill_defaults(config.state_space, dims)
    model = make_model(dynamics, is_count, training.u.shape[-1])
    settings = trials.fit_config(model, dynamics, steps)
    settings = settings.replace(windows=min(trials.WINDOWS, settings.windows))  # pyright: ignore
    compute = jax.jit(
        jax.vmap(partial(_likelihood_after_fit, settings, model), (None, 0)),
        compiler_options=cpu_kernels.small_products(),
    )
    inputs = jnp.stack([jnp.asarray(delay_rows(np.asarray(record.u), x)) for x in candidates])
    return np.asarray(compute(record, inputs))[:, np.asarray(record.valid)]


def _likelihood_after_fit(
    config: fits.Config, model: StateSpace, record: Record, u: jax.Array
) -> jax.Array:
    """Log-likelihoods `[E, T]` of a record, in units, by a fit to it with the inputs u."""
    record = record._replace(u=u)
    params = first_guess(model, record, jax.random.key(0))
    fit = trials.all_steps(config, model, fits.init(config, params), record, jax.random.key(1))
    run = lambda record: filter_states(model, fit.params, record, config.objective.prediction)
    return jax.vmap(run)(record).log_likelihood


def still_likely(sums: np.ndarray) -> list[int]:
    """Which delays more steps decide between, from their log-likelihoods `[D]` after few of them.

    They are none, and the peaks with those beside them. An input that nearly repeats itself has
    several peaks: half a period off it fits with the other sign. Peaks less than half as far above
    the least likely delay as the best do not count. None alone where it makes no sure difference.
    """
    finite = sums[np.isfinite(sums)]
    if not finite.size or (len(finite) == len(sums) and np.ptp(sums) <= SURE):
        return [0]
    sums = np.nan_to_num(sums, nan=-np.inf)
    is_high = sums >= (finite.max() + finite.min()) / 2
    beside = np.pad(sums, 1, constant_values=-np.inf)
    peaks = np.flatnonzero(is_high & (sums >= beside[:-2]) & (sums >= beside[2:]))
    near = (peaks[:, None] + np.arange(-1, 2)).ravel()
    return sorted({0, *near[(near >= 0) & (near < len(sums))].tolist()})


def likeliest(likelihoods: np.ndarray) -> int:
    """The row of the largest sum over steps `[D, T]`; 0 unless another is surely likelier.

    Row 0 is that of no delay.
    """
    sums = np.nan_to_num(likelihoods.sum(1), nan=-np.inf)
    best = int(sums.argmax())
    return best if sums[best] > sums[0] + SURE else 0


def table(gains: np.ndarray, delays: list[int]) -> Table:
    """A row for each delay, a column for each input."""
    chosen = ", ".join(map(str, delays))
    result = Table(
        title="log-likelihood of the training data by the delay of inputs",
        caption=f"in nats, more than without a delay, after {STEPS} gradient steps; of the peaks "
        f"and what is beside them {MORE_STEPS} decide; taken: {chosen}",
    )
    result.add_column("steps", justify="right")
    for k in range(gains.shape[1]):
        result.add_column(f"input {k}", justify="right")
    for delay, row in enumerate(gains):
        result.add_row(str(delay), *("" if np.isnan(x) else f"{x:.1f}" for x in row))
    return result


def with_delays(config: Config, delays: tuple[int, ...]) -> Config:
    """The configuration in which inputs act after so many steps."""
    return replace(config, state_space=replace(config.state_space, delay=delays))
