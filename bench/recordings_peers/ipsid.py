"""IPSID (Vahidi, Sani & Shanechi 2024, PNAS): subspace identification with inputs, package PSID.

Used without behaviour (n1 = 0): all states are those that the recording itself needs. A linear
model of a nonlinear system may need more of them, so that their number is chosen, with the horizon
and whether counts are square roots, by forecasts of the last fifth of the training data.
"""

# pyright: reportMissingImports=false

import contextlib
import io
import warnings
from typing import Any, NamedTuple

import numpy as np
import PSID

from bench.recordings_peers.linear_forecasts import Filtered, LinearModel, gaussians
from bench.recordings_peers.problem import AHEAD, Fitted, Problem, choose
from bench.recordings_peers.scaling import Scaled, forecasts, pieces, scale
from train.vector_field.data.recordings import Data
from train.vector_field.recorded.prediction_scores import Forecaster, Forecasts, Starts

HORIZONS = (5, 10, 15)
MORE_DIMS = (1, 2, 4)
"""Latent dimensions that are tried, times those of the truth."""


class Settings(NamedTuple):
    dims: int
    horizon: int
    roots: bool


def fit(problem: Problem) -> Fitted:
    """Chooses settings and fits with them."""
    choices = {
        "roots": (False, True) if problem.is_count.any() else (False,),
        "horizon": HORIZONS,
        "dims": [problem.dims * more for more in MORE_DIMS],
    }
    settings = choose(problem, Settings(2 * problem.dims, HORIZONS[0], False), choices, fit_with)
    return Fitted(fit_with(problem, settings), settings._asdict())


def fit_with(problem: Problem, settings: Settings) -> Forecaster:
    """The model with these settings."""
    scaled = scale(problem, settings.roots)
    y, u = pieces(scaled.training)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # of episodes that are short, and of unstable models
        system = PSID.IPSID(y, U=u, nx=settings.dims, n1=0, i=settings.horizon, WS={})
    return forecaster_of(system, scaled)


def forecaster_of(system: Any, scaled: Scaled) -> Forecaster:
    """Forecasts of what PSID identified; means of y and u are its own."""
    u_mean = np.ravel(system.UPrepModel.mean)
    model = LinearModel(
        system.A,
        system.B,
        -system.B @ u_mean,
        system.Q,
        system.C,
        system.D,
        np.ravel(system.YPrepModel.mean) - system.D @ u_mean,
        np.diag(system.R),
    )
    filtered = filter_states(system, scaled.held_out)

    def forecaster(starts: Starts) -> Forecasts:
        u = scaled.held_out.u
        mean, variance = gaussians(model, filtered, u, u, starts, AHEAD)
        return forecasts(mean, variance, starts, scaled)

    return forecaster


def filter_states(system: Any, data: Data) -> Filtered:
    """States by PSID's own Kalman filter, with the gain it comes to."""
    dims = len(system.A)
    mean = np.zeros((*data.y.shape[:2], dims))
    next_mean = np.zeros_like(mean)
    for e, (y, u) in enumerate(zip(*pieces(data), strict=True)):
        before, _, after = system.kalman(y, u)[:3]
        mean[e, : len(y)] = after
        next_mean[e, : len(y) - 1] = before[1:]  # no forecast starts at the last step
    covariance = system.Pp - system.Kf @ system.C @ system.Pp
    spread = lambda x: np.broadcast_to(x, (*mean.shape, dims))
    return Filtered(mean, spread(covariance), next_mean, spread(system.Pp))
