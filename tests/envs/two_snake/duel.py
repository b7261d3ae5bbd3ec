"""Plays the fast game of two snakes and the slow one side by side, with automatic reset.

The slow one decides on the moves, those of the scripted opponents too, and copies only the food
that the fast one draws, once it is found to lie on a free cell.
"""

import random
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import numpy as np

from envs.snake import rules as snake
from envs.two_snake.env import Params, TwoSnake
from tests.envs.snake.oracle import TURNS, Cell
from tests.envs.snake.stacked_boards import unpack
from tests.envs.two_snake import oracle
from tests.envs.two_snake.oracle import Duel, Report

Policy = Callable[[Duel, int, random.Random], int]
DEATHS = {0: "", 1: "wall", 2: "self", 3: "other"}


def reckless(game: Duel, player: int, rng: random.Random) -> int:
    """Mostly to the food, with little regard for what is in the way."""
    chance = rng.random()
    if not game.bodies[player] or chance < 0.1:
        return rng.randrange(3)
    if chance < 0.6 or game.food is None:
        return oracle.greedy(game, player)
    nearness = [oracle.manhattan(cell, game.food) for cell in oracle.ways(game, player)]
    return nearness.index(min(nearness))


@cache
def compile_env(env: TwoSnake):
    """`begin(seed, num_games, params)` and `advance(seed, step, state, action, params)`, jitted.

    They make their keys themselves: with keys among its arguments, a call takes ten times as long.
    """

    def orders(state):
        """int32 `[P, rows, cols]` by following all bodies."""
        return jax.vmap(lambda body: snake.order(env.board, body))(state.snakes)

    @partial(jax.jit, static_argnames="num_games")
    def begin(seed, num_games, params):
        keys = jax.random.split(jax.random.key(seed), num_games)
        obs, state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
        return obs, state, jax.vmap(orders)(state)

    @jax.jit
    def advance(seed, step, state, action, params):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), step), len(action))
        words = jax.vmap(lambda key: env.chances(key)[0])(jax.random.clone(keys))
        obs, state, *outcome = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
            keys, state, action, params
        )
        return obs, state, jax.vmap(orders)(state), words, *outcome

    return begin, advance


class Match:
    """`num_games` fast games and their slow twins."""

    def __init__(self, env: TwoSnake, params: Params, num_games: int, seed: int):
        self.env, self.params, self.seed = env, params, seed
        self.rng = random.Random(seed)
        self.tally = Counter()
        begin, self.advance = compile_env(env)
        obs, self.state, orders = begin(seed, num_games, params)
        self.host_state = jax.device_get(self.state)
        self.games = [self.new_game(i) for i in range(num_games)]
        self.check_states(orders)
        self.check_observations(obs, range(num_games))

    def play(self, num_steps: int, policy: Policy = reckless, look_every: int = 10) -> Counter:
        """Observations are compared every `look_every` steps, and on both sides of a reset."""
        for step in range(num_steps):
            mine = [policy(game, 0, self.rng) for game in self.games]
            others = range(1, self.env.snakes)
            rivals = [[policy(game, p, self.rng) for p in others] for game in self.games]
            actions = np.array(mine)
            if self.env.rival:
                actions = np.concatenate([actions[:, None], rivals], axis=1)
            obs, state, orders, words, reward, terminated, truncated, info = self.advance(
                self.seed, step, self.state, actions.astype(np.int32), self.params
            )
            obs, orders, words, info = jax.device_get((obs, orders, words, info))
            self.state, before, self.host_state = state, self.host_state, jax.device_get(state)
            is_over = np.asarray(terminated | truncated)
            reports = []
            for i, game in enumerate(self.games):
                script = self.env.opponents[before.opponent[i]]
                drawn = words["turn"][i] if "turn" in words else np.zeros(3, np.uint32)
                turns = [mine[i]]
                for p, word in zip(others, np.ravel(drawn).tolist(), strict=False):
                    turns.append(other_action(game, p, script, rivals[i][p - 1], word))
                food = self.food_after(info, bool(is_over[i]), i, turns)
                reports.append(game.step(turns, food, script == "static"))
                if any(reports[-1].ate) and not (is_over[i] and food is None):
                    assert food in game.empty_cells() or not (food or game.empty_cells()), food
                self.count(game, reports[-1], turns)
            self.check_reports(reports, np.asarray(reward), terminated, truncated, info["outcome"])
            looked_at = np.flatnonzero(is_over | (step % look_every == 0))
            self.check_observations(info["final_observation"], looked_at)
            self.games = [self.new_game(i) if is_over[i] else g for i, g in enumerate(self.games)]
            self.check_states(orders)
            self.check_observations(obs, looked_at)
        return self.tally

    def new_game(self, i: int) -> Duel:
        """The slow twin of a game that begins."""
        board, state = self.env.board, self.host_state
        side, food = int(state.side[i]), self.cell(state.food[i])
        snakes = self.env.snakes
        bodies = oracle.first_cells(board.rows, board.cols, side, snakes)
        params = self.params
        game = Duel(
            board.rows,
            board.cols,
            bodies,
            [(1, 3, 1, 3)[(p + side) % snakes] for p in range(snakes)],
            food,
            int(params.target),
            int(params.max_steps_in_episode),
            self.env.last_standing_wins,
            {name: getattr(params.rewards, name) for name in oracle.REWARDS},
        )
        assert food in game.empty_cells()
        self.tally[f"side {side}"] += 1
        self.tally[f"script {self.env.opponents[state.opponent[i]]}"] += 1
        return game

    def cell(self, index) -> Cell | None:
        """The fast game counts a guard column behind the last; -1 is nowhere."""
        return None if index < 0 else divmod(int(index), self.env.board.cols + 1)

    def food_after(self, info, is_over: bool, i: int, turns: list[int]) -> Cell | None:
        """Where the food lay after the step; if the game is over, as the survivor last saw it."""
        if not is_over:
            return self.cell(self.host_state.food[i])
        game = self.games[i]
        for player, view in enumerate(self.views(info["final_observation"])):
            if not view[i].any():
                continue
            if self.env.observation == "planes":
                food_cells = np.argwhere(view[i][..., 4])
                return tuple(food_cells[0].tolist()) if len(food_cells) else None
            row, col = oracle.ways(game, player)[turns[player]]
            if self.env.observation == "near":
                farthest = max(game.rows, game.cols) - 1
                ahead, right = (round(float(x) * farthest) for x in view[i][22:24])
                heading = game.headings[player] + list(TURNS.values())[turns[player]]
                return oracle.cell_from((row, col), heading % 4, ahead, right)
            right, down = view[i][3] * game.cols, view[i][4] * game.rows
            return (row + round(float(down)), col + round(float(right)))
        return None

    def views(self, obs) -> list[np.ndarray]:
        """The observations of the learner, and where there is a rival, of all others."""
        if not self.env.rival:
            return [obs]
        if self.env.snakes == 2:
            return [obs["own"], obs["other"]]
        return [obs["own"], *np.moveaxis(obs["other"], 1, 0)]

    def check_states(self, orders) -> None:
        """Bodies by their order, and by what they cover; and every number of the state."""
        board, state, games = self.env.board, self.host_state, self.games
        snakes = self.env.snakes
        expected = np.zeros((len(games), snakes, board.rows, board.cols), np.int32)
        for i, game in enumerate(games):
            for player, body in enumerate(game.bodies):
                for age, cell in enumerate(body):
                    expected[i, player][cell] = len(body) - age
        self.assert_same("order", orders, expected)
        for player in range(snakes):
            words = [word[:, player] for word in state.snakes.occupied]
            covered = unpack(words, board.rows, board.cols)
            self.assert_same("occupied", covered, expected[:, player] > 0)
        lengths = [[len(body) for body in game.bodies] for game in games]
        self.assert_same("length", state.snakes.length, lengths)
        causes = [[DEATHS[int(cause)] for cause in pair] for pair in state.cause]
        assert causes == [game.causes for game in games]
        self.assert_same("score", state.score, [game.scores for game in games])
        self.assert_same("hunger", state.hunger, [game.hungers for game in games])
        self.assert_same("time", state.time, [game.time for game in games])
        assert [self.cell(food) for food in state.food] == [game.food for game in games]

    def check_reports(self, reports: list[Report], reward, terminated, truncated, outcome) -> None:
        games = self.games
        self.assert_same("terminated", terminated, [report.terminated for report in reports])
        self.assert_same("truncated", truncated, [report.truncated for report in reports])
        self.assert_same("reward", reward, [report.reward for report in reports], tolerance=1e-4)
        expected = {
            "won": [report.won[0] for report in reports],
            "lost": [any(report.won[1:]) for report in reports],
            "draw": [report.draw for report in reports],
            "score": [game.scores[0] for game in games],
            "opponent_score": [max(game.scores[1:]) for game in games],
            "opponent_died": [all(game.causes[1:]) for game in games],
            **{f"death_{c}": [g.causes[0] == c for g in games] for c in ("wall", "self", "other")},
        }
        assert set(outcome) == {*expected, "opponent"}
        for name, values in expected.items():
            self.assert_same(name, outcome[name], values)

    def check_observations(self, obs, indices) -> None:
        """Compares the observations of the games `indices`."""
        see = oracle.OBSERVATIONS[self.env.observation]
        for player, view in enumerate(self.views(jax.device_get(obs))):
            for i in indices:
                expected = np.array(see(self.games[i], player))
                wrong = np.argwhere(np.abs(view[i] - expected) > 1e-5)
                if len(wrong):
                    at = tuple(wrong[0])
                    raise AssertionError(
                        f"player {player} sees {view[i][at]} at {at}, expected {expected[at]}:\n"
                        f"{oracle.draw(self.games[i])}\n{self.games[i]}"
                    )

    def assert_same(self, what: str, got: Any, expected: Any, tolerance: float = 0.0) -> None:
        """Equal in every game, or the first that differs is shown."""
        got, expected = np.asarray(got), np.asarray(expected)
        assert got.shape == expected.shape, f"{what}: {got.shape}, expected {expected.shape}"
        differs = np.abs(got.astype(float) - expected.astype(float)) > tolerance
        wrong = np.flatnonzero(differs.reshape(len(self.games), -1).any(axis=1))
        if wrong.size:
            i = int(wrong[0])
            raise AssertionError(
                f"{what} differs in {wrong.size} of {len(self.games)} games; game {i}: got\n"
                f"{got[i]}\nexpected\n{expected[i]}\n"
                f"{oracle.draw(self.games[i])}\n{self.games[i]}"
            )

    def count(self, game: Duel, report: Report, turns: list[int]) -> None:
        """What happened, and how often."""
        tally, deaths = self.tally, report.deaths
        tally["meals"] += sum(report.ate)
        tally["games"] += report.terminated or report.truncated
        tally["won"] += report.won[0]
        tally["lost"] += any(report.won[1:])
        tally["both die at once"] += all(deaths)
        tally["time up"] += report.truncated and not report.terminated
        tally["several die at once"] += sum(map(bool, deaths)) > 1
        tally["wins after the other's death"] += any(report.won) and any(game.causes)
        tally["nobody is left"] += report.terminated and report.draw and not all(deaths)
        for player, death in enumerate(deaths):
            tally[f"{player} dies of {death}"] += bool(death)


def other_action(game: Duel, player: int, script: str, rival: int, word: int) -> int:
    """The action of another snake than the learner's."""
    if script in ("rival", "guest") or not game.bodies[player]:
        return rival
    if script == "random":
        return oracle.random_way(game, player, word)
    return {"static": lambda *_: 0, "greedy": oracle.greedy, "defensive": oracle.defensive}[script](
        game, player
    )
