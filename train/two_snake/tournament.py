"""The games of a tournament of two snakes: a trained player against every script and itself.

In half of the games against each opponent the trained player starts on the left, in the other half
on the right. After a death the survivor plays on until it wins or dies too. The same games also
show who would have won if the first death decided the game; that is reported as well.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.two_snake import rules
from envs.two_snake.env import RIVAL, Params, TwoSnake, is_last
from envs.two_snake.opponents import OPPONENTS
from envs.two_snake.rules import LEARNER
from jaxrl import evaluate
from jaxrl.evaluate import Episodes, EvaluationState, Watch
from jaxrl.types import Agent, AgentState, PyTree
from train.host.scoring import games, limits
from train.host.scoring.matches import CompiledMatch, Match, compile_match
from train.two_snake.agents import acting_state, make_learner, moves_of_others
from train.two_snake.config import AnyConfig

PLAYERS = (*OPPONENTS, RIVAL)
SIDES = ("left", "right")
ITSELF = "itself"

Games = dict[str, Episodes]  # by the name of the opponent; NumPy [2 sides, N / 2]


class Sides(NamedTuple):
    """The parameters of both players' networks."""

    own: PyTree
    other: PyTree


class Arena(TwoSnake):
    """The game with all opponents, including the learner itself as the rival.

    `info["outcome"]` also says who wins if the first death decides: `first_won`, `first_lost` and
    `first_draw`; which opponent it is, the games are listed by.
    """

    def __init__(
        self, rows: int = 10, cols: int = 10, observation: str = "features", snakes: int = 2
    ):
        super().__init__(rows, cols, observation, opponents=PLAYERS, rival=True, snakes=snakes)

    def transition(
        self, chance: dict[str, jax.Array], state: Any, action: jax.Array, params: Params
    ) -> tuple[Any, jax.Array, jax.Array, dict[str, Any]]:
        after, reward, is_over, info = super().transition(chance, state, action, params)
        outcome, before = info["outcome"], rules.lives(state)
        del outcome["opponent"]
        alive = jnp.where(jnp.all(before), rules.lives(after), before)  # as the first death left it
        survived = is_last(alive)
        won, lost = (outcome[name] & jnp.all(alive) for name in ("won", "lost"))
        won, lost = won | survived[LEARNER], lost | rules.of_others(survived, jnp.any)
        info["outcome"] |= {"first_won": won, "first_lost": lost, "first_draw": ~(won | lost)}
        return after, reward, is_over, info


def compile_games(
    config: AnyConfig, learned: PyTree, other: AnyConfig | None = None, others: PyTree = None
) -> CompiledMatch:
    """Games of players `(params, Sides)`, compiled for all opponents at once; they can be watched.

    The rival has the network of the configuration `other` and the parameters `others`, if they are
    not those of the player.
    """
    sides = Sides(learned, learned if other is None else others)
    params, most = params_of(config, PLAYERS[0], SIDES[0]), most_steps(config)
    rows = games.watched_rows(make_env(config), params, most)
    match = match_of(config, make_agent(config, other), games_a_side(config), rows)
    return compile_match(match, (params, sides), jax.random.key(0))


def match_of(config: AnyConfig, agent: Agent, count: int, rows: int = 0) -> Match:
    """`count` games of players `(params, Sides)`, of one of which `rows` steps can be watched."""
    env, greedy = make_env(config), config.run.evaluation_greedy

    def start(player: tuple[Params, Sides], key: jax.Array) -> EvaluationState:
        params, sides = player
        return evaluate.start(env, params, agent, sides, key, count, 1, rows, greedy)

    def advance(
        player: tuple[Params, Sides], evaluation: EvaluationState, window: Watch
    ) -> EvaluationState:
        params, sides = player
        return evaluate.advance(env, params, agent, sides, evaluation, window)

    return Match(start, advance, most_steps(config))


def match_against(config: AnyConfig, opponent: str, count: int) -> Match:
    """So many games of the parameters of a player, on a side of the board by chance."""
    params = params_of(config, opponent, None)
    match = match_of(config, make_agent(config), count)
    return match.map_players(lambda learned: (params, Sides(learned, learned)))


def most_steps(config: AnyConfig) -> int:
    """Steps after which a game counts as not finished."""
    return limits.most_steps(config.env.max_steps_in_episode, config.run.evaluation_steps)


def matches(
    config: AnyConfig,
    match: CompiledMatch,
    sides: Sides,
    key: jax.Array,
    opponents: Sequence[str] = PLAYERS,
    names: tuple[str, str] = ("the player", ITSELF),
) -> Games:
    """The games of `sides.own`, from both sides of the board; `sides.other` plays the rival.

    `names` are those of player and rival, for the progress.
    """
    games = {}
    for name in opponents:
        activity = f"{names[0]} against {names[1] if name == RIVAL else name} from the "
        halves = [
            match.play_with_progress((params_of(config, name, side), sides), at, activity + side)
            for side, at in zip(SIDES, keys_of(key, name), strict=True)
        ]
        games[name] = jax.tree.map(lambda *x: np.stack(x)[..., 0], *halves)
    return games


def label(name: str) -> str:
    """The name of an opponent in results."""
    return ITSELF if name == RIVAL else name


def keys_of(key: jax.Array, opponent: str) -> jax.Array:
    """`[2]`, a key for the games from each side; does not consume `key`."""
    keys = jax.random.split(jax.random.clone(key), (len(PLAYERS), len(SIDES)))
    return keys[PLAYERS.index(opponent)]


def games_a_side(config: AnyConfig) -> int:
    return -(-config.run.evaluation_games // len(SIDES))


def make_env(config: AnyConfig) -> Arena:
    game = config.env
    return Arena(game.rows, game.cols, game.observation, game.snakes)


def params_of(config: AnyConfig, opponent: str, side: str | None) -> Params:
    """The game against one opponent, with the learner starting on one side; None: by chance."""
    return Params(
        max_steps_in_episode=config.env.max_steps_in_episode,
        target=config.curriculum.final_target,
        swap_sides=1 - 1 / config.env.snakes if side is None else float(side == "right"),
        opponent_weights=np.asarray([name == opponent for name in PLAYERS], np.float32),
        rewards=config.env.rewards,
    )


def make_agent(config: AnyConfig, other: AnyConfig | None = None) -> Agent:
    """An agent that plays both sides; its state is `Sides`, and it does not learn.

    The other side has the network of the configuration `other`, if that is another one.
    """
    configs = config, other or config
    greedy = config.run.evaluation_greedy
    players = [make_learner(one, greedy) for one in configs]

    def states(sides: Sides) -> list[AgentState]:
        return [acting_state(one, params) for one, params in zip(configs, sides, strict=True)]

    def act(sides: Sides, memory: tuple, obs: dict[str, jax.Array], key: jax.Array):
        (own, other), (own_state, other_state) = players, states(sides)
        own_key, other_key = jax.random.split(key)
        move = own.act(own_state, own.memory(), obs["own"], own_key)[0]
        moves = moves_of_others(config, other, other_state, obs["other"], other_key)
        return jnp.append(move, moves), memory, ()

    def explain(sides: Sides, memory: tuple, obs: dict[str, jax.Array]) -> dict[str, jax.Array]:
        del memory
        first = obs["other"] if config.env.snakes == 2 else obs["other"][0]
        own, its = (
            player.explain(state, (), view)
            for player, state, view in zip(players, states(sides), (obs["own"], first), strict=True)
        )
        return own | {f"other_{name}": x for name, x in its.items()}

    return Agent(
        init=lambda key, obs: Sides((), ()),
        memory=lambda: (),
        act=act,
        update=lambda state, rollout, key: (state, {}),
        explain=explain,
    )
