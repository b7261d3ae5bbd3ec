"""Games of two snakes to be looked at step by step, in a report."""

from itertools import chain
from pathlib import Path

import jax

from envs.snake import drawing
from envs.snake.feature_names import WAYS
from envs.two_snake import frames
from envs.two_snake.env import RIVAL
from envs.two_snake.feature_names import FEATURES
from train.host import episodes, runs
from train.host.episodes import Episode, Recording, Scene
from train.host.program import Run, Wanted
from train.two_snake import tournament
from train.two_snake.config import Config
from train.two_snake.tournament import Arena, Sides
from train.two_snake.training import parameters

SCRIPTS = Path(drawing.__file__).with_suffix(".js"), Path(__file__).with_name("two_snake.js")
OPPONENTS = ("greedy", "defensive", RIVAL)
"""Opponents whose games are shown, in turn."""


def show(run: Run, wanted: Wanted) -> Scene:
    """Games against two scripts and itself, each from a side of the board by chance."""
    config = runs.with_evaluation(run.config, evaluation_greedy=True)
    learned = parameters(run.agents[wanted.member])
    played = [
        _against(config, name, Sides(learned, learned), wanted, key)
        for name, key in zip(OPPONENTS, jax.random.split(wanted.key, len(OPPONENTS)), strict=True)
    ]
    in_turn = list(chain.from_iterable(zip(*played, strict=True)))
    board = {"rows": config.env.rows, "cols": config.env.cols}
    return Scene(SCRIPTS, in_turn[: wanted.count], board)


def _against(
    config: Config, opponent: str, sides: Sides, wanted: Wanted, key: jax.Array
) -> list[Episode]:
    """A share of the wanted games."""
    env, player = tournament.make_env(config), tournament.make_agent(config)
    params = tournament.params_of(config, opponent, None)
    count = -(-wanted.count // len(OPPONENTS))
    played = episodes.record(env, params, player, sides, key, count, wanted.limit)
    return [episode(env, game, opponent) for game in played]


def episode(env: Arena, game: Recording, opponent: str) -> Episode:
    """One game, as the report shows it; blue is the trained snake."""
    by_itself = opponent == RIVAL
    own = game._replace(action=game.action[:, 0], obs=game.obs["own"])
    lines, bars = episodes.lines(own), episodes.bars(own, WAYS)
    if by_itself:
        explained = {name: game.explained[f"other_{name}"] for name in ("value", "probabilities")}
        other = game._replace(action=game.action[:, 1], explained=explained)
        lines = {"value": lines.pop("value"), "value, red": episodes.lines(other)["value"]} | lines
        bars["probability, red"] = episodes.bars(other, WAYS)["probability"]
    if env.observation == "features":
        bars["what it sees"] = episodes.named(own, FEATURES)
    food, theirs = (int(game.outcome[name]) for name in ("score", "opponent_score"))
    against = "itself" if by_itself else opponent
    return Episode(
        title=f"{ending(game)} against {against}, {food} : {theirs} in {game.steps:,} steps",
        frames=frames.of_game(env.board, game.state),
        lines=lines,
        bars=bars,
    )


def ending(game: Recording) -> str:
    """How a game ended for the trained snake."""
    if game.terminated:
        return next(name for name in ("won", "lost", "draw") if game.outcome[name])
    return "time up" if game.truncated else "goes on"
