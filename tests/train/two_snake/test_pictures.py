"""The learning curve of two snakes: where the tournament is marked."""

import json

import numpy as np
import pytest

from envs.two_snake.opponents import OPPONENTS
from tests.train.images import saved_figures
from train.host.files import metrics_file
from train.host.files.run_directory import RunDirectory
from train.two_snake import pictures
from train.two_snake.config import PRESETS

CONFIG = PRESETS["greedy"].config
ROWS = [
    {
        "seed": 0,
        "updates": 10 * (i + 1),
        "steps": 1000 * (i + 1),
        "seconds": 1.0 * (i + 1),
        "finished": {"met_greedy": 1.0, "won_greedy": 0.1 * i},
        "agent": {"stage": 0.0},
    }
    for i in range(4)
]


@pytest.mark.parametrize(
    ("rows", "updates", "place"),
    [(ROWS, 40, 1.02 * 4), (ROWS, 20, 2.0), ([], 40, np.nan)],
    ids=["last", "has gone on", "without rows"],
)
def test_the_tournament_is_marked_where_its_snakes_were(tmp_path, rows, updates, place):
    """Places are thousands of steps; without rows there is none, and the legend names opponents."""
    with metrics_file.MetricsFile(tmp_path) as record:
        record.append(rows)
    won = {name: {"won": {"mean": 0.5, "low": 0.4, "high": 0.6}} for name in OPPONENTS}
    evaluation = {"updates": updates, "seeds": [{"seed": 0, "tournament": won}]}
    RunDirectory(tmp_path).evaluation.write_text(json.dumps(evaluation))
    with saved_figures() as figures:
        pictures.draw_curve(tmp_path, CONFIG, "A run")
    (axes,) = figures[0].axes
    diamonds = [line for line in axes.get_lines() if line.get_marker() == "D"]
    places = [np.ravel(line.get_xdata()).item() for line in diamonds]
    np.testing.assert_allclose(places, [place] * len(OPPONENTS))
    texts = [text.get_text() for text in axes.texts]
    assert texts == (["greedy"] if rows else ["the record has no rows"])
