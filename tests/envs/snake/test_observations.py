"""Every observation of Snake, entry by entry against the slow one, on random boards and in play."""

import random
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake import rules as fast_rules
from envs.snake.bitboard import Board
from envs.snake.env import Snake
from envs.snake.observations import OBSERVATIONS
from envs.snake.pictures import positions
from envs.snake.rules import CLASSIC, MODERN
from tests.envs.snake import oracle
from tests.envs.snake.duel import assert_same, duel
from tests.envs.snake.oracle_views import VIEWS, mirror_game, observe
from tests.envs.snake.policies import follow_cycle, greedy
from tests.envs.snake.random_bodies import played_game, random_game
from tests.envs.snake.stacked_boards import stack_states

RULES = {"classic": (CLASSIC, oracle.CLASSIC), "modern": (MODERN, oracle.MODERN)}


def test_the_names():
    assert set(OBSERVATIONS) == set(VIEWS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "cols", "count", "name"),
    [
        (4, 4, 3000, "classic"),
        (4, 4, 3000, "modern"),
        (10, 10, 2000, "classic"),
        (5, 13, 2000, "modern"),
        (20, 20, 200, "modern"),
        (32, 32, 60, "modern"),
    ],
)
def test_random_and_played_snakes(rows, cols, count, name):
    """Every view; with them flood fill and tail reachability, on some 10,000 boards."""
    fast, slow = RULES[name]
    rng = random.Random(rows * cols)
    games = [random_game(rows, cols, slow, rng) for _ in range(count // 2)]
    games += [played_game(rows, cols, slow, rng) for _ in range(count // 2)]
    rng.shuffle(games)
    # The other views are parts of these three; they are looked at on the smaller boards.
    views = (
        VIEWS
        if rows * cols <= 16
        else ("tail", "enhanced", "planes", "near", "far", "gaps", "compass", "egocentric")
    )
    envs = {view: Snake(rows, cols, view, fast) for view in views}

    @jax.jit  # one compilation, in which the views share what they have in common
    def observe_all(states):
        return {view: jax.vmap(env.get_obs)(states) for view, env in envs.items()}

    observations = jax.device_get(observe_all(stack_states(games)))
    for view in ("tail", "enhanced"):
        expected = [observe(game, view) for game in games]
        assert_same(view, observations[view], expected, games, tolerance=1e-6)
    for view in views:
        some = games[:250]
        assert_same(
            view, observations[view][:250], [observe(game, view) for game in some], some, 1e-6
        )
        space = envs[view].observation_space()
        assert observations[view].shape[1:] == space.shape
        assert observations[view].dtype == jnp.float32
        assert observations[view].min() >= space.low
        assert observations[view].max() <= space.high


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("view", "rows", "cols", "name"),
    [
        ("tail", 10, 10, "classic"),
        ("near", 4, 4, "modern"),
    ],
)
def test_in_play(view, rows, cols, name):
    """First, later and final observations; long snakes and full boards among them."""
    fast, slow = RULES[name]
    fast = fast_rules.Rules(**{**vars(fast), "starvation": slow.starvation})
    env = Snake(rows, cols, view, fast)
    params = replace(env.default_params, max_steps_in_episode=slow.max_steps)
    tally = duel(env, params, slow, greedy, num_steps=150, num_games=8)
    assert tally["games"] > 3
    if rows == 4:
        tally = duel(env, params, slow, follow_cycle, num_steps=200, num_games=8)
        assert tally["full boards"] > 3


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("view", ["tail", "far", "gaps", "egocentric"])
def test_a_mirror_shows_the_mirrored_game(view):
    """What the mirror shows of a game is what the mirrored game shows, food or none."""
    rng = random.Random(1)
    games = [random_game(6, 6, oracle.MODERN, rng) for _ in range(60)]
    reflect, env = OBSERVATIONS[view].reflect, Snake(6, 6, view, "modern")
    assert reflect is not None
    observations = jax.jit(jax.vmap(lambda state: reflect(env.get_obs(state))))(stack_states(games))
    assert_same(
        view,
        np.asarray(observations),
        [observe(mirror_game(game), view) for game in games],
        games,
        1e-6,
    )


@pytest.mark.slow
def test_a_game_in_a_mirror_is_the_same_game():
    """Left and right are swapped in what is seen and done, in half of the games, to the end."""
    view = "egocentric"  # soon compiled; what the mirror shows of others is proved above
    plain, mirror = (Snake(5, 5, view, "modern", mirror=on) for on in (False, True))
    params, keys = plain.default_params, jax.random.split(jax.random.key(3), 64)
    observations, state = jax.jit(jax.vmap(mirror.reset, in_axes=(0, None)))(keys, params)
    is_mirrored = np.asarray(state.mirrored)
    assert 16 < is_mirrored.sum() < 48
    swap, reflect = np.array([0, 2, 1], np.int32), OBSERVATIONS[view].reflect
    assert reflect is not None
    view_both = jax.jit(
        jax.vmap(lambda state: (plain.get_obs(state), reflect(plain.get_obs(state))))
    )
    step = jax.jit(jax.vmap(mirror.step, in_axes=(0, 0, 0, None)))
    step_plain = jax.jit(jax.vmap(plain.step, in_axes=(0, 0, 0, None)))
    for seed in range(8):
        action = np.random.default_rng(seed).integers(0, 3, 64).astype(np.int32)
        keys = jax.random.split(jax.random.key(seed), 64)
        plain_action = np.where(is_mirrored, swap[action], action)
        _, plain_state, reward, *_ = step_plain(
            jax.random.clone(keys), replace(state, mirrored=None), plain_action, params
        )
        observations, state, mirror_reward, *_ = step(keys, state, action, params)
        np.testing.assert_array_equal(mirror_reward, reward)
        jax.tree.map(np.testing.assert_array_equal, replace(state, mirrored=None), plain_state)
        is_mirrored = np.asarray(state.mirrored)
        straight, turned = jax.device_get(view_both(plain_state))
        expected = np.where(is_mirrored[:, None, None, None], turned, straight)
        np.testing.assert_allclose(observations, expected, atol=1e-6)


@pytest.mark.parametrize(
    "arguments", [{"observation": "flood"}, {"observation": "tail", "actions": "absolute"}]
)
def test_a_mirror_needs_the_frame_of_the_head(arguments):
    with pytest.raises(ValueError, match="a mirror needs actions relative"):
        Snake(mirror=True, **arguments)


def test_from_body_is_the_state_of_that_body():
    board, rng = Board(6, 7), random.Random(0)
    order = jax.jit(lambda state: fast_rules.order(board, state))
    for game in [random_game(6, 7, oracle.CLASSIC, rng) for _ in range(4)]:
        state = positions.from_body(board, game.body, game.food, game.heading, keep_order=True)
        alone = jax.tree.map(lambda x: x[0], stack_states([game]))
        jax.tree.map(np.testing.assert_array_equal, state, alone)
        np.testing.assert_array_equal(order(state), oracle.order(game))


@pytest.mark.parametrize(
    "body", [[(0, 0), (0, 2)], [(0, 0), (0, 1), (0, 0)], [(0, 0), (-1, 0)], [(3, 3), (3, 4)]]
)
def test_from_body_refuses_what_is_no_snake(body):
    with pytest.raises(ValueError, match="body cell"):
        positions.from_body(Board(4, 4), body, None, 0)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("view", VIEWS)
def test_no_type_is_promoted_by_chance(view):
    env, key = Snake(5, 6, view, "modern"), jax.random.key(0)
    with jax.numpy_dtype_promotion("strict"):
        obs, state = jax.eval_shape(env.reset, key, env.default_params)
        action = jax.ShapeDtypeStruct((), jnp.int32)
        after, next_state, *_ = jax.eval_shape(env.step, key, state, action, env.default_params)
    assert (obs, state) == (after, next_state)
