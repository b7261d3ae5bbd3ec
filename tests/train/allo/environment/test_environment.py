"""`python -m train.allo --env.id MODULE:NAME`: walks, measures without a truth, whole runs."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.replay import uniform
from jaxrl.spectral import laplacian
from jaxrl.spectral.learning import encoder
from tests.train.allo.environment.own_walks import FILE, MODULE, main
from train.allo import encoders
from train.allo.environment import environment_scores as scores
from train.allo.environment.environment_training import make_training
from train.allo.environment.walks import make_walks, range_of, record, replay_of
from train.allo.maze import Maze
from train.allo.program import PROGRAM
from train.host.command_line import command
from train.policies import export

SMALL = (
    "--network.hidden 64 64 --network.frequencies=4 --agent.num-features=5 --agent.batch-size=256 "
    "--agent.spare-features=2 --agent.turn-pairs=2048 --env.walk-steps=100"
)


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch) -> str:
    """The module of a user's file."""
    (tmp_path / f"{MODULE}.py").write_text(FILE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return MODULE


# Walks.


@pytest.mark.slow
def test_walks_are_those_of_the_environment(module):
    walks = make_walks(
        Maze(id=f"{module}:Ring", numbers=("max_steps_in_episode=7",), walk_steps=20)
    )
    rollout = jax.jit(lambda key: record(walks, 500, key))(jax.random.key(0))
    assert rollout.obs.shape == (20, 500, 2)
    np.testing.assert_allclose(np.linalg.norm(rollout.obs, axis=-1), 1, atol=1e-5)
    ends = np.zeros((20, 1), bool)
    ends[[6, 13]] = True
    np.testing.assert_array_equal(rollout.truncated, np.broadcast_to(ends, (20, 500)))
    np.testing.assert_array_equal(
        rollout.next_obs[:-1][~ends[:-1, 0]], rollout.obs[1:][~ends[:-1, 0]]
    )
    assert abs(np.asarray(rollout.action).mean() - 0.5) < 0.03
    # of walks that are not over; moves have the variance of both actions
    angle = np.angle(rollout.obs[..., 0] + 1j * rollout.obs[..., 1])
    after = np.angle(rollout.next_obs[..., 0] + 1j * rollout.next_obs[..., 1])
    move = np.angle(np.exp(1j * (after - angle)))
    assert abs(move.var() / (0.4**2 * (1 + 0.25) / 2) - 1) < 0.05
    ring = replay_of(rollout)
    left = np.asarray(ring.data.left)
    np.testing.assert_array_equal(left[:, 0], [*range(7, 0, -1)] * 2 + [*range(6, 0, -1)])
    assert uniform.ring_shape(ring)[0] == 20


@pytest.mark.slow
def test_what_spoils_values_is_not_told_of_walks(module, capsys):
    make_walks(Maze(id=f"{module}:DiesOfTime"))
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_a_trained_policy_walks_and_is_mixed_with_chance():
    options = ("rows=6", "cols=6", "observation=near", "actions=relative")
    rewards = []
    for policy, epsilon in (("snake-6x6", 0.0), ("snake-6x6", 0.5), ("uniform", 0.5)):
        maze = Maze(id="Snake-v0", options=options, policy=policy, epsilon=epsilon, walk_steps=40)
        walks = make_walks(maze)
        rollout = jax.jit(lambda key, walks=walks: record(walks, 50, key))(jax.random.key(0))
        rewards.append(float(np.mean(rollout.reward)))
    assert rewards[0] > rewards[1] + 0.05
    assert rewards[1] > rewards[2] + 0.05


def test_numbers_of_observations_go_from_minus_one_to_one():
    obs = jax.random.normal(jax.random.key(0), (5, 7, 3)) * jnp.array([[[1.0, 100.0, 0.0]]]) + 4
    torso: Any = encoder.Standardise(1)
    params = {"params": {"torso": {"layers_0": torso.init(jax.random.key(1), obs)["params"]}}}
    params = encoder.with_range(params, *range_of(obs))
    scaled = torso.apply({"params": params["params"]["torso"]["layers_0"]}, obs)
    np.testing.assert_allclose(scaled.min(axis=(0, 1)), [-1, -1, 0], atol=1e-5)
    np.testing.assert_allclose(scaled.max(axis=(0, 1)), [1, 1, 0], atol=1e-5)
    image = jax.random.uniform(jax.random.key(0), (5, 7, 4, 3, 2))
    middle, scale = range_of(image)
    assert middle.shape == scale.shape == (4, 3, 2)
    np.testing.assert_allclose(middle, np.asarray(image).mean(axis=(0, 1)), rtol=1e-5)
    assert np.abs((image - middle[None, None]) / scale[None, None]).max() == pytest.approx(1)


# Measures without a truth.


def test_shares_of_an_autoregressive_process_are_known():
    """x' = a x + √(1 - a²) e: x keeps a, and 1 keeps all; so does any basis of their span."""
    rng, a = np.random.default_rng(0), 0.7
    x = rng.normal(size=200_000)
    after = a * x + np.sqrt(1 - a**2) * rng.normal(size=x.size)
    basis = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, -0.5]])  # of rank 2
    u, u_next = (np.stack([np.ones_like(x), z], axis=1) @ basis for z in (x, after))
    shares = scores.kept_shares(u, u_next, 3)
    np.testing.assert_allclose(shares, [1, a, 0], atol=0.01)
    pair = u[:, :2], u_next[:, :2]
    row = scores.row_measures(*(jnp.asarray(z, jnp.float32) for z in pair))
    assert row["persistence"] == pytest.approx((1 + a) / 2, abs=0.01)
    small = scores.row_measures(*(jnp.asarray(0.1 * z, jnp.float32) for z in (u, u_next)))
    assert small["persistence"] == pytest.approx(shares.mean(), abs=1e-3)
    gram = np.mean(pair[0][:, :, None] * pair[0][:, None, :], axis=0)
    assert row["orthogonality"] == pytest.approx(np.abs(gram - np.eye(2)).max(), abs=0.02)
    expected = [
        np.mean((p - q) ** 2) / 2 / np.mean(p**2) for p, q in zip(u.T, u_next.T, strict=True)
    ]
    np.testing.assert_allclose(row["rayleigh"], expected[:2], atol=0.01)
    observed = scores.seed_measures(*pair, x[:, None], after[:, None])
    assert observed["persistence"] == pytest.approx((1 + a) / 2, abs=0.01)
    assert observed["linear"] == pytest.approx((1 + a) / 2, abs=0.01)
    obs, next_obs = (np.stack([z, z == after.max()], axis=1) for z in (x, after))  # 0 and once 1
    with_a_rare_number = scores.seed_measures(*pair, obs, next_obs)
    assert with_a_rare_number["linear"] == pytest.approx(observed["linear"], abs=1e-4)


def test_agreement_is_of_spans_and_of_features():
    rng = np.random.default_rng(0)
    one, other = np.linalg.qr(rng.normal(size=(500, 6)))[0].reshape(500, 2, 3).swapaxes(0, 1)
    turned = one @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    same = scores.agreement([one, turned, -one], 0)
    assert same["agreement"] == pytest.approx(1, abs=1e-6)
    cosines = [np.abs(np.diag(one.T @ turned)).mean(), 1.0]
    assert same["cosine"] == pytest.approx(np.mean(cosines), abs=1e-6)
    assert scores.agreement([one, other], 0)["agreement"] < 1e-6
    half = np.concatenate([one[:, :2], other[:, :1]], axis=1)
    assert scores.agreement([one, half], 1)["agreement"] == pytest.approx(2 / 3, abs=1e-6)


# Whole runs.


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--env.id=MODULE:Missing", "cannot be made: AttributeError"),
        ("--env.id=CartPole-v9", "env.id CartPole-v9 cannot be made: it is unknown"),
        ("--env.id=MODULE:Unbounded", "have no bounds, so that none is drawn uniformly"),
        ("--env.id=MODULE:Unbounded --env.policy=snake-6x6", "Unbounded have no bounds, so that"),
        ("--env.id=MODULE:Unbounded --env.policy=snake-6x6", "give --env.epsilon 0 or bounds"),
        ("--env.id=MODULE:Table", "shows arrays of shape (2, 3); expected vectors or images"),
        ("--env.id=MODULE:Ring --env.maze=GridMaze-7", "env.id takes the place of the maze"),
        ("--env.id=MODULE:Ring --env.epsilon=0.1", "--env.epsilon has no effect"),
        ("--env.options size=1", "--env.options has no effect, as it needs env.id"),
        ("--env.id=MODULE:Ring --network.observation=pixels", "of mazes; expected fourier or"),
        ("directed --env.id=MODULE:Ring", "states of --env.id are not numbered"),
        ("--env.id=MODULE:Ring --env.policy=snake-6x6", "but the environment shows ((2,)"),
        ("--env.id=MODULE:Ring --env.policy=nobody", "there is no policy nobody"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(flags, message, module, capsys, tmp_path):
    before = set(tmp_path.iterdir())
    assert main(flags.replace("MODULE", module).split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.strip().count("\n") == 0
    assert {x for x in tmp_path.iterdir() if x.name != "__pycache__"} == before


@pytest.mark.parametrize("shows", ["point", "image", "sector"])
def test_an_update_keeps_all_shapes(shows, module):
    flags = f"--env.id={module}:Ring --env.options shows={shows} --env.transitions=1000 {SMALL}"
    training = make_training(command.parse(PROGRAM, ["environment", *flags.split()])[0])
    state = jax.eval_shape(training.init, jax.random.key(0))
    after, metrics = jax.eval_shape(training.update, state)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), after) == jax.tree.map(
        lambda x: (x.shape, x.dtype), state
    )
    assert metrics.agent["persistence"].shape == ()


@pytest.mark.slow
def test_features_of_a_ring_keep_what_waves_keep(module, tmp_path):
    """Its eigenvectors are waves: the k-th keeps (e^(-k²σ²/2) + e^(-k²σ²/8)) / 2 in a step."""
    run = tmp_path / "run"
    flags = f"--env.id={module}:Ring {SMALL} --run.directory={run} --env.transitions=100000"
    assert main([*flags.split(), "--run.total-steps=800", "--run.chunk-steps=100"]) == 0
    k = np.array([0, 1, 1, 2, 2])
    mu = (np.exp(-(k**2) * 0.4**2 / 2) + np.exp(-(k**2) * 0.4**2 / 8)) / 2
    expected = 1 - laplacian.horizon_lambda(mu, 0.9, 101)
    content = json.loads((run / "eval.json").read_text())
    assert content["score"] == "persistence"
    for row in content["seeds"]:
        np.testing.assert_allclose(row["shares"], expected, atol=0.03)
        np.testing.assert_allclose(1 - np.array(row["rayleigh"]), expected, atol=0.03)
        assert row["orthogonality"] < 0.15
        assert row["agreement"] > 0.98
        assert row["linear"] == pytest.approx(expected[:3].sum() / 5, abs=0.02)
    for name in ("eigenvectors.png", "learning_curve.png", "losses.png"):
        assert (run / name).is_file()
    with np.load(run / "eigenvectors.npz") as arrays:
        states, learned = arrays["states"], arrays["learned"]
    learned_encoder = encoders.load(run, seed=1)
    np.testing.assert_allclose(learned_encoder.encode(states), learned[1], atol=1e-4)
    file = export.export(run, tmp_path / "ring", seed=1)
    exported = encoders.load(file)  # which knows the range of observations
    np.testing.assert_allclose(exported.encode(states), learned[1], atol=1e-4)
    with pytest.raises(ValueError, match=r"expected \(2,\), or \(B, 2\) for a batch"):
        exported.encode(states[:, :1])
