"""Pictures of sweeps: how many lines they have, how these are called, and that words fit."""

import itertools

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxrl.numerics import statistics
from tests.train.images import saved_figures, size, words_fit
from tests.train.sweep.results.sweeps import sweep
from train.sweep.results import gallery
from train.sweep.results.comparisons import SHOWN, probabilities, profiles
from train.sweep.results.curves import align_curves, curves, middle_half
from train.sweep.results.effects import BINS, effects, middle_line
from train.sweep.results.parallel_coordinates import parallel
from train.sweep.results.scales import TICKS, fence, scale_of
from train.sweep.results.summary import summarise

GRID = [
    {"agent.learning_rate": rate, "agent.normalise": switch, "loop.steps_with_a_long_name": steps}
    for rate, switch, steps in itertools.product(
        [1e-5, 1e-4, 1e-3, 1e-2], [False, True], [16, 32, 48, 64, 80, 96, 112, 128]
    )
]
ALL = ["curves", "effects", "parallel", "profiles", "probabilities"]


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("values", "seeds", "failed", "default", "names"),
    [
        ([{}], 1, (), None, ["curves"]),
        ([{}], 10, (3,), 0, ["curves", "profiles"]),
        ([{"a": 1}, {"a": 2}], 1, (), 0, ["curves", "effects"]),
        ([{"a": 1}, {"a": 2}], 2, (0, 1, 2, 3), 0, ["curves", "effects"]),
        ([{}, {"a": 1}, {"b": 2}], 3, (1,), 0, ["curves", "effects", "profiles", "probabilities"]),
        (GRID[::11], 3, (3, 4), 0, ALL),
        (GRID, 2, (1, 20, 21), 40, ALL),
    ],
    ids=["one", "ten seeds", "two", "all failed", "base", "six", "many"],
)
def test_a_sweep_has_the_pictures_it_allows(tmp_path, values, seeds, failed, default, names):
    members, rows = sweep(values, seeds, failed)
    configurations = summarise(members, default=default)
    with saved_figures() as figures:
        written = gallery.draw(tmp_path, rows, members, configurations, "points", "A $sweep_")
    assert [path.name for path in written] == [f"{name}.png" for name in names]
    for figure, path in zip(figures, written, strict=True):
        assert min(size(path)) >= 200
        assert words_fit(figure)
        assert figure.get_suptitle() == "A $sweep_"
        for legend in figure.legends:
            assert legend.get_window_extent().x1 <= figure.bbox.x1


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def heights(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_ydata(), float)


def widths_of(figure: Figure) -> list[float]:
    return [line.get_linewidth() for line in figure.axes[0].lines]


@pytest.mark.slow
def test_the_best_and_the_default_stand_out(tmp_path):
    members, rows = sweep([{"rate": i} for i in range(64)], seeds=3)
    with saved_figures() as figures:
        arguments = (tmp_path / "curves.png", "points", "A sweep")
        curves(rows, members, summarise(members, default=10), *arguments)
    widths = widths_of(figures[0])
    assert len(widths) == 64
    assert sum(width == 2 for width in widths) == 7
    assert len(figures[0].axes[0].collections) == 7  # bands
    best = [f"rate {i}" for i in range(63, 57, -1)]
    last = ["57 others", "95 % interval of the interquartile mean"]
    assert legend_of(figures[0]) == [*best, "default: rate 10", *last]


def test_a_curve_is_the_interquartile_mean_of_seeds_that_did_not_fail(tmp_path):
    members, rows = sweep([{"rate": 1}], seeds=6, failed=(2,))
    with saved_figures() as figures:
        arguments = (tmp_path / "curves.png", "points", "A sweep")
        curves(rows, members, summarise(members), *arguments)
    (line,) = [x for x in figures[0].axes[0].lines if x.get_linewidth() == 2]
    expected = [
        statistics.interquartile_mean(
            np.array(
                [r["finished"]["points"] for r in rows if r["steps"] == x and r["member"] != 2]
            )
        )
        for x in (1000, 2000, 3000, 4000, 5000)
    ]
    np.testing.assert_allclose(heights(line), expected)
    crosses = [x for x in figures[0].axes[0].lines if x.get_marker() == "x"]
    assert len(crosses) == 1


@pytest.mark.parametrize("seeds", [2, 3])
def test_seeds_that_share_no_steps_are_drawn_each_by_itself(tmp_path, seeds):
    members, rows = sweep([{"rate": 1}], seeds)
    rows = [row for row in rows if row["steps"] in ((1000, 2000), (5000,), (4000,))[row["member"]]]
    with saved_figures() as figures:
        arguments = (tmp_path / "curves.png", "points", "A sweep")
        curves(rows, members, summarise(members), *arguments)
    (axes,) = figures[0].axes
    assert sorted(heights(x).size for x in axes.lines) == [1] * (seeds - 1) + [2]
    low, high = axes.get_ylim()
    assert all(low < y < high for line in axes.lines for y in heights(line))


def test_seeds_are_aligned_where_all_are_known():
    lines = [(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 4.0]))]
    lines.append((np.array([2.0, 6.0]), np.array([0.0, 4.0])))
    x, y = align_curves(lines)
    np.testing.assert_array_equal(x, [2, 4])
    np.testing.assert_array_equal(y, [[2, 4], [0, 2]])


@pytest.mark.parametrize("seeds", [1, 3, 4, 9])
def test_the_middle_half_is_the_interquartile_mean(seeds):
    y = np.random.default_rng(seeds).normal(size=(2, seeds, 3))
    expected = [[statistics.interquartile_mean(x[:, k]) for k in range(3)] for x in y]
    np.testing.assert_allclose(middle_half(y), expected)


def test_one_that_diverged_does_not_flatten_the_others():
    assert fence(np.array([1.0, 2.0, 3.0, 2.5, -1e6])) == (1.0, 3.0)
    assert fence(np.array([7.0])) == (7.0, 7.0)


def test_the_end_of_the_best_is_seen_though_most_learn_little(tmp_path):
    members, rows = sweep([{"rate": i} for i in range(3)], seeds=1)
    best = max(members, key=lambda member: member.score or 0)
    for row in rows:
        is_best = row["member"] == best.member
        row["finished"]["points"] = 100.0 * (is_best and row["steps"] == 5000)
    with saved_figures() as figures:
        arguments = (tmp_path / "curves.png", "points", "A sweep")
        curves(rows, members, summarise(members), *arguments)
    low, high = figures[0].axes[0].get_ylim()
    assert low <= 0 < 100 <= high


@pytest.mark.slow
def test_each_number_has_a_panel_with_all_its_members(tmp_path):
    members, _ = sweep(GRID, seeds=2, failed=(5,))
    with saved_figures() as figures:
        configurations = summarise(members, default=0)
        effects(configurations, tmp_path / "effects.png", "points", "A sweep")
    panels = [axes for axes in figures[0].axes if axes.get_visible()]
    names = [axes.get_xlabel() for axes in panels]
    assert names == ["learning rate", "normalise", "steps with a long name"]
    assert [axes.get_xscale() for axes in panels] == ["log", "linear", "linear"]
    for axes, ticks in zip(panels, (4, 2, 8), strict=True):
        assert len(axes.get_xticks()) == ticks
        dots = [line for line in axes.lines if line.get_marker() in ("o", "v", "^")]
        assert len(dots) == 2 * len(GRID) - 1
        assert sum(line.get_marker() == "x" for line in axes.lines) == 1
    texts = [text.get_text() for text in panels[1].get_xticklabels()]
    assert texts == ["off", "on"]


@pytest.mark.parametrize(
    ("default", "labels"),
    [
        (2, ["the default, the best", "another member"]),
        (0, ["the best configuration", "the default", "another member"]),
        (None, ["the best configuration", "another member"]),
    ],
)
def test_the_legend_of_effects_names_the_dots_that_there_are(tmp_path, default, labels):
    members, _ = sweep([{"a": 1.0}, {"a": 2.0}, {"a": 3.0}], seeds=3)
    with saved_figures() as figures:
        configurations = summarise(members, default=default)
        effects(configurations, tmp_path / "e.png", "points", "A sweep")
    assert legend_of(figures[0]) == [*labels, "interquartile mean"]


def test_the_line_of_an_effect_is_the_mean_at_each_value():
    places, scores = np.array([1, 1, 1, 1, 2, 2.0]), np.array([0, 1, 2, 30, 5, 6.0])
    x, y = middle_line(places, scores)
    np.testing.assert_array_equal((x, y), ([1, 2], [1.5, 5.5]))


def test_values_that_hardly_repeat_are_taken_together():
    places = np.arange(80.0)
    x, y = middle_line(places, 2 * places)
    assert len(x) == BINS
    np.testing.assert_allclose(y, 2 * x)
    np.testing.assert_allclose(x, np.arange(4.5, 80, 10))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1e-4, 1e-2], "log"),
        ([1.0, 20.0], "linear"),
        ([1, 21], "log"),
        ([0, 0.001, 0.1], "even"),
        ([8.0, np.inf], "even"),
        ([*range(1, 30), np.inf], "even"),
        ([-1.0, 0.0, 1.0], "linear"),
        ([True, False], "words"),
        (["adam", "sgd"], "words"),
        ([(64, 64), (32,)], "words"),
        ([0.1, "unchanged"], "words"),
    ],
)
def test_an_axis_suits_its_values(values, kind):
    scale = scale_of(values)
    assert scale.kind == kind
    assert len(scale.ticks()) <= TICKS
    shares = [scale.share(scale.place(value)) for value in values]
    assert {min(shares), max(shares)} == {0.0, 1.0}
    assert len(set(shares)) == len(values)


def test_parallel_coordinates_have_a_line_each_the_best_on_top(tmp_path):
    members, _ = sweep(GRID, seeds=1, failed=(7,))
    with saved_figures() as figures:
        configurations = summarise(members, default=3)
        for better in ("higher", "lower"):
            ranked = summarise(members, better, default=3)
            parallel(ranked, tmp_path / "p.png", "points", "A sweep", better)
    for figure in figures:
        lines = [
            line
            for line in figure.axes[0].lines
            if len(np.unique(np.asarray(line.get_xdata()))) > 1
        ]
        assert sorted(len(heights(line)) for line in lines) == [3] + [4] * (len(GRID) - 1)
        top = max(lines, key=lambda line: line.get_zorder())
        assert top.get_linewidth() == 3
        assert heights(top)[-1] == 1  # whichever is better, it is at the top
    first_lines = figures[0].axes[0].lines
    brightness = {
        heights(line)[-1]: np.mean(matplotlib.colors.to_rgb(line.get_color()))
        for line in first_lines
        if len(heights(line)) == 4 and line.get_linestyle() == "-"
    }
    assert brightness[max(brightness)] < brightness[min(brightness)]
    headings = {text.get_text().replace("\n", " ") for text in figures[0].axes[0].texts}
    assert {"learning rate", "normalise", "steps with a long name", "points"} <= headings
    assert {"1e-5", "0.01", "off", "on", "16", "128"} <= headings
    assert len(configurations) == len(GRID)


@pytest.mark.slow
def test_profiles_step_down_at_the_scores(tmp_path):
    members, _ = sweep([{"rate": i} for i in range(9)], seeds=4, failed=(0,))
    with saved_figures() as figures:
        arguments = (tmp_path / "profiles.png", "points", "A sweep")
        profiles(summarise(members, default=0), *arguments)
        profiles(summarise(members, "lower", default=0), *arguments, "lower")
    for figure, sign in zip(figures, (1, -1), strict=True):
        lines = figure.axes[0].lines
        assert len(lines) == 5  # four of the best, and the default
        steps = [np.unique(heights(line)) for line in lines]
        assert {len(x) for x in steps} == {5, 4}  # the failed seed of the default is never above
        assert all((sign * np.diff(heights(line)) <= 0).all() for line in lines)
    assert figures[0].axes[0].get_ylabel() == "share of seeds above"
    assert figures[1].axes[0].get_ylabel() == "share of seeds below"


@pytest.mark.slow
def test_probabilities_have_a_row_each(tmp_path):
    members, _ = sweep([{"rate": i} for i in range(40)], seeds=2)
    with saved_figures() as figures:
        configurations = summarise(members, default=20)
        probabilities(configurations, tmp_path / "probabilities.png", "A sweep")
    (axes,) = figures[0].axes
    assert len(axes.containers) == SHOWN
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels[:2] == ["rate 39", "rate 38"]
    assert "rate 20" not in labels
    assert axes.get_ylabel() == "the best 30 of 39"
    assert axes.yaxis_inverted()


def test_nothing_to_show_is_said_in_one_line(tmp_path):
    path = tmp_path / "picture.png"
    members, rows = sweep([{"a": 1}, {"a": 2}], seeds=1)
    configurations = summarise(members, default=0)
    cases = [
        (lambda: curves([], members, configurations, path, "points", ""), "no rows"),
        (lambda: curves(rows, members, configurations, path, "x", ""), "'x' is not in"),
        (lambda: profiles(configurations, path, "points", ""), "two seeds"),
        (lambda: probabilities(configurations, path, ""), "compared with the default"),
        (lambda: effects([], path, "points", ""), "no number was varied"),
        (lambda: parallel(configurations, path, "points", ""), "1 numbers were"),
    ]
    for draw, message in cases:
        with pytest.raises(ValueError, match=message) as caught:
            draw()
        assert "\n" not in str(caught.value)
    assert not path.exists()
