"""Films in another format and on paper, and all that a run recorded."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image, ImageSequence

from envs import gif
from tests.train.images import assert_drawn
from train.host.files import metrics_file, series
from train.host.showing import diagnostics, films

COLOURS = np.array([[0, 0, 0], [250, 10, 20], [20, 200, 30], [255, 255, 255]], np.uint8)


def film(path, count: int):
    """A film in which one pixel more is red in each frame."""
    frames = []
    for i in range(count):
        pixels = np.full((6, 9), 3, np.uint8)
        pixels.flat[: i + 1] = 1
        frames.append((pixels, 0.1 if i < count - 1 else 2.0))
    gif.write(path, iter(frames), COLOURS)
    return path


def read_frames(path) -> list[tuple[np.ndarray, int]]:
    with Image.open(path) as image:
        return [
            (np.asarray(frame.convert("RGB")), frame.info["duration"])
            for frame in ImageSequence.Iterator(image)
        ]


def test_webp_shows_the_same_frames_for_as_long(tmp_path):
    path = film(tmp_path / "x.gif", 7)
    expected = read_frames(path)
    frames = read_frames(films.convert_to_webp(path))
    assert not path.exists()
    assert [x.name for x in tmp_path.iterdir()] == ["x.webp"]
    assert len(frames) == len(expected) == 7
    for (a, time), (b, other) in zip(frames, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert time == other


@pytest.mark.parametrize(("count", "across", "down"), [(20, 3, 2), (2, 2, 1), (1, 1, 1)])
def test_a_strip_has_the_first_and_the_last_frame(count, across, down, tmp_path):
    path = film(tmp_path / "x.gif", count)
    frames = [pixels for pixels, _ in read_frames(path)]
    with Image.open(films.strip(path)) as image:
        assert image.info["dpi"][0] == pytest.approx(300, abs=0.1)
        strip = np.asarray(image)
    small = across * (9 + films.GAP) - films.GAP, down * (6 + films.GAP) - films.GAP
    scale = strip.shape[1] // small[0]
    assert strip.shape[:2] == (small[1] * scale, small[0] * scale)
    strip = strip[::scale, ::scale]
    np.testing.assert_array_equal(strip[:6, :9], frames[0])
    if count > 1:
        np.testing.assert_array_equal(strip[-6:, -9:], frames[-1])


def test_every_measure_has_a_panel(tmp_path):
    rows = [
        {
            "seed": seed,
            "steps": 10 * t,
            "finished": {"return": float(t)},
            "agent": {"loss": [[seed, t], [None, 2.0]], "nothing": None},
        }
        for t in (1, 2, 3)
        for seed in range(3)
    ]
    with metrics_file.open_for_process(tmp_path) as record:
        record.append(rows)
    path = diagnostics.draw(tmp_path, [0, 1, 2], "A run", "steps", {"loss": ["a", "b", "c", "d"]})
    assert path is not None
    assert_drawn(path)
    (tmp_path / "metrics.jsonl").write_text("")
    assert diagnostics.draw(tmp_path, [0], "A run", "steps", {}) is None


def test_a_measure_that_hardly_changes_has_its_own_numbers_at_the_axis():
    """And not those of `1e-7 + 1e-3`, which hide a rate of 0.001 in a line above the panel."""
    figure = Figure()
    axes = figure.subplots()
    rate = [np.array([1e-3, 1e-3 - 7e-8, 1e-3 - 1.4e-7])]
    diagnostics._panel(axes, "learning_rate", np.arange(1.0, 4.0), [rate], "steps", ())
    figure.draw_without_rendering()
    assert axes.yaxis.get_offset_text().get_text() == ""
    numbers = [float(label.get_text()) for label in axes.get_yticklabels()]
    np.testing.assert_allclose(numbers, axes.get_yticks(), rtol=1e-6)


def test_a_number_without_neighbours_is_a_dot():
    """No line leads to the numbers of a run of one row."""
    values = [np.array([2.0, np.nan, 1.0, 3.0])]
    axes = Figure().subplots()
    diagnostics._panel(axes, "loss", np.arange(1.0, 5.0), [values], "steps", ())
    _, dots = axes.get_lines()
    assert (dots.get_marker(), np.asarray(dots.get_ydata()).tolist()) == (".", [2.0])


def test_a_short_last_chunk_is_no_fall():
    """It has few episodes, and few updates for an extreme; means over updates need no more."""
    finished, agent = [500.0, 500.0, 20.0], {"loss": [2.0, 2.0, 3.0], "step_max": [9.0, 8.0, 4.0]}
    rows = [
        {
            "seed": 0,
            "steps": steps,
            "finished": {"return": finished[t]},
            "agent": {name: [x[t]] for name, x in agent.items()},
        }
        for t, steps in enumerate((1_000, 2_000, 2_200))
    ]
    part = lambda group, name: series.parts(series.timeline([rows]), group, name)[0][0].tolist()
    assert part("finished", "return") == [500, 500, pytest.approx((5 * 500 + 20) / 6)]
    assert part("agent", "loss") == [2, 2, 3]
    assert part("agent", "step_max") == [9, 8, 8]
    longer = [{**rows[2], "steps": steps} for steps in (3_000, 3_500)]
    line = series.timeline([[*rows, *longer]])
    after = series.parts(line, "finished", "return")[0][0].tolist()
    assert after[2:] == [pytest.approx((5 * 500 + 20) / 6), 20, 20]
    lost = [rows[0], {**rows[2], "steps": 3_000}]
    line = series.timeline([[*rows[:2], longer[0]], lost])
    np.testing.assert_array_equal(line.steps, [1_000, 2_000, 3_000])
    np.testing.assert_array_equal(
        series.parts(line, "agent", "loss")[0], [[2, 2, 3], [2, np.nan, 3]]
    )
    rows[2]["finished"] = {"return": None}
    assert part("finished", "return") == [500, 500, 500]
