"""The parameters of the model from tables of tracks, by maximum likelihood with intervals.

Distances, concentrations and errors are fitted as logarithms, as they are positive; coefficients of
events as they are.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from envs.durotaxis.substrate import LEAST_INTENSITY
from envs.durotaxis.tracks import events, spawning
from envs.durotaxis.tracks.events import Events
from envs.durotaxis.tracks.simulation import Laws
from envs.durotaxis.tracks.spawning import Displacements, Spawning
from jaxrl.numerics import max_likelihood
from jaxrl.numerics.max_likelihood import Bounds, Estimate
from train.durotaxis.tracks.tables import Table, pad_displacements, pad_events

LEAST_BIRTHS = 10
LARGEST_COEFFICIENT = 60.0
"""Log-odds beyond which nothing can be told from certainty."""
FARTHER = 30.0
"""Factor by which parameters are sought beyond what the data can tell."""
EVEN = 1.1
"""Stiffest over softest ground under parents, below which γ and α have no interval."""
LEAST_TOLD = 1e-5
"""Information on a direction of parameters, of 1 on one alone, from which on curvature tells it."""
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
        law = jax.tree.map(np.asarray, spawning.natural(self.spawning.theta, self.law))
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
    """Fits all laws. Raises ValueError for too few births, and for ground without stiffness."""
    data = table.displacements
    death_causes, birth_causes = (tuple(dict.fromkeys(x)) for x in (death_causes, birth_causes))
    if len(data.distance) < LEAST_BIRTHS:
        left_out = f" ({table.num_edge} near an edge left out)" * (table.num_edge > 0)
        raise ValueError(
            f"there are {len(data.distance)} births with a parent{left_out}; expected "
            f"{LEAST_BIRTHS} at least: where children land cannot be fitted"
        )
    if data.stiffness.max() <= LEAST_INTENSITY:
        raise ValueError(
            f"the stiffness of the ground is at most {data.stiffness.max():.3g} under the parents "
            "of all births; expected some above 0: check --slope and --base, or --field-file"
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
    """The estimate of a law of spawning, as `spawning.NAMES` has its parameters.

    Lengths are divided by the largest distance for the search, so that all numbers are of order 1.
    """
    unit, scaled = unit_of(data, law), data
    if law != "isotropic":
        scaled = data._replace(distance=data.distance / unit, squares=data.squares / unit**2)
    problem = pad_displacements(scaled), starts(scaled, law), bounds(scaled, law)
    estimate = jax.tree.map(np.asarray, _fit_spawning(law, *problem))
    return in_px(open_ends(scaled, estimate), unit, data, law)


def unit_of(data: Displacements, law: str) -> np.float32:
    """The length, px, in which a law is fitted; the isotropic one has a length of its own, 1 px."""
    return np.float32(1.0 if law == "isotropic" else max(float(data.distance.max()), 1e-3))


def in_px(estimate: Estimate, unit: np.float32, data: Displacements, law: str) -> Estimate:
    """An estimate of lengths in `unit` px, in px; `information` stays as it was."""
    factor, shift = np.ones(len(spawning.NAMES)), np.zeros(len(spawning.NAMES))
    for i, name in enumerate(spawning.NAMES):
        if name in ("gamma", "error"):
            shift[i] = np.log(unit)
        elif name in ("noise", "scatter"):
            factor[i] = unit**2 if name in spawning.SQUARED[law] else unit
    change = lambda values: (values * factor + shift).astype(np.float32)
    profile = estimate.profile
    value = (profile.value * factor[:, None] + shift[:, None]).astype(np.float32)
    lost = (2 * len(data.distance) + data.freedom) * np.log(unit)
    return estimate._replace(
        **{name: change(getattr(estimate, name)) for name in ("theta", "low", "high")},
        profile=profile._replace(value=value, theta=change(profile.theta)),
        log_likelihood=estimate.log_likelihood - lost,
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


def limits(data: Displacements, margin: float) -> dict[str, tuple[float, float]]:
    """The least and the largest value of positive parameters that displacements can tell.

    Beyond them a curve through the births is the same; with a `margin` farther, by its factor.
    """
    length = max(float(data.distance.max()), 1e-3)
    stiff = float(data.stiffness.max())
    soft = max(float(data.stiffness.min()), 1e-3 * stiff)
    ends = {
        "gamma": (1e-3 * length, 1e3 * length),
        "alpha": (3e-2 * soft, 30 * stiff),
        "kappa": (1e-2, 1e5),
        "error": (1e-4 * length, 10 * length),
    }
    return {name: (low / margin, high * margin) for name, (low, high) in ends.items()}


def bounds(data: Displacements, law: str) -> Bounds:
    """Where parameters are sought: farther than they can be told, so that bounds cut no ridge."""
    box = limits(data, FARTHER) | {"gamma": limits(data, FARTHER**2)["gamma"]}  # γ follows α²
    # Below that nothing depends on α any more, and no gradient leads back.
    box["alpha"] = (limits(data, 1.0)["alpha"][0], box["alpha"][1])
    most = 10 * float(data.distance.max())
    ends: dict[str, tuple[float, float]] = {
        **{name: (float(np.log(low)), float(np.log(high))) for name, (low, high) in box.items()},
        "theta": (-2 * np.pi, 2 * np.pi),
        **dict.fromkeys(("noise", "scatter"), (0.0, most)),
        **dict.fromkeys(spawning.SQUARED[law], (2 * spawning.SMALLEST_SQUARE, most**2)),
    }
    parameters = spawning.PARAMETERS[law]
    if not has_scatter(data):
        parameters = [name for name in parameters if name != "scatter"]
    free = np.array([name in parameters for name in spawning.NAMES])
    low, high = np.array([ends[name] for name in spawning.NAMES], np.float32).T
    return Bounds(low, high, free)


def open_ends(data: Displacements, estimate: Estimate) -> Estimate:
    """The estimate with no end of an interval where displacements cannot tell one."""
    low, high = estimate.low.copy(), estimate.high.copy()
    for name, ends in limits(data, 1.0).items():
        i = spawning.NAMES.index(name)
        least, most = np.log(ends)
        low[i] = -np.inf if low[i] < least else low[i]
        high[i] = np.inf if high[i] > most else high[i]
    if data.stiffness.max() < EVEN * data.stiffness.min():  # any curve goes through one point
        low[:2], high[:2] = -np.inf, np.inf
    i = spawning.NAMES.index("theta")
    if high[i] - low[i] >= 2 * np.pi:
        low[i], high[i] = -np.inf, np.inf
    return estimate._replace(low=low, high=high)


def starts(data: Displacements, law: str) -> np.ndarray:
    """Starts `[S, P]`: a Hill curve through the distances for each of several half points."""
    length, stiffness = data.distance.astype(float), data.stiffness.astype(float)
    if law == "isotropic":  # from distances of mean (1 + 2 R) √(π / 2) to R
        length = np.maximum((length / 1.2533 - 1) / 2, 0.05)
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
        number = Spawning(gamma, alpha, noise, np.angle(direction), kappa, error, residual)
        rows.append([internal(name, x, law) for name, x in number._asdict().items()])
    return np.array(rows, np.float32)


def internal(name: str, value: float, law: str) -> float:
    """A number of a law of spawning as it is fitted."""
    if name in spawning.SQUARED[law]:
        return value**2
    return float(np.log(value)) if name in spawning.POSITIVE else value


def natural(name: str, value: float, law: str) -> float:
    """A fitted number, such as the end of an interval, as it is told: open ends are 0 or ∞."""
    if name in spawning.POSITIVE:
        return float(np.exp(np.float64(value)))
    if name == "theta":
        return float(value)
    if name in spawning.SQUARED[law]:
        is_none = value <= 4 * spawning.SMALLEST_SQUARE
        return 0.0 if is_none else float(np.sqrt(value))
    return max(float(value), 0.0)


def correlation(estimate: Estimate, names: tuple[str, ...]) -> float:
    """The largest magnitude of a correlation among these parameters of spawning, by curvature."""
    chosen = [spawning.NAMES.index(name) for name in names]
    information = estimate.information.astype(float)
    covariance = np.linalg.pinv(information, hermitian=True)[np.ix_(chosen, chosen)]
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-30))
    off_diagonal = covariance / np.outer(scale, scale) - np.eye(len(chosen))
    return float(np.clip(np.abs(off_diagonal).max(), 0, 1))


def curve_errors(
    fit: Fit, data: Displacements, by_gamma: np.ndarray, by_alpha: np.ndarray
) -> np.ndarray:
    """Standard errors `[G]`, px, of Hill distances, by curvature.

    `by_gamma` and `by_alpha` `[G]` are their derivatives by the logarithms of both. What is hardly
    told counts as known: profiles go along it, and further than a curvature says.
    """
    information = fit.spawning.information.astype(float)
    scale = 1 / np.sqrt(np.maximum(np.diag(information), 1e-30))
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    slopes = np.zeros((len(by_gamma), len(scale)))
    by_noise = np.full(len(by_gamma), unit_of(data, fit.law) if fit.law == "directed" else 0.0)
    slopes[:, :3] = np.stack([by_gamma, by_alpha, by_noise], axis=1)
    along = (slopes * scale) @ vectors
    return np.sqrt((along**2 / values)[:, values > LEAST_TOLD].sum(1))
