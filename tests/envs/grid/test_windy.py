"""Wind of each episode: its tables in exact fractions, its draws, and walks in it."""

import dataclasses
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.grid import layouts, tables, windy
from envs.grid.windy import WindyGrid
from tests.envs.grid import oracle as grid_oracle

LAYOUT = layouts.parse(".,DR:0.5,.,X\n.,X,PU:1,.\nE1,.,.,.")


@pytest.mark.parametrize("wind", [Fraction(0), Fraction(3, 10), Fraction(-9, 10)], ids=str)
def test_the_chain_in_a_wind_is_that_of_the_slow_walker(wind):
    matrix = windy.transition_matrix(tables.gusts(LAYOUT), float(wind))
    expected = np.array(grid_oracle.matrix(LAYOUT, wind), float)
    np.testing.assert_allclose(matrix, expected, atol=1e-12)


def test_winds_are_uniform_and_stay_for_an_episode():
    env = WindyGrid(LAYOUT, "index", -0.2, 0.6)
    params = dataclasses.replace(env.default_params, max_steps_in_episode=5)
    keys = jax.random.split(jax.random.key(0), (6, 4_000))
    _, state = jax.vmap(env.reset, in_axes=(0, None))(keys[5], params)
    winds = np.sort(state.wind)
    assert -0.2 <= winds[0] < winds[-1] < 0.6
    uniform = np.linspace(-0.2, 0.6, 4_000)
    assert np.abs(winds - uniform).max() < 0.8 * 1.63 / np.sqrt(4_000)  # Kolmogorov-Smirnov, 1 %
    for t in range(5):
        previous_wind = state.wind
        step = jax.vmap(env.step, in_axes=(0, 0, None, None))
        _, state, _, _, truncated, _ = step(keys[t], state, 1, params)
        assert bool(truncated.all()) == (t == 4)
        assert bool(jnp.all(state.wind == previous_wind)) == (t < 4)


def test_moves_have_the_frequencies_of_the_wind():
    env, count = WindyGrid(LAYOUT, "index", -0.5, 0.5), 20_000
    params = env.default_params
    step = jax.jit(jax.vmap(env.transition, in_axes=(0, None, None, None)))
    chances = jax.vmap(env.chances)(jax.random.split(jax.random.key(1), count))[0]
    for wind in (Fraction(2, 5), Fraction(-2, 5)):
        for cell, action in (((2, 1), 0), ((0, 1), 1), ((0, 2), 3), ((1, 2), 0)):
            position = jnp.asarray(LAYOUT.index[cell])
            state = windy.State(position, jnp.zeros((), jnp.int32), jnp.asarray(float(wind)))
            ends = np.bincount(step(chances, state, action, params)[0].position, minlength=9)
            law = grid_oracle.law(LAYOUT, cell, action, wind)
            expected = np.zeros(len(ends))
            for end, chance in law.items():
                expected[LAYOUT.index[end]] = chance
            np.testing.assert_allclose(ends / count, expected, atol=5 * 0.5 / np.sqrt(count))
            assert (ends[expected == 0] == 0).all()


@pytest.mark.parametrize("winds", [(0.2, 0.1), (-1.0, 0.0), (0.0, 1.0)])
def test_winds_have_a_range(winds):
    with pytest.raises(ValueError, match="expected ascending numbers between -1 and 1"):
        WindyGrid(LAYOUT, "index", *winds)
