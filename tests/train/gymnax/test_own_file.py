"""Environments of a user's own file: what is taken, and what is refused in one line."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

from bench import flags
from jaxrl.losses.distributions import Categorical, ClippedNormal, Joint, Normal, PerNode
from jaxrl.wrappers import normalisation
from train.gymnax import environments, networks
from train.gymnax.config import PRESETS, idle, make_agent, network_observation
from train.gymnax.environments import Game
from train.gymnax.program import PROGRAM
from train.gymnax.training import make_training
from train.host.command_line import command
from train.host.running.origin import explain, origin
from train.policies.export import main as policies
from train.report.__main__ import main as report

main = partial(command.main, PROGRAM)
FILE = '''
from collections import namedtuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import environment, spaces
from gymnax.environments.classic_control.cartpole import CartPole, EnvParams

from envs.base import Environment

class Changed(CartPole):
    """CartPole with another last step of `step_env`."""
    def change(self, obs, state, reward, done, info, params):
        return obs, state, reward, done, info
    def push(self, action):
        return action
    def step_env(self, key, state, action, params):
        result = super().step_env(key, state, self.push(action), params)
        return self.change(*result, params)

class RewardVector(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs, state, jnp.atleast_1d(reward), done, info
class FloatDone(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs, state, reward, done.astype(jnp.float32), info
class IntegerDone(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs, state, reward, done.astype(jnp.int32), info
class OtherDtype(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs.astype(jnp.float16), state, reward, done, info
class OtherState(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs, state.replace(x=state.x[None]), reward, done, info
class DiesOfTime(Changed):
    def change(self, obs, state, reward, done, info, params):
        return obs, state, reward, done | (state.time >= params.max_steps_in_episode), info
class WantsVector(Changed):
    def push(self, action):
        return action[0]
class Branches(Changed):
    def push(self, action):
        return 0 if action == 1 else 1
class OldStep(Changed):
    def step(self, key, state, action, params=None):
        return super().step(key, state, action, params)[:5]
class OtherShape(Changed):
    def observation_space(self, params):
        return spaces.Box(-jnp.inf, jnp.inf, (5,))
class NoSpace(environment.Environment):
    default_params = EnvParams()
class Theirs(Changed):
    def action_space(self, params=None):
        return gymnasium.spaces.Discrete(2)
class UpsideDown(Changed):
    def action_space(self, params=None):
        return spaces.Box(1.0, -1.0, (1,))
class HoldsArray(Environment):
    def __init__(self, goals=(3, 7)):
        super().__init__()
        self.goals = np.array(goals)

class Pairs(Changed):
    def push(self, action):
        return (action[0] > 0).astype(int)
    def action_space(self, params=None):
        return spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2)])
class Named(Changed):
    def push(self, action):
        return (action["b"] > 0).astype(int)
    def action_space(self, params=None):
        choice = spaces.Tuple([spaces.Discrete(2), spaces.Box(0.0, jnp.inf, (1,))])
        return spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Box(-1.0, 1.0, (2,)), "c": choice})
class Integers(Pairs):
    def action_space(self, params=None):
        return spaces.Box(0, jnp.array([1, 2]), (2,), jnp.int32)
class Bytes(Pairs):
    """Remembers the action, of a dtype of its own, in the state."""
    def action_space(self, params=None):
        return spaces.Box(1, 3, (2, 1), jnp.uint8)
    def push(self, action):
        assert (action.dtype, action.shape) == (jnp.uint8, (2, 1))
        return (action[0, 0] > 1).astype(int)
class NoChoice(Pairs):
    def action_space(self, params=None):
        space = spaces.Space()
        space.nvec = np.array([2, 0])
        return space
class Quits(Changed):
    def push(self, action):
        raise SystemExit(3)
class HalfOpen(Pairs):
    def action_space(self, params=None):
        return spaces.Box(jnp.array([0.0, -1.0]), jnp.array([jnp.inf, 1.0]), (2,))
class Enormous(Pairs):
    def action_space(self, params=None):
        return spaces.Box(jnp.finfo(jnp.float32).min, jnp.finfo(jnp.float32).max, (2,))

class Parts(Changed):
    """Observes a dict."""
    def change(self, obs, state, reward, done, info, params):
        return {"x": obs, "k": jnp.int32(1)}, state, reward, done, info
    def reset_env(self, key, params):
        obs, state = super().reset_env(key, params)
        return {"x": obs, "k": jnp.int32(1)}, state
    def observation_space(self, params):
        return spaces.Dict({"x": super().observation_space(params), "k": spaces.Discrete(3)})
class Sees(Parts):
    """Observes an image, too."""
    def image(self, obs):
        return {"a": jnp.full((3, 4, 1), 51, jnp.uint8), "k": jnp.int32(2), "x": obs}
    def change(self, obs, state, reward, done, info, params):
        return self.image(obs), state, reward, done, info
    def reset_env(self, key, params):
        obs, state = CartPole.reset_env(self, key, params)
        return self.image(obs), state
    def observation_space(self, params):
        image = spaces.Box(0, 255, (3, 4, 1), jnp.uint8)
        return spaces.Dict({"a": image, **super().observation_space(params).spaces})
class ScaledImage(Sees):
    def image(self, obs):
        return {**super().image(obs), "a": jnp.full((3, 4, 1), 0.2)}
class LacksPart(Parts):
    def observation_space(self, params):
        return spaces.Dict({"x": Changed.observation_space(self, params), "y": spaces.Discrete(3)})

@struct.dataclass
class WithText(EnvParams):
    name: str = "pole"
@struct.dataclass
class Endless(EnvParams):
    max_steps_in_episode: float = jnp.inf
@struct.dataclass
class Limitless:
    tau: float = 0.02
class Plain:
    max_steps_in_episode = 9

InTuple = namedtuple("InTuple", vars(EnvParams()))

def in_tuple(): return CartPole(), InTuple(**vars(EnvParams()))
def text(): return CartPole(), WithText()
def endless(): return CartPole(), Endless()
def limitless(): return CartPole(), Limitless()
def plain(): return CartPole(), Plain()
def fails(): return [][3]
pole = CartPole()
'''


@pytest.fixture(scope="module")
def module(tmp_path_factory) -> Iterator[str]:
    """The name of a module of a user's own."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_envs.py").write_text(FILE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield "own_envs"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("RewardVector", "breaks the contract: reward has shape (1,); expected a scalar"),
        ("FloatDone", "terminated is float32[]; expected a bool scalar"),
        ("IntegerDone", "terminated is int32[]; expected a bool scalar"),
        ("OtherDtype", "observation is float16[4] after step, but float32[4] after reset"),
        ("OtherState", "state.x is float32[1] after step, but float32[] after reset"),
        ("WantsVector", "cannot be traced: IndexError: Too many indices"),
        ("Branches", "TracerBoolConversionError"),
        ("OldStep", "step returns 5 values; expected 6, as in gymnax 1.0"),
        ("OtherShape", "observation has shape (4,), but observation_space says (5,)"),
        ("ScaledImage", "observation['a'] is float32, but observation_space says uint8: convert"),
        ("NoSpace", "the environment has no observation_space"),
        ("Theirs", "action_space gives a Discrete of gymnasium"),
        ("UpsideDown", "action_space has a Box from 1.0 to -1.0; expected low below high"),
        ("HoldsArray", "HoldsArray.goals is a ndarray, which cannot be hashed: make it a tuple"),
        ("NoChoice", "action_space has nvec [2 0]; expected 1 on"),
        ("Quits", "cannot be traced: SystemExit: 3"),
        ("LacksPart", "without the part 'y' of observation_space"),
        ("text", "params.name is a str; expected numbers"),
        ("plain", "params is a Plain; expected numbers in a flax.struct.dataclass"),
        ("limitless", "AttributeError: 'Limitless' object has no attribute 'x_threshold'"),
        ("fails", "cannot be made: IndexError: list index out of range"),
    ],
)
def test_what_breaks_the_contract_is_refused_in_one_line(
    name, message, module, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["--env.id", f"{module}:{name}", "--run.total-steps=99"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["WantsVector", "Branches"])
def test_what_jax_raises_is_told_with_the_line_of_the_file(name, module):
    with pytest.raises(ValueError, match=r"\(.*own_envs\.py:(\d+)\)") as error:
        environments.make(Game(f"{module}:{name}"))
    number = int(str(error.value).rsplit(":", 1)[1].rstrip(")"))
    assert f"class {name}" in "\n".join(FILE.splitlines()[number - 4 : number])


def test_an_error_of_this_library_has_no_line_of_a_user():
    with pytest.raises(ValueError, match="invalid literal") as error:
        int("x")
    own = explain(error.value)
    assert own.startswith("ValueError: invalid literal")
    assert str(origin(error.value)).startswith(__file__)  # this file is a user's
    assert origin(ValueError()) is None


class Speechless(Exception):
    """An error that has no text."""

    def __str__(self) -> str:
        return None  # pyright: ignore[reportReturnType]


def test_an_error_without_a_text_has_its_kind_and_its_line():
    with pytest.raises(Speechless) as error:
        raise Speechless
    assert explain(error.value).startswith(f"Speechless: its message cannot be shown ({__file__}:")


def test_an_environment_that_dies_of_its_limit_is_told_of(module, capsys):
    environments.make(Game(f"{module}:DiesOfTime"))
    assert "terminates at its time limit" in capsys.readouterr().out
    environments.make(Game(f"{module}:DiesOfTime"))
    environments.make(Game(f"{module}:Changed"))
    assert capsys.readouterr().out == ""


def test_instances_and_endless_environments_are_taken(module):
    assert environments.make(Game(f"{module}:pole")).limit == 500
    assert environments.make(Game(f"{module}:endless")).limit is None


def test_numbers_of_named_tuples_and_infinity(module):
    game = Game(f"{module}:in_tuple", numbers=("max_steps_in_episode=5", "gravity=3"))
    params = environments.make(game).params
    assert (params.max_steps_in_episode, params.gravity) == (5, 3.0)
    game = Game(f"{module}:endless", numbers=("max_steps_in_episode=inf",))
    assert environments.make(game).limit is None
    with pytest.raises(ValueError, match="gravity=inf, expected a finite number"):
        environments.make(Game("CartPole-v1", numbers=("gravity=inf",)))


@pytest.mark.parametrize("limit", ["0", "-1", "3_000_000_000", "1e400", "nan"])
def test_impossible_limits_are_refused(limit):
    with pytest.raises(ValueError, match="max_steps_in_episode"):
        environments.make(Game("CartPole-v1", numbers=(f"max_steps_in_episode={limit}",)))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Pairs", Joint),
        ("Named", Joint),
        ("Integers", PerNode),
        ("Bytes", PerNode),
        ("HalfOpen", ClippedNormal),
        ("Enormous", Normal),
        ("Changed", Categorical),
    ],
)
@pytest.mark.parametrize("preset", ["ppo", "recurrent"])
def test_policies_suit_actions_of_every_kind(name, kind, preset, module):
    """Shapes alone."""
    task = environments.make(Game(f"{module}:{name}"))
    build = networks.recurrent if preset == "recurrent" else networks.actor_critic
    network = build(networks.Network(hidden=(4,)), task.observation, task.action)
    memory = (jnp.zeros(64),) if preset == "recurrent" else ()
    policy = jax.eval_shape(network.init_with_output, jax.random.key(0), jnp.zeros(4), *memory)[0]
    assert isinstance(policy[0], kind)


LEARNING = (("ppo", "Named"), ("recurrent", "Bytes"))
"""What is traced always: the most parts, and a dtype that must be kept."""


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("preset", "name"),
    [
        pytest.param(*pair, marks=[pytest.mark.slow] * (pair not in LEARNING))
        for pair in product(
            ("ppo", "recurrent"),
            ("Pairs", "Named", "Integers", "Bytes", "HalfOpen", "Enormous", "Changed"),
        )
    ],
)
def test_actions_of_every_kind_are_learned_from(name, preset, module):
    training = make_training(small_config(preset, f"{module}:{name}"))
    state = jax.eval_shape(training.init, jax.random.key(0))
    after, _ = jax.eval_shape(training.update, state)
    assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state)


@pytest.mark.parametrize("preset", ["dqn", "pqn", "sac"])
@pytest.mark.parametrize("name", ["Pairs", "Integers", "HalfOpen"])
def test_others_name_the_space_and_what_takes_it(preset, name, module):
    task = environments.make(Game(f"{module}:{name}"))
    with pytest.raises(ValueError, match=r"actions are (Tuple|Box)\(.*: use ppo"):
        make_agent(small_config(preset, f"{module}:{name}"), task)


def small_config(preset: str, name: str):
    """A preset in an environment, with the smallest rollout."""
    return flags.shrink(replace(PRESETS[preset].config, env=Game(name)))


@pytest.mark.slow
def test_a_run_with_actions_of_parts_and_observations_of_parts(
    module, tmp_path, monkeypatch, capsys
):
    """From training to the policy of a file, a page and a compiled policy, sticky actions, too."""
    monkeypatch.chdir(tmp_path)
    sizes = (
        "--loop.num-envs=4 --loop.num-steps=16 --run.total-steps=128 --run.chunk-steps=64 "
        "--run.evaluation-games=4 --run.directory=run --env.sticky=0.3 "
        "--env.numbers max_steps_in_episode=20"
    )
    assert main(["--env.id", f"{module}:Named", *sizes.split()]) == 0
    rows = [json.loads(x) for x in Path("run/metrics.jsonl").read_text().splitlines()]
    smallest = np.min([row["agent"]["action_min"] for row in rows], 0)
    largest = np.max([row["agent"]["action_max"] for row in rows], 0)
    assert np.all(smallest >= [-1, -1, 0])  # of a, of a, and of the second part of c
    assert np.all(largest[:2] <= 1)
    assert report(["run", "--out=page.html"]) == 0
    assert "b: probability" in Path("page.html").read_text(encoding="utf-8")
    assert policies(["compile", "run", "--out=alone"]) == 0
    outputs = json.loads(Path("alone.json").read_text(encoding="utf-8"))["outputs"]
    assert [x["name"] for x in outputs] == ["action.a", "action.b", "action.c.0", "action.c.1"]


def test_observations_of_parts_are_one_vector(module):
    env, params, _, observation, _ = environments.make(Game(f"{module}:Parts"))
    plain = environments.make(Game(f"{module}:Changed")).env
    vector, array = (x.reset(jax.random.key(3), params)[0] for x in (env, plain))
    np.testing.assert_array_equal(vector, [*[0, 1, 0], *array])  # in the order of names
    assert observation.shape == (7,)


@pytest.mark.slow
@pytest.mark.parametrize("normalised", [False, True])
def test_an_image_among_parts_has_its_convolutions(normalised, module):
    """Two frames of an image, a category and a vector, and the last action: by hand."""
    task = environments.make(Game(f"{module}:Sees", frame_stack=2, last_action=True))
    normalise = normalisation.Config(observations=normalised)
    config = replace(PRESETS["ppo"].config, normalise=normalise)
    frames = np.random.default_rng(0).normal(size=(2, 12 + 3 + 4 + 2)).astype(np.float32)
    frames[:, :12] = np.arange(24).reshape(2, 12)
    network = networks.Network(hidden=(5,), channels=(2,), activation="relu")
    torso = networks.torso(network, network_observation(config, task))
    obs = jnp.asarray(frames.ravel())
    features, variables = torso.init_with_output(jax.random.key(0), obs)
    layers = jax.tree.leaves(variables["params"], is_leaf=lambda x: "kernel" in x)
    conv, dense = sorted(layers, key=lambda x: -x["kernel"].ndim)
    image = np.moveaxis(frames[:, :12].reshape(2, 3, 4), 0, -1) / 255
    padded = np.pad(image, [(1, 1), (1, 1), (0, 0)])
    feature_maps = [
        np.einsum("ijc,ijcf->f", padded[i : i + 3, j : j + 3], conv["kernel"]) + conv["bias"]
        for i in range(3)
        for j in range(4)
    ]
    others = [frames[:, 12:15], frames[:, 15:19], frames[:, 19:]]
    joined_features = np.concatenate(
        [np.maximum(np.ravel(feature_maps), 0), *(x.ravel() for x in others)]
    )
    expected = np.maximum(joined_features @ dense["kernel"] + dense["bias"], 0)
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-5)
    free = task.observation.is_of_image().reshape(2, -1)
    np.testing.assert_array_equal(free, np.tile(np.arange(21) < 12, (2, 1)))


def test_all_networks_but_those_of_sac_take_parts_with_an_image(module):
    game = Game(f"{module}:Sees")
    task, network, key = environments.make(game), networks.Network(), jax.random.key(0)
    inputs = (jnp.zeros(19), jnp.zeros(64))
    builds = {networks.actor_critic: 1, networks.q_network: 1, networks.recurrent: 2}
    for build, count in builds.items():
        model = build(network, task.observation, task.action)
        variables = jax.eval_shape(model.init, key, *inputs[:count])
        assert (3, 3, 1, 16) in [x.shape for x in jax.tree.leaves(variables)]
    with pytest.raises(ValueError, match="expected vectors: use ppo"):
        networks.actor_and_critics(network, task.observation, spaces.Box(-1.0, 1.0, (2,)))
    assert "network.channels" not in idle(replace(PRESETS["ppo"].config, env=game))
    assert (task.shows_images, task.family) == (True, "classic")
