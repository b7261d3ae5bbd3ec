"""Games of two snakes to be looked at step by step, in a report and live."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.snake.feature_names import WAYS
from envs.snake.pictures import drawing
from envs.snake.pictures.frames import empty_cell_at
from envs.snake.rules import turn_to
from envs.two_snake import drawing as two_drawing
from envs.two_snake import frames
from envs.two_snake.env import RIVAL, Params, TwoSnake
from envs.two_snake.feature_names import NAMES
from envs.two_snake.observations import OBSERVATIONS
from envs.two_snake.opponents import OPPONENTS
from envs.two_snake.rules import ALIVE, LEARNER, OTHER, State
from train.host.errors import UsageError
from train.host.numbers import quantity
from train.host.program import EpisodeSelection, Run
from train.host.running import saved_runs
from train.host.showing import episodes
from train.host.showing.episodes import Bars, Episode, Recording, Scene
from train.host.showing.live import Duel, Edit, Live
from train.two_snake import duel as duels
from train.two_snake import tournament, trained
from train.two_snake.config import AnyConfig
from train.two_snake.tournament import Arena, Sides
from train.two_snake.trained import parameters

SCRIPTS = Path(drawing.__file__).with_suffix(".js"), Path(__file__).with_name("two_snake.js")
ENDINGS = {
    "won": "blue has won",
    "lost": "red has won",
    "draw": "a draw",
    "time up": "time up, a draw",
}
OF_RED = "other_"
"""How names begin of what the red snake makes of the game."""
NO_MOVE = -1
SHOWN = ("greedy", "defensive", RIVAL)
"""Opponents whose games are shown, in turn."""


def show(run: Run, selection: EpisodeSelection) -> Scene:
    """Games against two scripts and itself, each from a side of the board by chance."""
    config = saved_runs.with_run_fields(run.config, evaluation_greedy=True)
    learned = parameters(run.agents[selection.member])
    episode_lists = [
        _record_games(config, name, Sides(learned, learned), selection, key)
        for name, key in zip(SHOWN, jax.random.split(selection.key, len(SHOWN)), strict=True)
    ]
    in_turn = list(chain.from_iterable(zip(*episode_lists, strict=True)))
    return Scene(SCRIPTS, in_turn[: selection.count], constants(config))


def live(run: Run, member: int) -> Live:
    """A game of the trained snake against itself, or against a person who steers the red one."""
    return duel(run, member, ())


def _load_other(name: str) -> trained.Player:
    """A trained snake. Raises UsageError, which names the scripts, too, if there is none."""
    try:
        return trained.load(name)
    except UsageError as error:
        if Path(name).exists():
            raise
        raise UsageError(f"{error}, or a script ({', '.join(OPPONENTS)})") from error


def duel(run: Run, member: int, against: Sequence[str]) -> Live:
    """A game of the trained snake against the first of others by name, on its own board.

    They are trained snakes or scripts; with none, it plays against itself. In later games any two
    of them may meet. Raises UsageError for one that is not there, or does not fit the board.
    """
    name = run.directory.name.removeprefix("policy-")
    itself = trained.Player(name, run.config, parameters(run.agents[member]))
    others = [_load_other(other) for other in against if other not in OPPONENTS]
    for player in others:
        duels.refuse_other_board(player, run.config)
    players = duels.with_scripts([itself, *others])
    first, *rest = players
    red = first
    if against:
        red = against[0] if against[0] in OPPONENTS else rest[0]
    env = duels.make_env(run.config, [itself, *others])
    params = tournament.params_of(run.config, RIVAL, None)
    params = replace(params, opponent_weights=(1.0,))
    between = duels.pairing(players, env, params)
    agent, agent_state = between(first, red)
    return Live(
        *(env, params, agent, agent_state),
        look=lambda game: live_frames_and_bars(env, game),
        scripts=SCRIPTS,
        constants=lambda state: constants(run.config),
        picture=lambda state: np.asarray(two_drawing.draw(env.board, state)),
        cells=(env.board.rows, env.board.cols),
        ending=lambda outcome: ENDINGS[_ending(outcome)],
        steer=steer_red,
        hand="steer the red snake",
        edits={"food": Edit("move the food", lambda *arguments: with_food(env, *arguments))},
        duel=Duel(
            names=tuple(players),
            start=(first, red),
            sides=("blue", "red"),
            between=between,
            winner=lambda outcome: 0 if outcome["won"] else 1 if outcome["lost"] else None,
        ),
    )


def constants(config: AnyConfig) -> dict[str, int]:
    return {"rows": config.env.rows, "cols": config.env.cols}


def _record_games(
    config: AnyConfig, opponent: str, sides: Sides, selection: EpisodeSelection, key: jax.Array
) -> list[Episode]:
    """A share of the selected games."""
    env, player = tournament.make_env(config), tournament.make_agent(config)
    params = tournament.params_of(config, opponent, None)
    count = -(-selection.count // len(SHOWN))
    recordings = episodes.record(env, params, player, sides, key, count, selection.limit)
    return [episode(env, game, opponent) for game in recordings]


def episode(env: Arena, game: Recording, opponent: str) -> Episode:
    """One game, as the report shows it; blue is the trained snake."""
    by_itself = opponent == RIVAL
    lines = episodes.lines(recording_of(game, LEARNER))
    if by_itself:
        other = episodes.lines(recording_of(game, OTHER))["value"]
        lines = {"value": lines.pop("value"), "value, red": other} | lines
    frame_arrays, bars = frames_and_bars(env, game, by_itself)
    food, theirs = (int(game.outcome[name]) for name in ("score", "opponent_score"))
    endings = {"terminated": game.terminated, "truncated": game.truncated}
    ending = _ending({**game.outcome, **endings})
    against = "itself" if by_itself else opponent
    return Episode(
        title=f"{ending} against {against}, {food} : {theirs} in {quantity(game.steps, 'steps')}",
        frames=frame_arrays,
        lines=lines,
        bars=bars,
    )


def frames_and_bars(
    env: Arena, game: Recording, by_itself: bool
) -> tuple[dict[str, np.ndarray], dict[str, Bars]]:
    """What is drawn of a game, and what the agent makes of it, from both sides if it plays both."""
    own = recording_of(game, LEARNER)
    bars = episodes.bars(own, WAYS)
    if by_itself:
        bars |= _red_bars(game)
    if env.observation in NAMES:
        bars["what it sees"] = episodes.observation_bars(own, NAMES[env.observation])
    return frames.game_arrays(env.board, game.state), bars


def live_frames_and_bars(
    env: TwoSnake, game: Recording
) -> tuple[dict[str, np.ndarray], dict[str, Bars]]:
    """The same in a duel: what each of the two makes of the game, unless it is a script."""
    own = recording_of(game, LEARNER)
    bars = episodes.bars(own, WAYS) | _red_bars(game)
    sight = own.explained.get("seen")
    if sight is not None:
        for name, labels in NAMES.items():
            if sight.shape[1:] == OBSERVATIONS[name].shape(env.board):
                own = own._replace(obs=sight)
                bars["what it sees"] = episodes.observation_bars(own, labels)
    return frames.game_arrays(env.board, game.state), bars


def _red_bars(game: Recording) -> dict[str, Bars]:
    """What the red snake makes of its moves."""
    bars = episodes.bars(recording_of(game, OTHER), WAYS)
    return {f"{what}, red": x for what, x in bars.items()}


def recording_of(game: Recording, snake: int) -> Recording:
    """The game from the side of one snake, or of the first of the others.

    A dead one sees zeros and moves nothing, so what it makes of them is no part of it.
    """
    is_alive = np.asarray(game.state.cause)[: game.steps, snake] == ALIVE

    def hide(x: np.ndarray) -> np.ndarray:
        return np.where(is_alive.reshape(-1, *[1] * (np.ndim(x) - 1)), x, np.nan)

    of_red = {name: x for name, x in game.explained.items() if name.startswith(OF_RED)}
    explained = {name.removeprefix(OF_RED): x for name, x in of_red.items()}
    if snake == LEARNER:
        explained = {name: x for name, x in game.explained.items() if name not in of_red}
    obs = game.obs["own"] if isinstance(game.obs, Mapping) else ()
    return game._replace(
        action=np.where(is_alive, game.action[:, snake], NO_MOVE),
        obs=jax.tree.map(hide, obs),
        explained={name: hide(x) for name, x in explained.items()},
    )


def _ending(outcome: Mapping[str, Any]) -> str:
    """How a game ended for the trained snake; `outcome` also has `terminated` and `truncated`."""
    if not outcome["terminated"]:
        return "time up" if outcome["truncated"] else "goes on"
    return next(name for name in ("won", "lost", "draw") if outcome[name])


def steer_red(state: State, action: jax.Array, direction: int) -> jax.Array:
    """The actions with the red snake going up, right, down or left; backwards is straight on."""
    turn = turn_to(state.snakes.heading[OTHER], direction)
    return jnp.asarray(action).at[OTHER].set(turn)


def with_food(env: TwoSnake, state: State, params: Params, place: tuple[float, float]) -> State:
    """The food in the cell of a place (x, y). Raises ValueError off the board, and on a snake."""
    return replace(state, food=empty_cell_at(env.board, state.snakes.occupied, place))
