"""`python -m train.gymnax`: environments by name, networks by space, presets by family."""

import json
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

import envs
from bench import flags
from jaxrl.losses.distributions.continuous import Normal, SquashedNormal
from jaxrl.losses.distributions.discrete import Categorical
from jaxrl.wrappers import normalisation
from train import evaluate, render
from train.gymnax import networks
from train.gymnax.networks import Network
from train.gymnax.presets import PRESETS
from train.gymnax.program import PROGRAM
from train.gymnax.training import make_training
from train.host.command_line import command
from train.host.environments import environments
from train.host.environments.environments import Game
from train.host.files.run_directory import RunDirectory
from train.host.running.saved_runs import with_run_fields
from train.host.scoring.games import GamesEvaluation
from train.policies import export as policies

main = partial(command.main, PROGRAM)
FILE = """
from gymnax.environments.classic_control.cartpole import CartPole, EnvParams

def short():
    env = CartPole()
    return env, EnvParams(max_steps_in_episode=7)

class Long(CartPole):
    pass

def nothing():
    return 3
"""


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The module of a file with environments of a user's own."""
    (tmp_path / "strangers_games.py").write_text(FILE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "strangers_games"


FIRST = ("ppo", "dqn_minatar", "recurrent", "sac")
"""A preset of each kind of learner, among them one of images."""


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    "preset", [pytest.param(x, marks=[pytest.mark.slow] * (x not in FIRST)) for x in PRESETS]
)
def test_every_preset_trains_on_its_environment(preset):
    """Traced, not run: an update keeps structure, shapes and dtypes of the state."""
    training = make_training(flags.shrink(PRESETS[preset].config))
    state = jax.eval_shape(training.init, jax.random.key(0))
    after, _ = jax.eval_shape(training.update, state)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), after) == jax.tree.map(
        lambda x: (x.shape, x.dtype), state
    )


ALGORITHMS = ("ppo", "dqn", "pqn", "recurrent")
GAMES = (
    Game("Snake-v0", options=("rows=6", "cols=6", "observation=features")),
    Game("FrozenLake-misc"),  # an integer
    Game("DeepSea-bsuite"),  # two axes
    Game("CartPole-v1", sticky=0.2, action_repeat=2, last_action=True, frame_stack=3),
)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("algorithm", "game"),
    [  # each with each; each once is fast
        pytest.param(
            *(ALGORITHMS[i], GAMES[k]),
            marks=[pytest.mark.slow] * (i != k),
            id=f"{GAMES[k].id}-{ALGORITHMS[i]}",
        )
        for i, k in product(range(4), repeat=2)
    ],
)
def test_every_kind_of_observation_is_taken(algorithm, game):
    config = flags.shrink(replace(PRESETS[algorithm].config, env=game))
    training = make_training(config)
    jax.eval_shape(training.update, jax.eval_shape(training.init, jax.random.key(0)))


def test_names_of_gymnax_of_ours_and_of_a_file(own_file):
    for name in gymnax.registered_envs:
        if name not in ("MNISTBandit-bsuite", "Durotaxis-v0", "TwoSnake-v0", "VectorField-v0"):
            task = environments.make(Game(name))
            assert task.limit == int(task.params.max_steps_in_episode)
    assert environments.make(Game(f"{own_file}:short")).limit == 7
    assert environments.make(Game(f"{own_file}:Long")).limit == 500
    assert set(envs.ALL) <= set(gymnax.registered_envs)


def test_options_and_numbers_reach_the_environment():
    game = Game("Snake-v0", ("rows=6", "cols=8", "observation=planes"), ("max_steps_in_episode=9",))
    task = environments.make(game)
    assert task.observation.shape[:2] == (6, 8)
    assert task.limit == 9
    task = environments.make(Game("MemoryChain-bsuite", numbers=("memory_length=12",)))
    assert task.params.memory_length == 12


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (
            Game("CartPole"),
            r"CartPole cannot be made: it is unknown \(perhaps CartPole-v1\); expected MODULE:NAME",
        ),
        (Game("nowhere:Env"), "env.id nowhere:Env cannot be made: ModuleNotFoundError"),
        (Game("strangers_games:none"), "cannot be made: AttributeError"),
        (Game("strangers_games:nothing"), "gave a int, expected an environment"),
        (Game("Snake-v0", options=("rows=600",)), "cannot be made: "),
        (Game("Snake-v0", options=("rows",)), "env.options has 'rows', expected NAME=VALUE"),
        (Game("Snake-v0", options=("rows=6", "rows=6")), "env.options has rows twice, the second"),
        (
            Game("CartPole-v1", numbers=("gravity=9", "length=1", "gravity=8")),
            "env.numbers has gravity twice, the second time gravity=8; expected it once",
        ),
        (Game("CartPole-v1", numbers=("x=1",)), "env.numbers has x=1, expected numbers for"),
        (Game("CartPole-v1", numbers=("gravity=a",)), "env.numbers has gravity=a, expected"),
        (
            Game("CartPole-v1", numbers=("max_steps_in_episode=1.5",)),
            "max_steps_in_episode=1.5, expected an integer",
        ),
    ],
    ids=lambda x: x.id if isinstance(x, Game) else "",
)
def test_what_cannot_be_made_is_refused(own_file, game, message):
    with pytest.raises(ValueError, match=message):
        environments.make(game)


def test_what_a_run_saved_keeps_its_preset(tmp_path, capsys):
    """The environment chooses none, though it is a flag; for another run the command says so."""
    RunDirectory(tmp_path).write_config("gymnax", "dqn", PRESETS["dqn"].config)
    notice = f"gymnax: {tmp_path} is of dqn, though dqn_minatar is for Breakout-MinAtar\n"
    for file, line in (
        (["--config", str(tmp_path)], notice),
        ([f"--config={tmp_path}"], notice),
        (["--resume", str(tmp_path)], ""),
    ):
        config, preset = command.parse(PROGRAM, [*file, "--env.id", "Breakout-MinAtar"])
        assert preset == "dqn"
        assert config.network == PRESETS["dqn"].config.network
        assert capsys.readouterr().out == line


@pytest.mark.parametrize(
    ("arguments", "preset"),
    [
        ("", "ppo"),
        ("dqn", "dqn"),
        ("--env.id Breakout-MinAtar", "ppo_minatar"),
        ("dqn --env.id=Breakout-MinAtar", "dqn_minatar"),
        ("ppo --env.id Pendulum-v1", "ppo_continuous"),
        ("sac --env.id Pendulum-v1", "sac"),
        ("pqn --env.id Acrobot-v1", "pqn"),
        ("ppo_minatar --env.id Freeway-MinAtar", "ppo_minatar"),
        ("recurrent --env.id Breakout-MinAtar", "recurrent"),
    ],
)
def test_the_environment_chooses_the_preset(arguments, preset, capsys):
    config, chosen_preset = command.parse(PROGRAM, arguments.split())
    assert chosen_preset == preset
    assert config == replace(PRESETS[preset].config, env=config.env)
    named_preset, *_ = arguments.split() or ["ppo"]
    is_same = preset == (named_preset if named_preset in PRESETS else "ppo")
    line = f"gymnax: {preset.split('_')[0]} for {config.env.id} is the preset {preset}\n"
    assert capsys.readouterr().out == ("" if is_same else line)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "dqn --env.id Pendulum-v1",
            "shape=(1,), dtype=float32), expected Discrete: use ppo or sac",
        ),
        (
            "sac --env.id CartPole-v1",
            "actions are Discrete(2, dtype=int32), expected a Box of floats: use ppo, dqn",
        ),
        ("--env.id Nothing-v0", "--env.id Nothing-v0 cannot be made: it is unknown"),
        ("ppo --network.memory 3", "--network.memory has no effect, as it needs a preset of rec"),
        ("recurrent --normalise.reward-clip 3", "as it needs normalise.rewards"),
    ],
)
def test_mistakes_are_answered_in_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments.split()) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_from_training_to_a_policy_that_is_filmed(tmp_path, monkeypatch, capsys):
    """The policy keeps the statistics of observations: it plays as the run does."""
    monkeypatch.chdir(tmp_path)
    small = (
        "--loop.num-envs=4 --loop.num-steps=16 --run.total-steps=512 --run.chunk-steps=128 "
        "--run.evaluation-games=4 --run.directory=run --env.numbers max_steps_in_episode=20"
    )
    assert main(["--env.id", "CartPole-v1", *small.split()]) == 0
    assert {path.name for path in Path("run").glob("*.*")} >= {"best_game.gif", "eval.json"}
    assert policies.main(["export", "run", "mine"]) == 0
    assert evaluate.main(["run", "--games=4"]) == 0
    of_run = json.loads(Path("run/eval.json").read_text())["seeds"][0]["return"]
    assert evaluate.main(["--policy=mine", "--games=4"]) == 0
    (eval_path,) = Path("runs").glob("policy-mine/eval.json")
    assert json.loads(eval_path.read_text())["seeds"][0]["return"] == of_run
    assert render.main(["--policy=mine", "--games=4", "--out=film"]) == 0
    assert Path("film/best_game.gif").is_file()
    assert "4 games: return " in capsys.readouterr().out


def test_networks_suit_the_spaces():
    network, key = Network(hidden=(8,), channels=(3,)), jax.random.key(0)
    box = lambda shape: spaces.Box(-1.0, 1.0, shape)
    discrete = spaces.Discrete(3)
    for observation, obs in (
        (box((5,)), jnp.zeros(5)),
        (box((4, 4)), jnp.zeros((4, 4))),
        (box((4, 4, 2)), jnp.zeros((4, 4, 2))),
        (box(()), jnp.zeros(())),
        (spaces.Discrete(7), jnp.int32(6)),
    ):
        model = networks.actor_critic(network, observation, discrete)
        policy, value = jax.eval_shape(model.init_with_output, key, obs)[0]
        assert isinstance(policy, Categorical)
        assert policy.logits.shape == (3,)
        assert value.shape == ()
        model = networks.q_network(network, observation, discrete)
        q = jax.eval_shape(model.init_with_output, key, obs)[0]
        assert q.shape == (3,)
    bounded = spaces.Box(jnp.array([-1.0, 0.0]), jnp.array([1.0, 3.0]), (2,))
    model = networks.actor_critic(network, box((5,)), bounded)
    policy, _ = model.init_with_output(key, jnp.zeros(5))[0]
    assert isinstance(policy, SquashedNormal)
    np.testing.assert_array_equal(policy.high, [1.0, 3.0])
    model = networks.actor_critic(network, box((5,)), spaces.Box(-np.inf, np.inf, (2,)))
    assert isinstance(jax.eval_shape(model.init_with_output, key, jnp.zeros(5))[0][0], Normal)
    with pytest.raises(ValueError, match=r"have the shape \[1, 2, 3, 4\], expected at most"):
        networks.torso(network, box((1, 2, 3, 4)))


@pytest.mark.parametrize(
    ("space", "low", "high"),
    [
        (spaces.Box(0, 255, (6, 6, 1), jnp.uint8), 0, 255),
        (spaces.Box(0.0, 255.0, (6, 6, 1)), 0, 255),
        (spaces.Box(-500, 500, (4,), jnp.int16), -500, 500),
    ],
)
def test_grey_values_and_counts_are_scaled(space, low, high):
    """A network makes of them what the plain one makes of numbers from 0 to 1."""
    network, discrete, key = (
        Network(hidden=(8,), channels=(3,)),
        spaces.Discrete(3),
        jax.random.key(0),
    )
    numbers = np.random.default_rng(0).integers(low, high + 1, (5, *space.shape))
    scaled = jnp.asarray((numbers - low) / (high - low), jnp.float32)
    plain = networks.q_network(network, spaces.Box(0.0, 1.0, space.shape), discrete)
    expected, variables = plain.init_with_output(key, scaled)
    own = networks.q_network(network, space, discrete)
    obs = jnp.asarray(numbers, space.dtype)
    assert jax.tree.leaves(jax.eval_shape(own.init, key, obs)) == jax.tree.leaves(
        jax.eval_shape(lambda: variables)
    )
    layers = own.init(key, obs)
    leaves = jax.tree.leaves(variables)
    q: Any = own.apply(jax.tree.unflatten(jax.tree.structure(layers), leaves), obs)
    np.testing.assert_allclose(q, expected, rtol=1e-5, atol=1e-6)


def test_each_number_is_scaled_by_its_own_bounds():
    """Beside grey values flags stay flags; others have another range, or none."""
    low, high = jnp.array([0, 0, -100, -(2**31)]), jnp.array([255, 1, 900, 2**31 - 1])
    layer: Any = networks.unit_scale(spaces.Box(low, high, (4,), jnp.int32))
    obs = jnp.array([[51, 1, 400, 7], [255, 0, -100, -3]])
    np.testing.assert_allclose(layer.apply({}, obs), [[0.2, 1, 0.5, 7], [1, 0, 0, -3]], rtol=1e-6)
    planes = spaces.Box(0.0, jnp.tile(jnp.array([255.0, 1.0]), (2, 3, 1)), (2, 3, 2))
    layer = networks.unit_scale(planes)
    hash(layer)  # as Flax asks of the attributes of a module
    scaled = layer.apply({}, jnp.full((5, 2, 3, 2), 1.0))
    np.testing.assert_allclose(scaled, np.full((5, 2, 3, 2), [1 / 255, 1]), rtol=1e-6)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 1, (6, 6, 1), jnp.uint8),
        spaces.Box(-(2**31), 2**31 - 1, (4,), jnp.int32),
        spaces.Box(0.0, 300.0, (4,)),
    ],
)
def test_other_numbers_stay(space):
    assert networks.unit_scale(space) is None


def test_integers_of_a_box_are_normalised_and_those_of_categories_are_not():
    statistics = normalisation.Statistics(jnp.float32(9), jnp.float32(100), jnp.float32(25))
    config = normalisation.Config(observations=True)
    counts = jnp.array([90, 105, 1_000], jnp.int32)
    scaled = normalisation.normalise(statistics, counts, config, integers=True)
    np.testing.assert_allclose(scaled, [-2, 1, 10], rtol=1e-6)
    assert normalisation.normalise(statistics, counts, config) is counts


@pytest.mark.parametrize(
    ("game", "chosen", "most"),
    [
        (Game("CircularCartPole-v0"), None, 10_000),
        (Game("VectorField-v0", frame_stack=2), None, 10_000),
        (Game("CircularCartPole-v0"), 50_000, 50_000),
        (Game("CartPole-v1"), None, 500),
        (Game("CartPole-v1", sticky=0.1), None, 500),
        (Game(numbers=("max_steps_in_episode=1_000_000_000",)), None, 100_000),
    ],
)
def test_every_game_for_a_score_has_an_end(game, chosen: int | None, most: int):
    preset = "ppo" if game.id == "CartPole-v1" else "ppo_continuous"
    config = with_run_fields(PRESETS[preset].config, evaluation_steps=chosen)
    evaluation = make_training(replace(config, env=game)).evaluate
    assert isinstance(evaluation, GamesEvaluation)
    assert evaluation.match.limit == most
    assert evaluation.of_size is not None
    assert evaluation.of_size(3).limit == most
