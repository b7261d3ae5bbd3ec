"""A run that is made, and drawn, once for the tests of a file."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from tests.train.vector_field.pictures.drawn_runs import SEEDS, SMALL, FinishedRun, evaluation_of
from train.host.compilation import compiled
from train.host.files import metrics_file
from train.host.scoring import scores
from train.host.training import Latest
from train.vector_field.experiment import laboratory
from train.vector_field.pictures import run_pictures
from train.vector_field.training import make_training


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> FinishedRun:
    directory = tmp_path_factory.mktemp("fields")
    with pytest.MonkeyPatch.context() as patch:  # to search for what is in reach takes long
        patch.setattr(laboratory, "reachable", lambda *_, **__: jnp.ones((25, 25), bool))
        training = make_training(SMALL)
        states = [jax.jit(compiled.init_all(training.init, SEEDS))(SEEDS)]
        update, rows = jax.jit(jax.vmap(training.update)), []
        for steps in (50, 100):
            state, metrics = update(states[-1])
            states.append(state)
            for seed in (0, 1):
                measures = {
                    name: (x.value if isinstance(x, Latest) else x)[seed].tolist()
                    for name, x in metrics.agent.items()
                }
                rows.append({"seed": seed, "steps": steps, "updates": steps, "agent": measures})
    with metrics_file.MetricsFile(directory) as record:
        record.append(rows)
    (directory / "eval.json").write_text(json.dumps(evaluation_of(SMALL)))
    return FinishedRun(SMALL, states, rows, directory)


@pytest.fixture(scope="module")
def paths(finished_run) -> list[Path]:
    """The pictures of that run, and the arrays that they show."""
    agents = scores.agents_of(finished_run.states[-1].agent, 2)
    traces = run_pictures.traces_of(SMALL, finished_run.states[-1])
    return run_pictures.draw_all(finished_run.directory, SMALL, agents, traces)
