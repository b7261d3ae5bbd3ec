"""A vector of environments against that of Gymnasium over single ones."""

import gymnasium.spaces as theirs
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import SyncVectorEnv
from gymnax.environments.classic_control import pendulum

from envs.grid import Grid
from envs.gymnasium_adapter import AutoresetMode, GymnasiumEnv, GymnasiumVectorEnv
from envs.gymnasium_adapter.spaces import checked_action
from tests.envs.gymnasium_adapter.environments import (
    CARTPOLE,
    DISABLED,
    DUEL,
    NEXT_STEP,
    SAME_STEP,
    SNAKE,
    TUPLE,
    N,
    T,
    short,
)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("env", "mode"),
    [
        (SNAKE, NEXT_STEP),
        (SNAKE, SAME_STEP),
        (SNAKE, DISABLED),
        (CARTPOLE, NEXT_STEP),
        (TUPLE, SAME_STEP),
        pytest.param(DUEL, SAME_STEP, marks=pytest.mark.slow),
    ],
    ids=lambda case: case.value if isinstance(case, AutoresetMode) else case.name,
)
def test_a_vector_is_that_of_gymnasium_over_single_ones(env, mode):
    """Observations, rewards, flags, and infos with their masks, whoever resets."""
    params = short(env)
    ours_ = GymnasiumVectorEnv(env, N, params, mode)
    theirs_ = SyncVectorEnv([lambda: GymnasiumEnv(env, params)] * N, autoreset_mode=mode)
    assert ours_.observation_space == theirs_.observation_space
    assert ours_.action_space == theirs_.action_space
    assert ours_.metadata["autoreset_mode"] is theirs_.metadata["autoreset_mode"] is mode
    assert_same = lambda actual, expected: (
        data_equivalence(actual, expected) or pytest.fail(f"{actual}\n{expected}")
    )
    assert_same(ours_.reset(seed=7), theirs_.reset(seed=7))
    ours_.action_space.seed(0)
    num_ended = 0
    for _ in range(T):
        action = ours_.action_space.sample()
        step_result = ours_.step(action)
        assert_same(step_result, theirs_.step(action))
        assert step_result[0] in ours_.observation_space
        done = step_result[2] | step_result[3]
        num_ended += done.sum()
        if mode is DISABLED and done.any():
            with pytest.raises(ValueError, match=r"environments \[.*\] have ended; reset them"):
                ours_.step(action)
            options = lambda mask=done: {"reset_mask": mask.copy()}
            assert_same(ours_.reset(options=options()), theirs_.reset(options=options()))
    assert num_ended > N
    assert_same(ours_.reset(), theirs_.reset())
    assert_same(ours_.reset(seed=[1, 2, 3, 4, 5]), theirs_.reset(seed=[1, 2, 3, 4, 5]))
    masked = {"seed": 11, "options": {"reset_mask": np.arange(N) == 2}}
    assert_same(ours_.reset(**masked), theirs_.reset(seed=11, options=dict(masked["options"])))


def test_what_ended_is_in_the_infos_of_the_same_step():
    """Without Gymnasium's vector: the clock ends all episodes at once."""
    games = GymnasiumVectorEnv(Grid(), 3, short(Grid(), 2), "SameStep")
    games.reset(seed=0)
    _, _, _, truncated, infos = games.step(np.array([0, 1, 2]))
    assert not truncated.any()
    assert "final_obs" not in infos
    assert infos["_outcome"].all()
    obs, _, terminated, truncated, infos = games.step(np.array([0, 1, 2]))
    assert (truncated & ~terminated).all()
    assert infos["_final_obs"].all()
    assert infos["_final_info"].all()
    assert infos["final_info"]["_outcome"].all()
    assert "outcome" not in infos
    for final, new_obs in zip(infos["final_obs"], obs, strict=True):
        assert final.shape == new_obs.shape
        assert final in games.single_observation_space
    assert not np.array_equal(np.stack(infos["final_obs"]), obs)


def test_seeds_decide_everything():
    def episode(seeds):
        games = GymnasiumVectorEnv(SNAKE, N)
        reset_observations = [games.reset(seed=seed)[0] for seed in seeds]
        return [*reset_observations, *(games.step(np.full(N, i % 3))[0] for i in range(10))]

    assert data_equivalence(episode([4, None]), episode([4, None]), exact=True)
    assert not data_equivalence(episode([4, None]), episode([5, None]))
    assert data_equivalence(episode([np.uint8(255)]), episode([255]), exact=True)
    start, again = episode([4, None])[:2]
    assert not np.array_equal(start, again)
    unseeded = [GymnasiumVectorEnv(SNAKE, 64).reset()[0] for _ in range(2)]
    assert not np.array_equal(*unseeded)
    assert len(np.unique(unseeded[0], axis=0)) > 10


def test_nothing_is_compiled_twice():
    """Also where gymnax's first state is of another type than those that follow."""
    traces = []

    class CountedPendulum(pendulum.Pendulum):
        def step_env(self, *arguments):
            traces.append(0)
            return super().step_env(*arguments)

    env = CountedPendulum()
    for seed in range(2):
        games = GymnasiumVectorEnv(env, N, short(env), autoreset_mode="SameStep")
        games.reset(seed=seed)
        for _ in range(T):
            games.step(np.zeros((N, 1)))
    assert len(traces) == 1


def test_batches_of_actions_are_checked_one_by_one():
    games = GymnasiumVectorEnv(SNAKE, 3)
    games.reset(seed=0)
    with pytest.raises(ValueError, match=r"action is 7 at \[1\]; expected 0 to 2"):
        games.step(np.array([0, 7, 2]))
    with pytest.raises(ValueError, match=r"action has shape \(2,\); expected \(3,\)"):
        games.step(np.array([0, 1]))
    box = theirs.Box(-2.0, 2.0, (2,), np.float32)
    rounded = checked_action(box, np.array([2 + 1e-12, 1]))
    assert rounded.dtype == np.float32
    for wrong in (2.5, np.nan, np.inf):
        with pytest.raises(
            ValueError, match=rf"action is {np.float32(wrong)} at \[0, 1\]; expected -2.0 to"
        ):
            checked_action(box, [[0.0, wrong]], 1)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("nothing", [np.nan, np.inf, -7.0])
def test_the_action_of_an_environment_that_begins_anew_is_not_looked_at(nothing):
    """The other two modes have no such step: there every action counts."""
    env = pendulum.Pendulum()
    for mode in AutoresetMode:
        games = GymnasiumVectorEnv(env, 2, short(env, 3), mode)
        games.reset(seed=0)
        games.reset(seed=[5, None], options={"reset_mask": np.array([True, False])})
        twin = GymnasiumVectorEnv(env, 2, short(env, 3), mode)
        twin.reset(seed=0)
        twin.reset(seed=[5, None], options={"reset_mask": np.array([True, False])})
        for _ in range(3):
            *_, truncated, _ = games.step(np.ones((2, 1), np.float32))
            twin.step(np.ones((2, 1), np.float32))
        assert truncated.all()
        anything = np.full((2, 1), nothing)
        if mode is NEXT_STEP:
            one, other = games.step(anything), twin.step(np.zeros((2, 1), np.float32))
            np.testing.assert_array_equal(one[0], other[0])
            assert not one[1].any()
            message = "action is"
        else:
            message = "action is" if mode is SAME_STEP else "have ended; reset them"
        with pytest.raises(ValueError, match=message):
            games.step(anything)
