"""The contract, over every environment we have."""

import re
from dataclasses import replace
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import environment as gymnax_environment
from gymnax.wrappers import FlattenObservationWrapper, LogWrapper

import envs
from envs import grid, snake
from envs.checker import check_contract, env_checker
from envs.grid import layouts
from envs.grid.env import Grid
from envs.snake.env import Snake


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
    assert versions.pop("Durotaxis-v0") == "0.2.1"
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


@pytest.mark.slow
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
