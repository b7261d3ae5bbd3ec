"""Any two players of two snakes at one board: trained ones and scripts, in either colour.

Each trained snake sees the game in the observation that its own network has learned from.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from envs.two_snake import opponents as scripts
from envs.two_snake import views
from envs.two_snake.env import RIVAL, Params, TwoSnake
from envs.two_snake.observations import OBSERVATIONS
from envs.two_snake.opponents import OPPONENTS
from envs.two_snake.rules import LEARNER, OTHER, State
from envs.two_snake.scene import Scene
from jaxrl.types import Agent, PyTree
from train.host.errors import UsageError
from train.two_snake.agents import acting_state, make_learner
from train.two_snake.config import AnyConfig
from train.two_snake.trained import Player

LIES_STILL = -1
"""The action of a snake that does not move."""


class OpenTwoSnake(TwoSnake):
    """The game of two agents that see its whole state; an action may be `LIES_STILL`."""

    def __init__(self, rows: int, cols: int, keeps_order: bool, snakes: int = 2):
        observation = "planes" if keeps_order else "features"
        super().__init__(rows, cols, observation, opponents=(RIVAL,), rival=True, snakes=snakes)

    def _turns(
        self, chance: dict[str, jax.Array], state: State, action: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        return jnp.maximum(action, 0), action != LIES_STILL

    def features(self, state: State, params: Params) -> tuple[()]:
        return ()

    def initial_features(self, state: State, params: Params) -> tuple[()]:
        return ()

    def describe(self, state: State, features: Any, params: Params) -> State:
        return state


class Seat(NamedTuple):
    """One player, whichever snake is its own."""

    learned: PyTree
    """Parameters of its network; none of a script."""
    act: Callable[[PyTree, State, int, jax.Array], jax.Array]
    """`(learned, state, player, key) -> action` for snake 0 or 1, greedily."""
    explain: Callable[[PyTree, State, int], dict[str, jax.Array]]
    """`(learned, state, player)`: what it makes of the game, and what it sees as `seen`."""


def make_env(config: AnyConfig, players: list[Player]) -> OpenTwoSnake:
    """The game of a configuration, with what any of the players needs to see."""
    keeps_order = any(OBSERVATIONS[x.config.env.observation].needs_order for x in players)
    return OpenTwoSnake(config.env.rows, config.env.cols, keeps_order, config.env.snakes)


def refuse_other_board(player: Player, config: AnyConfig) -> None:
    """Raises UsageError if a player's network does not fit the board of a configuration."""
    view, game, own = OBSERVATIONS[player.config.env.observation], config.env, player.config.env
    if view.is_image and (own.rows, own.cols) != (game.rows, game.cols):
        raise UsageError(
            f"{player.name} sees {own.rows}×{own.cols} cells; on {game.rows}×{game.cols} only "
            "players of that board, or without --env.observation planes, can meet"
        )


def seat_of(player: Player | str, env: OpenTwoSnake, params: Params) -> Seat:
    """The seat of a trained player, or of the script of that name."""
    return _script_seat(player, env) if isinstance(player, str) else _seat(player, env, params)


def _script_seat(name: str, env: OpenTwoSnake) -> Seat:
    def act(learned: PyTree, state: State, player: int, key: jax.Array) -> jax.Array:
        if name == "static":
            return jnp.int32(LIES_STILL)
        view, word = views.view(env.board, state, player), jax.random.bits(key)
        return scripts.turn(env.board, (name,), jnp.int32(0), view, word)

    return Seat((), act, lambda learned, state, player: {})


def _seat(player: Player, env: OpenTwoSnake, params: Params) -> Seat:
    config, learner = player.config, make_learner(player.config, greedy=True)
    observation = OBSERVATIONS[config.env.observation]

    def observe(state: State, snake: int) -> jax.Array:
        view = views.view(env.board, state, snake)
        regions = views.regions(env.board, view) if observation.needs_regions else ()
        return observation.describe(Scene(env.board, view, regions, params.target))

    def act(learned: PyTree, state: State, snake: int, key: jax.Array) -> jax.Array:
        obs, memory = observe(state, snake), learner.memory()
        return learner.act(acting_state(config, learned), memory, obs, key)[0]

    def explain(learned: PyTree, state: State, snake: int) -> dict[str, jax.Array]:
        obs = observe(state, snake)
        return learner.explain(acting_state(config, learned), (), obs) | {"seen": obs}

    return Seat(player.learned, act, explain)


def make_agent(blue: Seat, red: Seat, snakes: int = 2) -> Agent:
    """The agent that moves both snakes; its state is the parameters of both, and never learns.

    Of several others the red player moves all. What it thinks as the first of them has names that
    begin with `other_`.
    """

    def act(state: tuple[PyTree, PyTree], memory: tuple, obs: State, key: jax.Array):
        keys = jax.random.split(key, snakes)
        moves = [blue.act(state[0], obs, LEARNER, keys[0])]
        moves += [red.act(state[1], obs, i, keys[i]) for i in range(OTHER, snakes)]
        return jnp.stack([jnp.asarray(move, jnp.int32) for move in moves]), memory, ()

    def explain(state: tuple[PyTree, PyTree], memory: tuple, obs: State) -> dict[str, jax.Array]:
        own, its = blue.explain(state[0], obs, LEARNER), red.explain(state[1], obs, OTHER)
        return own | {f"other_{name}": x for name, x in its.items()}

    return Agent(
        init=lambda key, obs: ((), ()),
        memory=lambda: (),
        act=act,
        update=lambda state, rollout, key: (state, {}),
        explain=explain,
    )


def pairing(
    players: Mapping[str, Player | str], env: OpenTwoSnake, params: Params
) -> Callable[[str, str], tuple[Agent, tuple[PyTree, PyTree]]]:
    """`(blue, red) -> (agent, state)`, by name; the same agent for the same two."""
    seats = {name: seat_of(player, env, params) for name, player in players.items()}

    @cache
    def agent_of(blue: str, red: str) -> Agent:
        return make_agent(seats[blue], seats[red], env.snakes)

    return lambda blue, red: (agent_of(blue, red), (seats[blue].learned, seats[red].learned))


def with_scripts(players: list[Player]) -> dict[str, Player | str]:
    """Trained players by their names, which are made different, and then all scripts."""
    names = [player.name for player in players]
    unique_names = [
        name if names.count(name) == 1 and name not in OPPONENTS else f"{i + 1}. {name}"
        for i, name in enumerate(names)
    ]
    return dict(zip(unique_names, players, strict=True)) | {name: name for name in OPPONENTS}
