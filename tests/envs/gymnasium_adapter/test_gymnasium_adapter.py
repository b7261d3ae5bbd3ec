"""The adapter against Gymnasium's own checker and vector, and loops over the bare environment."""

import copy
import os
import pickle
import re
import signal
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import gymnasium.spaces as theirs
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from gymnax.environments import spaces as ours
from gymnax.environments.classic_control import pendulum

import envs
from envs.base import Environment
from envs.durotaxis import Durotaxis
from envs.grid import Grid
from envs.gymnasium_adapter import (
    AutoresetMode,
    GymnasiumEnv,
    GymnasiumVectorEnv,
    register,
)
from envs.gymnasium_adapter.spaces import checked_action, gymnasium_space, to_numpy
from envs.snake import Snake
from envs.two_snake import TwoSnake
from envs.vector_field import VectorField
from envs.wrappers import ActionRepeat, FrameStack, LastAction, StickyActions
from tests.envs.recorder import Parts

N, T = 5, 30
NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode
SNAKE = Snake(5, 5, "features", rules="modern")
CARTPOLE = gymnax.make("CartPole-v1")[0]
DUEL = TwoSnake(5, 9, opponents=("rival",), rival=True)
UNBOUNDED = "A Box observation space m(in|ax)imum value is -?infinity"
UNSCALED = "For Box action spaces, we recommend using a symmetric and normalized space"


class PartsAndTuple(Parts):
    """Takes two arrays; every step is told by the sum of its numbers."""

    def transition(self, chance, state, action, params):
        choice, size = action
        return super().transition(chance, state, choice + size.sum(), params)

    def action_space(self, params=None):
        return ours.Tuple([ours.Discrete(3), ours.Box(0.0, 1.0, (2,))])

    @property
    def name(self) -> str:
        return "Parts-v0"


TUPLE = PartsAndTuple()


ADVICE = {
    "Durotaxis-v0": {UNBOUNDED, UNSCALED},  # a measured field may have any stiffness; px
    "VectorField-v0": {UNBOUNDED},  # Gaussian noise
    "CircularCartPole-v0": {UNBOUNDED},  # speeds
    "Pendulum-v1": {UNSCALED},  # newton metres
}
"""What the checker advises against, and is so: physical units, and numbers without a bound."""


@pytest.fixture(scope="module", autouse=True)
def ids() -> list[str]:
    return register()


def short(env: Any, steps: int = 12) -> Any:
    return env.default_params.replace(max_steps_in_episode=steps)


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


def test_one_environment_is_a_loop_over_the_bare_one():
    params = short(SNAKE)
    env, step_env = GymnasiumEnv(SNAKE, params), jax.jit(SNAKE.step_env)
    obs, info = env.reset(seed=3)
    key, _, reset_key = jax.random.split(jax.random.key(3), 3)
    expected, state = SNAKE.reset(reset_key, params)
    np.testing.assert_array_equal(obs, expected)
    assert info == {}
    ends = []
    for i in range(T):
        obs, reward, terminated, truncated, info = env.step(i % 3)
        key, step_key, _ = jax.random.split(key, 3)
        expected, state, gain, died, expected_info = step_env(step_key, state, i % 3, params)
        np.testing.assert_allclose(obs, expected, rtol=1e-5, atol=1e-6)
        assert (reward, terminated) == (pytest.approx(float(gain)), bool(died))
        assert truncated == (int(state.time) >= 12)
        assert info["outcome"] == {name: x.item() for name, x in expected_info["outcome"].items()}
        if terminated or truncated:
            ends.append(truncated)
            with pytest.raises(ValueError, match="there is no episode to step in; call reset"):
                env.step(0)
            obs, _ = env.reset()
            key, _, reset_key = jax.random.split(key, 3)
            expected, state = SNAKE.reset(reset_key, params)
            np.testing.assert_array_equal(obs, expected)
    assert ends
    assert type(reward) is float
    assert type(terminated) is type(truncated) is bool


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


def test_observations_may_be_written_to():
    env, games = GymnasiumEnv(SNAKE), GymnasiumVectorEnv(SNAKE, N)
    first, after = games.reset()[0], games.step(np.zeros(N, int))[0]
    for obs in (env.reset(seed=0)[0], env.step(0)[0], first, after):
        obs[:] = 0


@pytest.mark.slow
def test_actions_of_several_parts():
    env = Durotaxis(capacity=8, num_founders=3, action="nodes")
    params = replace(env.default_params, threshold_nodes=8)
    games = GymnasiumVectorEnv(env, 2, params)
    obs, _ = games.reset(seed=0)
    assert obs["nodes"].shape == (2, 9, 11)
    assert obs in games.observation_space
    obs, *_ = games.step(games.action_space.sample())
    assert obs in games.observation_space
    single = GymnasiumEnv(env, params)
    single.reset(seed=0)
    assert single.step(single.action_space.sample())[0] in single.observation_space
    with pytest.raises(ValueError, match=r"action is array\(.*; expected a tuple of 2"):
        games.step(np.zeros((2, 8), int))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (3, "action is 3; expected 0 to 2"),
        (-1, "action is -1; expected 0 to 2"),
        (2**32, "action is 4294967296; expected 0 to 2"),
        (1.0, r"action is 1.0; expected int32 of shape \(\)"),
        ("left", "action is 'left'; expected int32"),
        (None, "action is None; expected int32"),
        (np.zeros(1, int), r"action has shape \(1,\); expected \(\)"),
    ],
)
def test_actions_outside_of_the_space_are_refused(action, message):
    env = GymnasiumEnv(SNAKE)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message) as caught:
        env.step(action)
    assert "\n" not in str(caught.value)


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


def test_only_the_rows_that_are_ignored_may_hold_anything():
    discrete = theirs.MultiDiscrete([3, 4])
    ignored = np.array([True, False])
    checked = checked_action(discrete, np.array([[-1, 2**40], [2, 3]]), 2, ignored)
    assert checked.tolist() == [[0, 0], [2, 3]]
    with pytest.raises(ValueError, match=r"action is -1 at \[1, 0\]"):
        checked_action(discrete, np.array([[0, 0], [-1, 3]]), 2, ignored)
    both = theirs.Tuple([theirs.Discrete(2), theirs.Box(1.0, 2.0, (1,))])
    choice, size = checked_action(both, ([9, 1], [[np.nan], [1.5]]), 2, ignored)
    assert choice.tolist() == [0, 1]
    assert size.tolist() == [[1.0], [1.5]]


@pytest.mark.parametrize(("low", "high"), [(-2.0, 2.0), (-0.3, 0.5), (1000.0, 1000.1), (0.0, 3e38)])
def test_what_rounding_adds_to_a_bound_is_clipped(low, high):
    """A squashed action is scaled and shifted in single precision."""
    box = theirs.Box(low, high, (1,))
    size, middle = np.float32((high - low) / 2), np.float32((high + low) / 2)
    for end in (np.float32(-1), np.float32(1)):
        action = checked_action(box, [end * size + middle])
        assert action in box
    assert checked_action(box, [high * (1 + 1e-6)]) in box
    if high < 3e38:
        with pytest.raises(ValueError, match="action is"):
            checked_action(box, [high * (1 + 1e-4)])


def test_unclipped_actions_are_refused_and_clipped_by_gymnasium():
    env = gymnasium.wrappers.ClipAction(GymnasiumEnv(pendulum.Pendulum()))
    env.reset(seed=0)
    env.step(np.array([7.3], np.float32))
    with pytest.raises(ValueError, match=r"action is 7\.3.* at \[0\]; expected -2.0 to 2.0"):
        env.unwrapped.step(np.array([7.3], np.float32))


COPIERS = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("way", COPIERS)
@pytest.mark.parametrize("env_id", [*envs.ALL, "CartPole-v1", "wrapped"])
def test_environments_can_be_copied(env_id, way):
    if env_id == "wrapped":
        env = FrameStack(StickyActions(LastAction(ActionRepeat(Snake(), 2)), 0.1), 2)
        params = env.default_params
    else:
        env, params = gymnax.make(env_id)
    twin = COPIERS[way](env)
    if isinstance(env, Environment):
        assert (twin, hash(twin)) == (env, hash(env))
    for one, other in zip(
        jax.tree.leaves(params), jax.tree.leaves(COPIERS[way](params)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("way", COPIERS)
@pytest.mark.parametrize("vector", [False, True])
def test_a_copy_goes_on_as_its_original(vector, way):
    env = GymnasiumVectorEnv(CARTPOLE, 3) if vector else GymnasiumEnv(CARTPOLE)
    env.reset(seed=3)
    action = np.zeros(3, int) if vector else 0
    env.step(action)
    twin = COPIERS[way](env)
    for _ in range(3):
        for one, other in zip(env.step(action)[:4], twin.step(action)[:4], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda env: gymnasium.make("jaxrl/CartPole-v1"), id="make"),
        pytest.param(lambda env: GymnasiumVectorEnv(SNAKE, 2), id="vector"),
        pytest.param(lambda env: env.reset(), id="reset"),
        pytest.param(lambda env: env.step(0), id="step"),
    ],
)
def test_a_process_that_was_forked_is_told_that_it_would_hang(call):
    env = GymnasiumEnv(SNAKE)
    env.reset(seed=0)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            call(env)
        except RuntimeError as error:
            os._exit(7 if "start it by spawn" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.slow
def test_workers_may_be_spawned():
    name = "jaxrl/CartPole-v1"
    worker_options = {"context": "spawn"}
    apart = gymnasium.make_vec(name, 2, vectorization_mode="async", vector_kwargs=worker_options)
    together = gymnasium.make_vec(name, 2, vectorization_mode="sync")
    np.testing.assert_array_equal(apart.reset(seed=3)[0], together.reset(seed=3)[0])
    for _ in range(20):
        pairs = zip(apart.step([0, 1])[:4], together.step([0, 1])[:4], strict=True)
        for one, other in pairs:
            np.testing.assert_array_equal(one, other)
    apart.close()


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (ours.Discrete(4), theirs.Discrete(4)),
        (ours.Box(0, 255, (2, 3), jnp.uint8), theirs.Box(0, 255, (2, 3), np.uint8)),
        (ours.Box(0, 1, (2,), jnp.bool_), theirs.Box(0, 1, (2,), np.bool_)),  # pyright: ignore
        (ours.Box(-jnp.inf, jnp.inf, (2,)), theirs.Box(-np.inf, np.inf, (2,), np.float32)),
        (
            ours.Box(0.0, jnp.arange(1.0, 3.0), (2,)),
            theirs.Box(np.zeros(2, "f"), np.array([1, 2], "f")),
        ),
        (
            ours.Box(0, jnp.uint32(2**32 - 1), (), jnp.uint32),
            theirs.Box(0, 2**32 - 1, (), np.uint32),
        ),
        (
            ours.Tuple([ours.Discrete(2), ours.Dict({"a": ours.Discrete(3)})]),
            theirs.Tuple([theirs.Discrete(2), theirs.Dict({"a": theirs.Discrete(3)})]),
        ),
        (DUEL.action_space(), theirs.MultiDiscrete([3, 3])),
    ],
)
def test_spaces_hold_the_same_values(space, expected):
    converted_space = gymnasium_space(space)
    assert converted_space == expected
    if not isinstance(space, ours.Dict | ours.Tuple):
        low_high = jnp.zeros(space.shape, space.dtype), jnp.ones(space.shape, space.dtype)
        assert all(to_numpy(converted_space, x) in converted_space for x in low_high)


def test_unbounded_spaces_say_so():
    space = gymnasium_space(VectorField().observation_space())
    assert isinstance(space, theirs.Box)
    assert not space.is_bounded("below")
    assert not space.is_bounded("above")
    with pytest.raises(ValueError, match="the space is a Space; expected Discrete, Box, Dict"):
        gymnasium_space(ours.Space())


@pytest.mark.parametrize(
    "env",
    [
        SNAKE,
        pytest.param(DUEL, marks=pytest.mark.slow),
        Grid(),
        FrameStack(StickyActions(SNAKE), 2),
    ],
    ids=lambda env: env.name,
)
def test_pictures_follow_the_state(env):
    single = GymnasiumEnv(env, render_mode="rgb_array")
    with pytest.raises(ValueError, match="no episode to draw; call reset first"):
        single.render()
    single.reset(seed=0)
    before = np.asarray(single.render())
    single.step(np.zeros(single.action_space.shape or (), int))
    after = np.asarray(single.render())
    assert before.dtype == after.dtype == np.uint8
    assert before.shape == after.shape
    assert not np.array_equal(before, after)


def test_the_last_picture_is_of_the_end():
    """Not of the next episode, which has not begun."""
    games = GymnasiumVectorEnv(SNAKE, N, short(SNAKE, 1), render_mode="rgb_array")
    games.reset(seed=0)
    _, _, _, truncated, _ = games.step(np.zeros(N, int))
    assert truncated.all()
    at_end = np.stack(games.render() or ())
    games.step(np.zeros(N, int))
    after = np.stack(games.render() or ())
    assert len(at_end) == N
    assert (at_end != after).any(axis=(1, 2, 3)).all()
    assert GymnasiumVectorEnv(SNAKE, 2).render() is None


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
    with pytest.raises(ValueError, match="rows is 3; expected 4 to 20 cells"):
        gymnasium.make("jaxrl/Snake-v0", rows=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GymnasiumEnv("Snake-v0"), "env is a str; expected an environment"),
        (lambda: GymnasiumEnv(SNAKE, render_mode="human"), "'human'; expected None or 'rgb_array'"),
        (lambda: GymnasiumEnv(VectorField(), None, "rgb_array"), "'rgb_array'; expected None$"),
        (lambda: GymnasiumEnv(SNAKE).step(0), "there is no episode to step in; call reset first"),
        (
            lambda: GymnasiumEnv(SNAKE).reset(seed=-1),
            "seed is -1; expected an integer of at least 0",
        ),
        (
            lambda: GymnasiumEnv(SNAKE).reset(options={"a": 1}),
            r"options are \['a'\]; expected none",
        ),
        (lambda: GymnasiumVectorEnv(SNAKE, 0), "num_envs is 0; expected an integer of at least 1"),
        (
            lambda: GymnasiumVectorEnv(SNAKE, 2, None, "Never"),
            "autoreset_mode is 'Never'; expected one of NextStep, SameStep, Disabled",
        ),
        (lambda: GymnasiumVectorEnv(SNAKE, 2).step([0, 0]), "there are no episodes to step in"),
        (lambda: GymnasiumVectorEnv(SNAKE, 2).reset(seed=[1]), "got 1 of 2 seeds; expected all"),
        (
            lambda: GymnasiumVectorEnv(SNAKE, 2).reset(options={"reset_mask": [True, True]}),
            r"reset_mask is \[True, True\]; expected a NumPy array, bool \[2\]",
        ),
        (
            lambda: GymnasiumVectorEnv(SNAKE, 2).reset(options={"reset_mask": np.eye(2)[0] > 0}),
            "reset_mask leaves environments without an episode; reset all",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_only_the_adapter_imports_gymnasium():
    root = Path(envs.__file__).parent
    needs = re.compile(r"^\s*(import|from) gymnasium\b", re.MULTILINE)
    importers = {
        path.relative_to(root).parts[0]
        for path in root.rglob("*.py")
        if needs.search(path.read_text())
    }
    assert importers == {"gymnasium_adapter"}
