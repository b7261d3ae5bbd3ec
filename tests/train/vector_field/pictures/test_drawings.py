"""The arithmetic behind pictures of learned fields."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.train.images import assert_drawn, saved_figures, size_alone, words_fit
from tests.train.vector_field.pictures.drawn_runs import SMALL, evaluation_of
from train.host.files.snapshots import SavedArrays
from train.vector_field.config import SAMPLES_PER_UPDATE, Config
from train.vector_field.data.step_time import StepTime
from train.vector_field.experiment import experiments
from train.vector_field.look.facts import Spectrum
from train.vector_field.look.picture import draw_spectrum
from train.vector_field.pictures import curves, dynamics_pictures, film, maps, run_pictures, scene
from train.vector_field.training import State

RNG = np.random.default_rng(0)


def test_streamlines_around_a_centre_are_arcs():
    """In v = (-y, x), of speed r, each step turns by pace √r / r, at the same distance."""
    turning = lambda z: jnp.stack([-z[..., 1], z[..., 0]], axis=-1)
    begin = jnp.array([[1.0, 0.0], [0.0, 4.0]])
    follow = jax.jit(lambda pace: film.streamlines(turning, begin, pace))
    lines = np.asarray(follow(jnp.float32(0.1)))
    radii = np.array([[1.0], [4.0]])
    angles = np.array([[0.0], [np.pi / 2]]) + 0.1 * np.arange(lines.shape[1]) / np.sqrt(radii)
    np.testing.assert_allclose(lines[..., 0], radii * np.cos(angles), atol=2e-3)
    np.testing.assert_allclose(lines[..., 1], radii * np.sin(angles), atol=2e-3)


def test_traces_of_one_seed_have_its_axis_too():
    config = replace(SMALL, run=replace(SMALL.run, num_seeds=1))
    trail = RNG.normal(size=(2, 1, 30, 2)).astype(np.float32)
    within = np.ones((1, 3, 3), bool)
    key: Any = jax.random.key(0)  # as there are some in the state of a loop
    experiment = experiments.Experiment(key, trail, np.zeros((2, 1, 3, 3), bool))  # type: ignore
    state = State({}, {"random": experiment}, cast(Any, within), key, cast(Any, 0))
    traces = run_pictures.traces_of(config, state)
    np.testing.assert_array_equal(traces.trails, trail[None])
    assert (traces.visited.shape, traces.reachable.shape) == ((1, 2, 1, 3, 3), (1, 1, 3, 3))


def test_groups_are_put_into_the_order_of_the_policies():
    config = replace(SMALL, policies=("d_optimal+rnd", "bang50", "rnd", "off"))
    group_arrays = {"bang50": np.array([[10.0, 30.0]]), "d_optimal+rnd": np.array([[0.0, 20.0]])}
    np.testing.assert_array_equal(
        run_pictures.join_groups(config, group_arrays, axis=1), [[0, 10, 20, 30]]
    )


def test_what_the_first_policy_is_held_against():
    compared = run_pictures.compared_policies
    assert compared(["d_optimal", "random", "off"]) == ["d_optimal", "random"]
    assert compared(["d_optimal", "bang50", "random"]) == ["d_optimal", "random"]
    assert compared(["off"]) == ["off"]


def test_an_outline_runs_between_cells_within_and_without():
    within = RNG.random((5, 5)) < 0.5
    size = 2 * 3.0 / 4
    expected = set()
    for i, j in product(range(-1, 6), repeat=2):  # cells, and those around the grid
        inside = lambda i, j: 0 <= i < 5 and 0 <= j < 5 and bool(within[i, j])
        right, top = -3 + size * (i + 0.5), -3 + size * (j + 0.5)
        if inside(i, j) != inside(i + 1, j):
            expected.add((right, top - size, right, top))
        if inside(i, j) != inside(i, j + 1):
            expected.add((right - size, top, right, top))
    edges = maps.outline(within, 3.0)
    assert {tuple(np.sort(edge, axis=0).ravel()) for edge in edges} == expected
    assert len(edges) == len(expected)


@pytest.mark.slow
def test_maps_of_two_fields_are_drawn_where_nothing_is_known(tmp_path):
    true = RNG.normal(size=(2, 6, 6, 2))
    learned, path = {"o$f": np.zeros_like(true)}, tmp_path / "maps.png"
    with saved_figures() as figures:
        maps.fields(path, ("limit_cycle", "duffing"), true, learned, {}, 2.0, "Both")
    (figure,) = figures
    assert_drawn(path)
    assert words_fit(figure)


def test_a_point_that_is_known_exactly_leaves_the_colours_to_the_others():
    """All fields of a family are 0 at the origin, and so is their deviation there."""
    deviation = np.array([[0.0, 0.02], [0.05, 0.2]])
    assert maps.uncertainty_range(deviation) == pytest.approx((2e-4, 0.2))
    assert maps.uncertainty_range(deviation[1:]) == pytest.approx((0.05, 0.2))
    for alike in (np.zeros((2, 2)), np.full((2, 2), 0.3)):
        low, high = maps.uncertainty_range(alike)
        assert 0 < low < high


def test_ticks_are_round_and_few():
    ticks = maps.ticks
    assert ticks(0.26, 1.1) == pytest.approx([0.3, 0.4, 0.5, 0.6, 0.8, 1])
    assert ticks(0.1, 3) == pytest.approx([0.1, 0.2, 0.5, 1, 2])
    assert ticks(0.67, 0.93) == pytest.approx([0.7, 0.8, 0.9])
    assert ticks(1.02, 1.08) == pytest.approx([1.02, 1.04, 1.06, 1.08])
    assert ticks(0.03, 100) == pytest.approx([0.1, 1, 10, 100])


def test_rows_that_are_still_being_written_are_left_out(tmp_path):
    """Three seeds, of which one has not yet reached the last row."""
    config = replace(SMALL, run=replace(SMALL.run, num_seeds=3))
    measures = {"error": [[0.5, 0.9]], "reachable_error": [[0.1, None]], "coverage": [[0.0, 0.1]]}
    rows = [
        {"seed": seed, "steps": steps, "agent": measures}
        for steps in (50, 100, 150)
        for seed in (0, 1, 2)
    ]
    whole = tmp_path / "whole.png"
    curves.errors(whole, config, rows[:-3])
    picture_bytes = whole.read_bytes()
    curves.errors(whole, config, rows[:-1])
    assert whole.read_bytes() == picture_bytes
    assert min(size_alone(whole)) >= 300


def test_intervals_of_forecasts_are_those_of_their_fall(tmp_path, monkeypatch):
    """Seeds start at 0.9, 0.6, 0.3 and lose 0, 1, 2, 3 times 0.1, 0.2, 0.6 of it.

    The mean is 0.6 less 0.3 times that; the falls 1, 2, 6 have deviation √7, and t = 4.3027.
    """
    config = replace(SMALL, run=replace(SMALL.run, num_seeds=3))
    evaluation = evaluation_of(config)
    falls = np.arange(4) * np.array([[0.1], [0.2], [0.6]])
    for row, values in zip(
        evaluation["seeds"], np.array([[0.9], [0.6], [0.3]]) - falls, strict=True
    ):
        row["random"] = {name: [values.tolist()] for name in ("r2", "r2_free")}
    drawn_numbers = []
    monkeypatch.setattr(curves, "_draw", lambda axes, x, *numbers: drawn_numbers.append(numbers))
    monkeypatch.setattr(curves, "_legend", lambda *_: None)
    curves.forecasts(tmp_path / "forecasts.png", evaluation)
    for means, margins, policies in drawn_numbers:
        assert policies == ["random", "bang50"]
        np.testing.assert_allclose(means[0], 0.6 - 0.3 * np.arange(4))
        half = 0.1 * np.arange(4) * 4.3027 * np.sqrt(7 / 3)
        np.testing.assert_allclose(margins[0], half, rtol=0.01)
    assert len(drawn_numbers) == 2  # stimulated and left alone


def test_the_path_of_an_angle_is_broken_where_it_goes_round():
    trail = np.array([[2.9, 0.0], [3.1, 0.1], [-3.1, 0.2], [-2.9, 0.3]])
    np.testing.assert_array_equal(maps.jumps(trail, 3.0), [False, True, False])
    broken = maps.break_at_jumps(trail, 3.0)
    np.testing.assert_array_equal(broken[[0, 1, 3, 4]], trail)
    assert np.isnan(broken[2]).all()
    np.testing.assert_array_equal(maps.break_at_jumps(trail[:2], 3.0), trail[:2])


def test_coverage_of_any_height_is_within_the_picture(monkeypatch):
    figures = []
    monkeypatch.setattr(dynamics_pictures, "save", lambda figure, path: figures.append(figure))
    row = lambda **coverage: {"r2": [0.9, 0.5, 0.1], "coverage": coverage}
    bad, good = row(a=0.41, b=0.88, c=None), row(a=0.9, b=0.9, c=0.91)
    for rows in ([bad, good], [good]):
        content = {"seeds": [{"seed": k, **x} for k, x in enumerate(rows)], "baselines": {}}
        dynamics_pictures.draw_forecasts(Path("x.png"), Config(), content)
    for figure, least in zip(figures, (41, 60), strict=True):
        low, high = figure.axes[1].get_ylim()
        drawn = np.concatenate([line.get_ydata() for line in figure.axes[1].lines])
        assert low < np.nanmin(drawn) <= np.nanmax(drawn) <= high
        assert low <= least
    row = {"seed": 0, "r2": [0.9, 0.5, 0.1], "coverage": {"+1": 1.0}}
    far = {"r2": [None, -0.8, -1.2], "coverage": {"+1": 0.7}}
    nothing = {"seed": 1, "r2": [None] * 3, "coverage": {"+1": None}}
    content = {"seeds": [row, nothing], "baselines": {"persistence": far}}
    dynamics_pictures.draw_forecasts(Path("x.png"), Config(), content)
    names = [text.get_text() for text in figures[-1].legends[0].get_texts()]
    assert names == ["seed 0", "seed 1 (no R²)", "persistence (R² below)"]
    assert figures[-1].axes[1].get_ylim()[1] > 100


def test_a_spectrum_of_channels_that_never_change_says_so():
    axes = Figure().subplots()
    nothing = Spectrum(np.arange(1, 5) / 8, np.full((4, 2), np.nan))
    draw_spectrum(axes, nothing, StepTime())
    assert [text.get_text() for text in axes.texts] == ["no channel varies"]


@pytest.mark.parametrize(("dimension", "name"), [(2, "error"), (3, "error in this plane")])
def test_the_error_on_a_plane_of_the_state_is_told_from_that_of_the_scores(
    dimension, name, monkeypatch, tmp_path
):
    pair = np.zeros((SAMPLES_PER_UPDATE, 2), np.float32)
    samples = {"z": pair, "push": pair, "u": pair, "y": pair, "belief": pair}
    grid = {"velocity": np.zeros((2, 3, 3, 2)), "deviation": np.ones((2, 3, 3))}
    grid["velocity"][1] = 0.75  # at the end
    looks, true = SavedArrays(np.array([0, 1]), grid), np.ones((3, 3, 2))
    episode = scene._episode("off", samples, looks, true, None, True, dimension)
    assert episode.title == f"off, {name} 0.25"
    np.testing.assert_array_equal(episode.frames["look"], [0] * (len(pair) - 1) + [1])
    assert name.replace("error", "error of the field") in episode.lines
    captions = []
    monkeypatch.setattr(film, "repeat_experiment", lambda *_: (true, []))
    monkeypatch.setattr(film, "write", lambda *arguments: captions.append(arguments[-1]))
    config = replace(Config(), env=replace(Config().env, dimension=dimension))
    film.film(tmp_path, config, lambda _: cast(Any, None), 2)
    assert captions == [name]
