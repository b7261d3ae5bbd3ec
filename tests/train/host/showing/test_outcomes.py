"""How games end: shares over training against a plain loop, bars that hold every game, pictures."""

import numpy as np
import pytest
from PIL import Image

from train.host.files import metrics_file
from train.host.showing import outcomes

ENDINGS = {"won": "board full", "wall": "into the wall", "": "time up"}


def row(seed: int, steps: int, **finished: float | None) -> dict:
    return {"seed": seed, "steps": steps, "finished": finished, "agent": {}}


def test_shares_are_means_over_seeds_and_the_rest_is_what_they_leave():
    rows = [
        row(0, 10, won=0.5, wall=0.25, score=7.0),
        row(1, 10, won=0.1, wall=0.15, score=7.0),
        row(0, 20, won=None, wall=None, score=None),  # no game ended
        row(1, 20, won=0.2, wall=0.8, score=3.0),
        row(0, 30, won=None, wall=None, score=None),
        row(1, 30),
    ]
    steps, shares = outcomes.ending_shares(rows, list(ENDINGS))
    assert steps.tolist() == [10, 20]
    np.testing.assert_allclose(shares, [[0.3, 0.2, 0.5], [0.2, 0.8, 0.0]], atol=1e-12)
    steps, shares = outcomes.ending_shares(rows, ["wall", "", "won"])
    np.testing.assert_allclose(shares[0], [0.2, 0.5, 0.3])
    steps, shares = outcomes.ending_shares(rows[2:3], list(ENDINGS))
    assert steps.shape == (0,)


@pytest.mark.parametrize("values", [[3, 3, 4, 9], list(range(500)), [7], []])
def test_every_game_is_in_one_bar_and_bars_hold_equally_many_numbers(values):
    edges = outcomes.bars(np.array(values))
    counts, _ = np.histogram(values, edges)
    assert counts.sum() == len(values)
    assert len(counts) <= outcomes.BARS
    assert len(set(np.diff(edges))) == 1
    assert (edges % 1 == 0.5).all()


def test_both_pictures_are_drawn(tmp_path):
    lines = [row(0, 10 * i, won=0.1 * i, wall=0.5) for i in range(1, 5)]
    with metrics_file.MetricsFile(tmp_path) as record:
        record.append(lines[:0])
    assert outcomes.draw_endings(tmp_path, ENDINGS, "nothing yet") is None
    with metrics_file.MetricsFile(tmp_path) as record:
        record.append([{"updates": 1, **line} for line in lines])
    path = outcomes.draw_endings(tmp_path, ENDINGS, "a $title_with a dollar")
    assert path == tmp_path / "endings.png"
    colours = colours_of(path)
    assert {"#009e73", "#0072b2", "#d55e00"} <= colours  # each of the three ways
    panels = {
        "one": {"own": np.array([1, 2, 2]), "its": np.array([0, 0, 9])},
        "two": {"": np.ones(3)},
    }
    path = outcomes.draw_scores(tmp_path, "title", "food", panels)
    assert path == tmp_path / "scores.png"
    assert len(colours_of(path)) > 5


def test_chunks_in_which_no_game_ended_are_white(tmp_path):
    """The second and the last of five."""
    shares = [(1.0, 0.0), (None, None), (0.0, 1.0), (1.0, 0.0), (None, None)]
    lines = [row(0, 10 * i, won=a, wall=b) for i, (a, b) in enumerate(shares, 1)]
    with metrics_file.MetricsFile(tmp_path) as record:
        record.append([{"updates": 1, **line} for line in lines])
    path = outcomes.draw_endings(tmp_path, ENDINGS, "title")
    assert path is not None
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    line = pixels[len(pixels) // 2]
    inside = np.flatnonzero(line.sum(axis=1) < 150)[0]  # the axis on the left, which is black
    width = line.shape[0] - inside
    won, wall, white = (0, 158, 115), (0, 114, 178), (255, 255, 255)
    drawn = [tuple(line[inside + int(width * (i + 0.5) / 5.1)].tolist()) for i in range(5)]
    assert drawn == [won, white, wall, won, white]


def colours_of(path) -> set[str]:
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
    colours, count = np.unique(pixels, axis=0, return_counts=True)
    return {f"#{bytes(colour.tolist()).hex()}" for colour in colours[count > 50]}
