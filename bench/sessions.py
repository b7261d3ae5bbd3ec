"""Whether a fit to sessions of different channels is as good as one that sees all channels.

python -m bench.sessions [--systems lorenz …] [--seeds 3] [--steps 300]

A recording of `tests.recordings` is cut into two sessions: some episodes seen by half of the
channels, the others by the other half. The last episode of each is held out, and forecasts of its
own channels from its own channels are scored, by what was fitted to the rest:

    sessions  both sessions, as `train.vector_field --data A B --sessions` fits them
    all       the same episodes with all channels in each: what no session recorded
    alone     one session by itself

Sessions are of `even` length, or all but the held-out episode of the second is `short`, 150 bins.
A line is added as soon as a fit is scored; what the file already has is left out.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.recordings import as_json, fit_params
from bench.snake_speed import append, machine
from jaxrl.dynamics.state_space.fitting.sessions import session_model, session_params
from tests.recordings.simulation import Recording
from tests.recordings.systems import SYSTEMS, record
from train.vector_field.config import Config
from train.vector_field.presets import PRESETS
from train.vector_field.recorded import dynamics_problem, dynamics_scores
from train.vector_field.recorded.dynamics_problem import Problem
from train.vector_field.recorded.prediction_scores import Scores

RESULTS = Path(__file__).parent / "results" / "sessions.json"
NAMES = ("first", "second")
"""Of the two sessions."""
DIVISIONS = {"even": (5, None), "short": (2, 150)}
"""How many of the episodes are the second session's, and of how many bins, but for the last."""
STEPS = 300
"""Gradient steps by default; the table of the page has no others."""
ONE_EPISODE = 0.1
"""A share of the episodes that holds out one of each session."""
PARTS = slice(-1), slice(-1, None)
"""Of the episodes of a session: learned from, and held out."""


class Session(NamedTuple):
    """What of a recording one session sees; its last episode is held out."""

    episodes: np.ndarray  # int [E]
    lengths: np.ndarray  # int [E]
    channels: np.ndarray  # int [n]


class Case(NamedTuple):
    """What is fitted, and scored."""

    recording: Recording
    sessions: tuple[Session, ...]
    folder: Path  # of the files that are fitted to
    steps: int  # gradient steps

    def write(self, name: str, session: Session) -> str:
        """Writes what such a session sees as `train.vector_field --data` reads it."""
        path, recording = self.folder / f"{name}.npz", self.recording
        y = recording.y[session.episodes][..., session.channels]
        np.savez(path, y=y, u=recording.u[session.episodes], lengths=session.lengths)
        return str(path)

    def write_sessions(self) -> list[str]:
        """The files of the sessions."""
        return [self.write(*pair) for pair in zip(NAMES, self.sessions, strict=True)]

    def config(self, *files: str, share: float = ONE_EPISODE) -> Config:
        """A fit of a model that is given, so that fits differ in their data alone."""
        default, dims = PRESETS["recordings"].config, self.recording.model.dims
        dynamics = default.state_space
        dynamics = replace(dynamics, dims=dims, field="rbf", prior=0.3, steps=self.steps)
        settings = {"sessions": len(files) > 1, "validation_share": share}
        return replace(default, data=files, state_space=dynamics, **settings)

    def problems(self) -> list[Problem]:
        """The problem of each session by itself."""
        configs = [self.config(x) for x in self.write_sessions()]
        return [dynamics_problem.problem_of(x) for x in configs]


def cut(recording: Recording, division: str) -> tuple[Session, ...]:
    """Every other channel for each session; the second has the last episodes."""
    count, bins = DIVISIONS[division]
    episodes, channels = np.arange(len(recording.lengths)), np.arange(recording.y.shape[-1])
    lengths = recording.lengths.copy()
    if bins is not None:
        lengths[-count:-1] = np.minimum(lengths[-count:-1], bins)
    parts = slice(-count), slice(-count, None)
    return tuple(
        Session(episodes[part], lengths[part], channels[s::2]) for s, part in enumerate(parts)
    )


def score_sessions(case: Case) -> list[Scores]:
    config = case.config(*case.write_sessions())
    params, problem = fit_params(config), dynamics_problem.problem_of(config)
    return dynamics_scores.session_scores(config, problem, params)


def score_all(case: Case) -> list[Scores]:
    ordered = lambda name: np.concatenate(
        [getattr(x, name)[part] for part in PARTS for x in case.sessions]
    )
    channels = np.arange(case.recording.y.shape[-1])
    together = Session(ordered("episodes"), ordered("lengths"), channels)
    share = len(case.sessions) / len(together.lengths)
    config = case.config(case.write("all", together), share=share)
    params, model = fit_params(config), dynamics_problem.problem_of(config).model
    scores = []
    for session, problem in zip(case.sessions, case.problems(), strict=True):
        own = problem._replace(model=session_model(model, session.channels))
        own_params = session_params(params, session.channels)
        scores.append(dynamics_scores.scores_of(config, own, own_params))
    return scores


def score_alone(case: Case) -> list[Scores]:
    scores = []
    for file in case.write_sessions():
        config = case.config(file)
        problem = dynamics_problem.problem_of(config)
        scores.append(dynamics_scores.scores_of(config, problem, fit_params(config)))
    return scores


FITS: dict[str, Callable[[Case], list[Scores]]] = {
    "all": score_all,
    "sessions": score_sessions,
    "alone": score_alone,
}
"""The scores of each session by one of these."""


LABELS = ("system", "seed", "small", "steps", "division", "fit")
"""By which a line is known."""


def measure(case: Case, fit: str) -> dict[str, Any]:
    """Scores of both sessions, and how long they took with the fit."""
    started = time.perf_counter()
    scores = [as_json(x) for x in FITS[fit](case)]
    seconds = time.perf_counter() - started
    return {"sessions": dict(zip(NAMES, scores, strict=True)), "seconds": seconds}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", nargs="+", default=["van_der_pol"], choices=list(SYSTEMS))
    parser.add_argument("--divisions", nargs="+", default=[*DIVISIONS], choices=list(DIVISIONS))
    parser.add_argument("--fits", nargs="+", default=[*FITS], choices=list(FITS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=STEPS, help="gradient steps")
    parser.add_argument("--small", action="store_true", help="recordings as in tests")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args(arguments)
    lines = json.loads(options.out.read_bytes()) if options.out.exists() else []
    measured = {tuple(x[name] for name in LABELS) for x in lines}
    seeds: list[Any] = [*range(options.seeds)]
    cases = product(seeds, options.systems, options.divisions, options.fits)
    for seed, system, division, fit in cases:
        values = (system, seed, options.small, options.steps, division, fit)
        if values in measured:
            continue
        recording = record(system, seed, options.small)
        with tempfile.TemporaryDirectory() as folder:
            sessions = cut(recording, division)
            case = Case(recording, sessions, Path(folder), options.steps)
            scores = measure(case, fit)
        append(options.out, {**machine(), **dict(zip(LABELS, values, strict=True)), **scores})
        r2 = "; ".join(
            " ".join(f"{x:.3f}" if x is not None else "-" for x in own["r2"].values())
            for own in scores["sessions"].values()
        )
        print(f"{system} {seed} {division} {fit}: R² {r2}", flush=True)


if __name__ == "__main__":
    main()
