"""Time series of channels: which forecasts are drawn where, and a picture."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.train.images import assert_drawn
from train.vector_field.data.step_time import StepTime
from train.vector_field.pictures import advice_picture, series

RNG = np.random.default_rng(0)


def test_a_forecast_is_drawn_at_the_step_it_is_of():
    forecasts = RNG.normal(size=(9, 4, 2))
    aligned_forecasts = series.align_forecasts(forecasts, 3)
    assert np.isnan(aligned_forecasts[:3]).all()
    for t in range(3, 9):
        np.testing.assert_array_equal(aligned_forecasts[t], forecasts[t - 3, 3])
    with pytest.raises(ValueError, match="forecasts of 9 steps, each 3 ahead, hold none 4 steps"):
        series.align_forecasts(forecasts, 4)


def test_forecasts_of_angles_are_wrong_by_the_shorter_way_round():
    angle, error = np.linspace(0, 20, 100), np.array([0.1, 0])
    observed = np.stack([(angle + np.pi) % (2 * np.pi) - np.pi, angle], axis=1)
    expected = np.stack([(angle + 0.1 + np.pi) % (2 * np.pi) - np.pi, angle], axis=1)
    expected[0] = np.nan  # of the first steps nothing was said
    turned = series.turn_near(expected, observed, (0,))
    np.testing.assert_allclose(turned[1:], (observed + error)[1:])
    assert np.isnan(turned[0]).all()
    np.testing.assert_array_equal(series.turn_near(expected, observed, ()), expected)


def test_the_channels_that_vary_most_are_shown_in_their_order():
    spread = np.array([1.0, 9, 2, 8, 3, 7, 4, 6])
    observed = RNG.normal(size=(4_000, 8)) * spread
    assert series.most_varied(observed) == [1, 3, 4, 5, 6, 7]
    assert series.most_varied(observed[:, :2]) == [0, 1]
    observed[:, 2:7], observed[::3, 7] = np.nan, np.nan  # never seen; seen at times
    assert series.most_varied(observed)[:2] == [0, 1]
    assert series.most_varied(observed)[-1] == 7


def test_inputs_of_other_units_are_all_seen():
    light, heat, none = np.arange(8.0) % 2, np.linspace(290, 300, 8), np.zeros(8)
    rows, text = series.in_one_scale(np.stack([light, heat, none], axis=1))
    np.testing.assert_allclose(rows, np.stack([light, np.linspace(0, 1, 8), none], axis=1))
    assert text == ", each over its range"
    for alike in (np.stack([light, 9 * light, none], axis=1), none[:, None]):
        rows, text = series.in_one_scale(alike)
        np.testing.assert_array_equal(rows, alike)
        assert not text


def test_planned_inputs_of_other_units_are_each_drawn_over_what_is_allowed():
    plan, box = np.array([[0.5, 300], [1, 290], [0, 290]]), np.array([[0, 280], [1, 300]])
    for columns, labels, lines in (
        ([0, 1], ["input 0, 0 to 1", "input 1, 280 to 300"], [[0.5, 1, 0, 0], [1, 0.5, 0.5, 0.5]]),
        ([0], ["input 0"], [[0.5, 1, 0, 0]]),  # as it is, on a line of 0
    ):
        axes = Figure().subplots()
        advice_picture.draw_inputs(axes, plan[:, columns], box[:, columns], StepTime(2, "s"))
        drawn = [x for x in axes.lines if str(x.get_label()).startswith("input")]
        assert [x.get_label() for x in drawn] == labels
        np.testing.assert_allclose([np.asarray(x.get_ydata()) for x in drawn], lines)
        assert axes.get_title(loc="left").endswith("each over its range") == (len(columns) > 1)


def test_r2_is_1_for_what_was_seen_and_0_for_its_mean():
    x = RNG.normal(size=50)
    assert series.r2_score(x, x) == 1
    np.testing.assert_allclose(series.r2_score(x, np.full(50, x.mean())), 0, atol=1e-9)
    assert np.isnan(series.r2_score(np.ones(3), np.ones(3)))


def test_a_picture_of_few_channels_and_inputs(tmp_path):
    time = np.arange(200)
    observed = np.stack([np.sin(time / 9), np.cos(time / 9), 0.1 * time % 2], axis=1)
    forecasts = np.stack([np.roll(observed, -k, axis=0) for k in range(11)], axis=1)
    inputs = np.sign(np.sin(time / 20))[:, None]
    path, series_arrays = tmp_path / "channels.png", (observed, forecasts, inputs)
    series.channels(path, *series_arrays, StepTime(0.1, "s"), "three channels")
    assert_drawn(path)


def test_time_and_channels_are_counted_as_in_the_record(monkeypatch):
    figures = []
    monkeypatch.setattr(series.pictures, "save", lambda figure, path: figures.append(figure))
    observed = RNG.normal(size=(30, 2))
    forecasts = np.repeat(observed[:, None], 4, axis=1)
    inputs, time = np.zeros((30, 1)), StepTime(0.5, "s")
    series.channels("x.png", observed, forecasts, inputs, time, "later", ahead=3, begin=100)
    first, second, _ = figures[0].axes
    assert [axes.get_ylabel() for axes in (first, second)] == ["channel 0", "channel 1"]
    np.testing.assert_allclose(first.lines[0].get_xdata(), 0.5 * np.arange(103, 130))
    arrays = observed, forecasts, inputs
    series.channels("x.png", *arrays, time, "late", ahead=3, inputs_name="inputs, as they act")
    legends = [[text.get_text() for text in x.legends[0].get_texts()] for x in figures]
    assert [x[-1] for x in legends] == ["inputs", "inputs, as they act"]
