"""Actions and observations of every kind of a user's own environments are learned from."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

from jaxrl.losses.distributions.continuous import ClippedNormal, Normal
from jaxrl.losses.distributions.discrete import Categorical, PerNode
from jaxrl.losses.distributions.joint import Joint
from jaxrl.wrappers import normalisation
from tests.train.gymnax.users_file import main, small_config
from train.gymnax import networks
from train.gymnax.actions import family
from train.gymnax.config import idle, make_agent, network_observation
from train.gymnax.presets import PRESETS
from train.gymnax.training import make_training
from train.host.environments import environments
from train.host.environments.environments import Game
from train.policies.export import main as policies
from train.report.__main__ import main as report


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


@pytest.mark.slow
def test_a_run_with_actions_of_parts_and_observations_of_parts(module, tmp_path, monkeypatch):
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


def test_integers_among_parts_are_scaled_by_their_bounds(module):
    """They are when alone, too: the first of two from 0 to 255; the second, a flag, stays."""
    task = environments.make(Game(f"{module}:Counts", frame_stack=2, last_action=True))
    frames = np.random.default_rng(0).normal(size=(2, 2 + 3 + 4 + 2)).astype(np.float32)
    frames[:, :2] = [[51, 1], [255, 0]]
    layer: Any = networks.first_layers(networks.Network(), task.observation)[0]
    scaled = frames / np.where(np.arange(11) == 0, 255, 1)
    parts = np.split(scaled, [2, 5, 9], axis=1)
    expected = np.concatenate([part.ravel() for part in parts])  # frame after frame in each
    np.testing.assert_allclose(layer.apply({}, frames.ravel()), expected, rtol=1e-6)
    assert (task.shows_images, task.observation.is_of_image().any()) == (False, False)
    box = spaces.Box(-1.0, 1.0, (2,))
    actor, _ = networks.actor_and_critics(networks.Network(), task.observation, box)
    jax.eval_shape(actor.init, jax.random.key(0), jnp.zeros(22))


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
    assert (task.shows_images, family(task)) == (True, "classic")
