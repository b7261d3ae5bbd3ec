"""Pictures, film and report of a small run show what is on record."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from jaxrl.numerics.trees import take
from tests.train.images import assert_drawn
from tests.train.vector_field.pictures.drawn_runs import SMALL, join_samples, replay_training
from train.host.files import snapshots
from train.host.program import EpisodeSelection, Run
from train.host.scoring import scores
from train.host.showing.live_game import Game
from train.vector_field.data import recordings
from train.vector_field.data.files import loading
from train.vector_field.factories import make_env, make_learner
from train.vector_field.pictures import film, maps, run_pictures, scene
from train.vector_field.program import PROGRAM
from train.vector_field.training import field_snapshot


@pytest.mark.slow
def test_a_run_leaves_its_arrays_and_four_pictures(finished_run, paths):
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
def test_pictures_drawn_again_have_the_trails_of_before(finished_run, paths, monkeypatch):
    directory, state = finished_run.directory, finished_run.states[-1]
    drawn_trails = []
    for name, place in (("fields", 4), ("information", 3)):
        record_trails = lambda *arguments, place=place: drawn_trails.append(arguments[place])
        monkeypatch.setattr(maps, name, record_trails)
    arrays = paths[0].read_bytes()
    agents, traces = scores.agents_of(state.agent, 2), run_pictures.traces_of(SMALL, state)
    assert run_pictures.draw_all(directory, SMALL, agents, traces) == paths
    assert paths[0].read_bytes() == arrays
    assert len(drawn_trails) == 2
    for trails in drawn_trails:
        for place, name in enumerate(SMALL.policies):
            newest = state.experiments["random"].train.env.z[0, place, 0, 0]
            np.testing.assert_array_equal(trails[name][0, -1], newest)


@pytest.mark.slow
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


@pytest.mark.slow
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
            agent = take(last.agent["random"], (s, p, 0))
            z, u = recorded_samples["z"][s, p, 0], recorded_samples["u"][s, p, 0]
            drift = env.velocity(jnp.asarray(z[:-1]), agent.known.numbers) + u[:-1]
            noise = z[1:] - z[:-1] - 0.1 * np.asarray(drift)
            assert 0.7 < noise.std() / np.sqrt(SMALL.env.process_noise * 0.1) < 1.3


@pytest.mark.slow
def test_a_recording_can_be_learned_from(finished_run, tmp_path):
    recorded_samples = join_samples(finished_run)
    paths = recordings.write_experiments(
        tmp_path, recorded_samples, [0, 1], SMALL.policies, ("limit_cycle",)
    )
    assert len(paths) == 4
    assert paths[1].name == "bang50-limit_cycle-seed0.npz"
    data = loading.load(str(paths[1]))
    np.testing.assert_array_equal(data.y[0], recorded_samples["y"][0, 1, 0])
    np.testing.assert_array_equal(data.u[0], recorded_samples["u"][0, 1, 0])
    with np.load(paths[1]) as arrays:
        assert set(arrays) == {"y", "u", "z", "belief"}


@pytest.mark.slow
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
    np.testing.assert_array_equal(first.frames["look"], [0] * 49 + [1] * 21)
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
