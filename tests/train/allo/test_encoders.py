"""Encoders of runs: the features that the run itself wrote, and plain refusals."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
from envs.grid.space.continuous import ContinuousMaze
from envs.grid.space.continuous_frames import frames
from jaxrl.spectral.learning import allo_state
from train.allo import encoders
from train.allo.config import Config, learning_config
from train.allo.encoders import Encoder
from train.allo.program import PROGRAM
from train.host.command_line import command
from train.host.errors import UsageError
from train.host.program import Run
from train.policies import card, export

SMALL = (
    "--network.hidden 16 --agent.num-features=3 --agent.spare-features=2 --run.total-steps=50 "
    "--run.chunk-steps=50"
)
WALKS, BATCH = "--env.transitions=2000", "--agent.batch-size=64"
OF_COORDINATES = f"--env.maze=GridMaze-9 --network.observation=coordinates {SMALL}"
allo_command = partial(command.main, PROGRAM)


def make_encoder(flags: str) -> Encoder:
    """An encoder with the parameters that learning begins with; nothing is recorded."""
    config: Config = command.parse(PROGRAM, flags.split())[0]
    spaces, network = encoders.spaces_of(config)
    example = spaces[0].observe(jnp.zeros(spaces[0].template.shape, spaces[0].template.dtype))
    params = network.init(jax.random.key(0), example)
    learner = allo_state.first_learner(learning_config(config), params, 0)
    return Encoder("mine", config, 0, allo_state.State(learner, (), (), ()), has_duals=False)


@pytest.fixture(scope="module")
def of_cells() -> Encoder:
    return make_encoder(f"sampled {OF_COORDINATES}")


@pytest.fixture(scope="module")
def of_positions() -> Encoder:
    return make_encoder(f"continuous {OF_COORDINATES}")


def by_hand(encoder: Encoder, coordinates: np.ndarray) -> np.ndarray:
    """The features of one hidden layer of 16 and a linear head, in NumPy."""
    params = jax.device_get(encoder._agent.learner.params["params"])
    hidden, head = params["torso"]["Dense_0"], params["head"]
    activity = np.maximum(coordinates @ hidden["kernel"] + hidden["bias"], 0)
    return (activity @ head["kernel"] + head["bias"])[..., :3]


def test_cells_and_positions_are_seen_as_in_learning(of_cells, of_positions):
    cells = np.array([[4, 1], [4, 7], [1, 7]])
    middles = cells.astype(float) + 0.5
    expected = by_hand(of_cells, (2 * cells - 8) / 8)  # of 9 x 9 tiles, the middles of the outer
    np.testing.assert_allclose(of_cells.encode(cells), expected, atol=1e-5)
    expected = by_hand(of_positions, (2 * middles - 9) / 9)  # and the outer edges of these
    np.testing.assert_allclose(of_positions.encode(middles), expected, atol=1e-5)
    np.testing.assert_allclose(of_positions.encode(middles[1]), expected[1], atol=1e-6)
    pure = jax.jit(of_positions.features)(jnp.asarray(middles[2], jnp.float32))
    np.testing.assert_allclose(pure, expected[2], atol=1e-6)


def test_any_number_of_states_takes_few_programs(of_positions, monkeypatch):
    monkeypatch.setattr(encoders, "AT_ONCE", 8)
    traced, features = [], of_positions._features
    count = lambda *x: traced.append(0) or features(of_positions._spaces[0], *x)
    monkeypatch.setattr(of_positions, "_compiled", {of_positions._spaces[0].name: jax.jit(count)})
    states = np.random.default_rng(0).uniform(4, 5, (21, 2))
    whole = of_positions.encode(states)
    for n in (0, 1, 2, 3, 4, 5, 8, 9, 13, 21):
        np.testing.assert_allclose(of_positions.encode(states[:n]), whole[:n], atol=1e-6)
    assert len(traced) == 4  # for 1, 2, 4 and 8 states


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([[4, 1, 1]], r"states has shape \(1, 3\); expected \(2,\), or \(B, 2\) for a batch"),
        ([[4.0, 1.0]], "states is float64; expected int32 of shape"),
        ([[4, 1], [0, 0]], r"state 1 is \[0, 0\]; expected a free cell of the maze"),
        ([[4, -1]], r"state 0 is \[4, -1\]; expected a free cell of the maze"),
        ("here", "states is <U4; expected int32 of shape"),
    ],
)
def test_what_is_no_cell_is_refused(of_cells, states, message):
    with pytest.raises(ValueError, match=message) as error:
        of_cells.encode(states)
    assert "\n" not in str(error.value)


def test_what_is_no_position_is_refused(of_positions):
    for states, message in (
        ([[4.5, 0.5]], "expected a place between the walls"),
        ([[4.5, 90.0]], "expected a place between the walls"),
        ([[4.5, np.nan]], "expected finite numbers"),
        (np.zeros((2, 3, 2)), "expected"),
    ):
        with pytest.raises(ValueError, match=message):
            of_positions.encode(states)


def test_ids_that_never_occurred_are_refused(tmp_path):
    np.savez(tmp_path / "ids.npz", states=[0, 2, 5, 2])
    encoder = make_encoder(f"sampled --transitions={tmp_path}/ids.npz {SMALL}")
    assert encoder.encode([0, 2, 5]).shape == (3, 3)
    for ids, message in (
        ([0, 3], "state 1 is 3; expected an id that a recorded transition has, as 3 of 6 do"),
        ([6], "state 0 is 6; expected an id from 0 to 5"),
        ([[0]], r"has shape \(1, 1\); expected \(\), or \(B,\) for a batch"),
    ):
        with pytest.raises(ValueError, match=message):
            encoder.encode(ids)


def test_vectors_far_from_0_are_encoded_as_those_near_it(tmp_path):
    steps = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    steps[:2] = [[-1, -1], [1, 1]]
    states = steps + np.array([4e5, 5.3e6])  # metres on a map: float32 has halves of them there
    np.savez(tmp_path / "far.npz", states=states)
    encoder = make_encoder(
        f"continuous --transitions={tmp_path}/far.npz --network.observation=coordinates {SMALL}"
    )
    expected = by_hand(encoder, steps)
    np.testing.assert_allclose(encoder.encode(states), expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(states[3]), expected[3], atol=1e-5)
    with pytest.raises(ValueError, match=r"states is nan at \[0, 1\]; expected finite numbers"):
        encoder.encode([[4e5, np.nan]])
    with pytest.raises(ValueError, match=r"state 1 is .*; expected numbers within 1e\+30 ranges"):
        encoder.encode([[4e5, 5.3e6], [4e5, 1e300]])


@pytest.mark.slow
def test_a_frame_is_encoded_as_the_position_that_it_shows():
    encoder = make_encoder(
        f"frames --env.maze=GridMaze-9 --network.tile=2 --network.channels 4 {SMALL}"
    )
    env = ContinuousMaze("GridMaze-9", observation="rendered", tile=2)
    places = np.array([[4.3, 1.8], [1.1, 7.6]])
    pictures = frames(env.layout.free, places, 2, "rgb")
    expected = encoder.encode(places)
    assert np.abs(expected[0] - expected[1]).max() > 0.01
    np.testing.assert_allclose(encoder.encode(pictures), expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(pictures[1]), expected[1], atol=1e-5)
    for wrong, message in (
        (pictures * 255, "frame 0 has numbers outside of 0 to 1"),
        (pictures[:, :-1], r"expected \(18, 18, 3\), or \(B, 18, 18, 3\) for a batch"),
        (places[0, :1], r"expected \(2,\), or \(B, 2\) for a batch"),
    ):
        with pytest.raises(ValueError, match=message):
            encoder.encode(wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("cells", f"allo --env.maze=GridMaze-9 {WALKS}"),
        ("directed", f"directed --env.maze=GridMaze-9 {WALKS}"),
        ("positions", f"continuous --env.maze=GridMaze-9 --env.truth-cells=4 {WALKS} {BATCH}"),
        (
            "frames",
            "frames --env.maze=GridMaze-9 --env.truth-cells=4 --network.tile=1 "
            f"--network.channels 4 --agent.turn-pairs=64 {WALKS} {BATCH}",
        ),
        ("ids", f"sampled --transitions=DATA {BATCH}"),
        ("vectors", f"continuous --transitions=DATA {BATCH}"),
    ],
)
def test_a_run_and_its_exported_file_encode_as_it_wrote(kind, flags, tmp_path):
    run, data = tmp_path / "run", tmp_path / "data.npz"
    vectors = np.cumsum(np.random.default_rng(0).normal(size=(40, 50, 2)), axis=1)
    ids = np.random.default_rng(0).integers(0, 6, (20, 50))
    np.savez(data, states=ids if kind == "ids" else vectors)
    flags = f"{flags.replace('DATA', str(data))} {SMALL} --run.directory={run}"
    assert allo_command(arguments=flags.split()) == 0
    with np.load(run / "eigenvectors.npz") as arrays:
        learned = arrays["right" if kind == "directed" else "learned"][0][:, :3]
        cells = arrays.get("cells")
    states = {
        "cells": cells,
        "directed": cells,
        "positions": None if cells is None else (cells + 0.5) / 4,
        "frames": None if cells is None else (cells + 0.5) / 4,
        "ids": np.arange(6),
        "vectors": vectors.reshape(-1, 2),
    }[kind]
    encoder = encoders.load(run)
    np.testing.assert_allclose(encoder.encode(states), learned, atol=1e-4)
    assert encoder.eigenvalues is not None
    assert encoder.eigenvalues.shape == (3,)
    exported = encoders.load(export.export(run, tmp_path / "mine", seed=0))
    np.testing.assert_array_equal(exported.encode(states), encoder.encode(states))
    assert exported.eigenvalues is None
    with pytest.raises(UsageError, match="has no seed 99"):
        encoders.load(run, seed=99)
    with pytest.raises(UsageError, match=r"train\.allo\.encoders"):
        train.load(run, seed=0)


def test_the_card_names_what_was_learned_from_and_nothing_else(tmp_path):
    data, maze = tmp_path / "data.npz", tmp_path / "maze.txt"
    data.write_text("data")
    maze.write_text("..")
    game = lambda *flags: card.game(Run(tmp_path, PROGRAM, command.parse(PROGRAM, flags)[0], 1, []))
    assert game("--transitions", str(data)) == {"transitions": f"{data} (crc32 adf3f363)"}
    of_maze = game("--maze-file", str(maze))
    assert of_maze["maze_file"] == str(maze)
    assert not {"maze", "door_back", "epsilon", "truth_cells"} & of_maze.keys()


def test_other_policies_are_refused():
    with pytest.raises(UsageError, match="is of snake; expected a run of train"):
        encoders.load("snake-6x6")
