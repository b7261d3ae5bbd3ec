"""Runs that are made once for the tests of a file."""

import jax
import pytest

from tests.train import tiny
from tests.train.host.running.short_runs import Healthy, configure, train
from train.host.compilation import compiled
from train.host.running.run import Result


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """An uninterrupted run."""
    return train(configure(directory=tmp_path_factory.mktemp("whole") / "run"))


@pytest.fixture(scope="module")
def healthy() -> Healthy:
    training = tiny.make_training(configure("plain"))  # the idle work of "slow" changes nothing
    update = jax.jit(training.update)
    states, reports = [jax.jit(training.init)(compiled.keys_of(0)[0])], []
    for _ in range(8):
        state, report = update(states[-1])
        states.append(state)
        reports.append(jax.device_get(report))
    return Healthy(update, states, reports)
