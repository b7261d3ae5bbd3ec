"""Games of Snake to be looked at step by step, in a report."""

from pathlib import Path

from envs.snake import drawing, frames
from envs.snake.env import Snake
from envs.snake.feature_names import NAMES, SIDES, WAYS
from train.host import episodes
from train.host.episodes import Episode, Recording, Scene
from train.host.program import Run, Wanted
from train.snake.training import make_player

SCRIPTS = Path(drawing.__file__).with_suffix(".js"), Path(__file__).with_name("snake.js")


def show(run: Run, wanted: Wanted) -> Scene:
    """Games that the policy plays as it is evaluated."""
    env, params, player = make_player(run.config)
    agent = run.agents[wanted.member]
    played = episodes.record(env, params, player, agent, wanted.key, wanted.count, wanted.limit)
    board = {"rows": env.board.rows, "cols": env.board.cols}
    return Scene(SCRIPTS, [episode(env, game) for game in played], board)


def episode(env: Snake, game: Recording) -> Episode:
    """One game, as the report shows it."""
    bars = episodes.bars(game, WAYS if env.actions == "relative" else SIDES)
    if env.observation in NAMES:
        bars["what it sees"] = episodes.named(game, NAMES[env.observation])
    food, length = (int(game.outcome[name]) for name in ("score", "length"))
    return Episode(
        title=f"{food} food in {length:,} steps, {ending(game)}",
        frames=frames.of_game(env.board, env.rules, game.state),
        lines=episodes.lines(game),
        bars=bars,
    )


def ending(game: Recording) -> str:
    """How a game ended."""
    if not (game.terminated or game.truncated):
        return "goes on"
    causes = {
        "won": "board full",
        "starved": "starved",
        "entrapped": "no way out",
        "death_wall": "into the wall",
        "death_self": "into itself",
    }
    return next((text for name, text in causes.items() if game.outcome[name]), "time up")
