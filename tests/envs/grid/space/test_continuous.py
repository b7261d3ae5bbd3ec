"""Space between walls: moves against a slow walker, and the fine chain against the moves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.checker import env_checker
from envs.grid import layouts, mazes
from envs.grid.space import continuous
from envs.grid.space.continuous import ContinuousMaze, fine_chain, fine_layout, is_free_way

LAYOUT = layouts.parse("..#.\n.#..\n....")
FREE = np.pad(LAYOUT.free, 1)


def slow_is_free(start, end, count: int = 20_001) -> bool:
    """Looks at very many points of the way."""
    points = np.linspace(start, end, count)
    rows, cols = np.floor(points).astype(int).T
    return bool(FREE[rows + 1, cols + 1].all())


def test_ways_are_free_where_all_their_points_are():
    rng = np.random.default_rng(0)
    start = rng.uniform([0, 0], [3, 4], (400, 2))
    end = np.clip(start + rng.uniform(-1, 1, (400, 2)), -0.5, [3.5, 4.5])
    is_free = is_free_way(FREE, start, end)
    expected = [slow_is_free(*pair) for pair in zip(start, end, strict=True)]
    assert 50 < sum(expected) < 350
    assert is_free.tolist() == expected
    np.testing.assert_array_equal(is_free, is_free_way(FREE, end, start))
    is_free_on_device = is_free_way(jnp.asarray(FREE), jnp.asarray(start), jnp.asarray(end), jnp)
    assert np.mean(np.asarray(is_free_on_device) != is_free) < 0.005  # float32 beside a line


def test_a_way_through_a_corner_needs_all_four_tiles():
    corner = layouts.parse("#..\n..#\n...")
    free = np.pad(corner.free, 1)
    middles = lambda *cells: np.array([[row + 0.5, col + 0.5] for row, col in cells])
    starts, ends = middles((1, 0), (1, 1), (1, 0)), middles((0, 1), (2, 2), (2, 1))
    assert is_free_way(free, starts, ends).tolist() == [False, False, True]


@pytest.mark.slow
def test_the_environment_keeps_the_contract():
    env_checker(ContinuousMaze(LAYOUT, 0.7))


@pytest.mark.slow
def test_the_environment_keeps_its_walls():
    env = ContinuousMaze(LAYOUT, 0.7)
    params = env.default_params
    begins, steps = jax.random.split(jax.random.key(0), (2, 500))
    obs, state = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(begins, params)
    tiles = np.floor(np.asarray(state.position)).astype(int)
    assert LAYOUT.free[tuple(tiles.T)].all()
    share = np.bincount(LAYOUT.index[tuple(tiles.T)], minlength=10) / 500
    np.testing.assert_allclose(share, 0.1, atol=5 * np.sqrt(0.1 * 0.9 / 500))
    np.testing.assert_allclose(
        continuous.positions(np.asarray(obs), 3, 4), state.position, atol=1e-5
    )
    action = jax.random.uniform(jax.random.key(1), (500, 2), minval=-1.0)
    step = jax.jit(jax.vmap(env.step, in_axes=(0, 0, 0, None)))
    next_obs, after, *_ = step(steps, state, action, params)
    target = np.asarray(state.position) + 0.7 * np.asarray(action)
    is_moved = np.array([slow_is_free(*pair) for pair in zip(state.position, target, strict=True)])
    expected = np.where(is_moved[:, None], target, state.position)
    np.testing.assert_allclose(after.position, expected, atol=1e-5)
    assert np.abs(np.asarray(next_obs)).max() <= 1


def test_walks_begin_in_free_tiles_where_float32_is_coarse():
    """Free tiles and walls in turn, so far from 0 that numbers are 1/256 of a tile apart."""
    free = np.zeros((1, 60_000), bool)
    free[:, ::2] = True
    env = ContinuousMaze(layouts.Layout(free), 0.5)
    params = env.default_params
    start = jax.jit(jax.vmap(lambda key: env.start(key, params).position))
    tiles = np.floor(start(jax.random.split(jax.random.key(0), 10_000))).astype(int)
    assert free[tuple(tiles.T)].all()


def test_the_fine_chain_has_the_moments_of_the_moves():
    """From the middles of fine cells in the open and beside walls, against very many moves."""
    parts, rng = 8, np.random.default_rng(1)
    fine, P = fine_layout(LAYOUT, parts), fine_chain(LAYOUT, 0.5, parts).toarray()
    np.testing.assert_allclose(P, P.T, atol=1e-15)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    middles = (fine.cells + 0.5) / parts
    for cell in ((20, 4), (19, 19), (23, 0), (9, 16)):
        start = np.full((400_000, 2), (np.array(cell) + 0.5) / parts)
        end = start + 0.5 * rng.uniform(-1, 1, start.shape)
        moves = is_free_way(FREE, start, end)[:, None] * (end - start)
        law, shift = P[fine.index[cell]], middles - start[0]
        np.testing.assert_allclose(law @ shift, moves.mean(axis=0), atol=0.012)
        np.testing.assert_allclose(law @ shift**2, (moves**2).mean(axis=0), rtol=0.1)


def test_cells_longer_than_a_step_are_refused():
    with pytest.raises(ValueError, match="with 4 cells along a tile; expected at least 10"):
        fine_chain(LAYOUT, 0.1, 4)


def test_eigenvalues_of_an_empty_interval_are_those_of_the_closed_form():
    """A corridor much longer than the step: the walk tends to a diffusion with reflecting ends.

    λ_k of I - P is about (k π / length)² step² / 6.
    """
    corridor = layouts.parse("." * 12)
    P = fine_chain(corridor, 0.5, 8)
    mu = np.sort(np.linalg.eigvalsh(P.toarray()))[::-1]
    slow = 1 - mu[1:4]
    # Half of the moves would leave a corridor one tile wide: those that stay inside, on average.
    inside = 1 - 0.5 * 0.5
    expected = (np.arange(1, 4) * np.pi / 12) ** 2 * 0.5**2 / 6 * inside
    np.testing.assert_allclose(slow, expected, rtol=0.05)


def test_eigenvectors_of_a_rectangle_are_products_of_cosines():
    """cos(i π row / H) cos(j π col / W), which slow ones of reflected steps tend to."""
    height, width, parts = 5, 7, 6
    room = layouts.parse("\n".join(["." * width] * height))
    fine, P = fine_layout(room, parts), fine_chain(room, 0.5, parts).toarray()
    values, vectors = np.linalg.eigh(P)
    slow = vectors[:, ::-1][:, :7]
    row, col = ((fine.cells + 0.5) / parts * np.pi / np.array([height, width])).T
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (1, 2)]
    rates = [(i / height) ** 2 + (j / width) ** 2 for i, j in pairs]
    for n, k in enumerate(np.argsort(rates)):
        i, j = pairs[k]
        wave = np.cos(i * row) * np.cos(j * col)
        assert abs(slow[:, n] @ wave) / np.linalg.norm(wave) > 0.98
        rate = rates[k] * np.pi**2 * 0.5**2 / 6
        np.testing.assert_allclose(1 - values[::-1][n], rate, rtol=0.15, atol=1e-9)


@pytest.mark.parametrize("step", [0, -1, 1.5, float("nan")])
def test_steps_have_a_range(step):
    with pytest.raises(ValueError, match="expected a number above 0 and at most 1"):
        ContinuousMaze(mazes.layout_by_name("GridMaze-7"), step)
