"""The parameters of the model from tables of tracks, by maximum likelihood with intervals.

Distances, concentrations and errors are fitted as logarithms, as they are positive; coefficients of
events as they are.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from envs.durotaxis.tracks import events, spawning
from envs.durotaxis.tracks.events import Events
from envs.durotaxis.tracks.simulation import Laws
from envs.durotaxis.tracks.spawning import ANGLE, Displacements
from jaxrl.numerics import max_likelihood
from jaxrl.numerics.max_likelihood import Bounds, Estimate
from train.durotaxis.tracks.tables import Table, pad_displacements, pad_events

LEAST_BIRTHS = 10
LARGEST_COEFFICIENT = 60.0
"""Log-odds beyond which nothing can be told from certainty."""
LEAST_FREEDOM = 10
"""Repeated coordinates of resting cells below which errors and scatter are not told apart."""


class Fit(NamedTuple):
    """The estimates of all three laws; a law without anything to fit is None."""

    law: str  # of spawning
    spawning: Estimate
    deaths: Estimate
    births: Estimate
    death_causes: tuple[str, ...]
    birth_causes: tuple[str, ...]
    has_scatter: bool

    @property
    def laws(self) -> Laws:
        """The fitted laws, NumPy scalars and arrays."""
        law = jax.tree.map(np.asarray, spawning.natural(self.spawning.theta))
        if self.law == "directed" and not self.has_scatter:
            law = law._replace(scatter=np.float32(0))
        return Laws(law, np.asarray(self.deaths.theta), np.asarray(self.births.theta))


@partial(jax.jit, static_argnames="law")
def _fit_spawning(law: str, data: Displacements, starts: Any, bounds: Bounds) -> Estimate:
    return max_likelihood.fit(spawning.TERMS[law], data, starts, bounds)


@jax.jit
def _fit_events(data: Events, starts: Any, bounds: Bounds) -> Estimate:
    return max_likelihood.fit(events.terms, data, starts, bounds)


def fit(
    table: Table, law: str, death_causes: tuple[str, ...], birth_causes: tuple[str, ...]
) -> Fit:
    """Fits all laws. Raises ValueError if there are too few births."""
    data = table.displacements
    if len(data.distance) < LEAST_BIRTHS:
        left_out = f" ({table.num_edge} near an edge left out)" * (table.num_edge > 0)
        raise ValueError(
            f"there are {len(data.distance)} births with a parent{left_out}; expected "
            f"{LEAST_BIRTHS} at least: where children land cannot be fitted"
        )
    return Fit(
        law,
        fit_spawning(data, law),
        fit_events(table.deaths, death_causes),
        fit_events(table.births, birth_causes),
        death_causes,
        birth_causes,
        has_scatter(data),
    )


def fit_spawning(data: Displacements, law: str) -> Estimate:
    """The estimate of a law of spawning, as `spawning.NAMES` has its parameters."""
    return jax.tree.map(
        np.asarray, _fit_spawning(law, pad_displacements(data), starts(data), bounds(data, law))
    )


def fit_events(data: Events, causes: tuple[str, ...]) -> Estimate:
    """The estimate of the coefficients `[K]` of a law that depends on `causes`, others 0."""
    free = np.array([name in ("constant", *causes) for name in events.NAMES])
    share = float(np.clip(data.happened.mean() if len(data.happened) else 0.5, 1e-3, 1 - 1e-3))
    start = np.where(np.array(events.NAMES) == "constant", events.logit(share), 0.0)
    limit = np.full(len(free), LARGEST_COEFFICIENT, np.float32)
    box = Bounds(-limit, limit, free)
    return jax.tree.map(
        np.asarray, _fit_events(pad_events(data), start[None].astype(np.float32), box)
    )


def has_scatter(data: Displacements) -> bool:
    """Whether errors of places can be told from the scatter of landing places."""
    return bool(data.freedom >= LEAST_FREEDOM)


def bounds(data: Displacements, law: str) -> Bounds:
    """Where parameters are sought: far beyond what the displacements can tell."""
    length = max(float(data.distance.max()), 1e-3)
    soft, stiff = float(data.stiffness.min()), float(data.stiffness.max())
    soft = max(soft, 1e-3 * stiff)
    limits = {
        "gamma": (1e-4 * length, 1e5 * length),
        "alpha": (1e-2 * soft, 1e2 * stiff),
        "noise": (1e-4 * length, 1e2 * length),
        "kappa": (1e-3, 1e7),
        "error": (1e-5 * length, 1e1 * length),
        "scatter": (1e-5 * length, 1e1 * length),
    }
    low, high = (
        [-2 * np.pi if name == "theta" else np.log(limits[name][i]) for name in spawning.NAMES]
        for i in (0, 1)
    )
    high[ANGLE] = 2 * np.pi
    parameters = spawning.PARAMETERS[law]
    if not has_scatter(data):
        parameters = [name for name in parameters if name != "scatter"]
    free = np.array([name in parameters for name in spawning.NAMES])
    return Bounds(np.float32(low), np.float32(high), free)


def starts(data: Displacements) -> np.ndarray:
    """Starts `[S, P]`: a Hill curve through the distances for each of several half points."""
    length, stiffness = data.distance.astype(float), data.stiffness.astype(float)
    direction = np.mean(np.exp(1j * data.angle))
    resultant = min(abs(direction), 0.999)
    kappa = max(resultant * (2 - resultant**2) / (1 - resultant**2), 0.05)
    error = np.sqrt(data.squares / data.freedom) if has_scatter(data) else 0.1 * length.std()
    scale = max(length.mean(), 1e-3)
    error = max(float(error), 1e-3 * scale)
    rows = []
    for alpha in np.geomspace(0.5 * max(stiffness.min(), 1e-3), 2 * stiffness.max(), 6):
        shape = 1 / (1 + (alpha / np.maximum(stiffness, 1e-6)) ** 2)
        design = np.stack([shape, np.ones_like(shape)], axis=1)
        gamma, noise = np.linalg.lstsq(design, length, rcond=None)[0]
        gamma, noise = max(gamma, 0.1 * scale), max(noise, 0.02 * scale)
        residual = max(float(np.std(length - gamma * shape - noise)), 1e-2 * scale)
        positive = np.log([gamma, alpha, noise, kappa, error, residual])
        rows.append(np.insert(positive, ANGLE, np.angle(direction)))
    return np.array(rows, np.float32)


def natural(name: str, value: float) -> float:
    """A fitted number, such as the end of an interval, as it is told: infinite ends are 0 or ∞."""
    return float(value) if name == "theta" else float(np.exp(np.float64(value)))


def correlation(estimate: Estimate, names: tuple[str, ...]) -> float:
    """The largest magnitude of a correlation among these parameters of spawning, by curvature."""
    chosen = [spawning.NAMES.index(name) for name in names]
    information = estimate.information.astype(float)
    covariance = np.linalg.pinv(information, hermitian=True)[np.ix_(chosen, chosen)]
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-30))
    off_diagonal = covariance / np.outer(scale, scale) - np.eye(len(chosen))
    return float(np.clip(np.abs(off_diagonal).max(), 0, 1))
