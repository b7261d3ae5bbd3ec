"""Forecasts that any model must beat: persistence, ARX and a linear-Gaussian state-space model.

Fitted to the same training data as the model, the newest of them if there are many, and scored on
the same held-out data. Channels and inputs are taken less their means and over their standard
deviations in the training data, which changes no R².
Axes: E episodes, T steps, n channels, m inputs, p steps of the past, K steps ahead.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics import latent_scores, linear_gaussian
from jaxrl.dynamics.linear_gaussian import Episodes, Params
from jaxrl.numerics.linalg import matmul
from train.host.errors import UsageError, in_one_line
from train.vector_field.data import episodes
from train.vector_field.data.recordings import Data

ORDERS = (1, 2, 4, 8)
"""p that are tried."""
MOST_REGRESSORS = 500
MOST_STEPS = 20_000
"""Newest steps of the training data that are fitted: more takes long and changes little."""
ROUNDS, TOLERANCE = 60, 1e-5
"""Of the fit of the linear-Gaussian model: forecasts are as good long before its parameters."""
RIDGE = 1e-9
"""Of ARX, relative to the mean square of a regressor."""
CHANCE = 3
"""Standard errors within which the mean of an input may be 0: then nothing is subtracted."""
NAMES = {"persistence": "persistence", "arx": "ARX", "linear_gaussian": "linear-Gaussian"}
_log = logging.getLogger(__name__)


def r2(training: Data, held_out: Data, dims: int, ahead: int) -> dict[str, Any]:
    """R² `[K + 1]` of each baseline of `NAMES`, and `arx_order`, p.

    The linear-Gaussian model has `dims` latent dimensions, at most one per channel. At step 0, of
    which persistence and ARX know the observation itself, they have NaN.
    """
    training = newest(training, MOST_STEPS)
    training, held_out = standardise(training, training), standardise(held_out, training)
    weights, order = fit_arx(training)
    params = fit_linear_gaussian(training, min(dims, training.y.shape[-1]))
    expected = {
        "persistence": persistence(held_out, ahead),
        "arx": arx(weights, order, held_out, ahead),
        "linear_gaussian": linear(params, held_out, ahead),
    }
    return {name: forecast_r2(name, held_out, x) for name, x in expected.items()} | {
        "arx_order": order
    }


@contextmanager
def warn_of_failure() -> Iterator[None]:
    """Turns an error within into a line: what was learned needs nothing to be compared with."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {in_one_line(error)[:200]}"
        _log.warning("simple models cannot be fitted (%s): the score stands alone", reason)


def newest(data: Data, most: int) -> Data:
    """The last episodes with no more than `most` steps together; or so many of the last one."""
    is_within = np.cumsum(data.lengths[::-1])[::-1] <= most
    if is_within.any():
        return data.episodes(slice(int(np.argmax(is_within)), None))
    end = int(data.lengths[-1])
    return data.cut(slice(-1, None), slice(end - most, end), np.array([most]))


def forecast_r2(name: str, data: Data, expected: Any) -> np.ndarray:
    """R² `[K + 1]` of the forecasts `[E, T, K + 1, n]` of a baseline."""
    r2_by_step = np.array(
        _r2(
            data,
            np.asarray(expected, np.float32),
            episodes.scored_mask(data, expected.shape[2] - 1),
        )
    )
    if name != "linear_gaussian":  # which alone has to find the present, too
        r2_by_step[0] = np.nan
    return r2_by_step


_r2 = jax.jit(episodes.r2)


class Scales(NamedTuple):
    """Means and standard deviations of the channels and inputs of data."""

    mean: np.ndarray  # [n]
    deviation: np.ndarray  # [n], 1 where a channel is constant
    effect: np.ndarray  # [m] deviation of the inputs, 1 where one is constant
    input_mean: np.ndarray | float = 0.0  # [m] of the inputs, 0 where it is that but for chance


def scales(data: Data) -> Scales:
    """Means and deviations of what was observed, and of the inputs outside padding."""
    count = np.maximum(data.observed.sum((0, 1)), 1)
    mean = data.y.sum((0, 1), dtype=float) / count
    square = np.where(data.observed, (data.y - mean) ** 2, 0).sum((0, 1)) / count
    valid = np.arange(data.u.shape[1]) < data.lengths[:, None]
    inputs = data.u[valid]
    unit = lambda x: np.where(x > 0, x, 1)
    effect = unit(inputs.std(0, dtype=float))
    return Scales(mean, unit(np.sqrt(square)), effect, mean_beyond_chance(inputs))


def mean_beyond_chance(u: np.ndarray) -> np.ndarray:
    """The mean `[m]` of inputs `[N, m]`; 0 where it is within `CHANCE` standard errors of that.

    Steps over which an input is held are one draw. The linear-Gaussian model has no constant
    beside its inputs: it would learn their mean by that of its states, in hundreds of rounds.
    """
    mean, draws = u.mean(0, dtype=float), 1 + np.sum(u[1:] != u[:-1], axis=0)
    error = u.std(0, dtype=float) / np.sqrt(draws)
    return np.where(np.abs(mean) > CHANCE * error, mean, 0)


def standardise(data: Data, reference: Data) -> Data:
    """`data`, less the mean and over the deviation of each channel and input of `reference`."""
    mean, deviation, effect, input_mean = scales(reference)
    y = np.where(data.observed, (data.y - mean) / deviation, 0)
    u = (data.u - input_mean) / effect
    return data._replace(y=y.astype(np.float32), u=u.astype(np.float32))


def last_observations(data: Data) -> np.ndarray:
    """`[E, T, n]`: the last observation of each channel; 0, its mean, before there is any."""
    place = np.where(data.observed, np.arange(data.y.shape[1])[None, :, None], -1)
    latest_step = np.maximum.accumulate(place, axis=1)
    latest = np.take_along_axis(data.y, np.maximum(latest_step, 0), axis=1)
    return np.where(latest_step >= 0, latest, 0).astype(float)


def persistence(data: Data, ahead: int) -> np.ndarray:
    """`[E, T, K + 1, n]`: nothing changes."""
    return np.repeat(last_observations(data)[:, :, None], ahead + 1, axis=2)


def fit_arx(data: Data) -> tuple[np.ndarray, int]:
    """`(weights [p (n + m) + 1, n], p)` of y_t on the p observations and inputs before it.

    Least squares. p is the one of `ORDERS` with the smallest mean square error one step ahead in
    the last fifth of the data, when fitted to the others; above 1 only where the regressors are at
    most `MOST_REGRESSORS`, and a fifth of the steps. What is missing is no target; as a
    regressor it is the last observation.
    """
    channels, inputs = data.y.shape[-1], data.u.shape[-1]
    steps = int(data.lengths.sum())
    most = min(MOST_REGRESSORS, steps // 5)
    allowed = [p for p in ORDERS if p == 1 or p * (channels + inputs) + 1 <= most]
    errors = []
    for p in allowed if len(allowed) > 1 else ():
        x, y, observed = regression(data, p)
        cut = len(x) - len(x) // 5
        weights = least_squares(x[:cut], y[:cut], observed[:cut])
        residuals = np.where(observed[cut:], y[cut:] - x[cut:] @ weights, 0)
        errors.append(np.sum(residuals**2) / max(np.sum(observed[cut:]), 1))
    order = allowed[int(np.argmin(errors))] if errors else 1
    return least_squares(*regression(data, order)), order


def regression(data: Data, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All regressors `[N, p (n + m) + 1]`, targets `[N, n]`, and whether they were observed.

    An episode of p steps or fewer has none.
    """
    latest, x, y, observed = last_observations(data), [], [], []
    for e, length in enumerate(data.lengths):
        rows = max(length - order, 0)
        places = [slice(order - i, order - i + rows) for i in range(1, order + 1)]
        past = [z[e, place] for place in places for z in (latest, data.u)]
        x.append(np.concatenate([*past, np.ones((rows, 1))], axis=1))
        y.append(data.y[e, order:length])
        observed.append(data.observed[e, order:length])
    return np.concatenate(x), np.concatenate(y).astype(float), np.concatenate(observed)


def least_squares(x: np.ndarray, y: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Weights `[q, n]` of y `[N, n]` on x `[N, q]`, of each channel where it was observed."""

    def solve(gram: np.ndarray, right: np.ndarray) -> np.ndarray:
        ridge = RIDGE * max(np.trace(gram) / len(gram), 1e-12)
        return np.linalg.solve(gram + ridge * np.eye(len(gram)), right)

    full_gram, right = x.T @ x, x.T @ np.where(observed, y, 0)
    if observed.all():
        return solve(full_gram, right)
    columns = []
    for i, mask in enumerate(observed.T):
        rows = x[mask] if 2 * mask.sum() < len(mask) else x[~mask]  # the fewer
        gram = rows.T @ rows if 2 * mask.sum() < len(mask) else full_gram - rows.T @ rows
        columns.append(solve(gram, right[:, i]))
    return np.stack(columns, axis=1)


def arx(weights: np.ndarray, order: int, data: Data, ahead: int) -> np.ndarray:
    """Forecasts `[E, T, K + 1, n]`: one step after the other, from what was forecast before."""
    latest, inputs = last_observations(data), data.u.astype(float)
    count, steps = latest.shape[:2]
    later = np.pad(inputs, ((0, 0), (0, ahead), (0, 0)))
    past = lambda x, i: np.pad(x, ((0, 0), (i, 0), (0, 0)), mode="edge")[:, :steps]
    recent = [past(latest, i) for i in range(order)]  # the newest first
    pushes = [past(inputs, i) for i in range(order)]
    path = [recent[0]]
    for k in range(1, ahead + 1):
        pairs = [part for both in zip(recent, pushes, strict=True) for part in both]
        prediction = np.concatenate([*pairs, np.ones((count, steps, 1))], axis=-1) @ weights
        path.append(prediction)
        recent = [prediction, *recent[:-1]]
        pushes = [later[:, k : k + steps], *pushes[:-1]]
    return np.stack(path, axis=2)


def fit_linear_gaussian(data: Data, dims: int) -> Params:
    """Fits a linear-Gaussian model by expectation maximisation, from principal components."""
    return fit_episodes(as_episodes(data), dims)


@partial(jax.jit, static_argnames="dims")
def fit_episodes(data: Episodes, dims: int) -> Params:
    """Fits a linear-Gaussian model to arrays on the device."""
    start = linear_gaussian.first_guess(data, dims)
    return linear_gaussian.fit(start, data, ROUNDS, TOLERANCE)[0]


def as_episodes(data: Data) -> Episodes:
    """The same data, on the device."""
    valid = np.arange(data.y.shape[1]) < data.lengths[:, None]
    return Episodes(*map(jnp.asarray, (data.y, data.u, data.observed, valid)))


@partial(jax.jit, static_argnames="ahead")
def linear(params: Params, data: Data, ahead: int) -> jax.Array:
    """Forecasts `[E, T, K + 1, n]` of the linear-Gaussian model."""
    move = lambda z, u: matmul(params.transition, z) + matmul(params.effect, u)
    emission = lambda z: matmul(z, params.matrix.T) + params.offset[None]

    def forecast_episode(y: jax.Array, u: jax.Array, observed: jax.Array) -> jax.Array:
        _, belief, _ = linear_gaussian.filter_states(params, y, u, observed)
        return latent_scores.forecasts(move, emission, belief.mean, u, ahead)

    return jax.vmap(forecast_episode)(*map(jnp.asarray, data[:3]))
