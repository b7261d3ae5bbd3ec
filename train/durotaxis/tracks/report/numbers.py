"""The numbers of a fit in units, with their 95 % intervals."""

import math
from typing import NamedTuple

import numpy as np

from envs.durotaxis.tracks import events, spawning
from envs.durotaxis.tracks.spawning import Displacements
from envs.durotaxis.units import Units
from jaxrl.numerics.max_likelihood import DROP, Estimate
from train.durotaxis.tracks import fitting
from train.durotaxis.tracks.fitting import Fit

LENGTHS = ("gamma", "noise", "error", "scatter")
MEANINGS = {
    "gamma": "distance of children on very stiff ground",
    "alpha": "stiffness at which that is half",
    "noise": "added to the distance",
    "theta": "mean direction, from x towards y",
    "kappa": "concentration around it",
    "error": "standard deviation of a place as observed",
    "scatter": "that of where children land about the law",
}
ISOTROPIC = {
    "gamma": "reach R on very stiff ground; children lie within 1 px + 2 R, one deviation",
    "noise": "deviation of R",
}
"""What else numbers mean in that law, which has no distance: see `spawning.isotropic_terms`."""


class Number(NamedTuple):
    """An estimate with its 95 % interval, whose ends may be infinite; in `unit`."""

    value: float
    low: float
    high: float
    unit: str
    meaning: str


def spawning_numbers(fit: Fit, units: Units) -> dict[str, Number]:
    """The numbers of the law of spawning, as it has them, in units."""
    numbers, factors = {}, unit_factors(units)
    unit_names = {"alpha": units.stiffness_name, "theta": "°"}
    for i, name in enumerate(spawning.NAMES):
        if name not in spawning.PARAMETERS[fit.law] or (name == "scatter" and not fit.has_scatter):
            continue
        estimate = fit.spawning
        ends = (estimate.theta[i], estimate.low[i], estimate.high[i])
        value, low, high = (factors[name] * fitting.natural(name, x, fit.law) for x in ends)
        unit = units.length_name if name in LENGTHS else unit_names.get(name, "")
        meanings = MEANINGS | ISOTROPIC if fit.law == "isotropic" else MEANINGS
        numbers[name] = Number(value, low, high, unit, meanings[name])
    return numbers


def unit_factors(units: Units) -> dict[str, float]:
    """By what the numbers of a law of spawning are multiplied to be told in units."""
    own = dict.fromkeys(LENGTHS, units.length)
    own |= {"alpha": units.stiffness, "theta": 180 / math.pi, "kappa": 1.0}
    return own


def event_numbers(estimate: Estimate, causes: tuple[str, ...], units: Units) -> dict[str, Number]:
    """The coefficients of a law of events, log-odds; the constant is of a stiffness in units."""
    rows = zip(events.NAMES, estimate.theta, estimate.low, estimate.high, strict=True)
    meanings = events.meanings(f"{units.stiffness:g} {units.stiffness_name}".strip())
    return {
        name: Number(float(value), float(low), float(high), "", meanings[name])
        for name, value, low, high in rows
        if name in ("constant", *causes)
    }


def hill_band(
    fit: Fit, data: Displacements, stiffness: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hill distances `[G]` at stiffness `[G]`: fitted, least and largest.

    These are the ends over all parameters on the profiles that the data do not reject, or by the
    curvature where that is wider: along a profile of another number a distance hardly changes. The
    noise of the isotropic law is a deviation, and no part of a distance.
    """
    profile = fit.spawning.profile
    inside = profile.drop <= DROP
    paths = profile.theta[inside]  # [N, P]
    gamma, alpha, noise = (
        np.array([fitting.natural(name, x, fit.law) for x in column])[:, None]
        for name, column in zip(
            spawning.NAMES, np.vstack([fit.spawning.theta, paths]).T[:3], strict=False
        )
    )
    noise = noise * (fit.law == "directed")
    share = 1 / (1 + (alpha / np.maximum(stiffness, 1e-6)) ** 2)
    curves = gamma * share + noise
    by_gamma, by_alpha = gamma[0] * share[0], -2 * gamma[0] * share[0] * (1 - share[0])
    reach = np.sqrt(2 * DROP) * fitting.curve_errors(fit, data, by_gamma, by_alpha)
    low, high = (curves[0] - reach).clip(0), curves[0] + reach
    return curves[0], np.minimum(curves.min(0), low), np.maximum(curves.max(0), high)
