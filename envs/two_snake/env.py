"""Two snakes as an environment: rules, opponents, observations and rewards behind gymnax."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces

from envs.base import Environment, check_name
from envs.snake import rules as snake
from envs.snake.bitboard import Board
from envs.two_snake import opponents as scripts
from envs.two_snake import rewards, rules, views
from envs.two_snake.observations import OBSERVATIONS, PATIENCE, Scene
from envs.two_snake.opponents import OPPONENTS
from envs.two_snake.rewards import Rewards
from envs.two_snake.rules import ALIVE, HIT_OTHER, HIT_SELF, HIT_WALL, LEARNER, OTHER, State
from envs.two_snake.spaces import Pair, Views
from envs.two_snake.views import Regions, View

SMALLEST, NARROWEST, LARGEST = 4, 9, 32
RIVAL, GUEST = "rival", "guest"
MOVED = (RIVAL, GUEST)
"""Opponents that an agent moves: a member of a trainer's pool, and somebody else."""


@struct.dataclass
class Params:
    """The numbers of the game; a pytree that can be vmapped."""

    max_steps_in_episode: int = 1000
    """Steps after which an episode is truncated, a draw."""
    target: int = 10
    """Meals that win; at least 1."""
    swap_sides: float = 0.5
    """Probability that the learner begins on the right."""
    opponent_weights: Any = (1.0,)
    """Relative probability of each opponent: one number for each of the environment's."""
    rewards: Rewards = Rewards()
    """Rewards of meals, deaths and the end."""


class TwoSnake(Environment):
    """Two snakes and one food on a `rows` × `cols` board: the first to eat `target` meals wins.

    Rules: `envs.two_snake.rules`. A snake that dies vanishes and the other continues, so a dead
    learner observes zeros and gets no reward for its actions until the game ends: with a win, or as
    a draw once no moving snake is left. `last_standing_wins` ends it at the first death instead,
    and the survivor wins. `ends_with_learner` is for training: the episode ends when the learner
    dies (lost if the opponent lives), but continues if only its opponent does. The time limit
    truncates, which is a draw.

    `opponents` are scripts (`envs.two_snake.opponents`), one of which is drawn for each episode.
    With `rival` they may also be "rival" or "guest", snakes moved by an agent: then an action has a
    second entry for it (ignored where a script plays), and an observation is a dict of "own",
    "other" (the same, from the opponent's side) and "rival": uint32, random, constant within an
    episode, by which a trainer selects a member of its pool. With a guest among the opponents it
    has "guest" as well, whether that is who plays.

    Action: int32, 0 forward, 1 left, 2 right; with `rival` int32 `[2]`. Observation: float32, see
    `envs.two_snake.observations`. Reward: the learner's, see `envs.two_snake.rewards`.
    `info["outcome"]`: `won`, `lost`, `draw`; `score` and `opponent_score`, meals; the learner's
    cause of death, `death_wall`, `death_self` or `death_other`; `opponent_died`; and `opponent`,
    the index of the script.
    """

    def __init__(
        self,
        rows: int = 10,
        cols: int = 10,
        observation: str = "features",
        opponents: tuple[str, ...] = ("greedy",),
        rival: bool = False,
        last_standing_wins: bool = False,
        ends_with_learner: bool = False,
    ):
        super().__init__()
        for name, size, least in (("rows", rows, SMALLEST), ("cols", cols, NARROWEST)):
            if not (isinstance(size, int) and least <= size <= LARGEST):
                raise ValueError(f"{name} is {size}; expected {least} to {LARGEST} cells")
        check_name("observation", observation, OBSERVATIONS)
        if isinstance(opponents, str) or not opponents:
            raise ValueError(f"opponents is {opponents!r}; expected a tuple of one name or more")
        for opponent in opponents:
            check_name("opponent", opponent, (*OPPONENTS, *MOVED) if rival else OPPONENTS)
        self.board = Board(rows, cols)
        self.observation = observation
        self.opponents = tuple(opponents)
        self.rival = rival
        self.last_standing_wins = last_standing_wins
        self.ends_with_learner = ends_with_learner

    @property
    def default_params(self) -> Params:
        """Numbers of the published duel, with equal weights of all opponents."""
        return Params(opponent_weights=(1.0,) * len(self.opponents))

    def chances(self, key: jax.Array) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
        """Random words by purpose, only those that this environment needs.

        The word for food serves a move and the start that may follow it, as no ending depends on
        it; an opponent's random turn, which may end the game, has a separate one.
        """
        purposes = ["food", "side"]
        purposes += ["turn"] if "random" in self.opponents else []
        purposes += ["opponent"] if len(self.opponents) > 1 else []
        purposes += ["rival"] if self.rival else []
        words = jax.random.bits(key, (len(purposes),))
        words = jax.lax.optimization_barrier(words)  # or every use recomputes them
        chance = {purpose: words[i] for i, purpose in enumerate(purposes)}
        return chance, chance

    def start(self, chance: dict[str, jax.Array], params: Params) -> State:
        return rules.start(
            self.board,
            (_uniform(chance["side"]) < params.swap_sides).astype(jnp.int32),
            chance["food"],
            self._drawn_opponent(chance, params),
            chance.get("rival", 0),
            OBSERVATIONS[self.observation].needs_order,
        )

    def _drawn_opponent(self, chance: dict[str, jax.Array], params: Params) -> jax.Array | int:
        """An index into `opponents`, by the weights."""
        weights = jnp.asarray(params.opponent_weights, jnp.float32)
        if weights.shape != (len(self.opponents),):
            raise ValueError(
                f"opponent_weights has shape {weights.shape}; expected one number for each of "
                f"{', '.join(self.opponents)}"
            )
        if len(self.opponents) == 1:
            return 0
        bounds = jnp.cumsum(weights)
        return jnp.sum(bounds[:-1] <= _uniform(chance["opponent"]) * bounds[-1])

    def transition(
        self, chance: dict[str, jax.Array], state: State, action: jax.Array, params: Params
    ) -> tuple[State, jax.Array, jax.Array, dict[str, Any]]:
        turns, moving = self._turns(chance, state, action)
        headings = snake.turn(state.snakes, turns, relative=True)
        next_state, event = rules.move(self.board, state, headings, moving, chance["food"])
        won, is_over = self._verdict(next_state, event, moving, params)
        draw = ~jnp.any(won) & (is_over | self.is_truncated(next_state, params))
        reward = rewards.reward(
            self.board, params.rewards, state, next_state, event, won=won, draw=draw
        )
        cause = next_state.cause[LEARNER]
        outcome = {
            "won": won[LEARNER],
            "lost": won[OTHER],
            "draw": draw,
            "score": next_state.score[LEARNER],
            "opponent_score": next_state.score[OTHER],
            "death_wall": cause == HIT_WALL,
            "death_self": cause == HIT_SELF,
            "death_other": cause == HIT_OTHER,
            "opponent_died": next_state.cause[OTHER] != ALIVE,
            "opponent": next_state.opponent,
        }
        return next_state, reward, is_over, {"outcome": outcome}

    def _turns(
        self, chance: dict[str, jax.Array], state: State, action: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """The relative actions of both, int32 `[2]`, and whether each moves, bool `[2]`."""
        action = jnp.asarray(action, jnp.int32)
        mine, theirs = (action[LEARNER], action[OTHER]) if self.rival else (action, 0)
        script = scripts.turn(
            self.board,
            self.opponents,
            state.opponent,
            views.view(state, OTHER),
            chance.get("turn"),
        )
        theirs = jnp.where(self._plays(RIVAL, state) | self._plays(GUEST, state), theirs, script)
        moving = jnp.stack([jnp.bool_(True), ~self._plays("static", state)])
        return jnp.stack([mine, theirs]), moving

    def _plays(self, name: str, state: State) -> jax.Array:
        """Whether the opponent of this episode is `name`."""
        indices = [i for i, opponent in enumerate(self.opponents) if opponent == name]
        return jnp.any(state.opponent == jnp.array(indices, jnp.int32))

    def _verdict(
        self, after: State, event: rules.Event, moving: jax.Array, params: Params
    ) -> tuple[jax.Array, jax.Array]:
        """Who has won, bool `[2]`, and whether the game is over."""
        lives = rules.lives(after)
        won = event.ate & (after.score >= params.target)
        if self.last_standing_wins:
            won = won | (lives & ~lives[::-1])
        if self.ends_with_learner:
            won = won | jnp.stack([jnp.bool_(False), lives[OTHER] & ~lives[LEARNER]])
        return won, jnp.any(won) | ~jnp.any(lives & moving)

    def is_truncated(self, state: State, params: Params) -> jax.Array:
        return state.time >= params.max_steps_in_episode

    def position(self, state: State, params: Params) -> tuple[State, jax.Array]:
        is_random = self._plays("random", state) & rules.lives(state)[OTHER]
        hunger = jnp.minimum(state.hunger, PATIENCE)  # beyond it, it no longer shows
        position = replace(state, hunger=hunger, time=jnp.where(is_random, state.time, 0))
        return position, params.max_steps_in_episode - state.time

    def advance_clocks(self, state: State, steps: jax.Array) -> State:
        return replace(state, time=state.time + steps, hunger=state.hunger + steps)

    def features(self, state: State, params: Params) -> Regions | tuple[()]:
        return self._regions(views.regions, state)

    def initial_features(self, state: State, params: Params) -> Regions | tuple[()]:
        return self._regions(views.initial_regions, state)

    def _regions(self, find, state: State) -> Regions | tuple[()]:
        """The learner's, or with a rival those of both, `[2, ...]`."""
        if not OBSERVATIONS[self.observation].needs_regions:
            return ()
        find_regions = partial(find, self.board)
        if self.rival:
            return jax.vmap(find_regions)(views.both_views(state))
        return find_regions(views.view(state, LEARNER))

    def describe(self, state: State, features: Regions | tuple[()], params: Params) -> Any:
        def describe_view(view: View, regions: Regions | tuple[()]) -> jax.Array:
            scene = Scene(self.board, view, regions, params.target)
            return OBSERVATIONS[self.observation].describe(scene)

        if not self.rival:
            return describe_view(views.view(state, LEARNER), features)
        views_of_both = jax.vmap(describe_view)(views.both_views(state), features)
        obs = {"own": views_of_both[LEARNER], "other": views_of_both[OTHER], RIVAL: state.rival}
        return obs | ({GUEST: self._plays(GUEST, state)} if GUEST in self.opponents else {})

    @property
    def name(self) -> str:
        return "TwoSnake-v0"

    @property
    def num_actions(self) -> int:
        return views.NUM_MOVES

    def action_space(self, params: Params | None = None) -> spaces.Space:  # pyright: ignore
        return Pair(self.num_actions) if self.rival else spaces.Discrete(self.num_actions)

    def observation_space(self, params: Params | None = None) -> spaces.Space:  # pyright: ignore
        shape = OBSERVATIONS[self.observation].shape(self.board)
        box = spaces.Box(-1.0, 1.0, shape, jnp.float32)
        if not self.rival:
            return box
        number = spaces.Box(0, jnp.uint32(2**32 - 1), (), jnp.uint32)
        entries = {"own": box, "other": box, RIVAL: number}
        if GUEST in self.opponents:
            entries[GUEST] = spaces.Box(0, 1, (), jnp.bool_)
        return Views(entries)


def _uniform(random_word: jax.Array) -> jax.Array:
    """Float32 in [0, 1) from 32 random bits."""
    return (random_word >> 8).astype(jnp.float32) * 2**-24
