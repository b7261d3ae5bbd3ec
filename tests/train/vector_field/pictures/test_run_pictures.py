"""Pictures and film of learned fields: the arithmetic behind them, and what a small run leaves."""

import json
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from rich.table import Table

from jaxrl.dynamics import rbf
from jaxrl.loop import LoopMetrics
from tests.train.images import assert_drawn, saved_figures, size_alone, words_fit
from train.host.files import metrics_file, snapshots
from train.host.machine import compiled
from train.host.program import EpisodeSelection, Run
from train.host.scoring import scores
from train.host.showing.live import Game
from train.host.training import Evaluation, Training
from train.vector_field.config import PRESETS, Config, make_env, make_learner
from train.vector_field.data import recordings
from train.vector_field.experiment import experiments
from train.vector_field.pictures import curves, film, maps, run_pictures, scene
from train.vector_field.program import PROGRAM
from train.vector_field.training import State, field_snapshot, make_training, samples

SEEN = PRESETS["seen"].config
SMALL = replace(
    SEEN,
    policies=("random", "bang50"),
    env=replace(SEEN.env, fields=("limit_cycle",)),
    bayesian=replace(SEEN.bayesian, grid=rbf.Grid(per_axis=5, half_width=2.5)),
    run=replace(SEEN.run, num_seeds=2, total_steps=100),
)
SEEDS = SMALL.run.members.starts
RNG = np.random.default_rng(0)


def evaluation_of(config: Config, steps: int = 4) -> dict:
    """The content of `eval.json`, with R² that fall from 1 to -9 in all forecasts."""
    fields, policies = config.env.fields, config.policies
    falling = [np.linspace(1, -9, steps).tolist()] * len(fields)
    rows = [
        {"seed": seed, "field_error": 1.0}
        | {name: {"r2": falling, "r2_free": falling} for name in policies}
        for seed in config.run.seeds
    ]
    times = {"compile_seconds": 0.0, "seconds": 0.0}
    content = {"score": "field_error", "fields": list(fields), "policies": list(policies)}
    return {**content, **times, "seeds": rows}


class FinishedRun(NamedTuple):
    """A run of two seeds and two policies, drawn."""

    config: Config
    states: list[State]  # after 0, 50 and 100 samples
    rows: list[dict]
    paths: list[Path]


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> FinishedRun:
    directory = tmp_path_factory.mktemp("fields")
    with pytest.MonkeyPatch.context() as patch:  # to search for what is in reach takes long
        patch.setattr(experiments, "reachable", lambda *_, **__: jnp.ones((25, 25), bool))
        training = make_training(SMALL)
        states = [jax.jit(compiled.init_all(training.init, SEEDS))(SEEDS)]
        update, rows = jax.jit(jax.vmap(training.update)), []
        for steps in (50, 100):
            state, metrics = update(states[-1])
            states.append(state)
            for seed in (0, 1):
                measures = {name: x[seed].tolist() for name, x in metrics.agent.items()}
                rows.append({"seed": seed, "steps": steps, "updates": steps, "agent": measures})
    with metrics_file.MetricsFile(directory) as record:
        record.append(rows)
    (directory / "eval.json").write_text(json.dumps(evaluation_of(SMALL)))
    agents = scores.agents_of(state.agent, 2)
    traces = run_pictures.traces_of(SMALL, state)
    paths = run_pictures.draw_all(directory, SMALL, agents, traces)
    return FinishedRun(SMALL, states, rows, paths)


def replay_training(finished_run: FinishedRun) -> Training:
    """The first seed, policy and field of a run, as a training of their own."""
    first_only = lambda tree: jax.tree.map(
        lambda x: np.asarray(x)[0, :1], tree
    )  # seeds, policies, fields

    def of_first(state: State) -> State:
        experiment = first_only(state.experiments["random"]._replace(train=()))
        agent, nothing = {"random": first_only(state.agent["random"])}, cast(Any, ())
        within = cast(Any, np.asarray(state.reachable[0]))
        return State(agent, {"random": experiment}, within, nothing, state.updates[0])

    states = jax.tree.map(lambda *x: np.stack(x), *map(of_first, finished_run.states))
    state_at = lambda time: jax.tree.map(lambda x: jnp.asarray(x)[time], states)
    nothing = LoopMetrics(jnp.zeros((), jnp.int32), {}, {})
    return Training(
        init=lambda key: state_at(0),
        update=lambda state: (state_at(state.updates + 1), nothing),
        evaluate=lambda *_: Evaluation({}, Table()),
        steps_per_update=50,
    )


@pytest.mark.slow
def test_a_run_leaves_its_arrays_and_four_pictures(finished_run):
    paths = finished_run.paths
    names = ["experiments.npz", "fields.png", "information.png", "errors.png", "forecasts.png"]
    assert [path.name for path in paths] == names
    with np.load(paths[0]) as arrays:
        saved_arrays = dict(arrays)
    assert {name: x.shape for name, x in saved_arrays.items()} == {
        "trails": (2, 2, 1, 1000, 2),
        "visited": (2, 2, 1, 25, 25),
        "reachable": (2, 1, 25, 25),
        "learned": (2, 2, 1, 25, 25, 2),
        "true": (2, 1, 25, 25, 2),
    }
    x, y = np.meshgrid(*[np.linspace(-2, 2, 25)] * 2, indexing="ij")
    inward = np.sum(
        saved_arrays["true"][0, 0] * np.stack([x, y], -1), axis=-1
    )  # to a circle of radius 1
    assert (inward[np.hypot(x, y) > 1.1] < 0).all()
    assert (inward[(np.hypot(x, y) < 0.9) & (np.hypot(x, y) > 0)] > 0).all()
    last = finished_run.rows[-2:]
    for seed, policy in product((0, 1), (0, 1)):
        residuals = saved_arrays["learned"][seed, policy, 0] - saved_arrays["true"][seed, 0]
        error = np.sqrt(np.sum(residuals**2) / np.sum(saved_arrays["true"][seed, 0] ** 2))
        assert error == pytest.approx(last[seed]["agent"]["error"][0][policy], rel=1e-4)
        states = saved_arrays["trails"][seed, policy, 0][-100:]
        visited = np.zeros((25, 25), bool)
        near = np.round((states + 2) * 6).astype(int)
        inside = ((near >= 0) & (near < 25)).all(axis=1)
        visited[tuple(near[inside].T)] = True
        np.testing.assert_array_equal(saved_arrays["visited"][seed, policy, 0], visited)


@pytest.mark.slow
def test_pictures_drawn_again_have_the_trails_of_before(finished_run, monkeypatch):
    directory, state = finished_run.paths[0].parent, finished_run.states[-1]
    drawn_trails = []
    for name, place in (("fields", 4), ("information", 3)):
        record_trails = lambda *arguments, place=place: drawn_trails.append(arguments[place])
        monkeypatch.setattr(maps, name, record_trails)
    arrays = finished_run.paths[0].read_bytes()
    agents, traces = scores.agents_of(state.agent, 2), run_pictures.traces_of(SMALL, state)
    assert run_pictures.draw_all(directory, SMALL, agents, traces) == finished_run.paths
    assert finished_run.paths[0].read_bytes() == arrays
    assert len(drawn_trails) == 2
    for trails in drawn_trails:
        for place, name in enumerate(SMALL.policies):
            newest = state.experiments["random"].train.env.z[0, place, 0, 0]
            np.testing.assert_array_equal(trails[name][0, -1], newest)


def test_a_film_shows_what_the_record_says(finished_run, monkeypatch, tmp_path):
    film_moments = []
    write = film.write

    def record_moments(path, true, moments, *arguments):
        film_moments.extend(moments)
        write(path, true, moments, *arguments)

    monkeypatch.setattr(film, "write", record_moments)
    path = film.film(tmp_path, SMALL, lambda config: replay_training(finished_run), 2)
    rows = [row for row in finished_run.rows if row["seed"] == 0]
    assert [moment.samples for moment in film_moments] == [0, 50, 100]
    expected = [1.0, *(row["agent"]["error"][0][0] for row in rows)]
    np.testing.assert_allclose([moment.error for moment in film_moments], expected, rtol=1e-4)
    assert not film.lengths(film_moments[0].lines).any()  # nothing is known yet
    with Image.open(path) as gif:
        gif.seek(2)
        frame = np.asarray(gif.convert("RGB"))
        with pytest.raises(EOFError):
            gif.seek(3)
    assert_drawn(path)
    assert (frame[-1] == 255).all()  # the background is white, not nearly so
    assert (frame.min(axis=-1) < 128).mean() > 0.02


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
    config = replace(SMALL, policies=("d_optimal", "bang50", "myopic", "off"))
    hold_group = np.array([[10.0, 30.0]])
    group_arrays = {
        "bang50": hold_group,
        "d_optimal": np.array([[0.0]]),
        "myopic": np.array([[20.0]]),
    }
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


def test_ticks_are_round_and_few():
    ticks = maps.ticks
    assert ticks(0.26, 1.1) == pytest.approx([0.3, 0.4, 0.5, 0.6, 0.8, 1])
    assert ticks(0.1, 3) == pytest.approx([0.1, 0.2, 0.5, 1, 2])
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


def join_samples(finished_run: FinishedRun) -> dict[str, np.ndarray]:
    """The samples of both chunks, `[S, P, F, T, ...]`."""
    chunks = [jax.vmap(partial(samples, SMALL))(state) for state in finished_run.states[1:]]
    return {name: np.concatenate([x[name] for x in chunks], axis=3) for name in chunks[0]}


def test_recordings_are_what_the_experiments_went_through(finished_run):
    recorded_samples, last = join_samples(finished_run), finished_run.states[-1]
    assert recorded_samples["u"].shape == (2, 2, 1, 100, 2)
    trail = run_pictures.traces_of(SMALL, last).trails[..., -100:, :]
    np.testing.assert_array_equal(recorded_samples["z"][..., 1:, :], trail[..., :-1, :])
    np.testing.assert_array_equal(
        recorded_samples["y"], recorded_samples["z"]
    )  # the state itself is seen
    np.testing.assert_array_equal(recorded_samples["belief"], recorded_samples["z"])
    env = make_env(SMALL)
    for s in range(2):
        for p in range(2):
            agent = jax.tree.map(lambda x, s=s, p=p: x[s, p, 0], last.agent["random"])
            z, u = recorded_samples["z"][s, p, 0], recorded_samples["u"][s, p, 0]
            drift = env.velocity(jnp.asarray(z[:-1]), agent.known.numbers) + u[:-1]
            noise = z[1:] - z[:-1] - 0.1 * np.asarray(drift)
            assert 0.7 < noise.std() / np.sqrt(SMALL.env.process_noise * 0.1) < 1.3


def test_a_recording_can_be_learned_from(finished_run, tmp_path):
    recorded_samples = join_samples(finished_run)
    paths = recordings.write_experiments(
        tmp_path, recorded_samples, [0, 1], SMALL.policies, ("limit_cycle",)
    )
    assert len(paths) == 4
    assert paths[1].name == "bang50-limit_cycle-seed0.npz"
    data = recordings.load(str(paths[1]))
    np.testing.assert_array_equal(data.y[0], recorded_samples["y"][0, 1, 0])
    np.testing.assert_array_equal(data.u[0], recorded_samples["u"][0, 1, 0])
    with np.load(paths[1]) as arrays:
        assert set(arrays) == {"y", "u", "z", "belief"}


def test_the_path_of_an_angle_is_broken_where_it_goes_round():
    trail = np.array([[2.9, 0.0], [3.1, 0.1], [-3.1, 0.2], [-2.9, 0.3]])
    np.testing.assert_array_equal(maps.jumps(trail, 3.0), [False, True, False])
    broken = maps.break_at_jumps(trail, 3.0)
    np.testing.assert_array_equal(broken[[0, 1, 3, 4]], trail)
    assert np.isnan(broken[2]).all()
    np.testing.assert_array_equal(maps.break_at_jumps(trail[:2], 3.0), trail[:2])


def test_snapshots_show_the_learned_fields(finished_run):
    look = partial(field_snapshot, SMALL, make_learner(SMALL))
    snapshot = jax.jit(jax.vmap(look))(finished_run.states[-1])
    agents = scores.agents_of(finished_run.states[-1].agent, 2)
    learned, _, deviation = run_pictures.learned_fields(SMALL, agents)
    np.testing.assert_allclose(snapshot["velocity"], learned, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(snapshot["deviation"][0], deviation, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_the_report_shows_each_experiment(finished_run, tmp_path):
    rows_by_name = {"velocity": [], "deviation": []}
    for state in finished_run.states:
        snapshot = jax.vmap(partial(field_snapshot, SMALL, make_learner(SMALL)))(state)
        for name, rows in rows_by_name.items():
            rows.append(np.asarray(snapshot[name]))
    looks = snapshots.SavedArrays(
        np.array([0, 1, 2]), {name: np.stack(x) for name, x in rows_by_name.items()}
    )
    run = Run(tmp_path, PROGRAM, SMALL, 2, scores.agents_of(finished_run.states[-1].agent, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "snapshots", lambda *_: looks)
        patch.setattr(scene, "samples_of", lambda run: join_samples(finished_run))
        report = scene.show(run, EpisodeSelection(5, jax.random.key(0), 70, 1))
    assert report is not None
    assert len(report.episodes) == 2
    first = report.episodes[0]
    assert first.title.startswith("random on limit cycle, error ")
    np.testing.assert_array_equal(first.frames["z"], join_samples(finished_run)["z"][1, 0, 0, :70])
    np.testing.assert_array_equal(
        first.frames["push"], join_samples(finished_run)["u"][1, 0, 0, :70]
    )
    np.testing.assert_array_equal(first.frames["look"], [0] * 50 + [1] * 20)
    assert first.lines["error of the field"][0] > first.lines["error of the field"][-1]
    assert (
        scene.show(run._replace(directory=tmp_path), EpisodeSelection(1, jax.random.key(0), 5))
        is None
    )


@pytest.mark.slow
def test_a_live_experiment_learns_and_can_be_pushed(finished_run, tmp_path):
    run = Run(tmp_path, PROGRAM, SMALL, 2, scores.agents_of(finished_run.states[-1].agent, 2))
    live = scene.live(run, 0)
    game = Game(live, 0)
    before = game.now.agent_state.posterior.information
    for _ in range(3):
        game.step()
    assert game.now.agent_state.posterior.information > before
    game.edit("push", [0.5, -1.0])
    np.testing.assert_allclose(game.now.state.z, [0.5, -1.0])
    np.testing.assert_allclose(game.now.obs, [0.5, -1.0])
    view = game.moment_data()
    assert set(view["lines"]) == {"error of the field", "mean deviation"}
    assert view["frames"]["velocity"].shape == (1, 25 * 25 * 2)
    assert view["frames"]["push"].shape == view["frames"]["z"].shape
    game.edit("push", [1e5, 0.0])  # into the wall
    assert abs(float(game.now.state.z[0])) <= float(live.params.reach)
