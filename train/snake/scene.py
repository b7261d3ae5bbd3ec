"""Games of Snake to be looked at step by step, in a report and live."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard, drawing, frames, rules
from envs.snake.env import Params, Snake
from envs.snake.feature_names import NAMES, SIDES, WAYS
from train.host import episodes
from train.host.episodes import Bars, Episode, Recording, Scene
from train.host.live import Edit, Live
from train.host.program import Run, Wanted
from train.snake.training import make_player

SCRIPTS = Path(drawing.__file__).with_suffix(".js"), Path(__file__).with_name("snake.js")


def show(run: Run, wanted: Wanted) -> Scene:
    """Games that the policy plays as it is evaluated."""
    env, params, player = make_player(run.config)
    agent = run.agents[wanted.member]
    played = episodes.record(env, params, player, agent, wanted.key, wanted.count, wanted.limit)
    return Scene(SCRIPTS, [episode(env, game) for game in played], constants(env))


def live(run: Run, member: int) -> Live:
    """A game whose food can be moved, and which a person can take over."""
    env, params, player = make_player(run.config)
    return Live(
        *(env, params, player, run.agents[member]),
        look=lambda game: looks(env, game),
        scripts=SCRIPTS,
        constants=lambda state: constants(env),
        picture=lambda state: np.asarray(drawing.draw(env.board, state)),
        ending=ending,
        steer=lambda state, action, direction: steered(env, state, direction),
        edits={"food": Edit("move the food", lambda *given: with_food(env, *given))},
    )


def constants(env: Snake) -> dict[str, int]:
    return {"rows": env.board.rows, "cols": env.board.cols}


def episode(env: Snake, game: Recording) -> Episode:
    """One game, as the report shows it."""
    food, length = (int(game.outcome[name]) for name in ("score", "length"))
    ended = ending(game.outcome) if game.terminated or game.truncated else "goes on"
    shown, bars = looks(env, game)
    return Episode(
        title=f"{food} food in {length:,} steps, {ended}",
        frames=shown,
        lines=episodes.lines(game),
        bars=bars,
    )


def looks(env: Snake, game: Recording) -> tuple[dict[str, np.ndarray], dict[str, Bars]]:
    """What is drawn of a game, and what the agent makes of it."""
    bars = episodes.bars(game, WAYS if env.actions == "relative" else SIDES)
    if env.observation in NAMES:
        bars["what it sees"] = episodes.named(game, NAMES[env.observation])
    return frames.of_game(env.board, env.rules, game.state), bars


def ending(outcome: Mapping[str, Any]) -> str:
    """How a game ended."""
    causes = {
        "won": "board full",
        "starved": "starved",
        "entrapped": "no way out",
        "death_wall": "into the wall",
        "death_self": "into itself",
    }
    return next((text for name, text in causes.items() if outcome[name]), "time up")


def steered(env: Snake, state: rules.State, direction: int) -> jnp.ndarray:
    """The action that goes up, right, down or left; backwards is straight on."""
    turn = (direction - int(state.heading)) % 4
    if env.actions == "absolute":
        return jnp.int32(int(state.heading) if turn == 2 else direction)
    forward, right, left = 0, 2, 1
    return jnp.int32({0: forward, 1: right, 2: forward, 3: left}[turn])


def with_food(
    env: Snake, state: rules.State, params: Params, place: tuple[float, float]
) -> rules.State:
    """The food in the cell of a place (x, y). Raises ValueError off the board, and on the snake."""
    cell = frames.cell_at(env.board, place)
    if bool(bitboard.contains(state.occupied, cell)):
        raise ValueError("the snake lies there; choose an empty cell")
    return replace(state, food=cell)
