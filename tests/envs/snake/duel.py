"""Plays the fast Snake and the slow one side by side, and lets nothing differ between them.

The slow one decides on the moves and copies only the food that the fast one draws; that this lies
on a free cell is checked as it is eaten for, like everything else, on every step.
"""

import random
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard
from envs.snake import rules as fast_rules
from envs.snake.env import Params, Snake
from tests.envs.snake import oracle
from tests.envs.snake.oracle import TURNS, Cell, Game, reachable_cells
from tests.envs.snake.oracle_views import observe
from tests.envs.snake.policies import random_turn

Policy = Callable[[Game, random.Random], int]  # a relative move


class Snapshot(NamedTuple):
    """What can be read off the states of N fast games."""

    order: Any  # [N, rows, cols]
    heading: Any
    length: Any
    time: Any
    hunger: Any
    head: Any
    tail: Any
    food: Any
    foods: Any  # [N, K], or None
    obstacles: Any  # [N, rows, cols], or None
    size: Any  # [N, 2] rows and columns that are played on, or None: all


@cache
def compile_env(env: Snake):
    """`begin(seed, num_games, params)`, `advance(seed, step, state, action [N], params)`, jitted.

    They make their keys themselves: with keys among its arguments, a call takes ten times as long.
    """

    def snapshot(state) -> Snapshot:
        order = jax.vmap(lambda one: fast_rules.order(env.board, one))(state)
        fields = {name: getattr(state, name) for name in Snapshot._fields[1:]}
        if state.obstacles is not None:
            inside = lambda one: bitboard.contains(one, jnp.asarray(env.board.indices))
            shape = (-1, env.board.rows, env.board.cols)
            fields["obstacles"] = jax.vmap(inside)(state.obstacles).reshape(shape)
        return Snapshot(order, **fields)

    @partial(jax.jit, static_argnames="num_games")
    def begin(seed, num_games, params):
        keys = jax.random.split(jax.random.key(seed), num_games)
        obs, state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
        return obs, state, snapshot(state)

    @jax.jit
    def advance(seed, step, state, action, params):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), step), len(action))
        obs, state, *outcome = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
            keys, state, action, params
        )
        return obs, state, snapshot(state), *outcome

    return begin, advance


def duel(
    env: Snake,
    params: Params,
    rules: oracle.Rules,
    policy: Policy,
    num_steps: int,
    num_games: int = 64,
    seed: int = 0,
    look_every: int = 10,
) -> Counter:
    """Plays `num_games` side by side with auto-reset; returns what happened and how often.

    Observations are compared every `look_every` steps, and at both sides of every reset.
    """
    begin, advance = compile_env(env)
    rng = random.Random(seed)
    obs, state, snapshot = begin(seed, num_games, params)
    tally = Counter()
    games = [new_game(env, rules, params, jax.device_get(snapshot), i) for i in range(num_games)]
    check_observations(env, obs, games, range(num_games))
    for step in range(num_steps):
        actions = [choose(env, policy, game, rng) for game in games]
        obs, state, *step_results = advance(
            seed, step, state, np.asarray(actions, np.int32), params
        )
        obs, (snapshot, reward, terminated, truncated, info) = jax.device_get((obs, step_results))
        tails = [game.tail for game in games]
        food = [
            food_of(env, snapshot, info, terminated | truncated, i, game)
            for i, game in enumerate(games)
        ]
        reports = [
            game.step(action, after, absolute=env.actions == "absolute")
            for game, action, after in zip(games, actions, food, strict=True)
        ]
        check_reports(games, reports, reward, terminated, truncated, info["outcome"])
        soft_entrapments = [game.is_softly_entrapped() for game in games]
        if env.entrapment != "off":
            assert_same("softly entrapped", info["softly_entrapped"], soft_entrapments, games)
        is_over = terminated | truncated
        looked_at = np.flatnonzero(is_over | (step % look_every == 0))
        check_observations(env, info["final_observation"], games, looked_at)
        count(tally, games, reports, tails, soft_entrapments)
        games = [
            new_game(env, rules, params, snapshot, i) if is_over[i] else game
            for i, game in enumerate(games)
        ]
        check_states(env, games, snapshot)
        check_observations(env, obs, games, looked_at)
    return tally


def choose(env: Snake, policy: Policy, game: Game, rng: random.Random) -> int:
    """The policy's move in the environment's language; a random one may ask for a reversal."""
    if policy is random_turn:
        return rng.randrange(env.num_actions)
    turn = policy(game, rng)
    return turn if env.actions == "relative" else (game.heading + TURNS[turn]) % 4


def cell_of(env: Snake, index: int) -> Cell | None:
    """The fast game counts a guard column behind the last; -1 is nowhere."""
    return None if index < 0 else divmod(int(index), env.board.cols + 1)


def food_of(
    env: Snake, snapshot: Snapshot, info, is_over: np.ndarray, i: int, game: Game
) -> Cell | None:
    """Where the food lay after the step, even if the game has been reset since.

    Of several pieces the one that was not there before the step, in `game`.
    """
    if game.pieces is not None:
        if is_over[i]:
            assert env.observation == "planes"
            cells = {(int(r), int(c)) for r, c in np.argwhere(info["final_observation"][i, ..., 3])}
        else:
            cells = pieces_of(env, snapshot, i)
        new_pieces = cells - game.pieces
        assert len(new_pieces) <= 1
        return new_pieces.pop() if new_pieces else None
    if not is_over[i]:
        return cell_of(env, snapshot.food[i])
    if env.observation == "compass":  # the way to the food, and where the head is
        right, down, _, col, row = info["final_observation"][i, 12:17]
        return round((row + down) * env.board.rows), round((col + right) * env.board.cols)
    if env.observation != "planes":
        return None  # holds for a win; the other games are not cut off while they eat
    where = np.argwhere(info["final_observation"][i, ..., 3])
    return (int(where[0, 0]), int(where[0, 1])) if len(where) else None


def new_game(env: Snake, rules: oracle.Rules, params: Params, snapshot: Snapshot, i: int) -> Game:
    """The game that fast game `i` begins, once it is found to be a legal beginning."""
    rows, cols = size_of(env, snapshot, i)
    heading = int(snapshot.heading[i])
    if env.rules.random_start:
        ranked = [np.argwhere(snapshot.order[i] == rank)[0] for rank in (3, 2, 1)]
        body = [(int(row), int(col)) for row, col in ranked]
        assert (body, heading) in straight_starts(rows, cols)
    else:
        body = oracle.classic_body(rows, cols)
        assert heading == oracle.RIGHT
    food = cell_of(env, snapshot.food[i])
    weights = {name: getattr(params.rewards, name) for name in oracle.Rewards.__annotations__}
    game = Game(rows, cols, body, heading, food, rules, oracle.Rewards(**weights))
    if snapshot.size is not None:
        assert env.smallest_side <= min(rows, cols)
        beyond = np.ones((env.board.rows, env.board.cols), bool)
        beyond[:rows, :cols] = False
        np.testing.assert_array_equal(snapshot.obstacles[i], beyond)
    elif snapshot.obstacles is not None:
        cells = np.argwhere(snapshot.obstacles[i])
        game.obstacles = frozenset((int(row), int(col)) for row, col in cells)
        check_layout(env, game)
    if snapshot.foods is not None:
        game.pieces = pieces_of(env, snapshot, i)
        assert game.pieces <= set(game.free_cells())
        assert len(game.pieces) == min(env.foods, len(game.free_cells()))
        assert food == game.nearest_piece()
    if env.entrapment != "off":
        game.entrapment_threshold = params.entrapment_threshold
    assert food in game.free_cells(), f"a game begins with food on {food}\n{oracle.draw(game)}"
    return game


def size_of(env: Snake, snapshot: Snapshot, i: int) -> Cell:
    """The rows and columns that fast game `i` is played on."""
    if snapshot.size is None:
        return env.board.rows, env.board.cols
    rows, cols = snapshot.size[i]
    return int(rows), int(cols)


straight_starts = lru_cache(maxsize=None)(oracle.straight_starts)


def pieces_of(env: Snake, snapshot: Snapshot, i: int) -> set[Cell]:
    """The cells with food in fast game `i`."""
    cells = [cell_of(env, index) for index in snapshot.foods[i]]
    pieces = {cell for cell in cells if cell is not None}
    assert len(pieces) == sum(cell is not None for cell in cells), "two pieces in one cell"
    return pieces


def check_layout(env: Snake, game: Game) -> None:
    """There are as many obstacles as asked for; they cut nothing apart and trap nobody."""
    free = game.free_cells()
    assert len(free) == game.size - 3 - env.obstacles, oracle.draw(game)
    blocked = {*game.body, *game.obstacles}
    assert reachable_cells(game.rows, game.cols, free[0], blocked) == set(free), oracle.draw(game)
    is_open = lambda cell: game.is_inside(cell) and cell not in game.obstacles
    for cell in (*free, *game.body):
        assert sum(map(is_open, oracle.neighbours(cell))) >= 2, oracle.draw(game)
    assert not game.obstacles & {game.candidate(turn) for turn in TURNS}, oracle.draw(game)


def check_states(env: Snake, games: list[Game], snapshot: Snapshot) -> None:
    orders = [oracle.order(game) for game in games]
    beyond = [(env.board.rows - game.rows, env.board.cols - game.cols) for game in games]
    pads = [((0, below), (0, beside)) for below, beside in beyond]
    orders = [np.pad(order, pad) for order, pad in zip(orders, pads, strict=True)]
    assert_same("order of the body", snapshot.order, orders, games)
    assert_same("heading", snapshot.heading, [game.heading for game in games], games)
    assert_same("length", snapshot.length, [len(game.body) for game in games], games)
    assert_same("time", snapshot.time, [game.time for game in games], games)
    assert_same("hunger", snapshot.hunger, [game.hunger for game in games], games)
    index = lambda cell: -1 if cell is None else cell[0] * env.board.stride + cell[1]
    for name in ("head", "tail", "food"):
        expected = [index(getattr(game, name)) for game in games]
        assert_same(name, getattr(snapshot, name), expected, games)
    if snapshot.foods is not None:
        pieces = [sorted(index(cell) for cell in game.food_cells) for game in games]
        width = snapshot.foods.shape[1]
        expected = [[-1] * (width - len(cells)) + cells for cells in pieces]
        assert_same("pieces of food", np.sort(snapshot.foods, axis=1), expected, games)


def check_reports(games, reports, reward, terminated, truncated, outcome) -> None:
    assert_same("terminated", terminated, [report.terminated for report in reports], games)
    assert_same("truncated", truncated, [report.truncated for report in reports], games)
    assert_same("reward", reward, [report.reward for report in reports], games, tolerance=1e-5)
    assert set(outcome) == {"score", "won", "death_wall", "death_self", "entrapped", "starved"}
    assert_same("score", outcome["score"], [game.score for game in games], games)
    assert_same("won", outcome["won"], [report.won for report in reports], games)
    for cause in ("death_wall", "death_self", "entrapped", "starved"):
        assert_same(cause, outcome[cause], [report.cause == cause for report in reports], games)


def check_observations(env: Snake, obs, games: list[Game], indices) -> None:
    """Compares the observations of the games `indices`."""
    chosen_games: list[Game] = [games[i] for i in indices]
    if chosen_games:
        expected = [observe(game, env.observation) for game in chosen_games]
        if env.entrapment == "seen":
            expected = [
                np.append(observation, game.is_softly_entrapped())
                for observation, game in zip(expected, chosen_games, strict=True)
            ]
        assert_same(
            env.observation, np.asarray(obs)[list(indices)], expected, chosen_games, tolerance=1e-6
        )


def assert_same(what: str, got, expected, games: list[Game], tolerance: float = 0.0) -> None:
    """Equal in every game, or the first that differs is shown."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    differs = np.abs(got.astype(float) - expected.astype(float)) > tolerance
    wrong = np.flatnonzero(differs.reshape(len(games), -1).any(axis=1))
    if wrong.size:
        i = int(wrong[0])
        raise AssertionError(
            f"{what} differs in {wrong.size} of {len(games)} games; game {i}:\n"
            f"{oracle.draw(games[i])}\n{games[i]}\n"
            f"got {got[i].tolist()}\nexpected {expected[i].tolist()}"
        )


def count(
    tally: Counter, games: list[Game], reports, old_tails: list[Cell], soft_entrapments
) -> None:
    """Adds what happened in one step; `soft_entrapments` says which games are softly entrapped."""
    for game, report, old_tail, soft in zip(
        games, reports, old_tails, soft_entrapments, strict=True
    ):
        tally["steps"] += 1
        tally["meals"] += report.ate
        tally["wins"] += report.won
        tally["truncated"] += report.truncated
        tally["terminated"] += report.terminated
        tally["both"] += report.truncated and report.terminated
        tally["fed by the clock"] += report.truncated and report.ate
        tally["games"] += report.terminated or report.truncated
        tally["softly entrapped"] += soft
        tally["meals in entrapment"] += report.ate and soft
        tally["crowded"] += game.is_crowded()
        tally["full boards"] += report.ate and game.food is None
        tally["longest"] = max(tally["longest"], len(game.body))
        tally["into the tail's cell"] += game.head == old_tail
        if report.cause:
            tally[report.cause] += 1
