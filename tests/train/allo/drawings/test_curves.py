"""Curves of learned eigenvectors: the arithmetic behind them, and that they are drawn."""

import numpy as np
import pytest

from tests.train.images import saved_figures, size_alone, words_fit
from train.allo.drawings import curves


def rows_of(d: int, seeds: int, chunks: int) -> list[dict]:
    """Rows as in `metrics.jsonl`, one chunk of them without scores."""
    rows = []
    for seed in range(seeds):
        for i in range(chunks):
            has_scores = i != 1
            agent = {
                "similarity": 1 - 0.5 ** (i + seed) if has_scores else None,
                "cosines": [1 - 0.5**i] * d if has_scores else None,
                "eigenvalues": [None if i == 2 else 0.1 * k + seed for k in range(d)],
            }
            rows.append({"seed": seed, "steps": 50 * (i + 1), "finished": {}, "agent": agent})
    return rows


@pytest.mark.parametrize(("d", "seeds", "chunks"), [(1, 1, 1), (3, 3, 4)])
def test_curves_are_drawn(tmp_path, d, seeds, chunks):
    path, rows = tmp_path / "curves.png", rows_of(d, seeds, chunks)
    steps = "gradient steps" + " of each seed" * (seeds > 1)
    with saved_figures() as figures:
        curves.similarity_curves(rows, path, 0.999, "A $maze_")
        assert min(size_alone(path)) >= 300
        curves.eigenvalue_curves(rows, path, np.arange(d) / 10, np.arange(d) / 9, "A $maze_")
        assert min(size_alone(path)) >= 300
    labels = [["similarity", "|cos|"], ["λ", "learned λ"]]
    for figure, names, below in zip(
        figures, labels, ([steps, steps], [steps, "true λ"]), strict=True
    ):
        assert words_fit(figure)
        assert figure.get_suptitle().endswith(": A $maze_")
        for axes, name, under in zip(figure.axes[:2], names, below, strict=True):
            assert axes.get_ylabel().partition(",")[0] == name
            assert axes.get_xlabel() == under
            assert axes.lines
    assert figures[1].axes[1].get_ylabel().endswith("mean of the last chunk")  # as rows have it


def test_a_run_without_rows_has_empty_panels(tmp_path):
    with saved_figures() as figures:
        curves.similarity_curves([], tmp_path / "curves.png", None, "Nothing")
        curves.eigenvalue_curves([], tmp_path / "curves.png", np.ones(2), None, "Nothing")
    assert min(size_alone(tmp_path / "curves.png")) >= 300
    texts = [[text.get_text() for axes in figure.axes for text in axes.texts] for figure in figures]
    assert texts == [["no score yet"] * 2, ["no score yet"]]


@pytest.mark.parametrize(("first", "is_cut"), [(9.0, True), (-9.0, True), (0.12, False)])
def test_a_line_says_that_first_values_are_cut(tmp_path, first, is_cut):
    rows = rows_of(1, 1, 5)
    for row, value in zip(rows, (first, 0.1, 0.11, 0.12, 0.1), strict=True):
        row["agent"]["eigenvalues"] = [value]
    with saved_figures() as figures:
        curves.eigenvalue_curves(rows, tmp_path / "curves.png", np.array([0.15]), None, "A maze")
    assert figures[0].axes[0].get_title("left") == "first values beyond the axis are cut" * is_cut


def test_component_curves_leave_out_what_is_missing():
    (first, second) = curves.component_curves(rows_of(2, 2, 4), "eigenvalues")
    np.testing.assert_array_equal(first, [[[50, 100, 200], [s, s, s]] for s in (0, 1)])
    np.testing.assert_allclose(second[1][1], [1.1, 1.1, 1.1])
    np.testing.assert_array_equal(
        curves.component_curves(rows_of(1, 1, 3), "cosines"), [[[[50, 150], [0, 0.75]]]]
    )


def test_the_band_is_students_interval():
    """The mean of 1, 2 and 6 is 3, their deviation √7; t = 4.3027 at two degrees of freedom."""
    _, (axes, _) = curves._panels("A maze")
    lines = [(np.array([0.0, 1.0]), np.array([y, y])) for y in (1.0, 2.0, 6.0)]
    curves.draw_component(axes, lines, "black")
    low, high = axes.collections[0].get_datalim(axes.transData).intervaly
    margin = 4.3027 * np.sqrt(7 / 3)
    assert (low, high) == pytest.approx((3 - margin, 3 + margin), abs=1e-4 * margin)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [3, 3])


def test_rows_that_do_not_fit_are_refused_in_one_line(tmp_path):
    path, rows = tmp_path / "curves.png", rows_of(2, 1, 3)
    refused = {
        "no row has similarity": lambda: curves.similarity_curves(
            [{**rows[0], "agent": {}}], path, None, "x"
        ),
        r"truth has shape \(3,\); expected \(2,\)": lambda: curves.eigenvalue_curves(
            rows, path, np.ones(3), None, "x"
        ),
        r"published has shape \(1,\); expected \(2,\)": lambda: curves.eigenvalue_curves(
            rows, path, np.ones(2), np.ones(1), "x"
        ),
        r"eigenvalues has \[2, 3\] components": lambda: curves.eigenvalue_curves(
            rows + rows_of(3, 1, 1), path, np.ones(2), None, "x"
        ),
    }
    for message, draw in refused.items():
        with pytest.raises(ValueError, match=message) as error:
            draw()
        assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())
