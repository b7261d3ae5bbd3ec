"""Episodes of recorded data: which are held out, windows to learn from, and R² of forecasts.

Axes: E episodes, T steps of the longest, n channels, m inputs, B windows of W steps, K steps ahead.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.latent_scores import k_step_r2
from jaxrl.dynamics.networks.latent import Window
from train.host.numbers import quantity
from train.vector_field.data.data_checks import spans
from train.vector_field.data.recordings import Data
from train.vector_field.experiment.held_out import SKIPPED

Forecast = Callable[[jax.Array, jax.Array, jax.Array | None], jax.Array]
"""`(y [T, n], u [T, m], observed [T, n] or None) -> [T, K + 1, n]`: after each step, the expected
observations now and up to K steps ahead; None: nothing is missing."""


def split(data: Data, share: float, least: int, advice: str = "") -> tuple[Data, Data]:
    """Training data and held-out data: the last episodes, or the end of the only episode.

    `advice` is what else than the share may help where they are too short.
    Raises ValueError unless both have an episode of at least `least` steps, and y changes in both.
    """
    episodes = len(data.lengths)
    if not 0 < share < 1:
        raise ValueError(f"validation_share is {share}; expected a share between 0 and 1")
    if episodes > 1:
        first = episodes - max(1, round(share * episodes))
        parts = data.episodes(slice(first)), data.episodes(slice(first, None))
    else:
        first = int(data.lengths[0]) - round(share * int(data.lengths[0]))
        cut = lambda steps, length: data.cut(slice(None), steps, np.array([length]))
        held_out_steps = int(data.lengths[0]) - first
        parts = cut(slice(first), first), cut(slice(first, first + held_out_steps), held_out_steps)
    for name, part in zip(("training", "held-out"), parts, strict=True):
        longest = int(part.lengths.max(initial=0))
        if longest < least:
            raise ValueError(
                f"only {quantity(longest, 'steps')} in a row in the {name} data, "
                f"{len(part.lengths)} of {quantity(episodes, 'episodes')}; expected at least "
                f"{least}: record longer, or choose {advice}another --validation-share"
            )
        if not part.observed.any():
            raise ValueError(f"y has no values in the {name} data, all are NaN")
        if not _changes(part.y, part.observed).any():
            raise ValueError(
                f"y is constant in every channel of the {name} data: choose another "
                "--validation-share, or leave out episodes in which nothing happens"
            )
    return parts


def _changes(y: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Which channels of y `[..., n]` have two values where they were observed, bool `[n]`."""
    values = np.where(observed, y, np.nan).reshape(-1, y.shape[-1])
    return spans(values) > 0 if len(values) else np.zeros(y.shape[-1], bool)


def refuse_unscored(held_out: Data, ahead: int) -> None:
    """Raises ValueError if R² of forecasts up to `ahead` steps is undefined for some step."""
    if not scored_mask(held_out, ahead).any((0, 1, 3)).all():
        raise ValueError(
            f"y has no values in the held-out data that differ, after the first {SKIPPED} "
            "steps of its episodes: forecasts cannot be scored; choose another "
            "--validation-share, or leave out episodes in which nothing happens"
        )


def sample(data: Data, length: int, count: int, key: jax.Array) -> Window:
    """`count` windows of `length` steps, drawn uniformly from all there are: `[B, W]`.

    An episode that is shorter is one window, with padding. Consumes `key`.
    """
    steps = data.y.shape[1]
    starts = np.maximum(data.lengths - length + 1, 1)  # of each episode
    ends = np.cumsum(starts)
    positions = jax.random.randint(key, (count, 1), 0, int(ends[-1]))
    episode = jnp.searchsorted(jnp.asarray(ends), positions, side="right")
    start = positions - jnp.asarray(ends - starts)[episode]
    place = start + jnp.arange(length)[None]
    valid = place < jnp.asarray(data.lengths)[episode]
    place = jnp.minimum(place, steps - 1)
    y, u = jnp.asarray(data.y), jnp.asarray(data.u)
    before = jnp.where((place > 0)[..., None], u[episode, jnp.maximum(place - 1, 0)], 0.0)
    observed = None if data.is_complete else jnp.asarray(data.observed)[episode, place]
    return Window(y[episode, place], before, valid, observed)


def forecasts(data: Data, forecast: Forecast) -> jax.Array:
    """`[E, T, K + 1, n]`, those of each episode; in padding they mean nothing."""
    y, u = jnp.asarray(data.y), jnp.asarray(data.u)
    if data.is_complete:
        return jax.vmap(lambda y, u: forecast(y, u, None))(y, u)
    return jax.vmap(forecast)(y, u, jnp.asarray(data.observed))


def r2(data: Data, expected: jax.Array, is_scored: Any = None) -> jax.Array:
    """R² `[K + 1]` of forecasts `[E, T, K + 1, n]` of data, all episodes together.

    Every k uses the same forecasts: those with K steps after them in their episode, without the
    first `SKIPPED`. What is missing is not scored, and no channel where it is constant.
    `is_scored` is what `scored_mask` says, for data that are traced.
    """
    forecast_steps = _forecast_steps(data, expected.shape[2] - 1)
    is_scored = scored_mask(data, expected.shape[2] - 1) if is_scored is None else is_scored
    flat = lambda x: jnp.asarray(x).reshape(-1, *x.shape[2:])
    return k_step_r2(
        flat(expected[:, forecast_steps[:, 0]]), flat(data.y[:, forecast_steps]), flat(is_scored)
    )


def scored_mask(data: Data, ahead: int) -> np.ndarray:
    """Which forecasts up to K = `ahead` steps are scored, bool `[E, N, K + 1, n]`, N begin them."""
    forecast_steps = _forecast_steps(data, ahead)
    within = np.all(forecast_steps[None] < data.lengths[:, None, None], axis=-1)
    is_scored = data.observed[:, forecast_steps] & within[:, :, None, None]
    for k, steps in enumerate(forecast_steps.T):
        is_scored[:, :, k] &= _changes(data.y[:, steps], is_scored[:, :, k])
    return is_scored


def _forecast_steps(data: Data, ahead: int) -> np.ndarray:
    """The steps `[N, K + 1]` that forecasts are of: the one they are made at, and those after."""
    begin = np.arange(SKIPPED, data.y.shape[1] - ahead)
    return begin[:, None] + np.arange(ahead + 1)[None]
