"""Policies that act on NumPy arrays: the right numbers, no compilation twice, plain refusals."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
from jaxrl.types import Agent
from tests.train import tiny
from train.host.abilities import player_of
from train.host.errors import UsageError
from train.host.player import Player
from train.host.program import Preset, Program, Run
from train.host.scoring import games
from train.host.training import PlayConfig, Training
from train.policies.acting import Policy

TRACES: list[str] = []
"""An entry for each time that an agent's `act` is traced."""


class Room:
    """Shows a place and a word, and is never stepped in here."""

    def reset(self, key, params):
        return {"at": jnp.zeros(2), "word": jnp.zeros((), jnp.int32)}, ()

    def step(self, key, state, action, params):
        raise NotImplementedError


class State(NamedTuple):
    params: jax.Array  # [2]
    updates: jax.Array


def make_agent(kind: str, greedy: bool) -> Agent:
    """Says how far it has gone, what it has heard so far, and perhaps some noise."""

    def act(state, memory, obs, key):
        TRACES.append(kind)
        heard = memory["heard"] + obs["word"]
        far = obs["at"] @ state.params + 10.0 * heard
        if not greedy or kind == "restless":
            far += jax.random.uniform(key) * (1 if kind == "restless" else 1 + state.updates)
        return {"far": far, "pair": (heard, heard > 2)}, {"heard": heard}, ()

    if kind == "drifting" and greedy:  # it remembers only while it explores
        return make_agent("calm", greedy)._replace(
            memory=lambda: (),
            act=lambda state, memory, obs, key: ({"far": obs["at"] @ state.params}, (), ()),
        )
    return Agent(
        init=lambda key, obs: State(jnp.ones(2), jnp.zeros((), jnp.int32)),
        memory=lambda: {"heard": jnp.zeros((), jnp.int32)},
        act=act,
        update=lambda state, rollout, key: (state, {}),
    )


@dataclass(frozen=True)
class Config:
    kind: str = "calm"
    run: PlayConfig = field(default_factory=PlayConfig)


def make_training(config: Config) -> Training:
    agent = make_agent(config.kind, config.run.evaluation_greedy)
    evaluate = games.of_player(tiny.Walk(), (), agent, 1, 5)
    player = None if config.kind == "still" else Player(Room(), (), agent)
    no_games = games.of_episodes(evaluate.match)
    nothing: Any = lambda *arguments: None
    return Training(nothing, nothing, no_games, 1, player=player)


KINDS = ("calm", "restless", "still", "drifting")
PROGRAM = Program("acting", {kind: Preset(Config(kind)) for kind in KINDS}, make_training)
WEIGHTS = np.array([2.0, -3.0], np.float32)


def policy_of(kind: str = "calm", is_whole: bool = True) -> Policy:
    state = State(jnp.asarray(WEIGHTS), jnp.int32(4))
    run = Run(Path("runs/acting"), PROGRAM, Config(kind), 4, [state], () if is_whole else None)
    return Policy("runs/acting", run, player_of(run), 0, {})


@pytest.fixture(scope="module")
def policy() -> Policy:
    """One that has acted alone and in a batch of two, so that both are compiled."""
    policy = policy_of()
    for obs in (view([1, 2], 0), view([[1, 2], [3, 4]], [0, 0])):
        policy.act(obs)
    return policy


@pytest.fixture
def no_tracing() -> Iterator[None]:
    """Nothing is traced, and so compiled, in the test."""
    count = len(TRACES)
    yield
    assert len(TRACES) == count


def view(at: Any, word: Any) -> dict[str, Any]:
    return {"at": np.array(at, np.float32), "word": np.array(word, np.int32)}


def test_an_episode_alone_is_what_numpy_says(policy: Policy, no_tracing):
    memory, heard = None, 0
    for at, word in (([1, 2], 1), ([0, 4], 2), ([-1, 0.5], 0)):
        action, memory = policy.act(view(at, word), memory)
        heard += word
        assert isinstance(action["far"], np.ndarray)
        assert action["far"] == np.float32(np.dot(at, WEIGHTS) + 10 * heard)
        assert action["pair"] == (heard, heard > 2)
        assert memory == {"heard": heard}


def test_a_batch_is_what_each_is_alone(policy: Policy, no_tracing):
    obs, next_obs = view([[1, 2], [0, 4]], [1, 2]), view([[3, 1], [1, 1]], [5, 7])
    _, memory = policy.act(obs)
    np.testing.assert_array_equal(memory["heard"], [1, 2])
    action, memory = policy.act(next_obs, memory, begins=np.array([False, True]))
    np.testing.assert_array_equal(memory["heard"], [6, 7])  # the second had an episode of its own
    np.testing.assert_allclose(action["far"], next_obs["at"] @ WEIGHTS + [60, 70])
    np.testing.assert_array_equal(policy.memory(3)["heard"], [0, 0, 0])


def test_numbers_of_other_sizes_and_other_holders_of_parts_are_taken(policy: Policy, no_tracing):
    class Parts(NamedTuple):
        at: Any
        word: Any

    expected = policy.act(view([1, 2], 3))[0]["far"]
    for obs in ({"word": np.int64(3), "at": [1.0, 2.0]}, Parts(jnp.array([1.0, 2.0]), 3)):
        assert policy.act(obs)[0]["far"] == expected


@pytest.mark.parametrize(
    ("obs", "more", "message"),
    [
        (view([1, 2, 3], 0), {}, r"observation['at'] has shape (3,); expected (2,), or (B, 2) for"),
        (view([[[1, 2]]], 0), {}, "has shape (1, 1, 2); expected"),
        (view([1, np.nan], 0), {}, "observation['at'] is nan at [1]; expected finite numbers"),
        (view([1, np.inf], 0), {}, "is inf at [1]; expected finite"),
        (view([1, 2], 0) | {"at": np.array([1, 2])}, {}, "is int64; expected float32 of shape"),
        (view([1, 2], 0) | {"word": 0.5}, {}, "observation['word'] is float64; expected int32"),
        (view([1, 2], 0) | {"word": 2**40}, {}, "has numbers that int32 has not"),
        (view([1, 2], 0) | {"at": "here"}, {}, "is <U4; expected float32 of shape (2,)"),
        ({"at": [1.0, 2.0]}, {}, "observation['word'] is missing, in a dict; expected int32"),
        (view([1, 2], 0) | {"and": 3}, {}, "observation has a part 'and'; expected at, word"),
        ((view([1, 2], 0), {}), {}, "observation['at'] is missing, in a tuple"),
        (None, {}, "observation['at'] is missing, in a NoneType"),
        (view([[1, 2]], [0, 0]), {}, "have the shapes (1, 2), (2,), of several sizes"),
        (view([1, 2], 0), {"memory": {"heard": np.zeros(2, int)}}, "is of a batch of 2; expected"),
        (view([1, 2], 0), {"memory": np.zeros(2)}, "memory['heard'] is missing, in a ndarray"),
        (view([1, 2], 0), {"begins": [True]}, "begins is bool of shape (1,); expected bool of ()"),
        (view([1, 2], 0), {"key": "x"}, "key is x; expected an integer or a key"),
        (view([1, 2], 0), {"key": jax.random.split(jax.random.key(0))}, "expected an integer or a"),
        (view([1, 2], 0), {"key": jax.random.key(0, impl="rbg")}, "a key of JAX, one of threefry"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(policy: Policy, no_tracing, obs, more, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        policy.act(obs, **more)
    assert "\n" not in str(error.value)


def test_actions_are_drawn_where_a_key_is_given(policy: Policy):
    obs = view([1, 2], 0)
    far = [policy.act(obs, key=key)[0]["far"] for key in (3, 3, 4, jax.random.key(3))]
    assert far[0] == far[1] == far[3] != far[2]
    assert policy.act(obs)[0]["far"] == -4.0
    both = policy.act(view([[1, 2], [1, 2]], [0, 0]), key=3)[0]["far"]
    assert both[0] != both[1]


def test_what_explores_with_a_memory_of_its_own_keeps_it():
    policy, obs, both = policy_of("drifting"), view([1, 2], 3), view([[1, 2], [0, 4]], [1, 2])
    memory = policy.memory()
    assert memory == policy.act(obs)[1] == ()
    for heard in (3, 6):
        action, memory = policy.act(obs, memory, key=5)
        assert memory == {"heard": heard}
        assert action["far"] > 10 * heard - 4
    memory = policy.act(both, policy.memory(2), key=5)[1]
    _, memory = policy.act(both, memory, begins=np.array([True, False]), key=6)
    np.testing.assert_array_equal(memory["heard"], [1, 4])
    with pytest.raises(ValueError, match=r"memory is dict; expected \(\)"):
        policy.act(obs, {"heard": 3})


def test_a_player_that_always_draws_draws_anew_at_every_step():
    policy, twin = policy_of("restless"), policy_of("restless")
    far = [[x.act(view([1, 2], 0))[0]["far"] for _ in range(3)] for x in (policy, twin)]
    assert len(set(map(float, far[0]))) == 3
    assert far[0] == far[1]


def test_a_program_without_a_player_is_told_what_it_lacks():
    with pytest.raises(UsageError, match=r"of_player\(\.\.\.\), or Training\(player=Player"):
        policy_of("still")


FOOD = """
import jax
import train

policy = train.load("snake-6x6")
step = jax.jit(policy.env.step)
obs, state = policy.env.reset(jax.random.key(1), policy.params)
memory, food = None, 0
for key in jax.random.split(jax.random.key(2), 100):
    action, memory = policy.act(obs, memory)
    obs, state, reward, terminated, truncated, _ = step(key, state, action, policy.params)
    assert not (terminated or truncated)
    food += reward > 0.5
print(int(food))
"""


@pytest.mark.slow
def test_a_policy_of_the_library_eats_in_a_script_outside(tmp_path):
    """More than one in six of a hundred moves on 6×6 ends on food."""
    (tmp_path / "watch.py").write_text(FOOD)
    script = [sys.executable, "watch.py"]
    env = {**os.environ, "PYTHONPATH": str(Path(train.__file__).parents[1])}
    script = subprocess.run(script, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (script.returncode, script.stderr) == (0, "")
    assert int(script.stdout) > 100 / 6
    assert [x.name for x in tmp_path.iterdir()] == ["watch.py"]


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ("nothing", {}, "there is no policy nothing"),
        ("snake-6x6", {"best": True}, "only a run has a best policy"),
        ("snake-6x6", {"seed": 7}, "snake-6x6 holds one policy, of seed 0: leave seed out"),
        ("walk.jax", {}, "is a compiled program"),
        (".", {}, "is not a run directory"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_one_line(source, more, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message) as error:
        train.load(source, **more)
    assert "\n" not in str(error.value)
