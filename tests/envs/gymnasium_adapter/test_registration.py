"""Gymnasium makes what is registered, and its checker has nothing to criticise."""

import re
import warnings
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import envs
from envs.gymnasium_adapter import register
from tests.envs.gymnasium_adapter.environments import SAME_STEP, SNAKE, N

UNBOUNDED = "A Box observation space m(in|ax)imum value is -?infinity"
UNSCALED = "For Box action spaces, we recommend using a symmetric and normalized space"
ADVICE = {
    "Durotaxis-v0": {UNBOUNDED, UNSCALED},  # a measured field may have any stiffness; px
    "VectorField-v0": {UNBOUNDED},  # Gaussian noise
    "CircularCartPole-v0": {UNBOUNDED},  # speeds
    "Pendulum-v1": {UNSCALED},  # newton metres
}
"""What the checker advises against, and is so: physical units, and numbers without a bound."""
QUICK = ("Grid-v0", "CircularCartPole-v0", "CartPole-v1", "Pendulum-v1")


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "env_id",
    [
        *QUICK,
        *(pytest.param(x, marks=pytest.mark.slow) for x in envs.ALL if x not in QUICK),
    ],
)
def test_gymnasium_finds_nothing_to_criticise(env_id):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(gymnasium.make(f"jaxrl/{env_id}").unwrapped)
    advice = ADVICE.get(env_id, set())
    messages = [str(warning.message) for warning in caught]
    assert all(any(re.search(pattern, text) for pattern in advice) for text in messages), messages
    assert all(any(re.search(pattern, text) for text in messages) for pattern in advice)


def test_gymnasium_makes_what_is_registered(ids):
    assert {"jaxrl/Snake-v0", "jaxrl/Breakout-MinAtar"} <= set(ids)
    assert register() == ids
    # equal to an environment that other tests have compiled
    arguments = {"rows": 5, "cols": 5, "observation": "features", "rules": "modern"}
    env: Any = gymnasium.make("jaxrl/Snake-v0", **arguments, render_mode="rgb_array")
    assert env.unwrapped.env == SNAKE
    assert env.reset(seed=1)[0] in env.observation_space
    assert env.render().shape[2] == 3
    games = gymnasium.make_vec("jaxrl/Snake-v0", num_envs=N, autoreset_mode="SameStep", **arguments)
    assert (games.num_envs, games.metadata["autoreset_mode"]) == (N, SAME_STEP)
    games = RecordEpisodeStatistics(games)
    games.reset(seed=1)
    while "episode" not in (infos := games.step(games.action_space.sample())[4]):
        pass
    assert (infos["episode"]["l"][infos["_episode"]] > 0).all()
    with pytest.raises(ValueError, match="rows is 3; expected 4 to 32 cells"):
        gymnasium.make("jaxrl/Snake-v0", rows=3)
