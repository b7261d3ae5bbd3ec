"""How near models come to the truth on simulated recordings: R², coverage and log-likelihood.

python -m bench.recordings [--systems lorenz …] [--seeds 5] [--models true simple ipsid]

The systems are those of `tests.recordings`, which shares no code with the package. `true` is the
system itself with a particle filter: no model can foresee more. Every model is scored on the same
held-out fifth by `train.vector_field.recorded.prediction_scores`. A line is added as soon as a
model is scored; what the file already has is left out, of `true` with as many particles. A model
more is a function in `MODELS`; methods of other groups, whose packages are no requirement, stand in
`bench.recordings_peers.registry` and are fitted where they are asked for.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bench.recordings_peers.problem import AHEAD, SHARE, Problem
from bench.recordings_peers.registry import PEERS, fit_function
from bench.snake_speed import append, machine, version_of
from jaxrl.dynamics.state_space.model import Params
from tests.recordings import particle_filter
from tests.recordings.__main__ import write
from tests.recordings.simulation import Model
from tests.recordings.systems import SYSTEMS, record
from train.host.compilation import cpu_kernels
from train.vector_field.config import Config
from train.vector_field.data import episodes
from train.vector_field.data.files import loading
from train.vector_field.data.recordings import Data
from train.vector_field.presets import PRESETS
from train.vector_field.recorded import (
    baseline_forecasts,
    baselines,
    dynamics_fit,
    dynamics_problem,
    state_space,
)
from train.vector_field.recorded.prediction_scores import (
    Forecaster,
    Forecasts,
    Scores,
    Starts,
    interval_steps,
    rows_at,
    score,
    starts_of,
)

RESULTS = Path(__file__).parent / "results" / "recordings.json"
SHOWN = (0, 1, 10, 30)
"""Steps ahead whose R² is written."""
MOST_PATHS = 1_500_000
"""Starts times particles that move on from each, if they need not be fewer than `LEAST_PARTICLES`:
with M of them the mean is off by an Mth of the variance that is left."""
LEAST_PARTICLES = 300
TRUE = "true"


Fit = Callable[[Problem], dict[str, Forecaster]]
"""Fits one or several models, by name."""


def fit_simple(problem: Problem) -> dict[str, Forecaster]:
    """Persistence, ARX and the linear-Gaussian model."""
    training, held_out = problem.training, problem.held_out
    dims, is_count = problem.dims, problem.is_count
    return baseline_forecasts.forecasters(training, held_out, dims, is_count, AHEAD)[0]


def fit_state_space(problem: Problem) -> dict[str, Forecaster]:
    """What `python -m train.vector_field --data FILE` fits, all of it chosen by the data."""
    config = dynamics_fit.complete(replace(PRESETS["recordings"].config, data=(str(problem.file),)))
    model, params = dynamics_problem.problem_of(config).model, fit_params(config)
    prediction = dynamics_problem.prediction_of(config)
    return {
        "state_space": state_space.forecaster(model, params, problem.held_out, AHEAD, prediction)
    }


def fit_params(config: Config) -> Params:
    """The parameters that a run of this complete configuration ends with."""
    training = dynamics_fit.make_training(config)
    state = jax.jit(training.init)(jax.random.key(config.run.seed))
    update = jax.jit(training.update, compiler_options=cpu_kernels.small_products())
    for _ in range(-(-config.state_space.steps // training.steps_per_update)):
        state, _ = update(state)
    return state.agent.params


MODELS: dict[str, Fit] = {"simple": fit_simple, "state_space": fit_state_space}
"""Those that are fitted to the training data, beside `true`."""
NAMES = {"simple": tuple(baselines.NAMES)}
"""The rows that a fit writes, where they are not one of its own name."""


def fit_truth(model: Model, held_out: Data, particles: int) -> Forecaster:
    """The system itself as a model, with so many particles in its filter."""
    y = np.where(held_out.observed, held_out.y, np.nan)
    filtered = particle_filter.filter_episodes(model, y, held_out.u, particles=particles)
    count = len(starts_of(held_out, AHEAD).step)
    paths = int(np.clip(MOST_PATHS // count, min(LEAST_PARTICLES, particles), particles))

    def forecaster(starts: Starts) -> Forecasts:
        forecast = particle_filter.forecast(model, filtered, y, held_out.u, *starts, AHEAD, paths)
        log_likelihood = rows_at(filtered.log_predictive, starts, 1)
        return Forecasts(forecast.mean, forecast.below, forecast.at_most, log_likelihood)

    return forecaster


def measure(
    name: str, seed: int, models: list[str], small: bool, particles: int, folder: Path
) -> list[dict[str, Any]]:
    """Simulates a recording, fits these models and scores them; one row for each."""
    recording, file = record(name, seed, small), folder / f"{name}-{seed}.npz"
    write(recording, file)
    training, held_out = episodes.split(loading.load(str(file)), SHARE, AHEAD + 30)
    is_count, model = recording.is_count, recording.model
    problem = Problem(file, training, held_out, is_count, model.dims)
    rows = []
    for fit in models:
        started, details = time.perf_counter(), {}
        if fit == TRUE:
            of_each = {TRUE: fit_truth(model, held_out, particles)}
            details = {"particles": particles}
        elif fit in PEERS:
            fitted, package = fit_function(fit)(problem), PEERS[fit].package
            of_each = {fit: fitted.forecaster}
            details = {"package": f"{package} {version_of(package)}", "settings": fitted.settings}
        else:
            of_each = MODELS[fit](problem)
        seconds = time.perf_counter() - started  # of the fit alone, all of its models together
        for label, forecaster in of_each.items():
            scores = score(training, held_out, forecaster, is_count, AHEAD)
            labels = {"system": name, "seed": seed, "small": small, "model": label}
            rows.append({**labels, **details, **as_json(scores), "fit_seconds": seconds})
    return rows


def as_json(scores: Scores) -> dict[str, Any]:
    """Scores as JSON has them: null for NaN."""
    plain = lambda x: float(x) if np.isfinite(x) else None
    return {
        "r2": {str(k): plain(scores.r2[k]) for k in SHOWN},
        "coverage": {
            str(k): plain(x) for k, x in zip(interval_steps(AHEAD), scores.coverage, strict=True)
        },
        "gain": plain(scores.gain),
    }


def missing_models(
    name: str, seed: int, models: list[str], small: bool, particles: int, path: Path
) -> list[str]:
    """The models that the file does not have for this recording.

    A row of `true` that does not say of how many particles counts as one of so many.
    """
    records = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    key = (name, seed, small, particles)
    done = {
        x["model"]
        for x in records
        if (x["system"], x["seed"], x["small"], x.get("particles", particles)) == key
    }
    return [fit for fit in models if not set(NAMES.get(fit, (fit,))) <= done]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--seeds", type=int, default=5)
    fits = [TRUE, *MODELS]
    parser.add_argument("--models", nargs="+", default=fits, choices=[*fits, *PEERS])
    parser.add_argument("--small", action="store_true", help="recordings as in tests")
    parser.add_argument("--particles", type=int, default=particle_filter.PARTICLES)
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args(arguments)
    try:
        for peer in [x for x in options.models if x in PEERS]:
            fit_function(peer)  # before anything is fitted
    except ValueError as error:
        parser.error(str(error))
    for name in options.systems:
        for seed in range(options.seeds):
            which = name, seed, options.models, options.small, options.particles
            for fit in missing_models(*which, options.out):
                with tempfile.TemporaryDirectory() as folder:
                    rows = measure(
                        name, seed, [fit], options.small, options.particles, Path(folder)
                    )
                for row in rows:  # at once: the next model may take minutes
                    append(options.out, {**machine(), **row})
                    r2 = " ".join(f"{x:.3f}" if x is not None else "-" for x in row["r2"].values())
                    print(f"{name} {seed} {row['model']}: R² {r2}", flush=True)


if __name__ == "__main__":
    main()
