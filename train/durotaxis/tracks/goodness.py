"""What fitted laws cannot explain: tests of tracks against them, each with a p-value.

A displacement is held against replicates of it, drawn from the fitted law at the same stiffness and
with the same errors: its rank among them is uniform if the law is right, whatever the parent. Axes:
B displacements, R replicates, C cells.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from envs.durotaxis import rules
from envs.durotaxis.tracks import events
from envs.durotaxis.tracks.simulation import Ground
from envs.durotaxis.tracks.spawning import Displacements, Spawning
from train.durotaxis.tracks.fitting import Fit, fit_events
from train.durotaxis.tracks.tables import Table
from train.durotaxis.tracks.tracks import Tracks

LEVEL = 0.05
"""Of all tests together: each is held against its share of it (Bonferroni)."""
REPLICATES, SHUFFLES = 400, 400
FEW = 8
"""Displacements and repeated places below which nothing is tested."""


class Test(NamedTuple):
    """One question to the data; a small p-value says that the law does not explain them."""

    name: str
    p: float
    failure: str  # what is wrong if it fails


def all_tests(
    tracks: Tracks, table: Table, fit: Fit, ground: Ground, rng: np.random.Generator
) -> list[Test]:
    """All tests that the data allow."""
    return [
        *rest_tests(tracks, rng),
        *displacement_tests(tracks, table, fit, ground, rng),
        *cause_tests(table, fit),
    ]


def failures(tests: list[Test]) -> list[Test]:
    """The tests that fail, all together at `LEVEL`."""
    return [test for test in tests if test.p < LEVEL / max(len(tests), 1)]


def fewest_colonies(num_tests: int) -> int:
    """How many colonies to rank a recorded one among so that a test of it, of so many, can fail.

    The smallest p among R colonies is 1 / (R + 1).
    """
    return math.ceil(num_tests / LEVEL)


def rest_tests(tracks: Tracks, rng: np.random.Generator) -> list[Test]:
    """Whether cells rest: their places in successive frames are as far apart as in any two."""
    places = np.stack([tracks.x, tracks.y], axis=1)
    same = tracks.cell[1:] == tracks.cell[:-1]
    if same.sum() < FEW:
        return []
    roughness = lambda p: float(np.sum(np.where(same[:, None], np.diff(p, axis=0), 0) ** 2))
    seen_roughness = roughness(places)
    shuffle = lambda: places[np.lexsort((rng.random(len(places)), tracks.cell))]
    smoother = sum(roughness(shuffle()) <= seen_roughness for _ in range(SHUFFLES))
    failure = (
        "cells move after their birth: their places in successive frames are alike, and in the "
        "model they rest"
    )
    return [Test("cells rest", (1 + smoother) / (1 + SHUFFLES), failure)]


def displacement_tests(
    tracks: Tracks, table: Table, fit: Fit, ground: Ground, rng: np.random.Generator
) -> list[Test]:
    """Whether distances and directions are those of the law, wherever and whenever."""
    data, child = table.displacements, table.child
    if len(child) < FEW:
        return []
    distance, angle = replicate(data, fit.laws.spawning, fit.law, rng)
    far = ranks(data.distance, distance)
    mean = fit.laws.spawning.theta if fit.law == "directed" else 0.0
    turn = lambda a: np.angle(np.exp(1j * (np.asarray(a, float) - mean)))
    aside = ranks(turn(data.angle), turn(angle))
    parent = tracks.parent[child]
    x, y = tracks.places
    place = np.asarray(ground.place(x[parent], y[parent]))
    born = tracks.first[child]
    uniform = lambda u: float(stats.kstest(u, "uniform").pvalue)

    def trend(u: np.ndarray, v: np.ndarray) -> float:
        result: Any = stats.spearmanr(u, v) if np.ptp(v) else None
        return 1.0 if result is None else float(result.pvalue)

    return [
        Test("distances", uniform(far), "distances are not distributed as the law has them"),
        Test("directions", uniform(aside), "directions are not distributed as the law has them"),
        Test(
            "distance and place",
            trend(far, place),
            "distances depend on the place beyond what stiffness explains",
        ),
        Test("distance and time", trend(far, born), "distances change with time"),
        Test(
            "distance and age",
            trend(far, born - tracks.first[parent]),
            "distances depend on the age of the parent",
        ),
        Test("direction and place", trend(aside, place), "directions change along the way"),
        Test("direction and time", trend(aside, born), "directions change with time"),
    ]


def replicate(
    data: Displacements, law: Spawning, spawning: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Distances and angles `[R, B]` of displacements drawn from the law, with errors."""
    shape = (REPLICATES, len(data.distance))
    error = float(law.error) * np.sqrt(data.variance)
    normals = rng.standard_normal((3, *shape))
    if spawning == "isotropic":
        hill = np.asarray(rules.hill_distance(data.stiffness, law.gamma, law.alpha, 0.0))
        reach = np.maximum(hill + float(law.noise) * normals[2], 0)
        x, y = np.sqrt((1 + 2 * reach) ** 2 + error**2) * normals[:2]
    else:
        radius = np.asarray(rules.hill_distance(data.stiffness, law.gamma, law.alpha, law.noise))
        kappa = float(law.kappa)
        turn = (
            rng.vonmises(0.0, kappa, shape)
            if kappa < 1e6
            else rng.standard_normal(shape) / np.sqrt(kappa)
        )
        spread = np.hypot(error, float(law.scatter))
        x = radius * np.cos(law.theta + turn) + spread * normals[0]
        y = radius * np.sin(law.theta + turn) + spread * normals[1]
    return np.hypot(x, y), np.arctan2(y, x)


def ranks(values: np.ndarray, replicates: np.ndarray) -> np.ndarray:
    """The share of `replicates` `[R, B]` below each of `values` `[B]`, within (0, 1)."""
    return (np.sum(replicates < values, axis=0) + 0.5) / (len(replicates) + 1)


def cause_tests(table: Table, fit: Fit) -> list[Test]:
    """Whether deaths and births depend on causes that their laws leave out: likelihood ratios."""
    tests = []
    for kind, data, causes, estimate in (
        ("deaths", table.deaths, fit.death_causes, fit.deaths),
        ("births", table.births, fit.birth_causes, fit.births),
    ):
        column = dict(zip(events.NAMES, data.covariates.T, strict=True))
        for cause in events.NAMES[1:]:
            if cause in causes or np.ptp(column[cause]) == 0:
                continue
            wider = fit_events(data, (*causes, cause))
            gain = 2 * float(wider.log_likelihood - estimate.log_likelihood)
            p = float(special.chdtrc(1, max(gain, 0.0)))
            failure = (
                f"{kind} depend on {cause}, too: add it with --{kind} {' '.join((*causes, cause))}"
            )
            tests.append(Test(f"{kind} and {cause}", p, failure))
    return tests
