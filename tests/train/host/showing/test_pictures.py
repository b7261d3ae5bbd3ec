"""Learning curves: the numbers behind them, and that they are drawn whatever a run left."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from scipy import stats

from tests.train import tiny
from tests.train.images import assert_drawn, saved_figures, words_fit
from train.host.files import metrics_file
from train.host.files.rows import mean_score
from train.host.files.run_directory import RunDirectory
from train.host.showing import pictures
from train.host.training import PlayConfig


def rows_of(scores: dict[int, list[float | None]]) -> list[dict]:
    """Rows as in `metrics.jsonl`: a chunk is 500 steps and 1.5 seconds."""
    return [
        {
            "seed": seed,
            "steps": 500 * (i + 1),
            "seconds": 1.5 * (i + 1),
            "finished": {"score": score, "length": 9.0},
            "agent": {"loss": 0.5, "duals": [0.0, 1.0]},
        }
        for seed, values in scores.items()
        for i, score in enumerate(values)
    ]


def evaluation_of(*means: float | None) -> dict:
    """The content of `eval.json` with a seed for each of the means."""
    interval = lambda mean: {} if mean is None else {"low": mean - 1, "high": mean + 2}
    return {
        "score": "score",
        "seeds": [
            {"seed": seed, "games": 10, "score": {"mean": mean, **interval(mean)}}
            for seed, mean in enumerate(means)
        ],
    }


def ink(path) -> dict[str, int]:
    """How many pixels of a picture have the colours of the curve and of the evaluation."""
    pixels = np.asarray(Image.open(path).convert("RGB"))
    assert_drawn(path)
    colours = {"curve": pictures.BLUE, "evaluation": pictures.VERMILLION}
    rgb_values = {name: [int(c[i : i + 2], 16) for i in (1, 3, 5)] for name, c in colours.items()}
    return {name: int((pixels == rgb).all(-1).sum()) for name, rgb in rgb_values.items()}


def test_curves_leave_out_chunks_without_an_episode():
    rows = rows_of({4: [None, 1.0, float("nan"), 3.0], 2: [5.0, None], 7: [None, None]})
    (x_2, y_2), (x_4, y_4) = pictures.curves(rows, "score", "steps")
    np.testing.assert_array_equal((x_2, y_2), ([500], [5]))
    np.testing.assert_array_equal((x_4, y_4), ([1000, 2000], [1, 3]))
    (_, (x, _)) = pictures.curves(rows, "score", "seconds")
    np.testing.assert_array_equal(x, [3, 6])


def test_rows_of_one_moment_keep_their_order():
    rows = rows_of({0: [1.0, 5.0, 3.0]})
    for row in rows:
        row["seconds"] = min(row["seconds"], 3.0)
    for ordered_rows in (rows, rows[::-1]):
        ((x, y),) = pictures.curves(ordered_rows, "score", "seconds")
        np.testing.assert_array_equal((x, y), ([1.5, 3, 3], [1, 5, 3]))


@pytest.mark.parametrize(
    ("steps", "last"),
    [(1500, 9.0), (1250, 9.0), (1200, (500 * 3 + 200 * 9) / 700), (1001, (500 * 3 + 9) / 501)],
)
def test_a_short_last_chunk_is_averaged_with_the_one_before(steps, last):
    rows = rows_of({0: [1.0, 3.0, 9.0]})
    rows[-1] |= {"steps": steps, "agent": {"loss": 8.0}}
    ((x, y),) = pictures.curves(rows, "score", "steps")
    np.testing.assert_allclose((x, y), ([500, 1000, steps], [1, 3, last]))
    ((_, y),) = pictures.curves(rows, "loss", "steps")
    assert y[-1] == 8  # no mean over episodes


def test_a_first_chunk_is_never_short():
    rows = rows_of({0: [4.0]})
    rows[0]["steps"] = 1
    np.testing.assert_array_equal(pictures.curves(rows, "score", "steps"), [([1], [4])])


@pytest.mark.parametrize("seeds", [1, 2, 3])
def test_the_legend_fits(tmp_path, seeds):
    scores = [0.0038271, 0.00012345, 0.0029876][:seeds]
    rows = rows_of({seed: [score] for seed, score in enumerate(scores)})
    evaluation = evaluation_of(*scores)
    for row in evaluation["seeds"]:
        row["score"] |= {
            "low": row["score"]["mean"] / 1.2345,
            "high": row["score"]["mean"] * 1.2345,
        }
    with saved_figures() as figures:
        pictures.learning_curve(rows, tmp_path / "curve.png", "score", "A run", evaluation)
    assert words_fit(figures[0])
    (legend,) = figures[0].legends
    assert any(text.get_text().startswith("evaluation: ") for text in legend.get_texts())
    assert legend.get_window_extent().x0 >= 0
    assert legend.get_window_extent().x1 <= figures[0].bbox.x1


def test_a_score_may_be_the_agents_or_the_episodes():
    """Where both have it, that of the episodes counts; a list is no score."""
    rows = rows_of({0: [1.0, None]})
    ((x, y),) = pictures.curves(rows, "loss", "steps")
    np.testing.assert_array_equal((x, y), ([500, 1000], [0.5, 0.5]))
    assert pictures.curves(rows, "duals", "steps") == []
    for row in rows:
        row["agent"]["score"] = 8.0
    ((x, y),) = pictures.curves(rows, "score", "steps")
    np.testing.assert_array_equal((x, y), ([500], [1]))
    assert mean_score([{**row, "finished": {}} for row in rows], "score") == 8
    assert mean_score(rows[:1], "score") == 1
    assert mean_score(rows[1:], "score") is None


@pytest.mark.parametrize("seeds", [1, 2])
def test_the_axes_say_what_they_show(tmp_path, seeds):
    rows, path = rows_of({seed: [1.0] for seed in range(seeds)}), tmp_path / "curve.png"
    with saved_figures() as figures:
        pictures.learning_curve(rows, path, "loss", "A run", unit="gradient steps")
        pictures.learning_curve(rows, path, "score", "A $run_")
    ending = " of each seed" if seeds > 1 else ""
    for figure, score, kind in zip(
        figures, ("loss", "score"), ("gradient", "environment"), strict=True
    ):
        labels = [axes.get_xlabel() for axes in figure.axes]
        assert labels == [f"{kind} steps{ending}", "training time (seconds)"]
        assert figure.axes[0].get_ylabel() == score
        assert words_fit(figure)
    assert figures[1].get_suptitle() == "A $run_"


def test_the_mean_is_over_all_seeds_where_all_are_known():
    lines = [
        (np.array([1.0, 2.0, 4.0]), np.array([10.0, 20.0, 40.0])),
        (np.array([2.0, 3.0, 5.0]), np.array([0.0, 6.0, 7.0])),
        (np.array([1.0, 5.0]), np.array([1.0, 5.0])),
    ]
    x, mean, margin = pictures.mean_curve(lines)
    np.testing.assert_array_equal(x, [2, 3, 4])
    samples = np.array([[20, 30, 40], [0, 6, 6.5], [2, 3, 4]])
    np.testing.assert_allclose(mean, samples.mean(0))
    low, high = stats.t.interval(0.95, 2, samples.mean(0), stats.sem(samples, axis=0))
    np.testing.assert_allclose((mean - margin, mean + margin), (low, high))


def test_seeds_that_share_no_steps_are_drawn_each_by_itself():
    lines = [(np.array([1.0, 2.0]), np.array([3.0, 4.0])), (np.array([5.0]), np.array([6.0]))]
    assert not len(pictures.mean_curve(lines)[0])
    figure = pictures.titled_figure((4, 3), "")
    left, right = figure.subplots(1, 2)
    pictures.draw_mean(left, lines, color="red", label="seeds")
    assert [line.get_xdata().tolist() for line in left.lines] == [[1.0, 2.0], [5.0]]
    assert [line.get_marker() for line in left.lines] == ["None", "."]  # or it would not be seen
    pictures.draw_lines(right, lines)
    for axes, label in ((left, "seeds"), (right, "training, 2 seeds")):
        assert axes.get_legend_handles_labels()[1] == [label]  # of no mean that there is not


def test_two_seeds_have_no_interval():
    line = (np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert np.isnan(pictures.mean_curve([line, line])[2]).all()


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042)]
)
def test_margins_are_those_of_students_table(degrees, quantile):
    """Table III of Fisher & Yates (1938), at 5 %; the samples 0, 1, 2 ... deviate by `spread`."""
    count = degrees + 1
    spread = np.sqrt(count * (count + 1) / 12)
    margin = pictures.interval(np.arange(count, dtype=float))
    assert margin == pytest.approx(quantile * spread / np.sqrt(count), rel=2.5e-4)


def test_a_score_of_one_number_is_marked_without_interval():
    evaluation = {"seeds": [{"score": 7.0}, {"score": None}]}
    ((mean, *interval),) = pictures.final_scores(evaluation, "score")
    assert mean == 7
    assert np.isnan(interval).all()


def test_the_evaluation_is_marked_by_seed_or_by_their_mean():
    assert pictures.final_scores(evaluation_of(7.0), "score") == [(7, 6, 9)]
    assert len(pictures.final_scores(evaluation_of(7.0, None, 8.0), "score")) == 2
    ((mean, low, high),) = pictures.final_scores(evaluation_of(7.0, 8.0, 9.5), "score")
    expected = stats.t.interval(0.95, 2, 24.5 / 3, stats.sem([7.0, 8.0, 9.5]))
    assert (mean, low, high) == pytest.approx((24.5 / 3, *expected))


@pytest.mark.parametrize(
    ("scores", "final"),
    [
        ({0: [1.0, 2.0, 3.0]}, (3.5,)),
        ({0: [1.0, 2.0, 3.0], 1: [None, 2.0, float("nan")]}, (3.5, 4.5)),
        ({0: [1.0, 2.0, 3.0], 1: [None, -2.0, 1.0], 2: [2.0, 2.0, 3.0]}, (3.5, 4.5, 2.0)),
        ({0: [1.0]}, ()),
    ],
    ids=["one seed", "two seeds with gaps", "three seeds", "one chunk"],
)
def test_a_curve_is_drawn(tmp_path, scores, final):
    path = tmp_path / "learning_curve.png"
    evaluation = evaluation_of(*final) if final else None
    pictures.learning_curve(rows_of(scores), path, "score", "A $title_ of 10×10", evaluation)
    pixel_counts = ink(path)
    assert pixel_counts["curve"] > 20
    assert (pixel_counts["evaluation"] > 50) == bool(final)
    assert [entry.name for entry in tmp_path.iterdir()] == ["learning_curve.png"]


def scored_rows(scores: dict[int, list[float | None]]) -> list[dict]:
    """Rows whose episodes have no score, but games played after their chunk: `scores`, or none."""
    rows = rows_of({seed: [None] * len(means) for seed, means in scores.items()})
    means = [mean for values in scores.values() for mean in values]
    for row, mean in zip(rows, means, strict=True):
        if mean is not None:
            row["evaluated"] = {"games": 8, "mean": mean, "low": mean - 1, "high": mean + 1}
    return rows


def test_scores_while_training_are_a_curve():
    """One seed of it as it is, of several the mean of what all of them know."""
    one = scored_rows({3: [None, 4.0, 7.0]})
    ((x, y),) = pictures.evaluated_curves(one, "steps")
    np.testing.assert_array_equal((x, y), ([1000, 1500], [4, 7]))
    one[2]["evaluated"]["mean"] = None  # no game ended
    one[2]["steps"] = 1001  # a short chunk is not averaged: these games are all of one policy
    one[0]["evaluated"] = {"mean": 1.0}
    ((x, y),) = pictures.evaluated_curves(one, "seconds")
    np.testing.assert_array_equal((x, y), ([1.5, 3], [1, 4]))
    assert pictures.evaluated_curves(rows_of({0: [1.0]}), "steps") == []


@pytest.mark.parametrize("greedy", [True, False])
def test_scores_while_training_are_drawn(tmp_path, greedy):
    rows, path = scored_rows({0: [None, 2.0, 4.0], 1: [None, 6.0, 5.0]}), tmp_path / "curve.png"
    with saved_figures() as figures:
        pictures.learning_curve(rows, path, "score", "A run", greedy=greedy)
    label = f"{'greedy' if greedy else 'sampled'}, while training"
    for axes, x in zip(figures[0].axes, ([1000, 1500], [3, 4.5]), strict=True):
        (line,) = axes.get_lines()
        assert (line.get_label(), line.get_color()) == (label, pictures.VERMILLION)
        np.testing.assert_allclose(np.array(line.get_xydata()).T, (x, [4, 4.5]))
        assert not axes.texts  # "no score yet"
    (legend,) = figures[0].legends
    assert [text.get_text() for text in legend.get_texts()] == [label]
    assert ink(path)["curve"] == 0
    assert ink(path)["evaluation"] > 50


def test_the_curve_says_how_the_games_were_played(tmp_path):
    config = tiny.Config(run=PlayConfig(evaluate_every=1, evaluation_greedy=False))
    RunDirectory(tmp_path).write_config("tests.train.tiny", "plain", config)
    with metrics_file.MetricsFile(tmp_path) as record:
        record.append(scored_rows({0: [1.0, 2.0]}))
    with saved_figures() as figures:
        pictures.draw_curve(tmp_path, "score", "A run")
    handles, labels = figures[0].axes[0].get_legend_handles_labels()
    assert (len(handles), labels) == (1, ["sampled, while training"])


@pytest.mark.parametrize("rows", [[], rows_of({0: [None, None]})], ids=["none", "no episode"])
def test_a_run_without_episodes_has_an_empty_picture(tmp_path, rows):
    pictures.learning_curve(rows, tmp_path / "curve.png", "score", "Nothing", evaluation_of(None))
    assert ink(tmp_path / "curve.png") == {"curve": 0, "evaluation": 0}


def test_a_score_is_marked_where_its_agents_were(tmp_path, monkeypatch):
    """At the end of the curves, or before it where the run has gone on since."""
    rows = [row | {"updates": row["steps"] // 100} for row in rows_of({0: [1.0, 2.0, 3.0, 4.0]})]
    marks = []
    monkeypatch.setattr(pictures, "_mark", lambda axes, x, final: marks.append(x))
    for about in ({}, {"updates": 20}, {"updates": 10}):
        evaluation = evaluation_of(7.0) | about
        pictures.learning_curve(rows, tmp_path / "curve.png", "score", "A run", evaluation)
    thousands = 1 / 1000  # the unit of the axis of 2,000 steps; that of 6 s is a second
    end = [1.02 * 2_000 * thousands, 1.02 * 6.0]
    assert marks == pytest.approx([*end, *end, 1_000 * thousands, 3.0])


def test_without_rows_a_score_is_in_the_legend_alone(tmp_path):
    """All may be damaged, and step 0 is not where it was reached."""
    with saved_figures() as figures:
        pictures.learning_curve([], tmp_path / "curve.png", "score", "A run", evaluation_of(7.0))
    for axes in figures[0].axes:
        assert [text.get_text() for text in axes.texts] == ["the record has no rows"]
        assert all(np.isnan(np.asarray(line.get_xdata(), float)).all() for line in axes.lines)
    (legend,) = figures[0].legends
    assert [text.get_text() for text in legend.get_texts()] == ["evaluation: 7 (6 to 9)"]


@pytest.mark.parametrize(("units", "are_whole"), [(pictures.STEPS, True), (pictures.TIMES, False)])
def test_few_steps_have_ticks_at_whole_ones(units, are_whole):
    axes = Figure().subplots()
    pictures.style_axes(axes, "steps", units, 3)
    assert all(x == round(x) for x in axes.get_xticks()) == are_whole


def test_a_title_that_is_wider_than_its_figure_has_several_lines():
    figure = pictures.titled_figure((3, 3), "What is still uncertain: seed 0, the first of 2")
    axes = figure.subplots()
    figure.draw_without_rendering()
    (title,) = figure.texts
    box = title.get_window_extent()
    assert box.x1 <= figure.bbox.width
    assert axes.get_window_extent().y1 < box.y0


def test_an_empty_picture_says_why():
    assert pictures.no_score([]) == "no score yet"
    assert pictures.no_score([{"episodes": 3}, {"episodes": 0}]) == "no score yet"
    assert pictures.no_score([{"episodes": 0}]) == "no score: no episode has ended"


def test_rows_of_a_record_can_be_drawn(tmp_path):
    rows = [{**row, "updates": 1} for row in rows_of({0: [1.0, float("inf"), 3.0]})]
    with metrics_file.MetricsFile(tmp_path) as record:
        record.append(rows)
    pictures.learning_curve(
        metrics_file.read_metrics(tmp_path), str(tmp_path / "curve.png"), "score", "A run"
    )
    assert ink(tmp_path / "curve.png")["curve"] > 20


def test_an_unknown_score_is_refused_and_leaves_the_old_picture(tmp_path):
    path = tmp_path / "curve.png"
    path.write_text(json.dumps("the old one"))
    with pytest.raises(
        ValueError, match="'points' is not in the record; it has loss, score, length"
    ):
        pictures.learning_curve(rows_of({0: [1.0]}), path, "points", "A run")
    assert json.loads(path.read_text()) == "the old one"
