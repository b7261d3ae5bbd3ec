"""`python -m train.allo --transitions FILE.npz`, from the outside."""

import json
from functools import partial

import chex
import jax
import numpy as np
import pytest
from PIL import Image

from jaxrl.spectral import laplacian
from jaxrl.spectral.learning import allo_state
from tests.train.host import crashes
from train import evaluate, render
from train.allo import scene
from train.allo.config import Config
from train.allo.program import PROGRAM
from train.allo.recorded import parts, recorded_pictures, recorded_scores, recorded_training
from train.host.command_line import command
from train.host.running import saved_runs

allo_command = partial(command.main, PROGRAM)
RING = 12
SMALL = (
    "--network.hidden 32 32 --agent.num-features=5 --agent.spare-features=2 "
    "--agent.optimizer=adam --run.num-seeds=2 --run.total-steps=400 --run.chunk-steps=100 "
    "--run.checkpoint-every=2"
)


def parse_config(flags: str) -> Config:
    return command.parse(PROGRAM, flags.split())[0]


def walks(count: int = 300, longest: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """`(states, lengths)`: walks of different lengths along a line of 12 states."""
    rng = np.random.default_rng(0)
    lengths, states = rng.integers(2, longest, count), []
    for length in lengths:
        at = int(rng.integers(RING))
        for _ in range(length):
            states.append(at)
            at = int(np.clip(at + rng.integers(-1, 2), 0, RING - 1))
    return np.array(states), lengths


@pytest.fixture(scope="module")
def walks_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "walks.npz"
    states, lengths = walks()
    along = np.arange(RING)
    np.savez(path, states=states, lengths=lengths, positions=np.stack([along, 0 * along], axis=1))
    return path


@pytest.fixture(scope="module")
def finished_run(walks_file):
    directory = walks_file.parent / "run"
    flags = [f"--transitions={walks_file}", *SMALL.split(), f"--run.directory={directory}"]
    assert allo_command(arguments=flags) == 0
    return directory


def slow_truth(states: np.ndarray, lengths: np.ndarray, discount: float = 0.9):
    """The eigenvectors of the law of recorded pairs, one pair of times after another."""
    M, start = np.zeros((RING, RING)), 0
    for length in lengths:
        walk = states[start : start + length]
        start += length
        for i in range(length - 1):
            law = laplacian.offset_law(length - 1 - i, discount)[-1]
            for k, chance in enumerate(law, start=1):
                M[walk[i], walk[i + k]] += chance
    return laplacian.eigensystem(M)


@pytest.mark.slow
def test_a_run_on_ids_finds_the_eigenvectors_of_their_pairs(finished_run):
    truth = slow_truth(*walks())
    content = json.loads((finished_run / "eval.json").read_text())
    assert (content["states"], content["kind"], content["trajectories"]) == (RING, "ids", 300)
    np.testing.assert_allclose(content["true_eigenvalues"], truth.values[:5], atol=1e-6)
    with np.load(finished_run / "eigenvectors.npz") as arrays:
        learned, saved = arrays["learned"], dict(arrays)
    assert {name: x.shape for name, x in saved.items()} == {
        "learned": (2, RING, 5),
        "learned_eigenvalues": (2, 5),
        "true": (RING, 5),
        "true_eigenvalues": (5,),
        "seeds": (2,),
    }
    for row, u in zip(content["seeds"], learned, strict=True):
        inner = np.einsum("s,sd,sd->d", truth.weight, u, truth.vectors[:, :5])
        size = np.sqrt(np.einsum("s,sd->d", truth.weight, u.astype(float) ** 2))
        cosine = np.abs(inner) / size
        np.testing.assert_allclose(row["cosines"], cosine, atol=1e-4)
        assert row["similarity"] > 0.99
        assert row["orthogonality"] < 0.1
        assert row["explained"] == pytest.approx(1, abs=0.02)
        assert max(row["residual"][:3]) < 0.2
    for name in ("eigenvectors", "similarity", "eigenvalues", "losses"):
        with Image.open(finished_run / f"{name}.png") as picture:
            assert picture.width > 300
    assert scene.show(saved_runs.load(finished_run), None) is None  # pyright: ignore[reportArgumentType]


def test_the_truth_of_ids_is_that_of_their_pairs(walks_file):
    """And an update of a learner on them keeps all shapes."""
    config = parse_config(f"--transitions={walks_file} {SMALL}")
    problem, truth = recorded_training.make_problem(config), slow_truth(*walks())
    np.testing.assert_allclose(problem.truth.values, truth.values[:5], atol=1e-6)
    np.testing.assert_allclose(problem.truth.weight, truth.weight, atol=1e-6)
    inner = np.einsum(
        "s,sd,sd->d", truth.weight, problem.truth.vectors[:, :5], truth.vectors[:, :5]
    )
    np.testing.assert_allclose(np.abs(inner), 1, atol=1e-5)
    training = PROGRAM.training(config)
    state = jax.eval_shape(training.init, jax.random.key(0))
    after, metrics = jax.eval_shape(training.update, state)
    chex.assert_trees_all_equal_shapes_and_dtypes(after, state)
    assert metrics.agent["cosines"].shape == (5,)


def test_measures_are_exact_for_true_eigenvectors():
    """Residual 0 and explained 1, at ids of a reversible law."""
    P = np.diag(np.full(11, 0.25), 1) + np.diag(np.full(11, 0.25), -1)
    P += np.diag(1 - P.sum(axis=1))
    M = laplacian.sampled_pairs(P, np.full(RING, 1 / RING), 30, 0.9)
    truth = laplacian.eigensystem(M)
    u = truth.vectors[:, :4]
    after = M @ u / M.sum(axis=1)[:, None]
    residuals = recorded_scores.residuals((u, after, M.sum(axis=1)), truth.values[:4])
    np.testing.assert_allclose(residuals, 0, atol=1e-9)
    weight, scaled = M.sum(axis=1)[:, None], 0.1 * u @ np.triu(np.ones((4, 4)))
    gram, energy = scaled.T @ (weight * scaled), scaled.T @ (weight * scaled - M @ scaled)
    shares = recorded_scores.shares_of(gram, energy)  # whose sum is what is explained
    np.testing.assert_allclose(shares, 1 - truth.values[:4], atol=1e-9)


@pytest.mark.slow
def test_a_run_is_evaluated_drawn_and_resumed(finished_run, walks_file, tmp_path):
    before = (finished_run / "eval.json").read_text()
    assert evaluate.main([str(finished_run)]) == 0
    evaluation = json.loads((finished_run / "eval.json").read_text())
    assert evaluation["seeds"] == json.loads(before)["seeds"]
    (finished_run / "eigenvectors.npz").rename(tmp_path / "before.npz")
    assert render.main([str(finished_run)]) == 0
    interrupted = tmp_path / "run"
    crashes.after_the_first_checkpoint(finished_run, interrupted)
    assert allo_command(arguments=["--resume", str(interrupted)]) == 0
    arrays = []
    for path in (tmp_path / "before.npz", finished_run, interrupted):
        with np.load(path if path.is_file() else path / "eigenvectors.npz") as saved_arrays:
            arrays.append(dict(saved_arrays))
    chex.assert_trees_all_equal(*arrays)


def test_the_map_of_eigenvectors_tells_their_own_eigenvalues(walks_file, tmp_path, monkeypatch):
    config = parse_config(f"--transitions={walks_file} {SMALL}")
    agent = recorded_training.make_training(config).init(jax.random.key(0)).agent
    figures = []
    monkeypatch.setattr(
        recorded_pictures.pictures, "save", lambda figure, _: figures.append(figure)
    )
    for name in ("similarity_curves", "eigenvalue_curves"):
        monkeypatch.setattr(recorded_pictures.curves, name, lambda *_: None)
    monkeypatch.setattr(recorded_pictures.loss_curves, "loss_curves", lambda *_: None)
    monkeypatch.setattr(recorded_pictures.metrics_file, "read_metrics", lambda _: [])
    recorded_pictures.draw_all(tmp_path, config, [agent])
    with np.load(tmp_path / "eigenvectors.npz") as arrays:
        learned, true = arrays["learned_eigenvalues"][0], arrays["true_eigenvalues"]
    titles = [axes.get_title(loc="left") for axes in figures[0].axes]
    assert titles == [f"{i + 1}, λ {x:.4f}" for i, x in enumerate(np.abs(learned))]
    assert learned.max() == 0 < 0.1 < true.max()  # as multipliers begin with 0


@pytest.mark.slow
def test_a_run_on_vectors(tmp_path):
    """A walk along a line: its eigenfunctions are cosines, whatever the data are called."""
    # Recorded walks between 0 and 1,000, with a second coordinate that is 0.
    rng = np.random.default_rng(0)
    steps = rng.uniform(-0.15, 0.15, (400, 100))
    at, walk = rng.uniform(0, 1, 400), []
    for t in range(100):
        walk.append(at)
        at = 1 - np.abs(1 - np.abs(at + steps[:, t]))  # reflected at 0 and 1
    states = np.stack(walk, axis=1)[:, :, None] * 1_000  # [E, T, 1], in other units
    np.savez(tmp_path / "line.npz", states=np.concatenate([states, 0 * states], axis=2))
    # A run on them, and its evaluation.
    directory = tmp_path / "run"
    flags = (
        f"continuous --transitions={tmp_path}/line.npz --network.hidden 32 32 "
        "--network.frequencies=4 --agent.num-features=3 --agent.spare-features=2 "
        "--agent.batch-size=256 --agent.turn-pairs=8192 --run.total-steps=600 "
        f"--run.directory={directory}"
    )
    assert allo_command(arguments=flags.split()) == 0
    content = json.loads((directory / "eval.json").read_text())
    (row,) = content["seeds"]
    assert (content["kind"], content["transitions"], content["trajectories"]) == (
        "vectors",
        400 * 99,
        400,
    )
    assert row["similarity"] > 0.98
    assert 0.95 < row["explained"] < 1.1
    assert row["orthogonality"] < 0.2
    # Its arrays and pictures; the learned features are cosines of the place.
    with np.load(directory / "eigenvectors.npz") as arrays:
        learned, cells = arrays["learned"][0], arrays["cells"]
    assert learned.shape == (400 * 100, 3)
    x = states.reshape(-1) / 1_000
    for k in range(3):
        cosine = np.cos(k * np.pi * x)
        assert (
            abs(np.corrcoef(learned[:, k], cosine)[0, 1]) > 0.97
            if k
            else np.ptp(learned[:, 0]) < 0.5
        )
    assert 0 <= cells[:, 0].min() < cells[:, 0].max() <= 1_000
    assert (directory / "eigenvectors.png").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--transitions=none.npz", "there is no file none.npz; expected an .npz file"),
        (
            "--transitions=line.npz",
            "line.npz holds vectors, which need --agent.expectation sampled",
        ),
        (
            "--transitions=ids.npz --agent.num-features=9",
            "--agent.num-features is 9, but there are 4",
        ),
        (
            "--transitions=gaps.npz --agent.num-features=4",
            "but pairs begin in 3 states of gaps.npz",
        ),
        (
            "--transitions=ids.npz --env.maze=GridMaze-9",
            "--env.maze has no effect, as --transitions",
        ),
        (
            "--transitions=ids.npz --network.observation=pixels --agent.num-features=4",
            "which recorded ids do not have",
        ),
        (
            "continuous --transitions=line.npz --network.observation=one_hot",
            "which recorded vectors do not have",
        ),
        (
            "continuous --transitions=few.npz",
            "2 different vectors were recorded; expected at least",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(flags, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("ids.npz", states=np.array([0, 1, 2, 3, 2, 1, 0, 1]))
    np.savez("gaps.npz", states=np.array([0, 1, 2, 1, 0, 1, 2, 5]))
    np.savez("line.npz", states=np.random.default_rng(0).random((50, 2)))
    np.savez("few.npz", states=np.array([[0.0], [1.0], [0.0]]))
    assert allo_command(arguments=f"{flags} --run.directory=run".split()) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1


def test_ids_without_positions_are_seen_one_hot(tmp_path):
    np.savez(tmp_path / "ids.npz", states=walks()[0], lengths=walks()[1])
    config = parse_config(f"--transitions={tmp_path}/ids.npz --agent.num-features=4")
    problem = recorded_training.make_problem(config)
    np.testing.assert_array_equal(problem.points, np.eye(RING))


def test_features_of_ids_that_never_occur_are_nan(tmp_path):
    np.savez(tmp_path / "gaps.npz", states=[0, 1, 2, 1, 0, 1, 2, 5], positions=np.eye(8)[:, :2])
    config = parse_config(f"sampled --transitions={tmp_path}/gaps.npz --agent.num-features=3")
    problem = recorded_training.make_problem(config)
    params = problem.network.init(jax.random.key(0), problem.points[0])
    learner = allo_state.first_learner(problem.agent, params, 8)
    agent = allo_state.State(learner, (), (), ())
    features = recorded_pictures.learned_features(problem, agent)
    unknown = np.isnan(features).all(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(unknown), [3, 4, 6, 7])
    assert np.isfinite(features[~unknown]).all()
    path = tmp_path / "map.png"
    recorded_pictures.scatter(np.eye(8)[:, :2], features, np.zeros(3), path, "gaps")
    with Image.open(path) as picture:
        assert np.ptp(np.asarray(picture)) > 0


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([8], ""),
        (
            [3, 3, 2],
            "3 parts of the data, of 3 and 2 and 2 ids; the first 3 eigenvectors then only",
        ),
    ],
)
def test_parts_that_never_meet_are_told(tmp_path, lengths, message, capsys):
    path = tmp_path / "parts.npz"
    np.savez(path, states=[0, 1, 2, 4, 5, 4, 8, 7], lengths=lengths)
    config = parse_config(f"--transitions={path} --agent.num-features=3")
    for _ in range(2):
        recorded_training.make_problem(config)
    error = capsys.readouterr().err
    assert error.count("eigenvectors then only tell the parts apart") == bool(message)
    assert message in error


@pytest.mark.parametrize(
    ("preset", "flags", "is_told"),
    [
        ("", "--agent.num-features=4", True),
        ("", "--agent.num-features=3 --agent.spare-features=0", False),
        ("", "--agent.num-features=4 --agent.barrier-limit=100", False),
        ("ggdo", "--agent.num-features=4 --agent.barrier-limit=4", False),
    ],
)
def test_an_eigenvalue_too_large_for_the_barrier_is_told(tmp_path, preset, flags, is_told, capsys):
    path = tmp_path / "goal.npz"
    np.savez(path, states=[0, 1, 2, 3] * 9 + [3, 2], lengths=[4] * 9 + [2])
    problem = recorded_training.make_problem(parse_config(f"{preset} --transitions={path} {flags}"))
    assert ("λ of eigenvector 4 is" in capsys.readouterr().err) == is_told
    assert problem.truth.values[-1] > 2 or len(problem.truth.values) == 3


def test_the_largest_parts_are_told():
    first = np.arange(0, 20, 2)
    assert parts.sizes(first, first + 1) == [2] * 10
    assert "of 2 and 2 and 2 and 2 and 2 and 2 ids in the largest" in parts.warning(
        "mine.npz", first, first + 1, "ids"
    )
