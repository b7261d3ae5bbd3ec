"""Walks through the public `step`: where they lead, how often, how they end, what compiles."""

import copy
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from envs.grid import layouts
from envs.grid.env import Grid, choose
from tests.envs.grid import oracle as grid_oracle
from tests.envs.grid.test_tables import TRICKY


def walk(env, params, num_envs: int, num_steps: int, seed: int = 0):
    """Random play: positions before, actions, and what `step` returned; all `[T, N]`."""

    @jax.jit
    def play(key, params):
        reset_key, key = jax.random.split(key)
        _, state = jax.vmap(env.reset, (0, None))(jax.random.split(reset_key, num_envs), params)

        def step(carry, _):
            key, state = carry
            key, action_key, step_key = jax.random.split(key, 3)
            action = jax.random.randint(action_key, (num_envs,), 0, env.num_actions)
            keys = jax.random.split(step_key, num_envs)
            obs, after, *rest = jax.vmap(env.step, (0, 0, 0, None))(keys, state, action, params)
            return (key, after), (state.position, action, obs, after, *rest)

        return jax.lax.scan(step, (key, state), length=num_steps)[1]

    return jax.device_get(play(jax.random.key(seed), params))


@pytest.mark.parametrize("wind", [0.0, 0.3])
def test_random_play_follows_the_slow_walker(wind):
    """Chi-square of 100,000 transitions; the last of each is seen in the final observation."""
    env = Grid(TRICKY, "index", wind)
    before, _, _, _, _, _, _, info = walk(env, env.default_params, 1000, 100)
    counts = np.zeros((env.num_states, env.num_states))
    np.add.at(counts, (before, info["final_observation"]), 1)
    chance = grid_oracle.matrix(TRICKY, grid_oracle.Fraction(wind).limit_denominator(10))
    expected = counts.sum(1, keepdims=True) * np.array(chance, float)
    assert counts[expected == 0].sum() == 0
    often = expected > 5
    chi_square = np.sum((counts[often] - expected[often]) ** 2 / expected[often])
    degrees = often.sum() - (counts.sum(1) > 0).sum()
    assert stats.chi2.sf(chi_square, degrees) > 1e-4


def test_a_clock_and_a_fresh_start_everywhere():
    env = Grid("GridRoom-4", "index")
    before, _, obs, after, reward, terminated, truncated, info = walk(
        env, env.default_params, 2000, 150
    )
    assert not terminated.any()
    assert not reward.any()
    assert not info["outcome"]["arrived"].any()
    last = np.arange(1, 151) % 50 == 0
    np.testing.assert_array_equal(truncated, np.tile(last[:, None], (1, 2000)))
    np.testing.assert_array_equal(obs, after.position)
    assert (after.time[last] == 0).all()
    starts = np.bincount(np.append(before[0], after.position[last].ravel()), minlength=104)
    assert stats.chisquare(starts).pvalue > 1e-4
    # where an episode ended says nothing of where the next one starts
    correlation = np.corrcoef(info["final_observation"][49], after.position[49])[0, 1]
    assert abs(correlation) < 4 / np.sqrt(2000)


def test_goals_and_starts():
    layout = layouts.parse("S..G\n.##.\nS..G")
    env = Grid(layout, "index")
    params = replace(env.default_params, max_steps_in_episode=20, step_reward=-0.5)
    before, _, obs, _, reward, terminated, truncated, info = walk(env, params, 500, 60)
    goals = [layout.index[cell] for cell in layout.goals]
    enters_goal = np.isin(info["final_observation"], goals)
    assert enters_goal.sum() > 100
    np.testing.assert_array_equal(terminated, enters_goal)
    np.testing.assert_array_equal(info["outcome"]["arrived"], enters_goal)
    np.testing.assert_array_equal(reward, np.where(enters_goal, 1.0, -0.5))
    assert not np.isin(before, goals).any()
    assert (truncated & ~terminated).any()
    starts = np.bincount(obs[terminated | truncated], minlength=layout.num_states)
    assert np.flatnonzero(starts).tolist() == [0, 6]
    assert stats.binomtest(int(starts[0]), int(starts.sum())).pvalue > 1e-4


def test_without_marked_starts_episodes_begin_on_all_cells_but_goals():
    layout = layouts.parse("..G.")
    assert layout.start_states.tolist() == [0, 1, 3]
    params = Grid(layout).default_params
    assert (params.starts.tolist(), int(params.num_starts)) == ([0, 1, 3, 0], 3)


def test_one_trace_for_all_mazes_of_a_size(monkeypatch):
    """And each follows its own walls, also where nobody passes parameters."""
    traces = 0
    transition = Grid.transition

    def count_traces(*args):
        nonlocal traces
        traces += 1
        return transition(*args)

    monkeypatch.setattr(Grid, "transition", count_traces)
    mazes = [Grid(f"corridors-43-seed{seed}", "index") for seed in (1, 2)]
    assert mazes[0] == mazes[1]
    assert hash(mazes[0]) == hash(mazes[1])
    for env in mazes:
        cells = [tuple(cell) for cell in env.layout.cells.tolist()]
        for i, cell in enumerate(cells):
            _, state = env.reset(jax.random.key(i))
            state = state.replace(position=jnp.int32(i))
            for params in ((), (env.default_params,)):
                _, after, *_ = env.step(jax.random.key(i), state, i % 4, *params)
                (end,) = grid_oracle.law(env.layout, cell, i % 4)
                assert cells[after.position] == end
    assert traces == 1


def test_what_makes_two_of_them_equal():
    env = Grid("corridors-43-seed1")
    env.default_params  # noqa: B018  # what has been computed is no difference
    assert env == copy.copy(env) == Grid("corridors-43-seed9")
    assert env != Grid("corridors-45-seed1")
    assert env != Grid("corridors-43-seed1", "index")
    assert env != Grid("corridors-43-seed1", wind=0.1)  # more outcomes
    assert Grid(TRICKY, wind=0.1) == Grid(TRICKY, wind=-0.2)
    row, column = layouts.parse("...", "row"), layouts.parse(".\n.\n.", "column")
    assert Grid(row) == Grid(column)
    assert Grid(row, "pixels") != Grid(column, "pixels")
    assert env != "Grid"
    assert repr(env) == "Grid('corridors-43-seed1', 'coordinates', wind=0.0)"


def test_parameters_first_asked_for_inside_a_trace_are_no_tracers():
    env = Grid("corridors-47-seed1", "index")
    obs = jax.jit(lambda key: env.reset(key)[0])(jax.random.key(0))
    assert int(obs) == int(env.reset(jax.random.key(0))[1].position)
    assert np.asarray(env.default_params.successor).shape == (47, 4, 1)


def test_mazes_are_a_batch():
    """One program, three mazes: parameters with an axis of their own."""
    mazes = [Grid(f"corridors-43-seed{seed}", "coordinates") for seed in range(3)]
    params = jax.tree.map(lambda *x: jnp.stack(x), *[env.default_params for env in mazes])
    keys = jax.random.split(jax.random.key(0), 3)
    obs, state = jax.vmap(mazes[0].reset)(keys, params)
    for i, env in enumerate(mazes):
        expected = env.default_params.observations[state.position[i]]
        np.testing.assert_array_equal(obs[i], expected)


def test_choose():
    probability = jnp.array([0.5, 0.25, 0.0, 0.25, 0.0], jnp.float32)
    words = [0, 2**31 - 1, 2**31, 3 * 2**30 - 1, 3 * 2**30, 2**32 - 1]
    assert [int(choose(jnp.uint32(w), probability)) for w in words] == [0, 0, 1, 1, 3, 3]
    short = jnp.array([0.0, 0.3, 0.3, 0.0], jnp.float32)  # does not add up to 1
    assert int(choose(jnp.uint32(2**32 - 1), short)) == 2
    assert int(choose(jnp.uint32(0), short)) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"maze": "GridRoom-5"}, "maze 'GridRoom-5' is unknown"),
        ({"maze": 5}, "maze is 5; expected a name such as 'GridRoom-4' or a Layout"),
        ({"observation": "smell"}, "observation 'smell' is unknown; expected one of index, coord"),
        ({"wind": 1.0}, "wind is 1.0; expected a number between -1 and 1"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Grid(**arguments)
