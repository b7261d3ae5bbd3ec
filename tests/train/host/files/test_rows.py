"""The rows of the record: means over what a chunk reported."""

import numpy as np

from jaxrl.loop import LoopMetrics
from train.host.compilation.compiled import Report
from train.host.files.rows import episode_means


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
