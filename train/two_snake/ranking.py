"""`python -m train.two_snake tournament A B ...`: trained snakes against each other, ranked.

Strengths are those of Bradley and Terry (1952), by the iteration of Hunter (2004), on the scale of
Elo: 400 points are ten to one. A draw is half a win for both.

Axes: P players.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import jax
import numpy as np
import tyro
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from envs.two_snake.env import RIVAL
from jaxrl.checks import Seed
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.errors import UsageError
from train.host.numbers import quantity
from train.host.plain_config import check_options
from train.host.scoring import scores
from train.host.scoring.matches import CompiledMatch
from train.host.training import Games
from train.two_snake import tournament as arena
from train.two_snake import trained
from train.two_snake.config import AnyConfig
from train.two_snake.tournament import Sides
from train.two_snake.trained import Player

SCALE = 400 / np.log(10)
MEAN = 1000.0
"""Elo of the average player."""
RESAMPLES = 1000
ROUNDS = 2000
"""Rounds of the iteration; it converges in far fewer."""


@dataclass(frozen=True)
class Options:
    """Every player meets every other one, half of the games from each side of the board.

    Each seed of a run is a player. Networks may differ; board, number of snakes, observation, time
    limit and the meals that win must be the same.
    """

    players: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = ()
    """Run directories, policy files, or names that `python -m train.policies list` shows."""
    games: Games = 500
    """Games of each pair, rounded up to an even number."""
    best: bool = False
    """The policies of runs that were best while training, instead of the newest."""
    key: Seed = 5
    """Root of the random numbers."""


def main(arguments: list[str]) -> int:
    def hold(arguments: list[str]) -> None:
        options = parse_flags("python -m train.two_snake tournament", Options, arguments)
        check_options(options)
        players = load_players(options)
        results = play_matches(players, options.games, jax.random.key(options.key))
        Console().print(table([player.name for player in players], results))

    return command(hold, arguments)


def load_players(options: Options) -> list[Player]:
    """The players. Raises UsageError for fewer than two, and for those that cannot meet."""
    players = [x for name in options.players for x in trained.load_all(name, options.best)]
    if len(players) < 2:
        raise UsageError(
            f"got {quantity(len(players), 'players')}; give at least two, or a run of several seeds"
        )
    first = _shared_settings(players[0].config)
    for player in players[1:]:
        if (other := _shared_settings(player.config)) != first:
            differences = [k for k in first if first[k] != other[k]]
            raise UsageError(
                f"{player.name} has another {differences[0]} than {players[0].name} "
                f"({other[differences[0]]}, not {first[differences[0]]}): they cannot meet"
            )
    names = [player.name for player in players]
    if len(set(names)) < len(names):
        return [x._replace(name=f"{i + 1}. {x.name}") for i, x in enumerate(players)]
    return players


def _shared_settings(config: AnyConfig) -> dict[str, Any]:
    """What two players must agree in."""
    game = config.env
    return {
        "board": (game.rows, game.cols),
        "number of snakes": game.snakes,
        "observation": game.observation,
        "target": config.curriculum.final_target,
        "time limit": game.max_steps_in_episode,
    }


def play_matches(
    players: Sequence[Player], games: int, key: jax.Array
) -> dict[tuple[int, int], Any]:
    """The points of the first player of each pair, `[N]`: 1 for a win, a half for a draw, 0.

    Pairs of the same two configurations, such as the seeds of runs, share what is compiled.
    """
    results, pairs = {}, list(itertools.combinations(range(len(players)), 2))
    compiled: dict[tuple[AnyConfig, AnyConfig], CompiledMatch] = {}
    for (i, j), pair_key in zip(pairs, jax.random.split(key, len(pairs)), strict=True):
        one, other = players[i], players[j]
        run = replace(one.config.run, evaluation_games=games, evaluation_greedy=True)
        config = replace(one.config, run=run)
        both = one.config, other.config
        if both not in compiled:
            compiled[both] = arena.compile_games(config, one.learned, other.config, other.learned)
        match = compiled[both]
        sides, names = Sides(one.learned, other.learned), (one.name, other.name)
        episodes = arena.matches(config, match, sides, pair_key, [RIVAL], names)[RIVAL]
        outcome = scores.scored_games(episodes).outcome
        if not outcome["won"].size:
            raise UsageError(
                f"{' against '.join(names)}: no game was finished within {match.match.limit:,} "
                "steps, so neither can be ranked: leave one of them out"
            )
        results[i, j] = outcome["won"] + outcome["draw"] / 2
    return results


def elo(points: np.ndarray, games: np.ndarray) -> np.ndarray:
    """Strengths `[P]` from the points of each player against each other, and their games `[P, P]`.

    Each pair that met has drawn one more game, or a player that won all would have no limit.
    """
    return likeliest(points + (games > 0) / 2, games + (games > 0))


def likeliest(points: np.ndarray, games: np.ndarray) -> np.ndarray:
    """Strengths `[..., P]` with which points `[..., P, P]` from so many games are likeliest."""
    won = points.sum(-1)
    strength = np.ones_like(won)
    for _ in range(ROUNDS):
        strength = won / (games / (strength[..., None] + strength[..., None, :])).sum(-1)
        strength /= np.exp(np.log(strength).mean(-1, keepdims=True))
    return MEAN + SCALE * np.log(strength)


def sum_points(
    results: dict[tuple[int, int], np.ndarray], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """`(points, games)` `[P, P]` of the results of pairs."""
    points, games = np.zeros((2, count, count))
    for (i, j), pair_points in results.items():
        points[i, j], points[j, i] = pair_points.sum(), len(pair_points) - pair_points.sum()
        games[i, j] = games[j, i] = len(pair_points)
    return points, games


def intervals(results: dict[tuple[int, int], np.ndarray], count: int) -> np.ndarray:
    """The 95 % interval of each strength `[2, P]`, by the Bayesian bootstrap (Rubin 1981).

    Games are weighted at random, the drawn one that `elo` adds among them: so whoever has won all
    has an interval, too, which is wider the fewer games there were.
    """
    rng = np.random.default_rng(0)

    def reweigh(points: np.ndarray) -> np.ndarray:
        points = np.append(points, 0.5)
        return rng.dirichlet(np.ones(len(points))) * len(points) * points

    samples = [
        sum_points({pair: reweigh(x) for pair, x in results.items()}, count)
        for _ in range(RESAMPLES)
    ]
    points, games = (np.stack(x) for x in zip(*samples, strict=True))
    return np.quantile(likeliest(points, games), (0.025, 0.975), axis=0)


def table(names: Sequence[str], results: dict[tuple[int, int], np.ndarray]) -> Table:
    """The players from the strongest on: Elo, its interval, and points against each other."""
    points, games = sum_points(results, len(names))
    strength, (low, high) = elo(points, games), intervals(results, len(names))
    order = [int(k) for k in np.argsort(-strength, kind="stable")]
    ranking_table = Table(
        title="Elo, and points of each against each, per cent", box=box.SIMPLE_HEAD
    )
    names = [escape(name) for name in names]  # of folders: [old] is part of one, and no style
    ranking_table.add_column("player")
    for heading in ("Elo", "95 %", *(names[k] for k in order)):
        ranking_table.add_column(heading, justify="right")
    for i in order:
        row_cells = [f"{100 * points[i, k] / games[i, k]:.1f}" if k != i else "" for k in order]
        interval = f"{low[i]:.0f} to {high[i]:.0f}"
        ranking_table.add_row(names[i], f"{strength[i]:.0f}", interval, *row_cells)
    return ranking_table
