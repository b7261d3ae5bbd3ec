"""Searches on bits, by loops that stop early and by those of a known length, against plain
breadth-first search."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs import bounded_loop
from envs.snake import bitboard, moves
from envs.snake.bitboard import Board
from envs.snake.rules import MODERN
from envs.two_snake import opponents, views
from tests.envs.snake.search_boards import (
    NUM_BOARDS,
    Boards,
    ahead_of,
    around,
    body,
    cells_of,
    cells_without,
    distances,
    induced_paths,
    many_boards,
    state_of,
    view_of,
)
from tests.envs.snake.stacked_boards import pack

SIZES = [(4, 4), (5, 9), (10, 10), (11, 4), (13, 7), (20, 20)]
WAYS = {"early": bounded_loop.while_loop, "known": bounded_loop.all_rounds}


# Each search by bits, `[N]`, and what it has to be


def flood(board: Board, boards: Boards) -> Any:
    """From the food and the other's head, which is not free."""
    food, head = (
        bitboard.single(x, board.num_words) for x in (view_of(boards).food, body(boards, 1).head)
    )
    blocked = bitboard.union(view_of(boards).own.occupied, head)
    fill = jax.vmap(lambda seeds, free: bitboard.flood(board, seeds, free))
    return fill(bitboard.union(food, head), bitboard.difference(board.cells, blocked))


def check_flood(words: Any, boards: Boards) -> None:
    for i, cells in enumerate(cells_of(words, boards)):
        free = cells_without(boards, i, *boards.heads[i], boards.tails[i][0])
        assert cells == set(distances(free, boards.food[i]))


def search(board: Board, boards: Boards) -> Any:
    """From the food to the cells beside the head, and from the tail."""
    state = state_of(boards)
    seek = jax.vmap(lambda state, goal: moves._search(board, MODERN, state, goal))
    return [seek(state, bitboard.single(x, board.num_words)) for x in (state.food, state.tail)]


def check_search(answers: Any, boards: Boards) -> None:
    goals = boards.food, [tail for tail, _ in boards.tails]
    for (words, lengths), cells in zip(answers, goals, strict=True):
        for i, nearest in enumerate(cells_of(words, boards)):
            head, _ = boards.heads[i]
            steps = distances(cells_without(boards, i, head), cells[i])
            doors = {x: steps[x] for x in around(head) if x in steps}
            least = min(doors.values(), default=-1)
            assert nearest == {x for x in doors if doors[x] == least}
            assert not doors or lengths[i] == least


def chase(board: Board, boards: Boards) -> Any:
    return jax.vmap(lambda view: opponents.flood_from_food(board, view))(view_of(boards))


def check_chase(words: Any, boards: Boards) -> None:
    for i, cells in enumerate(cells_of(words, boards)):
        free = cells_without(boards, i, *boards.heads[i], boards.tails[i][1])
        steps = distances(free, boards.food[i])
        least = min((steps[x] for x in ahead_of(boards, i) if x in steps), default=len(free))
        assert cells == {x for x in steps if steps[x] <= least}


def race(board: Board, boards: Boards) -> Any:
    return jax.vmap(lambda view: views.territory(board, view))(view_of(boards))


def check_race(words: Any, boards: Boards) -> None:
    for i, cells in enumerate(cells_of(words, boards)):
        empty = cells_without(boards, i, *boards.heads[i], *boards.tails[i])
        mine, theirs = (distances(empty, head) for head in boards.heads[i])
        never = len(empty) + 1
        assert cells == {x for x in empty if mine.get(x, never) < theirs.get(x, never)}


SEARCHES: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    "flood": (flood, check_flood),
    "search": (search, check_search),
    "chase": (chase, check_chase),
    "race": (race, check_race),
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_searches_are_breadth_first_search_on_every_platform(rows, cols, monkeypatch):
    board, boards, results = Board(rows, cols), many_boards(rows, cols), {}
    for way, loop in WAYS.items():
        monkeypatch.setattr(bounded_loop, "while_loop", loop)
        results[way] = jax.jit(lambda: {x: SEARCHES[x][0](board, boards) for x in SEARCHES})()
    for name, (_, check) in SEARCHES.items():
        check(results["known"][name], boards)
    jax.tree.map(np.testing.assert_array_equal, results["known"], results["early"])


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (2, 7), (3, 5), (4, 4), (4, 5), (5, 5)])
def test_no_path_without_a_shortcut_is_longer_than_its_bound(rows, cols):
    longest = len(induced_paths(rows, cols)[0])
    assert longest <= Board(rows, cols).longest_path <= longest + 2


def test_rounds_after_the_last_change_nothing_and_the_last_one_is_taken():
    """Each number is halved until it is below 1, the greatest 30 times."""
    numbers = jnp.float32(2.0) ** jnp.array([29, 0, -3, 1, 17, 28, 5])
    halve = lambda loop, rounds: jax.jit(
        jax.vmap(
            lambda x: loop(
                lambda carry: carry[1] >= 1,
                lambda carry: (carry[0] + 1, carry[1] / 2),
                (jnp.int32(0), x),
                most_rounds=rounds,
            )
        )
    )(numbers)
    for rounds in (30, 31, 97, 200):  # in one kernel, and in several
        counts, remainders = halve(bounded_loop.all_rounds, rounds)
        assert counts.tolist() == [30, 1, 0, 2, 18, 29, 6]
        np.testing.assert_array_equal(remainders, halve(bounded_loop.while_loop, rounds)[1])
    assert halve(bounded_loop.all_rounds, 29)[1][0] == 1


def test_a_loop_survives_maps_within_maps_and_scans(monkeypatch):
    """Two members of a sweep, each with many games, three steps in turn."""
    board, boards = Board(5, 9), many_boards(5, 9)
    free = tuple(jnp.stack([word, word[::-1]]) for word in pack(~boards.obstacles))
    seeds = bitboard.single(view_of(boards).food, board.num_words)

    def grow_thrice(seeds: Any, free: Any) -> Any:
        flood = jax.vmap(lambda s, f: bitboard.flood(board, s, f))
        step = lambda cells, _: (bitboard.neighbourhood(board, flood(cells, free)), None)
        return jax.lax.scan(step, seeds, length=3)[0]

    results = []
    for loop in WAYS.values():
        monkeypatch.setattr(bounded_loop, "while_loop", loop)
        results.append(jax.jit(jax.vmap(grow_thrice, (None, 0)))(seeds, free))
        assert jax.eval_shape(jax.vmap(grow_thrice, (None, 0)), seeds, free)[0].shape == (
            2,
            NUM_BOARDS,
        )
    jax.tree.map(np.testing.assert_array_equal, *results)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_only_a_cpu_loops_until_the_data_say_so(platform):
    words = pack(np.ones((6, 4, 4), bool))
    flood = jax.jit(jax.vmap(lambda seeds: bitboard.flood(Board(4, 4), seeds, Board(4, 4).cells)))
    traced = flood.trace(words)
    assert "stablehlo.while" not in traced.lower(lowering_platforms=(platform,)).as_text()
    assert traced.lower(lowering_platforms=("cpu",)).as_text().count("stablehlo.while") == 1
