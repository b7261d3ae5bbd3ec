"""Games of Snake to be looked at step by step, in a report and live."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from envs.snake import bitboard, rules
from envs.snake.env import Params, Snake
from envs.snake.feature_names import NAMES, SIDES, WAYS
from envs.snake.pictures import drawing, frames
from envs.snake.players import action_for
from train.host.numbers import quantity
from train.host.program import EpisodeSelection, Run
from train.host.showing import episodes
from train.host.showing.episodes import Bars, Episode, Recording, Scene
from train.host.showing.live import Edit, Live
from train.snake.training import ENDINGS, make_player

SCRIPTS = Path(drawing.__file__).with_suffix(".js"), Path(__file__).with_name("snake.js")


def show(run: Run, selection: EpisodeSelection) -> Scene:
    """Games that the policy plays as it is evaluated."""
    env, params, player = make_player(run.config)
    agent = run.agents[selection.member]
    recordings = episodes.record(
        env, params, player, agent, selection.key, selection.count, selection.limit
    )
    return Scene(SCRIPTS, [episode(env, game) for game in recordings], constants(env))


def live(run: Run, member: int) -> Live:
    """A game whose food can be moved, and which a person can take over."""
    env, params, player = make_player(run.config)
    return Live(
        *(env, params, player, run.agents[member]),
        look=lambda game: frames_and_bars(env, game),
        scripts=SCRIPTS,
        constants=lambda state: constants(env),
        picture=lambda state: np.asarray(drawing.draw(env.board, state)),
        cells=(env.board.rows, env.board.cols),
        ending=ending,
        steer=lambda state, action, direction: action_for(env, state, jnp.int32(direction)),
        edits={"food": Edit("move the food", lambda *arguments: with_food(env, *arguments))},
    )


def constants(env: Snake) -> dict[str, int]:
    return {"rows": env.board.rows, "cols": env.board.cols}


def episode(env: Snake, game: Recording) -> Episode:
    """One game, as the report shows it."""
    food, length = (int(game.outcome[name]) for name in ("score", "length"))
    ending_text = ending(game.outcome) if game.terminated or game.truncated else "goes on"
    frame_arrays, bars = frames_and_bars(env, game)
    return Episode(
        title=f"{food} food in {quantity(length, 'steps')}, {ending_text}",
        frames=frame_arrays,
        lines=episodes.lines(game),
        bars=bars,
    )


def frames_and_bars(env: Snake, game: Recording) -> tuple[dict[str, np.ndarray], dict[str, Bars]]:
    """What is drawn of a game, and what the agent makes of it."""
    bars = episodes.bars(game, WAYS if env.actions == "relative" else SIDES)
    if env.observation in NAMES:
        bars["what it sees"] = sights(env, game)
    return frames.game_arrays(env.board, env.rules, game.state), bars


def sights(env: Snake, game: Recording) -> Bars:
    """The numbers of the observation that have names."""
    names = NAMES[env.observation]
    if env.entrapment != "seen":
        return episodes.observation_bars(game, names)
    obs = np.asarray(game.obs)
    named_game = game._replace(obs=np.append(obs[:, : len(names)], obs[:, -1:], axis=1))
    return episodes.observation_bars(named_game, [*names, "entrapped"])


def ending(outcome: Mapping[str, Any]) -> str:
    """How a game ended."""
    return next((text for name, text in ENDINGS.items() if name and outcome[name]), ENDINGS[""])


def with_food(
    env: Snake, state: rules.State, params: Params, place: tuple[float, float]
) -> rules.State:
    """The food, of several pieces the nearest, in the cell of a place (x, y).

    Raises ValueError off the board, on the snake, on an obstacle, and on other food.
    """
    cell = frames.empty_cell_at(env.board, state.occupied, place)
    if not bitboard.contains(rules.open_cells(env.board, state), cell):
        raise ValueError("an obstacle lies there; choose an empty cell")
    if state.foods is None:
        return replace(state, food=cell)
    if jnp.any(state.foods == cell):
        raise ValueError("food lies there; choose an empty cell")
    foods = jnp.where(state.foods == state.food, cell, state.foods)
    return replace(state, foods=foods, food=rules.nearest_food(env.board, state.head, foods))
