"""The contract, over every environment we have, and over broken ones that it must catch."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from gymnax.environments import environment as gymnax_environment
from gymnax.environments import spaces
from gymnax.wrappers import FlattenObservationWrapper, LogWrapper

import envs
from envs import grid, snake
from envs.checker import check_contract, env_checker
from envs.contract import MOST_STEPS, ContractError, time_limit
from envs.grid import layouts
from envs.grid.env import Grid
from envs.snake.env import Snake
from tests.envs.recorder import Recorder


@pytest.mark.parametrize("env_id", envs.ALL)
def test_every_environment_keeps_what_tracing_tells_of_the_contract(env_id):
    check_contract(*envs.make(env_id))


LONG_TO_COMPILE = ("Snake-v0", "TwoSnake-v0", "Durotaxis-v0", "VectorField-v0")


@pytest.mark.parametrize(
    "env_id",
    [
        pytest.param(env_id, marks=[pytest.mark.slow] if env_id in LONG_TO_COMPILE else [])
        for env_id in envs.ALL
    ],
)
def test_every_environment_keeps_the_contract(env_id):
    env_checker(*envs.make(env_id))


@pytest.mark.parametrize("env_id", envs.ALL)
def test_every_environment_has_32_bits_where_jax_has_64(env_id):
    def play() -> Any:
        env, params = envs.make(env_id)
        key, reset_key, action_key = jax.random.split(jax.random.key(0), 3)
        obs, state = env.reset(reset_key, params)
        action = env.action_space(params).sample(action_key)
        return obs, state, env.step(key, state, action, params)

    shapes = lambda: jax.tree.map(lambda x: (x.shape, x.dtype), jax.eval_shape(play))
    expected = shapes()
    with jax.enable_x64(True):
        assert shapes() == expected


def test_every_environment_has_a_version():
    versions = {env_id: envs.environment_class(env_id).version for env_id in envs.ALL}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values())
    assert versions.pop("Durotaxis-v0") == "0.2.0"
    assert set(versions.values()) == {"0.1.0"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"observation": "planes", "rows": 12, "cols": 5, "rules": "modern"},
        *(
            pytest.param(arguments, marks=pytest.mark.slow)
            for arguments in (
                {"observation": "flood", "rules": "modern"},
                {"observation": "features", "actions": "absolute", "rows": 4, "cols": 7},
                {"observation": "selective", "rows": 9, "cols": 14},
                {"observation": "enhanced", "cols": 6, "rules": "modern"},
            )
        ),
    ],
    ids=lambda arguments: arguments["observation"],
)
def test_every_snake_keeps_the_contract(arguments):
    env_checker(*envs.make("Snake-v0", **arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"maze": "GridMaze-7", "observation": "index"},
        {"maze": layouts.parse("S,DR:0.5,G\nE1,PU:1,."), "observation": "one_hot"},
        {"maze": "corridors-20-seed1", "observation": "pixels", "wind": -0.5},
    ],
    ids=lambda arguments: arguments["observation"],
)
@pytest.mark.slow
def test_every_grid_keeps_the_contract(arguments):
    env_checker(*envs.make("Grid-v0", **arguments))


@pytest.mark.parametrize(
    "env_id",
    [
        pytest.param("Durotaxis-v0", marks=pytest.mark.slow),  # its own tests try each form
        "VectorField-v0",
        "CircularCartPole-v0",
    ],
)
def test_an_action_that_is_no_number_leaves_the_state_finite(env_id):
    """A policy that diverged must not leave NaN in a world that others go on with."""
    env, params = envs.make(env_id)

    @jax.jit
    @jax.vmap
    def step(number):
        reset_key, action_key, step_key = jax.random.split(jax.random.key(0), 3)
        _, state = env.reset(reset_key, params)
        action = env.action_space(params).sample(action_key)
        return env.step(step_key, state, jnp.full_like(action, number), params)

    after = step(jnp.array([jnp.nan, jnp.inf, -jnp.inf]))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(after))


def test_gymnax_knows_our_environments():
    env, params = gymnax.make("Snake-v0", rows=6, observation="flood")
    assert env == Snake(6, 10, "flood")
    assert params == env.default_params
    env, params = gymnax.make("Grid-v0", maze="corridors-100-seed1", observation="index")
    assert (env.num_states, env.layout.name) == (100, "corridors-100-seed1")
    assert params is env.default_params


@pytest.mark.parametrize(
    ("module", "shape"), [pytest.param(snake, (28,), marks=pytest.mark.slow), (grid, (2,))]
)
def test_module_plays_the_default_game(module, shape):
    obs, state = module.reset(jax.random.key(0))
    after = module.step(jax.random.key(1), state, 0)
    assert obs.shape == after[0].shape == shape
    assert int(after[1].time) == 1


def test_gymnax_wrappers_work_on_ours():
    env = LogWrapper(FlattenObservationWrapper(Snake(4, 4, "planes")))
    params = env.default_params
    obs, state = env.reset(jax.random.key(0), params)
    assert obs.shape == (80,)
    for i in range(5):  # straight ahead, into the wall
        obs, state, *_, info = env.step(jax.random.key(i + 1), state, 0, params)
    assert int(state.returned_episode_lengths) == 2
    assert "returned_episode" in info


def test_gymnax_wrappers_keep_the_maze_of_each():
    """Mazes of one size are equal; a wrapper around each must still walk its own."""
    for maze in ("corridors-30-seed1", "corridors-30-seed2"):
        env = Grid(maze, "index")
        wrapped = LogWrapper(env)
        _, state = wrapped.reset(jax.random.key(0))
        for i in range(4):
            before = state.env_state.position
            obs, state, *_ = wrapped.step(jax.random.key(i + 1), state, i)
            assert obs == env.default_params.successor[before, i, 0]


def test_unknown_environment_is_refused():
    with pytest.raises(ValueError, match="'Snek-v0' is unknown; expected one of Snake-v0"):
        envs.make("Snek-v0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 3}, "rows is 3; expected 4 to 32 cells"),
        ({"cols": 33}, "cols is 33; expected 4 to 32 cells"),
        ({"observation": "eyes"}, "observation 'eyes' is unknown"),
        ({"rules": "house"}, "rules 'house' is unknown"),
        ({"actions": "diagonal"}, "actions 'diagonal' is unknown"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        envs.make("Snake-v0", **arguments)


class TimesOutAsDeath(Recorder):
    def transition(self, chance, state, action, params):
        state, reward, terminated, info = super().transition(chance, state, action, params)
        return state, reward, terminated | (state.time >= params.max_steps_in_episode), info


class ForgetsDtype(Snake):
    def describe(self, state, features, params):
        obs = super().describe(state, features, params)
        return obs if state.order is None else obs.astype(jnp.float16)

    def reset_env(self, key, params):
        obs, state = super().reset_env(key, params)
        return obs.astype(jnp.int32), state


class LeavesItsSpace(Recorder):
    def describe(self, state, features, params):
        return -3.0 + super().describe(state, features, params)


class ShowsOneMore(Snake):
    def describe(self, state, features, params):
        return jnp.append(super().describe(state, features, params), 0.0)


class DeclaresAnotherFloat(Recorder):
    def observation_space(self, params=None):
        return spaces.Box(-1.0, jnp.inf, (2,), jnp.float16)


class CountsAnotherAction(Recorder):
    @property
    def num_actions(self):
        return 5


class AddsNothingUp(Snake):
    outcome_kinds: ClassVar = {"score": "total"}


class AddsWhatIsNotThere(Snake):
    outcome_kinds: ClassVar = {"food": "sum"}


class Reports(Recorder):
    """More than one outcome, the first summed up."""

    outcome: ClassVar = {"return": 0.0}

    @property
    def outcome_kinds(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return {"food": "sum"} if "food" in self.outcome else {}

    def transition(self, chance, state, action, params):
        *step, info = super().transition(chance, state, action, params)
        return *step, info | {"outcome": self.outcome}


class ReportsOneNameTwice(Reports):
    outcome: ClassVar = {"food": 0.0, "food_sum": 0.0}


class Pays(Recorder):
    """Parts of the reward that are less than it, one step's share at a time."""

    def parts(self, reward):
        return jnp.stack([0.5 * reward, 0.25 * reward])

    def transition(self, chance, state, action, params):
        state, reward, terminated, info = super().transition(chance, state, action, params)
        return state, reward, terminated, info | {"components": self.parts(reward)}


class PaysOneNumber(Pays):
    def parts(self, reward):
        return reward


class IsNeverEqual(Recorder):
    __eq__ = object.__eq__  # pyright: ignore[reportAssignmentType]
    __hash__ = object.__hash__


@struct.dataclass
class Untimed:
    cell: jax.Array


class HasNoTime(Snake):
    def start(self, chance, params):
        return Untimed(jnp.int32(0))

    def transition(self, chance, state, action, params):
        return state, jnp.float32(0), jnp.bool_(False), {}

    def describe(self, state, features, params):
        return jnp.zeros(10)


class HasNoLimit(HasNoTime):
    def start(self, chance, params):
        return Place(jnp.int32(0))

    @property
    def default_params(self):
        return Untimed(jnp.float32(0))


@struct.dataclass
class Place:
    time: jax.Array


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (HasNoTime, "the state has no field `time`"),
        (HasNoLimit, "params has no field `max_steps_in_episode`"),
        (TimesOutAsDeath, "time limit made a step terminate"),
        (ForgetsDtype, "observation is float32.* after step, but int32.* after reset"),
        (LeavesItsSpace, "outside observation_space"),
        (ShowsOneMore, r"shape \(11,\), but observation_space says \(10,\)"),
        (DeclaresAnotherFloat, "observation is float32, but observation_space says float16: conv"),
        (CountsAnotherAction, "num_actions is 5, but action_space has 4 actions: make them agree"),
        (AddsNothingUp, r"outcome_kinds\['score'\] is 'total'; expected one of last, sum, mean"),
        (AddsWhatIsNotThere, "outcome_kinds has 'food', which info.* has not; it has .*score"),
        (Reports, "has 'return', reported as 'return', a name that is taken"),
        (ReportsOneNameTwice, "has 'food', reported as 'food_sum', a name that is taken"),
        (Pays, r"info\['components'\] do not add up to the reward"),
        (PaysOneNumber, r"info\['components'\] is float32\[\]; expected the parts of the reward"),
        (IsNeverEqual, "not equal, so each would compile again"),
    ],
)
def test_checker_catches(broken, message):
    with pytest.raises(ContractError, match=message):
        env_checker(broken(5, 5, "features") if issubclass(broken, Snake) else broken())


class DeclaresFloat64(Recorder):
    def observation_space(self, params=None):
        return spaces.Box(-1.0, np.inf, (2,), jnp.float64)


class HasNoNumber(Recorder):
    @property
    def num_actions(self):
        raise NotImplementedError


@pytest.mark.parametrize("kind", [DeclaresFloat64, HasNoNumber])
def test_float64_is_float32_and_the_number_of_actions_may_be_missing(kind):
    check_contract(kind(), Recorder().default_params)


LINE = spaces.Box(-np.inf, np.inf, (1,))
"""Of actions without bounds."""


class TakesNumbers(Recorder):
    """Pays the sum of all numbers of an action."""

    def __init__(self, action):
        super().__init__()
        self.action = action

    def transition(self, chance, state, action, params):
        after, _, *rest = super().transition(chance, state, jnp.int32(0), params)
        return after, sum(jnp.sum(x) for x in jax.tree.leaves(action)), *rest

    def action_space(self, params=None):
        return self.action


@pytest.mark.parametrize("space", [LINE, spaces.Tuple((LINE, spaces.Box(-1.0, np.inf, (2,))))])
def test_actions_may_have_no_bounds(space):
    env_checker(TakesNumbers(space))


@pytest.mark.parametrize("goals", [np.array([3, 7]), [3, 7], (3, np.array([7])), {"a": 1}])
def test_an_attribute_that_cannot_be_hashed_is_named(goals):
    class WithGoals(Snake):
        def __init__(self):
            super().__init__(5, 5)
            self.goals = goals

    message = rf"WithGoals.goals is a {type(goals).__name__}, which cannot be hashed: make it a"
    with pytest.raises(ContractError, match=message):
        env_checker(WithGoals())
    with pytest.raises(TypeError, match=message):  # in one line, where JAX has many
        WithGoals().reset(jax.random.key(0))


@pytest.mark.parametrize(
    ("limit", "steps"), [(7, 7), (1.5, 2), (np.inf, None), (2.0**31 - 1, MOST_STEPS)]
)
def test_a_time_limit_is_a_number_of_steps(limit, steps):
    assert time_limit(SimpleNamespace(max_steps_in_episode=limit)) == steps


@pytest.mark.parametrize("limit", [0, -1, np.nan, 2**31, -np.inf, True, "9", np.ones(2)])
def test_other_time_limits_are_refused(limit):
    with pytest.raises(ContractError, match="expected steps from 1 to 2,147,483,647, or inf"):
        time_limit(SimpleNamespace(max_steps_in_episode=limit))


def test_what_no_loop_averages_is_pointed_out():
    class Flat(Recorder):
        def transition(self, chance, state, action, params):
            state, reward, terminated, info = super().transition(chance, state, action, params)
            return state, reward, terminated, info["outcome"]

    with pytest.warns(UserWarning, match=r"not in info\['outcome'\], so never averaged: clock"):
        env_checker(Flat())


def test_auto_reset_has_the_distribution_of_gymnax():
    """Our step against gymnax's own: same transition, and resets drawn from the same law."""
    env = Snake(4, 5, "features", rules="modern")
    params = replace(env.default_params, max_steps_in_episode=1)  # every step resets
    _, state = env.reset(jax.random.key(0), params)
    generic = gymnax_environment.Environment.step.__wrapped__  # pyright: ignore

    def sample(step, seed):
        keys = jax.random.split(jax.random.key(seed), 8_000)
        out = jax.jit(jax.vmap(lambda k: step(k, state, 1, params)))(keys)
        after = out[1]
        return np.stack([after.head, after.heading, after.food], axis=1), out

    ours, our_step = sample(lambda *a: env.step(*a), 1)
    theirs, their_step = sample(lambda *a: generic(env, *a), 2)
    for column in range(3):
        values = np.union1d(ours[:, column], theirs[:, column])
        a = np.array([(ours[:, column] == v).sum() for v in values])
        b = np.array([(theirs[:, column] == v).sum() for v in values])
        chi_square = np.sum((a - b) ** 2 / (a + b))
        degrees = len(values) - 1
        assert chi_square < degrees + 5 * np.sqrt(2 * degrees)
    np.testing.assert_array_equal(our_step[2], their_step[2])
    np.testing.assert_array_equal(our_step[3], their_step[3])
