"""The rows of the record: means over what a chunk reported."""

import numpy as np
import pytest

from jaxrl.loop import LoopMetrics
from train.host.compilation.compiled import Report
from train.host.files.rows import agent_means, episode_means
from train.host.program import find


def test_a_broken_environment_hides_no_other_episodes():
    """Three updates of two seeds; the first seed's second one ended an episode in NaN."""
    returns = np.array([[4.0, 1.0], [np.nan, 2.0], [2.0, 3.0]])
    lengths = np.array([[10.0, 5.0], [50.0, 5.0], [20.0, 5.0]])
    episodes = np.array([[2, 1], [3, 1], [1, 0]])
    metrics = LoopMetrics(episodes, {"return": returns, "length": lengths}, {})  # pyright: ignore
    report = Report(metrics, np.isfinite(returns))  # pyright: ignore
    assert episode_means(report, 0) == {"return": 6 / 3, "length": 80 / 6}
    assert episode_means(report, 1) == {"return": 6 / 2, "length": 15 / 2}
    broken = metrics._replace(finished={"return": np.full((3, 2), np.inf)})
    assert episode_means(report._replace(metrics=broken), 0) == {"return": None}


def test_updates_of_a_warmup_are_no_part_of_a_mean_loss():
    """Four updates of two seeds, which measure 0 until they learn; one loss is not finite."""
    updates = np.array([[0, 0], [8, 0], [16, 0], [24, 0]])
    loss = np.array([[0.0, 0.0], [3.0, 0.0], [np.nan, 0.0], [5.0, 0.0]])
    epsilon = np.array([[1.0, 1.0], [0.5, 0.5], [0.5, 0.5], [0.0, 0.0]])
    measures = {"loss": loss, "epsilon": epsilon, "updates": updates}
    metrics = LoopMetrics(np.zeros((4, 2)), {}, measures)  # pyright: ignore
    report = Report(metrics, np.isfinite(loss))  # pyright: ignore
    learning = agent_means(report, 0, ("loss",))
    assert learning == {"loss": 4.0, "epsilon": 0.5, "updates": 32 / 3}
    assert agent_means(report, 1, ("loss",)) == {"loss": None, "epsilon": 0.5, "updates": 0.0}
    assert agent_means(report, 0)["loss"] == 8 / 3


@pytest.mark.parametrize(
    ("name", "preset", "measure"),
    [
        ("snake", "rainbow", "q"),
        ("two_snake", "dqn", "loss"),
        ("gymnax", "dqn", "grad_norm"),
        ("gymnax", "sac", "critic_loss"),
    ],
)
def test_programs_with_a_replay_say_what_is_measured_after_its_warmup(name, preset, measure):
    program = find(name, "a test")
    assert measure in program.training(program.presets[preset].config).after_warmup
    first = next(iter(program.presets.values())).config
    assert program.training(first).after_warmup == ()
