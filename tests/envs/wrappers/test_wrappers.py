"""Wrappers against loops in plain Python over the bare environment, and how they nest."""

from collections import deque
from functools import cache
from itertools import product
from typing import Any, ClassVar, NamedTuple

import chex
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces.utils import flatten, flatten_space
from gymnax.environments import spaces

import envs
from envs.checker import check_contract, env_checker
from envs.gymnasium_adapter.spaces import gymnasium_space, to_numpy
from envs.snake import Snake
from envs.vector_field.cart_pole import CircularCartPole
from envs.wrappers import (
    ActionRepeat,
    FlattenObservation,
    FrameStack,
    LastAction,
    PlainActions,
    StickyActions,
    Wrapper,
)
from envs.wrappers.flatten_observation import size, vector
from envs.wrappers.plain_actions import convert_action, is_plain, plain_space
from tests.envs.recorder import Limits, Parts, Recorder

T = 30
CARTPOLE, BREAKOUT, PENDULUM = (
    gymnax.make(name)[0] for name in ("CartPole-v1", "Breakout-MinAtar", "Pendulum-v1")
)
SNAKE = Snake(5, 5, "features")


def cases(fast: dict[str, Any], slow: dict[str, Any]) -> list:
    """Cases of a parameter by name, the second ones marked as slow."""
    marks = (), (pytest.mark.slow,)
    return [
        pytest.param(game, id=name, marks=mark)
        for games, mark in zip((fast, slow), marks, strict=True)
        for name, game in games.items()
    ]


over_games = pytest.mark.parametrize(
    "game",
    cases(
        {"Breakout": BREAKOUT, "Recorder": Recorder()},  # gymnax's, of images; ours
        {"CartPole": CARTPOLE, "Snake": SNAKE},
    ),
)
over_exact_games = pytest.mark.parametrize(
    "game", cases({"Recorder": Recorder()}, {"Breakout": BREAKOUT, "Snake": SNAKE})
)


class Step(NamedTuple):
    """What one call of `step` returned, as NumPy, and what it was given."""

    action: Any
    obs: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: Any


def keys_of(seed: int) -> jax.Array:
    return jax.random.split(jax.random.key(seed), T + 1)


def short(env: Any, steps: int = 9) -> Any:
    """Its params with episodes so short that most end by the clock."""
    return env.default_params.replace(max_steps_in_episode=steps)


def play(env: Any, params: Any, change_key=lambda key: key) -> tuple[np.ndarray, list[Step]]:
    """The first observation and T random steps; `change_key` is applied to their keys."""
    keys = keys_of(0)
    sample = jax.jit(env.action_space(params).sample)
    obs, state = env.reset(keys[T], params)
    first, steps = jax.tree.map(np.asarray, obs), []
    for i, key in enumerate(keys[:T]):
        action = sample(jax.random.key(1000 + i))
        obs, state, *rest = env.step(change_key(key), state, action, params)
        steps.append(Step(*jax.tree.map(np.asarray, (action, obs, *rest))))
    return first, steps


@cache
def play_bare(game: Any) -> tuple[np.ndarray, list[Step]]:
    """What `play` returns of a game without a wrapper, in short episodes."""
    return play(game, short(game))


def assert_close(actual: Any, expected: Any):
    same = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    jax.tree.map(same, actual, expected)


@over_games
def test_frame_stack_is_a_queue_of_observations(game):
    params = short(game)
    first, bare = play_bare(game)
    first_obs, steps = play(FrameStack(game, 3), params)
    queue = deque([first] * 3, maxlen=3)
    join = lambda frames: np.concatenate(list(frames), axis=-1)
    assert_close(first_obs, join(queue))
    for step, plain in zip(steps, bare, strict=True):
        queue.append(plain.info["final_observation"])
        assert_close(step.info["final_observation"], join(queue))
        if plain.terminated or plain.truncated:
            queue = deque([plain.obs] * 3, maxlen=3)
        assert_close(step.obs, join(queue))
        assert step.obs.dtype == plain.obs.dtype
        assert_close(step[2:5], plain[2:5])
    assert any(step.truncated for step in steps)


@pytest.mark.parametrize(
    ("game", "reward"),
    [
        (BREAKOUT, True),
        (Recorder(), False),
        *(
            pytest.param(game, reward, marks=pytest.mark.slow)
            for game, reward in product((BREAKOUT, CARTPOLE, SNAKE), (True, False))
            if (game, reward) != (BREAKOUT, True)
        ),
    ],
    ids=lambda case: getattr(case, "name", case),
)
def test_last_action_is_one_hot_and_none_at_the_start(game, reward):
    params = short(game)
    first, bare = play_bare(game)
    env = LastAction(game, reward)
    first_obs, steps = play(env, params)

    def join(obs, numbers):
        planes = np.broadcast_to(np.asarray(numbers, obs.dtype), (*obs.shape[:-1], len(numbers)))
        return np.concatenate([obs, planes], axis=-1)

    nothing = [0] * (game.num_actions + reward)
    assert_close(first_obs, join(first, nothing))
    for step, plain in zip(steps, bare, strict=True):
        numbers = [*np.eye(game.num_actions)[step.action], *([plain.reward] if reward else [])]
        assert_close(step.info["final_observation"], join(plain.info["final_observation"], numbers))
        done = plain.terminated or plain.truncated
        assert_close(step.obs, join(plain.obs, nothing if done else numbers))
    assert env.observation_space(params).shape == first_obs.shape


@pytest.mark.parametrize(
    "game", cases({"Breakout": BREAKOUT}, {"CartPole": CARTPOLE, "Snake": SNAKE})
)
def test_action_repeat_sums_rewards_until_the_end(game):
    params, env = short(game, steps=10), ActionRepeat(game, 4)  # 10 is 4 + 4 + 2
    _, steps = play(env, params)
    _, state = game.reset(keys_of(0)[T], params)
    for step, key in zip(steps, keys_of(0)[:T], strict=True):
        total = 0.0
        for _ in range(4):
            key, one = jax.random.split(key)
            obs, state, reward, *done, info = game.step(one, state, step.action, params)
            total += float(reward)
            if any(done):
                break
        assert_close(step[1:], (obs, np.float32(total), *done, info))
    assert any(step.truncated for step in steps)


@over_games
def test_sticky_actions_execute_what_they_draw(game):
    inner = short(game)
    env = StickyActions(game, 0.5)
    _, steps = play(env, env.default_params.replace(env=inner))
    _, state = game.reset(keys_of(0)[T], inner)
    last = None
    for step, key in zip(steps, keys_of(0)[:T], strict=True):
        sticky_key, env_key = jax.random.split(key)
        sticks = last is not None and bool(jax.random.bernoulli(sticky_key, 0.5))
        executed = last if sticks else step.action
        obs, state, *rest = game.step(env_key, state, executed, inner)
        assert_close(step[1:], (obs, *rest))
        last = None if rest[1] or rest[2] else executed


def test_actions_stick_with_the_probability_of_the_params():
    """Read from what the innermost environment says it was given."""
    env, steps, count = StickyActions(Recorder()), 300, 64
    probability = jnp.array([0.0, 0.25, 0.7, 1.0])

    @jax.jit
    def play_actions(probability, key):
        params = env.default_params.replace(probability=probability, max_steps_in_episode=steps + 1)
        reset_key, chosen_key, key = jax.random.split(key, 3)
        chosen = jax.random.randint(chosen_key, (steps,), 0, 4)
        _, state = env.reset(reset_key, params)

        def step(carry, action):
            key, state = carry
            key, step_key = jax.random.split(key)
            obs, state, *_ = env.step(step_key, state, action, params)
            return (key, state), obs[0].astype(jnp.int32)

        return chosen, jax.lax.scan(step, (key, state), chosen)[1]

    keys = jax.random.split(jax.random.key(0), count)
    of_keys = jax.vmap(play_actions, in_axes=(None, 0))
    action_pairs = jax.vmap(of_keys, in_axes=(0, None))(probability, keys)
    chosen, executed_actions = (np.asarray(x) for x in action_pairs)  # [4, count, steps]
    np.testing.assert_array_equal(executed_actions[..., 0], chosen[..., 0])
    np.testing.assert_array_equal(executed_actions[0], chosen[0])
    assert (executed_actions[3] == chosen[3, :, :1]).all()
    before, after, wish = executed_actions[..., :-1], executed_actions[..., 1:], chosen[..., 1:]
    assert ((after == wish) | (after == before)).all()
    differs = wish != before
    for i, p in ((1, 0.25), (2, 0.7)):
        stuck = (after == before)[i][differs[i]]
        assert abs(stuck.mean() - p) < 5 * np.sqrt(p * (1 - p) / stuck.size)


@over_exact_games
@pytest.mark.parametrize(
    "wrap", [Wrapper, lambda env: FrameStack(env, 1), lambda env: ActionRepeat(env, 1)]
)
def test_one_frame_and_one_repeat_change_nothing(game, wrap):
    """Bit for bit; environments that round may differ in the last bit, compiled in two places."""
    params = short(game)
    assert jax.tree.all(jax.tree.map(np.array_equal, play(wrap(game), params), play_bare(game)))


@over_exact_games
def test_actions_that_never_stick_change_nothing_but_keys(game):
    env, params = StickyActions(game, 0.0), short(game)
    actual = play(env, env.default_params.replace(env=params))
    expected = play(game, params, lambda key: jax.random.split(key)[1])
    assert jax.tree.all(jax.tree.map(np.array_equal, actual, expected))


def test_components_add_up_and_outcomes_pass_through():
    env = ActionRepeat(Recorder(), 3)
    params = Limits(lifetime=8)
    _, state = env.reset(jax.random.key(0), params)
    results = []
    for i in range(4):
        obs, state, reward, terminated, truncated, info = env.step(
            jax.random.key(i), state, 1, params
        )
        assert float(reward) == float(info["components"].sum())
        assert not truncated
        results.append((float(reward), bool(terminated), int(info["outcome"]["steps"])))
        final = info["final_observation"]
        assert (float(final[1]), float(obs[1])) == ((8, 0) if terminated else (float(obs[1]),) * 2)
    assert results == [(6, False, 3), (15, False, 6), (15, True, 8), (6, False, 3)]
    assert int(state.time) == 3


class Counts(Recorder):
    """Says of its times that they add up, or are to be averaged, over the steps of an episode."""

    outcome_kinds: ClassVar = {"total": "sum", "average": "mean"}

    def transition(self, chance, state, action, params):
        *before, info = super().transition(chance, state, action, params)
        names = ("total", "average", "steps")
        return *before, info | {"outcome": dict.fromkeys(names, info["outcome"]["steps"])}


def test_repeated_actions_add_up_outcomes_that_do():
    env = PlainActions(StickyActions(ActionRepeat(Counts(), 3), 0.0))
    assert env.outcome_kinds == Counts.outcome_kinds
    params = env.default_params.replace(lifetime=5)
    _, state = env.reset(jax.random.key(0), params)
    outcomes, step_env = [], jax.jit(env.step_env)
    for i in range(2):
        *_, info = env.step(jax.random.key(i), state, 1, params)
        *_, hook_info = step_env(jax.random.key(i), state, 1, params)
        state = env.step(jax.random.key(i), state, 1, params)[1]
        chex.assert_trees_all_equal(info["outcome"], hook_info["outcome"])
        outcomes.append(tuple(float(info["outcome"][x]) for x in ("total", "average", "steps")))
    assert outcomes == [(1 + 2 + 3, 2, 3), (4 + 5, 4.5, 5)]


def test_the_hooks_of_gymnax_go_on_where_step_resets():
    """`step_env` and `is_truncated` are `step` without the reset."""
    env = LastAction(ActionRepeat(FrameStack(Recorder(), 2), 3))
    params = Limits(max_steps_in_episode=5)
    _, state = env.reset(jax.random.key(0), params)
    step_env = jax.jit(env.step_env)
    for i in range(2):
        key_data = jax.random.key_data(jax.random.key(i))
        key = lambda data=key_data: jax.random.wrap_key_data(data)
        stepped = env.step(key(), state, 2, params)
        obs, after, reward, terminated, _ = step_env(key(), state, 2, params)
        truncated = env.is_truncated(after, params)
        assert_close((obs, reward), (stepped[5]["final_observation"], stepped[2]))
        assert (bool(terminated), bool(truncated)) == (bool(stepped[3]), bool(stepped[4]))
        np.testing.assert_array_equal(env.get_obs(after, params), obs)
        np.testing.assert_array_equal(env.observe(key(), after, 2, params), obs)
        state = after
    assert int(state.time) == 5
    assert truncated


def test_continuous_actions_are_shown_within_their_bounds():
    env = LastAction(PENDULUM)
    params = env.default_params
    obs, state = env.reset(jax.random.key(0), params)
    assert obs.shape == env.observation_space(params).shape == (4,)
    for action, expected in ((0.5, 0.5), (9.0, 2.0), (-jnp.inf, -2.0)):
        obs, *_ = env.step(jax.random.key(1), state, jnp.array([action]), params)
        assert float(obs[3]) == expected
        assert env.observation_space(params).contains(obs)
    cart = LastAction(CircularCartPole())  # whose steps survive an action that is no number
    _, state = cart.reset(jax.random.key(0))
    obs, *_ = cart.step(jax.random.key(1), state, jnp.array([jnp.nan]))
    assert jnp.isfinite(obs).all()


def test_images_keep_their_height_and_width():
    class Screen(Recorder):
        def describe(self, state, features, params):
            return jnp.full((3, 5), state.time, jnp.uint8)

        def observation_space(self, params=None):
            return spaces.Box(0, 255, (3, 5), jnp.uint8)

    for env, channels in ((FrameStack(Screen(), 4), 4), (LastAction(Screen()), 5)):
        obs, state = env.reset(jax.random.key(0))
        assert obs.shape == env.observation_space().shape == (3, 5, channels)
        obs, *_ = env.step(jax.random.key(1), state, 3)
        assert obs.dtype == env.observation_space().dtype == jnp.uint8
        expected = [0, 0, 0, 1] if channels == 4 else [1, 0, 0, 0, 1]
        assert (np.asarray(obs) == expected).all()


def atari(env):
    return FrameStack(LastAction(ActionRepeat(StickyActions(env), 2)), 2)


def wrap_twice(env):
    env = StickyActions(ActionRepeat(LastAction(FrameStack(env, 2), reward=True), 2), 0.1)
    return StickyActions(env, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "env",
    cases(
        {"Recorder": wrap_twice(Recorder())},
        {"Snake": atari(Snake(12, 12, "features")), "Breakout": wrap_twice(BREAKOUT)},
    ),
)
def test_every_nest_keeps_the_contract(env):
    env_checker(env)


def test_equal_wrappers_share_a_compilation():
    one, other = (atari(Snake(6, 6)) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one is not other
    assert FrameStack(SNAKE, 2) != FrameStack(SNAKE, 3) != LastAction(SNAKE)
    assert LastAction(SNAKE) != LastAction(SNAKE, reward=True)
    assert FrameStack(SNAKE, 2) != FrameStack(Snake(6, 6), 2)
    assert StickyActions(SNAKE, 0.1) == StickyActions(SNAKE, 0.2)  # a number of the params
    assert FrameStack(CARTPOLE, 2) == FrameStack(CARTPOLE, 2)
    assert FrameStack(CARTPOLE, 2) != FrameStack(gymnax.make("CartPole-v1")[0], 2)


def test_what_a_wrapper_says_of_its_environment():
    env = atari(SNAKE)
    assert env.name == "FrameStack(LastAction(ActionRepeat(StickyActions(Snake-v0))))"
    assert (env.num_actions, env.action_space().n) == (3, 3)
    params = env.default_params
    assert (params.probability, params.env) == (0.25, SNAKE.default_params)
    shorter = params.replace(max_steps_in_episode=7, probability=0.5)
    assert (shorter.max_steps_in_episode, shorter.env.max_steps_in_episode) == (7, 7)
    assert shorter.probability == 0.5
    assert params.max_steps_in_episode == SNAKE.default_params.max_steps_in_episode


class Choices(spaces.Space):
    """Two integers, below 3 and below 2, as spaces of other libraries hold them."""

    nvec, shape, dtype = (3, 2), (2,), jnp.int32


def test_several_integers_become_one_hot_each():
    np.testing.assert_array_equal(vector(Choices(), jnp.array([2, 0])), [0, 0, 1, 1, 0])
    assert size(Choices()) == 5


def test_parts_are_flattened_as_gymnasium_does():
    inner, env = Parts(), FlattenObservation(Parts())
    theirs, params = gymnasium_space(inner.observation_space()), short(inner)
    (_, plain), (_, flat) = play(inner, params), play(env, params)
    for a, b in zip(plain, flat, strict=True):
        expected: Any = flatten(theirs, to_numpy(theirs, a.obs))
        np.testing.assert_allclose(b.obs, expected, rtol=1e-6)
        ended: Any = flatten(theirs, to_numpy(theirs, a.info["final_observation"]))
        np.testing.assert_allclose(b.info["final_observation"], ended, rtol=1e-6)
    space = env.observation_space()
    wide: Any = flatten_space(theirs)
    np.testing.assert_array_equal(space.low, wide.low)
    np.testing.assert_array_equal(space.high, wide.high)
    check_contract(FrameStack(env, 2), params)
    env_checker(inner, params)


FORMS = {
    "scalar": (spaces.Box(-1.0, 1.0, ()), [0.5], np.array(0.5, np.float32)),
    "matrix": (
        spaces.Box(-1.0, 1.0, (1, 2), jnp.float16),
        [0.5, 1],
        np.array([[0.5, 1]], np.float16),
    ),
    "from 3": (spaces.Box(3, 9, (2,), jnp.int32), [0, 6], np.array([3, 9], np.int32)),
    "bytes": (spaces.Box(0, 255, (2,), jnp.uint8), [7, 255], np.array([7, 255], np.uint8)),
    "bool": (spaces.Box(0, 1, (3,), jnp.bool_), [1, 0, 1], np.array([True, False, True])),
    "bounds": (
        spaces.Box(-2, jnp.array([0, 5]), (2,), jnp.int8),
        [2, 7],
        np.array([0, 5], np.int8),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_plain_actions_are_what_the_space_says(form):
    """A space may also be part of a tuple in a dict, beside what is plain already."""
    space, action, expected = FORMS[form]
    assert not is_plain(space)
    plain = plain_space(space)
    assert is_plain(plain)
    assert plain.contains(jnp.array(action, plain.dtype))
    whole = spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Tuple([space])})
    space_action = convert_action(
        whole, {"b": jnp.int32(1), "a": (jnp.array(action, plain.dtype),)}
    )
    np.testing.assert_array_equal(space_action["a"][0], expected)
    assert (space_action["a"][0].dtype, space_action["a"][0].shape) == (
        expected.dtype,
        expected.shape,
    )
    assert space_action["b"] == 1
    inner = plain_space(whole).spaces
    assert inner["a"].spaces[0].shape == (len(action),)


def test_plain_actions_reach_the_environment():
    class Bytes(Recorder):
        def action_space(self, params=None):
            return spaces.Box(10, 20, (), jnp.uint8)

    env = PlainActions(Bytes())
    _, state = env.reset(jax.random.key(0))
    obs, *_ = env.step(jax.random.key(1), state, jnp.array([4]))
    assert obs[0] == 14
    assert PlainActions(CARTPOLE).action_space().n == 2


@pytest.mark.slow
def test_gradients_flow_where_the_wrapped_environment_lets_them():
    def slope(env):
        params = env.default_params
        _, state = env.reset(jax.random.key(0), params)
        last = lambda u: env.step(jax.random.key(1), state, u, params)[1].env.speed
        return np.asarray(jax.grad(last)(jnp.zeros(1)))

    assert (slope(FrameStack(CircularCartPole(), 2)) == 0).all()
    assert (slope(FrameStack(CircularCartPole().with_transition_gradients(), 2)) != 0).all()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: FrameStack(envs.make("Snake-v0"), 2), r"env is a tuple; expected an environment"),  # pyright: ignore
        (lambda: FrameStack(SNAKE, 0), "num_frames is 0; expected an integer of at least 1"),
        (lambda: ActionRepeat(SNAKE, 1.5), "num_repeats is 1.5; expected an integer"),  # pyright: ignore
        (lambda: StickyActions(SNAKE, 1.5), "probability is 1.5; expected 0 to 1"),
        (
            lambda: FrameStack(envs.make("Grid-v0", observation="index")[0], 2),
            "observations of Grid-v0 are a Discrete; expected a Box, one array",
        ),
        (
            lambda: LastAction(envs.make("Durotaxis-v0", action="nodes")[0]),
            "observations of Durotaxis-v0 are a Dict; expected a Box, one array",
        ),
    ],
)
def test_what_cannot_be_wrapped_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
