"""`env_checker` over environments that break the contract, which it must catch, and why."""

from types import SimpleNamespace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from gymnax.environments import spaces

from envs.checker import check_contract, env_checker
from envs.contract import MOST_STEPS, ContractError, time_limit
from envs.snake.env import Snake
from tests.envs.recorder import Recorder


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


class ForgetsInfo(Recorder):
    def step_env(self, key, state, action, params):
        return super().step_env(key, state, action, params)[:4]


class ReturnsNothing(Recorder):
    def step_env(self, key, state, action, params):
        return None


class PaysText(Recorder):
    reward: ClassVar = "much"

    def transition(self, chance, state, action, params):
        state, _, terminated, info = super().transition(chance, state, action, params)
        return state, self.reward, terminated, info


class PaysNothing(PaysText):
    reward: ClassVar = None


class Ends(Recorder):
    """Says by another kind of array whether it is over."""

    flag: ClassVar = jnp.float32(0)

    def transition(self, chance, state, action, params):
        state, reward, _, info = super().transition(chance, state, action, params)
        return state, reward, self.flag, info


class EndsInAVector(Ends):
    flag: ClassVar = jnp.zeros(1, bool)


class InformsInAList(Recorder):
    def transition(self, chance, state, action, params):
        return *super().transition(chance, state, action, params)[:3], [1.0]


class ReportsText(Reports):
    outcome: ClassVar = {"place": "home"}


class ShowsText(Recorder):
    def describe(self, state, features, params):
        return {"seen": "nothing"}


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (PaysText, "^step_env returns a str as reward; expected arrays$"),
        (PaysNothing, "^reward is a NoneType; expected a real number$"),
        (Ends, r"^terminated is float32\[\]; expected a bool scalar$"),
        (EndsInAVector, r"^terminated is bool\[1\]; expected a bool scalar$"),
        (InformsInAList, "^info is a list of 1; expected a dict$"),
        (ReportsText, r"^step_env returns a str as info\['outcome'\]\['place'\]; expected arrays$"),
        (ShowsText, r"^reset returns a str as observation\['seen'\]; expected arrays$"),
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
        (ForgetsInfo, "step_env returns 4 values; expected 5: observation, state, reward, term"),
        (ReturnsNothing, "step_env returns NoneType; expected 5: observation"),
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
        after, _, terminated, info = super().transition(chance, state, jnp.int32(0), params)
        reward = sum(jnp.sum(x) for x in jax.tree.leaves(action))
        return after, reward, terminated, info | {"components": jnp.asarray(reward)[None]}

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
