"""`python -m train.snake.players`: scores of rule-based Snake players, measured as agents are.

Prints a table, and with `--out` writes a JSON file that holds for each player what `eval.json`
holds for each seed of a run.
"""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import jax
from rich import box
from rich.console import Console
from rich.table import Table

from envs.snake.env import Params, Snake
from envs.snake.players import PLAYERS, Player, able_players, action_for
from envs.snake.rules import State
from jaxrl.checks import Count, CountOrZero, Seed
from jaxrl.types import Agent
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.errors import UsageError
from train.host.files.whole_files import (
    finite_or_null,
    refuse_existing,
    refuse_no_file,
    write_whole,
)
from train.host.machine.progress import clock, plain_console
from train.host.numbers import digits_text, quantity
from train.host.plain_config import check_options
from train.host.scoring import games, scores
from train.host.scoring.scores import number_text
from train.host.training import Games
from train.snake.config import Side, layout_text

BOARD = ("rows", "cols", "obstacles", "foods")
"""Fields of a game that its results name."""
ENDINGS = ("death_wall", "death_self", "entrapped", "starved", "truncated")
"""The ways in which games end that are not won."""


@dataclass(frozen=True)
class Options:
    """Scores rule-based players and prints a table."""

    rows: Side = 10
    """Height of the board, 4 to 32 cells."""
    cols: Side = 10
    """Width of the board, 4 to 32 cells."""
    rules: Literal["classic", "modern"] = "modern"
    """classic: the tail kills, no win. modern: follow the tail, win on a full board, starve."""
    actions: Literal["relative", "absolute"] = "relative"
    """relative: forward, left, right. absolute: up, right, down, left."""
    obstacles: CountOrZero = 0
    """Cells closed to the snake, drawn anew for every game."""
    foods: Count = 1
    """Pieces of food on the board at a time."""
    games: Games = 1_000
    """Complete games of each player."""
    max_steps: Count | None = None
    """Steps after which a game is truncated; None: 1,000 in classic, 100,000 in modern games."""
    players: tuple[str, ...] = ()
    """Players to score; envs/snake/players.py names them. Empty: all that can play on the board."""
    key: Seed = 1
    """Root of the random numbers, the same for all players."""
    out: Path | None = None
    """JSON file to write."""
    overwrite: bool = False
    """Replace a file of that name."""


class OpenSnake(Snake):
    """Snake whose observation is the whole state of the game, for rule-based players."""

    def describe(self, state: State, features: Any, params: Params) -> Any:
        return state


def make_agent(env: OpenSnake, player: Player) -> Agent:
    """The player as an agent that does not learn."""

    def act(state: tuple, memory: tuple, obs: State, key: jax.Array):
        heading = player(env.board, env.rules, obs, key)
        return action_for(env, obs, heading), memory, ()

    return Agent(
        init=lambda key, obs: (),
        memory=lambda: (),
        act=act,
        update=lambda state, rollout, key: (state, {}),
    )


def main(arguments: list[str]) -> int:
    def score(arguments: list[str]) -> None:
        options = parse_flags("python -m train.snake.players", Options, arguments)
        env, params = make_game(options)
        content = play_all(env, params, options)
        if options.out:
            write_whole(options.out, json.dumps(finite_or_null(content), indent=1) + "\n")
        Console().print(table(content))

    return command(score, arguments)


def make_game(options: Options) -> tuple[OpenSnake, Params]:
    """The game to play. Raises UsageError for bad options."""
    check_options(options)
    if options.out:
        refuse_no_file(options.out)
        refuse_existing(options.out, options.overwrite)
    try:
        env = OpenSnake(
            options.rows,
            options.cols,
            "features",
            options.rules,
            options.actions,
            obstacles=options.obstacles,
            foods=options.foods,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    names = able_players(env.board, options.obstacles)
    if unknown_players := [name for name in options.players if name not in names]:
        size = f"{options.rows}×{options.cols}{' with obstacles' * (options.obstacles > 0)}"
        raise UsageError(
            f"no player {unknown_players[0]} for {size}; choose among {', '.join(names)}"
        )
    limit = options.max_steps or env.default_params.max_steps_in_episode
    return env, replace(env.default_params, max_steps_in_episode=limit)


def play_all(env: OpenSnake, params: Params, options: Options) -> dict[str, Any]:
    """Plays the games of each player: the settings, and `scores.summaries` by player."""
    by_player, console = {}, plain_console()
    for name in options.players or able_players(env.board, env.obstacles):
        start_time = time.perf_counter()
        by_player[name] = play(env, params, PLAYERS[name], options)
        score, seconds = by_player[name]["score"], time.perf_counter() - start_time
        mean = number_text(score) or "unknown"
        console.print(f"{name}  {quantity(options.games, 'games')}  score {mean}  {clock(seconds)}")
    return {
        "rows": options.rows,
        "cols": options.cols,
        "rules": options.rules,
        "obstacles": options.obstacles,
        "foods": options.foods,
        "max_steps": params.max_steps_in_episode,
        "key": options.key,
        "players": by_player,
    }


def play(env: OpenSnake, params: Params, player: Player, options: Options) -> dict[str, Any]:
    """`scores.summaries` of one player's games, with steps per food and the time they took."""
    limit = params.max_steps_in_episode
    match = games.match_of(env, params, make_agent(env, player), options.games, limit)
    activities = [f"playing games to the end on {env.board.rows}×{env.board.cols}"]
    results = games.play(match, [()], [jax.random.key(options.key)], activities)
    summaries = scores.summaries(results.episodes[0])
    meals = int(scores.scored_games(results.episodes[0]).outcome["score"].sum())
    return {
        **summaries,
        "steps_per_food": summaries["steps"] / meals if meals else None,
        "compile_seconds": results.compile_seconds,
        "seconds": results.seconds,
    }


def table(content: dict[str, Any]) -> Table:
    """Two lines a player, the second with 95 % intervals; `content` is that of `play_all`."""
    size = layout_text(*(content[name] for name in BOARD))
    title = f"Snake {size}, {content['rules']} rules: food eaten, and how games ended"
    # no wider than the 80 columns of a log file
    caption = scores.missing_score_note(content | {"seeds": content["players"].values()})
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("player")
    for heading in ("mean", "median", "max", "steps\na meal", "won\n%"):
        table.add_column(heading, justify="right")
    for ending in ("wall", "self", "trapped", "starved", "cut"):
        table.add_column(f"{ending}\n%", justify="right")
    for name, row in content["players"].items():
        food, wins, pace = row["score"], row["won"], row["steps_per_food"]
        table.add_row(
            name,
            f"{number_text(food)}\n{interval(food, 1)}",
            number_text(food, name="median"),
            number_text(food, name="max"),
            "" if pace is None else digits_text(pace),
            f"{number_text(wins, '.3g', 100)}\n{interval(wins, 100)}",
            *(number_text(row[ending], ".3g", 100) for ending in ENDINGS),
        )
    return table


def interval(value: dict[str, float | None], scale: float) -> str:
    """The interval of a summary as text; empty without one, as for a single game."""
    if "low" not in value:
        return ""
    low, high = (round(scale * (value[end] or 0.0), 2) for end in ("low", "high"))
    return f"{digits_text(low, 3)}–{digits_text(high, 3)}"
