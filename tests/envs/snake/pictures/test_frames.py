"""Frames of games of one and two snakes against plain readings of the positions."""

from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake.bitboard import Board
from envs.snake.env import Snake
from envs.snake.feature_names import NAMES
from envs.snake.observations import OBSERVATIONS
from envs.snake.pictures import frames, positions
from envs.two_snake import feature_names as two_names
from envs.two_snake import frames as two_frames
from envs.two_snake import rules as two_rules
from envs.two_snake.near import NUM_ENTRIES
from envs.two_snake.observations import NUM_FEATURES

BOARD = Board(5, 6)
BODY = [(2, 3), (2, 2), (2, 1), (3, 1), (4, 1), (4, 2), (4, 3)]  # head first


def play_game(env: Snake, steps: int, seed: int = 0):
    """States of a game, `[M, ...]`, and where the head was at each."""
    key = jax.random.key(seed)
    start_key, key = jax.random.split(key)
    _, state = env.reset(start_key, env.default_params)
    states, advance = [state], jax.jit(env.step_env)
    for step_key in jax.random.split(key, steps):
        action_key, step_key = jax.random.split(step_key)
        action = jax.random.randint(action_key, (), 0, env.num_actions)
        _, state, _, over, _ = advance(step_key, state, action, env.default_params)
        states.append(state)
        if over:
            break
    return jax.tree.map(lambda *x: np.stack(x), *states)


def test_a_body_is_told_by_when_the_head_came_to_each_cell():
    env = Snake(6, 6)
    states = play_game(env, 40, seed=3)
    body_frames = frames.body_arrays(env.board, states)
    heads = [(int(h) // env.board.stride, int(h) % env.board.stride) for h in states.head]
    number = lambda cell: cell[0] * 6 + cell[1]
    inside = [0 <= r < 6 and 0 <= c < 6 for r, c in heads]
    np.testing.assert_array_equal(
        body_frames["head"], [number(h) if x else -1 for h, x in zip(heads, inside, strict=True)]
    )
    for t in range(len(heads) - 1):  # the last move may have killed it
        row = body_frames["entered"][t]
        cells = [c for c in np.argsort(row, kind="stable") if row[c] != frames.NEVER]
        assert len(cells) == states.length[t]
        assert cells[-1] == number(heads[t])
        walked = [number(h) for h in heads[max(0, t + 1 - len(cells)) : t + 1]]
        assert cells[-len(walked) :] == walked
        if t:  # only head and tail change
            assert (row != body_frames["entered"][t - 1]).sum() <= 2


@pytest.mark.parametrize("version", ["classic", "modern"])
def test_reach_and_danger_are_those_of_a_plain_search(version):
    state = positions.from_body(BOARD, BODY, (0, 0), 1)
    state = jax.tree.map(lambda x: jnp.asarray(x)[None], state)
    game_frames = frames.game_arrays(BOARD, Snake(5, 6, rules=version).rules, state)
    walls = set(BODY if version == "classic" else BODY[:-1])  # whether the tail's cell is free
    ahead = {0: (2, 4), 1: (1, 3), 2: (3, 3)}  # heading right: forward, left, right
    for k, seed in ahead.items():
        reached, queue = {seed}, deque([seed])
        while queue:
            r, c = queue.popleft()
            for cell in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                on_board = 0 <= cell[0] < 5 and 0 <= cell[1] < 6
                if on_board and cell not in walls and cell not in reached:
                    reached.add(cell)
                    queue.append(cell)
        bits = game_frames["reach"][0].reshape(5, 6) & (1 << k)
        assert {tuple(map(int, x)) for x in np.argwhere(bits)} == reached
        assert game_frames["ahead"][0][k] == seed[0] * 6 + seed[1]
    assert not game_frames["danger"].any()
    assert game_frames["food"][0] == 0


def test_a_move_into_the_body_or_a_wall_is_a_danger():
    body = [(0, 2), (0, 1), (1, 1), (1, 2), (1, 3)]
    state = positions.from_body(BOARD, body, None, 1)
    state = jax.tree.map(lambda x: jnp.asarray(x)[None], state)
    game_frames = frames.game_arrays(BOARD, Snake(5, 6).rules, state)
    np.testing.assert_array_equal(game_frames["danger"][0], [False, True, True])
    np.testing.assert_array_equal(game_frames["ahead"][0], [3, -1, 8])
    assert game_frames["food"][0] == -1


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_an_observation_has_a_name(name):
    shape = OBSERVATIONS[name].shape(BOARD)
    assert len(shape) == 1
    assert len(NAMES[name]) == shape[0] or name in ("near", "far", "gaps")
    assert len(set(NAMES[name])) == len(NAMES[name])


def test_cells_are_found_by_places():
    assert int(frames.cell_at(BOARD, (5.9, 0.0))) == BOARD.index(0, 5)
    for place in ((6.0, 0.0), (-0.1, 0.0), (0.0, 5.0)):
        with pytest.raises(ValueError, match="there is no cell"):
            frames.cell_at(BOARD, place)


def distances(board: Board, head: tuple[int, int], walls: set) -> dict:
    """Moves from a head to every empty cell."""
    moves, queue = {head: 0}, deque([head])
    while queue:
        r, c = queue.popleft()
        for cell in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            on_board = 0 <= cell[0] < board.rows and 0 <= cell[1] < board.cols
            if on_board and cell not in walls and cell not in moves:
                moves[cell] = moves[(r, c)] + 1
                queue.append(cell)
    return moves


def test_land_belongs_to_the_nearer_head():
    board = Board(6, 9)
    bodies = ([(1, 2), (1, 1), (1, 0)], [(4, 6), (3, 6), (2, 6), (1, 6)])
    state = two_rules.from_bodies(board, bodies, (1, 2), (0, 0))
    game_frames = two_frames.game_arrays(board, jax.tree.map(lambda x: jnp.asarray(x)[None], state))
    walls = {*bodies[0], *bodies[1]}
    mine, theirs = (distances(board, body[0], walls) for body in bodies)
    for r in range(6):
        for c in range(9):
            near, far = (d.get((r, c), np.inf) for d in (mine, theirs))
            expected = 0 if (r, c) in walls or near == far else 1 if near < far else 2
            assert game_frames["land"][0][9 * r + c] == expected
    assert game_frames["own_head"][0] == 11
    assert game_frames["other_heading"][0] == 2


def test_every_number_that_a_duellist_sees_has_a_name():
    for name, size in (("features", NUM_FEATURES), ("near", NUM_ENTRIES)):
        assert len(two_names.NAMES[name]) == len({*two_names.NAMES[name]}) == size
