"""Players that follow a rule, against slow ones that play with lists and sets."""

import random
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.snake import rules
from envs.snake.bitboard import Board
from envs.snake.env import Snake
from envs.snake.players import GROWTH, PLAYERS, Player, able_players, action_for
from envs.snake.rules import State
from tests.envs.snake import policies as snake_policies
from tests.envs.snake.oracle import (
    CLASSIC,
    LEFT,
    MODERN,
    STEPS,
    UP,
    Cell,
    Game,
    neighbours,
    parse,
    reachable_cells,
)
from tests.envs.snake.random_bodies import played_game, random_game
from tests.envs.snake.stacked_boards import stack_states

BOARD = Board(6, 7)
RULES = {"classic": (rules.CLASSIC, CLASSIC), "modern": (rules.MODERN, MODERN)}

# The slow players: from a game to a heading


def headings(game: Game) -> list[int]:
    """Forward, left, right."""
    return [game.heading, (game.heading - 1) % 4, (game.heading + 1) % 4]


def target(game: Game, heading: int) -> Cell:
    return neighbours(game.head)[heading]


def safe_headings(game: Game) -> list[int]:
    return [h for h in headings(game) if not game.is_blocked(target(game, h))]


def first_safe(game: Game) -> int:
    return [*safe_headings(game), game.heading][0]


def steps_between(game: Game, goals: set[Cell]) -> dict[Cell, int]:
    """How many steps every cell that need not be crossed by the body is away from a goal."""
    distances, layer = dict.fromkeys(goals, 0), [*goals]
    while layer:
        around = [cell for near in layer for cell in neighbours(near)]
        layer = [c for c in dict.fromkeys(around) if c not in distances and not game.is_blocked(c)]
        distances |= dict.fromkeys(layer, 1 + max(distances.values()))
    return distances


def direct(game: Game) -> int:
    if game.food is None:
        return game.heading
    down, right = game.food[0] - game.head[0], game.food[1] - game.head[1]
    step = (0, int(np.sign(right))) if right else (int(np.sign(down)), 0)
    wish = next(heading for heading, other in STEPS.items() if other == step)
    return game.heading if (wish - game.heading) % 4 == 2 else wish


def food_ways(game: Game) -> list[int]:
    """The headings of the shortest ways to food."""
    if game.food is None:
        return []
    far = steps_between(game, game.food_cells)
    ways = {h: far[target(game, h)] for h in safe_headings(game) if target(game, h) in far}
    return [h for h, steps in ways.items() if steps == min(ways.values())]


def shortest(game: Game) -> int:
    return [*food_ways(game), first_safe(game)][0]


def next_game(game: Game, heading: int) -> Game:
    """The game after a safe move; where the food is by then does not matter."""
    cell = target(game, heading)
    body = [cell, *(game.body if cell in game.food_cells else game.body[:-1])]
    return Game(game.rows, game.cols, body, heading, None, game.rules, obstacles=game.obstacles)


def worth(game: Game, heading: int) -> tuple[bool, int]:
    """Whether a move fills the board or leaves a way to the tail, and how long that is or else
    how much room."""
    after = next_game(game, heading)
    far = steps_between(after, {after.tail})
    ways = [far[c] for c in neighbours(after.head) if not after.is_blocked(c) and c in far]
    if ways or len(after.body) + len(after.obstacles) == after.size:
        return True, min(ways, default=0)
    room = reachable_cells(game.rows, game.cols, after.head, after.deadly_cells())
    return False, len(room) - 1  # the head is one of them


def lookahead(game: Game) -> int:
    eager = [h for h in food_ways(game) if worth(game, h)[0]]
    return [*eager, max(safe_headings(game), key=lambda h: worth(game, h), default=game.heading)][0]


def tour(game: Game) -> list[Cell]:
    """The cells of the tour from behind the tail to the tail, the way round that the body lies."""
    successors = snake_policies.cycle(game.rows, game.cols)
    cells = [successors[game.tail]]
    while cells[-1] != game.tail:
        cells.append(successors[cells[-1]])
    if cells.index(game.body[1]) > cells.index(game.head):
        cells = [*cells[-2::-1], game.tail]
    return cells


def hamiltonian(game: Game) -> int:
    cells = tour(game)
    next_cell = cells[cells.index(game.head) + 1]
    return [*(h for h in safe_headings(game) if target(game, h) == next_cell), first_safe(game)][0]


def shortcuts(game: Game) -> int:
    cells = tour(game)
    here = cells.index(game.head)
    ahead = cells[here + 1 : game.size - 1 - GROWTH]
    if food := game.food_cells & {*cells[here:]}:
        ahead = [c for c in ahead if cells.index(c) <= min(map(cells.index, food))]
    if 2 * len(game.body) >= game.size or not ahead:
        ahead = cells[here + 1 : here + 2]
    near = [h for h in safe_headings(game) if target(game, h) in ahead]
    return max(near, key=lambda h: cells.index(target(game, h)), default=first_safe(game))


SLOW = {
    "direct": direct,
    "shortest": shortest,
    "lookahead": lookahead,
    "hamiltonian": hamiltonian,
    "shortcuts": shortcuts,
}


def games(which: str, count: int = 120) -> list[Game]:
    """Games at random points: some played, some with a body of any shape, some nearly full."""
    rng = random.Random(which)
    game_rules = RULES[which][1]
    make = lambda: rng.choice((played_game, random_game))(BOARD.rows, BOARD.cols, game_rules, rng)
    cases = [make() for _ in range(count)]
    for game in cases[: count // 2]:  # these lie along the tour
        path = list(snake_policies.cycle(BOARD.rows, BOARD.cols))[:: rng.choice((1, -1))]
        length, begin = rng.randint(3, game.size), rng.randrange(game.size)
        game.body = (path + path)[begin : begin + length]
        game.heading = neighbours(game.body[1]).index(game.head)
        free = game.free_cells()
        game.food = rng.choice(free) if free else None
    return cases


def player_headings(player: Player, which: str, states: State, seed: int = 0) -> np.ndarray:
    """The headings of one player in many games."""
    keys = jax.random.split(jax.random.key(seed), len(states.head))
    play = lambda state, key: player(BOARD, RULES[which][0], state, key)
    return np.asarray(jax.jit(jax.vmap(play))(states, keys))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("which", ["modern", "classic"])
def test_every_move_is_that_of_a_slow_player(which: str):
    cases = games(which)
    states = stack_states(cases)
    for name, slow in SLOW.items():
        expected = [slow(game) for game in cases]
        assert len(set(expected)) == 4
        got = player_headings(PLAYERS[name], which, states)
        wrong = [(game, h) for game, h, e in zip(cases, got, expected, strict=True) if h != e]
        assert not wrong, f"{name}: {len(wrong)} of {len(cases)}, such as {wrong[0]}"


@pytest.mark.slow
def test_players_go_around_obstacles_to_any_food():
    rng = random.Random(0)
    board = (BOARD.rows, BOARD.cols, MODERN, rng)
    blocked = [random_game(*board, obstacles=rng.randint(1, 5), pieces=3) for _ in range(120)]
    states = stack_states(blocked)
    for name in able_players(BOARD, obstacles=1)[2:]:  # after those that play by chance
        expected = [SLOW[name](game) for game in blocked]
        np.testing.assert_array_equal(player_headings(PLAYERS[name], "modern", states), expected)
    open_boards = [game for game in games("modern") if game.free_cells()]
    for game in open_boards:
        free = game.free_cells()
        game.pieces = set(rng.sample(free, min(3, len(free))))
        game.food = game.nearest_piece()
    states = stack_states(open_boards)
    got = player_headings(PLAYERS["shortcuts"], "modern", states)
    np.testing.assert_array_equal(got, [shortcuts(game) for game in open_boards])


def test_tours_are_refused_where_obstacles_lie_on_them():
    state = stack_states([parse("cba..*\n.#....\n......\n......", heading=LEFT)])
    assert able_players(Board(4, 6), obstacles=1) == [*PLAYERS][:5]
    with pytest.raises(ValueError, match="obstacles lie on the tour: let another player play"):
        PLAYERS["hamiltonian"](
            Board(4, 6), rules.MODERN, jax.tree.map(lambda x: x[0], state), jax.random.key(0)
        )


def test_the_meal_that_fills_the_board_is_eaten_although_the_tail_is_lost():
    game = parse(
        """
        *axut
        cbwvs
        dijqr
        ehkpo
        fglmn
        """,
        heading=UP,
        rules=MODERN,
    )
    state = jax.tree.map(lambda x: x[0], stack_states([game]))
    player = lambda state, key: PLAYERS["lookahead"](Board(5, 5), rules.MODERN, state, key)
    assert jax.jit(player)(state, jax.random.key(0)) == LEFT == lookahead(game)


@pytest.mark.parametrize("name", ["random", "random_safe"])
def test_random_players_are_fair(name: str):
    cases = [game for game in games("modern") if safe_headings(game)][::30]
    repeated = [game for game in cases for _ in range(600)]
    got = player_headings(PLAYERS[name], "modern", stack_states(repeated)).reshape(len(cases), 600)
    for game, choices in zip(cases, got.tolist(), strict=True):
        allowed = headings(game) if name == "random" else safe_headings(game)
        assert sorted(Counter(choices)) == sorted(allowed)
        expected = 600 / len(allowed)
        assert all(abs(times - expected) < 5 * expected**0.5 for times in Counter(choices).values())


def test_actions_of_either_kind_take_the_heading_that_was_meant():
    body = [(2, 3), (2, 2), (2, 1)]
    state = jax.tree.map(lambda x: x[0], stack_states([Game(6, 7, body, 1, None)]))
    for env in (Snake(6, 7, actions="relative"), Snake(6, 7, actions="absolute")):
        actions = [action_for(env, state, wish) for wish in jnp.arange(4)]
        final_headings = [int(rules.turn(state, a, env.actions == "relative")) for a in actions]
        assert final_headings == [0, 1, 2, 1]  # up, right, down, and no way back


# Whole games


def play(board: Board, player: Player, count: int, patience: int) -> tuple[State, np.ndarray]:
    """The last states `[N]` under modern rules, and who died; who fills the board stops there."""

    def game(key: jax.Array) -> tuple[State, jax.Array]:
        start_key, key = jax.random.split(key)
        state = rules.start(board, rules.MODERN, jax.random.bits(start_key, (2,)))

        def step(carry):
            state, _, key = carry
            word_key, act_key, key = jax.random.split(key, 3)
            heading = player(board, rules.MODERN, state, act_key)
            word = jax.random.bits(word_key)
            state, event = rules.move(board, rules.MODERN, state, heading, word)
            return state, event.died, key

        def goes_on(carry):
            state, died, _ = carry
            return ~died & (state.length < board.num_cells) & (state.hunger < patience)

        return jax.lax.while_loop(goes_on, step, (state, jnp.bool_(False), key))[:2]

    states, died = jax.jit(jax.vmap(game))(jax.random.split(jax.random.key(1), count))
    return states, np.asarray(died)


def lap_steps(board: Board) -> np.ndarray:
    """Mean and variance of the steps in which a pure follower of the tour fills the board.

    The f free cells lie ahead of the head one after the other: a meal is a uniform 1 to f away.
    """
    free = np.arange(1, board.num_cells - rules.START_LENGTH + 1)
    return np.array([np.sum((free + 1) / 2), np.sum((free**2 - 1) / 12)])


def test_following_the_tour_fills_the_board_in_the_time_it_takes():
    board = Board(5, 4)
    states, died = play(board, PLAYERS["hamiltonian"], 400, patience=board.num_cells)
    assert not died.any()
    assert (states.length == board.num_cells).all()
    mean, variance = lap_steps(board)
    assert abs(np.mean(states.time) - mean) < 4 * (variance / 400) ** 0.5


@pytest.mark.slow
def test_leaving_out_cells_fills_the_board_sooner_and_never_kills():
    board = Board(6, 6)
    states, died = play(board, PLAYERS["shortcuts"], 200, patience=board.num_cells)
    assert not died.any()
    assert (states.length == board.num_cells).all()
    assert np.mean(states.time) < 0.8 * lap_steps(board)[0]


@pytest.mark.slow
def test_looking_ahead_never_dies_and_eats_more():
    board = Board(5, 5)
    results = [play(board, PLAYERS[name], 40, patience=60) for name in ("shortest", "lookahead")]
    (hasty, hasty_died), (wary, wary_died) = results
    assert not wary_died.any()
    assert hasty_died.mean() > 0.5
    assert np.mean(wary.length) > 1.5 * np.mean(hasty.length)


def test_a_board_of_odd_sides_has_no_tour_to_follow():
    assert set(PLAYERS) - set(able_players(Board(5, 5))) == {"hamiltonian", "shortcuts"}
    assert able_players(Board(5, 6)) == list(PLAYERS)
    game = Game(5, 5, [(2, 3), (2, 2), (2, 1)], 1, None)
    state = jax.tree.map(lambda x: x[0], stack_states([game]))
    player = lambda state: PLAYERS["shortcuts"](Board(5, 5), rules.MODERN, state, jax.random.key(0))
    with pytest.raises(ValueError, match=r"5×5 board has no closed tour.*expect an even side"):
        jax.eval_shape(player, state)
