"""How often 95 % intervals of parameters hold the truth: recordings simulated, and fitted again.

python -m bench.durotaxis_tracks [CASE ...] [--repeats 100]

Every repeat is a colony of its own from the same laws, with errors of observation, and goes the way
of a file: places, tables, `train.durotaxis.tracks.fitting.fit`. A minute a case.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from bench.snake_speed import append, machine
from envs.durotaxis.tracks import events, spawning
from envs.durotaxis.tracks.simulation import Ground, Laws
from envs.durotaxis.tracks.spawning import Spawning
from train.durotaxis.tracks import fitting, recording, tables
from train.durotaxis.tracks.ground import law_ground

RESULTS = Path(__file__).parent / "results" / "durotaxis_tracks.json"
EVENTS = {"deaths": ("rear", "age", "crowding"), "births": ("stiffness", "crowding")}
"""What the laws of events depend on, as the command has it."""


class Case(NamedTuple):
    """What is simulated."""

    laws: Laws
    ground: Ground
    law: str = "directed"
    founders: int = recording.FOUNDERS
    frames: int = recording.FRAMES
    capacity: int = 1024


def coefficients(**causes: float) -> np.ndarray:
    """The coefficients of a law of events; causes that are not named have none."""
    return np.array([causes.get(name, 0.0) for name in events.NAMES], np.float32)


STRICT = coefficients(constant=-2.5, rear=12.0, crowding=1.5)
STEADY = coefficients(constant=events.logit(0.25))
CASES = {
    "example": Case(recording.TRUTH, law_ground(**recording.EXAMPLE_GROUND)),
    "exponential": Case(
        recording.TRUTH._replace(
            spawning=Spawning(8.0, 2.0, 0.3, theta=0.4, kappa=8.0, error=0.25, scatter=0.5)
        ),
        law_ground(True, 0.015, 0.5, 300, 200),
    ),
    "isotropic": Case(
        recording.TRUTH._replace(spawning=Spawning(5.0, 2.0, 0.5, error=0.4)),
        law_ground(False, 0.05, 0.2, 300, 200),
        law="isotropic",
        founders=24,
    ),
    "leftmost": Case(
        Laws(recording.TRUTH.spawning._replace(kappa=50.0), STRICT, STEADY),
        law_ground(False, 0.05, 0.5, 300, 200),
    ),
    "even ground": Case(recording.TRUTH, law_ground(False, 0.0005, 3.0, 300, 200)),
}


def repeat(case: Case, key: jax.Array, seed: int) -> dict[str, dict[str, float]]:
    """The truth, the estimate and the ends of the interval of every parameter, of one colony."""
    register = recording.simulate_founded(
        key, case.laws, case.ground, case.founders, case.frames, case.capacity, case.law
    )
    error = float(case.laws.spawning.error)
    tracks = recording.tracks_of(register, case.frames, error, np.random.default_rng(seed))
    table = tables.tabulate(tracks, case.ground)
    fit = fitting.fit(table, case.law, EVENTS["deaths"], EVENTS["births"])
    rows = {}
    for i, name in enumerate(spawning.NAMES):
        if name in spawning.PARAMETERS[case.law]:
            estimate = fit.spawning
            ends = (estimate.theta[i], estimate.low[i], estimate.high[i])
            numbers = [float(getattr(case.laws.spawning, name))]
            rows[name] = [*numbers, *(fitting.natural(name, x, case.law) for x in ends)]
    for kind, causes in EVENTS.items():
        estimate, truth = getattr(fit, kind), getattr(case.laws, kind)
        for i, name in enumerate(events.NAMES):
            if name in ("constant", *causes):
                ends = (estimate.theta[i], estimate.low[i], estimate.high[i])
                rows[f"{kind}: {name}"] = [float(truth[i]), *map(float, ends)]
    fields = ("truth", "estimate", "low", "high")
    return {name: dict(zip(fields, row, strict=True)) for name, row in rows.items()}


def summarise(repeats: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, Any]]:
    """How many intervals hold the truth, and how wide they are, by parameter."""
    summary = {}
    for name in repeats[0]:
        truth = repeats[0][name]["truth"]
        column = lambda field, name=name: np.array([x[name][field] for x in repeats])
        estimate, low, high = (column(field) for field in ("estimate", "low", "high"))
        is_open = ~np.isfinite(high) | ~np.isfinite(low) | (low == 0)
        summary[name] = {
            "truth": truth,
            "median": float(np.median(estimate)),
            "median_low": float(np.median(low)),
            "median_high": float(np.median(high)),
            "held": int(np.sum((low <= truth) & (truth <= high))),
            "open_ended": int(np.sum(is_open)),
        }
    return summary


def measure(name: str, repeats: int) -> dict[str, Any]:
    """Simulates and fits one case so many times."""
    started = time.perf_counter()
    keys = jax.random.split(jax.random.key(0), repeats)
    rows = [repeat(CASES[name], key, seed) for seed, key in enumerate(keys)]
    seconds = time.perf_counter() - started
    return {
        **machine(),
        "case": name,
        "repeats": repeats,
        "seed": 0,
        "seconds": seconds,
        "parameters": summarise(rows),
    }


def finite(value: Any) -> Any:
    """A record without infinity, which JSON does not have; text takes its place."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args(arguments)
    for name in options.cases or CASES:
        record = measure(name, options.repeats)
        append(options.out, finite(record))
        print(f"{name}: {record['seconds']:.0f} s")
        for parameter, row in record["parameters"].items():
            cells = f"{row['median']:.3g} ({row['median_low']:.3g} to {row['median_high']:.3g})"
            held = f"{row['held']} of {options.repeats}, {row['open_ended']} with an open end"
            print(f"  {parameter}: truth {row['truth']:.3g}, {cells}, held {held}", flush=True)


if __name__ == "__main__":
    main()
