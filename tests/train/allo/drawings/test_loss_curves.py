"""Curves of loss and multipliers: every recorded number reaches its panel."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from tests.train.images import saved_figures, size_alone, words_fit
from train.allo.drawings import loss_curves
from train.allo.drawings.loss_curves import PANELS


def rows_of(seeds: int, chunks: int, d: int = 3) -> list[dict]:
    """Rows as in `metrics.jsonl`, with numbers that tell measure, seed and chunk."""
    return [
        {
            "seed": seed,
            "steps": 50 * (i + 1),
            "finished": {},
            "agent": {name: 10.0 * k + seed + 0.1 * i + 1 for k, name in enumerate(PANELS)}
            | {"eigenvalues": [0.1 * k + 0.01 * i for k in range(d)]},
        }
        for seed in range(seeds)
        for i in range(chunks)
    ]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seeds", [1, 3])
def test_every_measure_has_a_panel(tmp_path, seeds):
    path, rows = tmp_path / "losses.png", rows_of(seeds, 4)
    with saved_figures() as (figures):
        loss_curves.loss_curves(rows, path, np.arange(3) / 10, 2.0, "A $maze_")
    assert min(size_alone(path)) >= 300
    (figure,) = figures
    assert words_fit(figure)
    panels = np.delete(np.array(figure.axes[:6], object), 3)
    for k, (axes, (_, is_log)) in enumerate(zip(panels, PANELS.values(), strict=True)):
        drawn = np.asarray(axes.lines[0].get_ydata())
        np.testing.assert_allclose(drawn, 10 * k + 1 + 0.1 * np.arange(4))
        assert axes.get_yscale() == ("log" if is_log else "linear")
    duals = figure.axes[3]
    for k, line in enumerate(duals.lines):
        np.testing.assert_allclose(
            np.asarray(line.get_ydata()), -2 * (0.1 * k + 0.01 * np.arange(4))
        )
    dashed = [x for x in duals.collections if isinstance(x, LineCollection)]
    levels = [segment[0][1] for segment in dashed[-1].get_segments()]
    np.testing.assert_allclose(levels, [0, -0.2, -0.4])


@pytest.mark.slow
def test_a_run_without_rows_and_one_without_truth(tmp_path):
    with saved_figures() as figures:
        loss_curves.loss_curves([], tmp_path / "losses.png", None, 4.0, "Nothing")
        loss_curves.loss_curves(rows_of(1, 1), tmp_path / "losses.png", None, 4.0, "One row")
    texts = [[x.get_text() for axes in figure.axes for x in axes.texts] for figure in figures]
    assert texts == [["no score yet"] * 6, []]
    with pytest.raises(ValueError, match="truth has shape"):
        loss_curves.loss_curves(rows_of(1, 1), tmp_path / "x.png", np.ones(2), 4.0, "Wrong")
