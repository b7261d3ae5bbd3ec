"""Two snakes as an environment: rules, opponents, observations and rewards behind gymnax."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces

from envs.arguments import check_name, python_integer
from envs.base import Environment
from envs.snake import rules as snake
from envs.snake.bitboard import Board
from envs.two_snake import opponents as scripts
from envs.two_snake import rewards, rules, views
from envs.two_snake.observations import OBSERVATIONS
from envs.two_snake.opponents import OPPONENTS
from envs.two_snake.rewards import Rewards
from envs.two_snake.rules import (
    ALIVE,
    HIT_OTHER,
    HIT_SELF,
    HIT_WALL,
    LEARNER,
    OTHER,
    State,
    of_others,
)
from envs.two_snake.scene import PATIENCE, Scene
from envs.two_snake.spaces import Actions, Views
from envs.two_snake.views import Regions, View

SMALLEST, NARROWEST, LARGEST = 4, 9, 32
MOST_SNAKES = 4
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
    """Probability that the learner begins on the right; of more than two snakes, in any place but
    the first."""
    opponent_weights: Any = (1.0,)
    """Relative probability of each opponent: one number for each of the environment's."""
    rewards: Rewards = Rewards()
    """Rewards of meals, deaths and the end."""


class TwoSnake(Environment):
    """Two snakes and one food on a `rows` × `cols` board: the first to eat `target` meals wins.

    With `snakes` 3 or 4 there are so many: the learner, and others that are all moved by the
    opponent of the episode, each from its own side. What is said of the other then holds for each
    of them; the learner has lost when any other has won.

    Rules: `envs.two_snake.rules`. A snake that dies vanishes and the other continues, so a dead
    learner observes zeros and gets no reward for its actions until the game ends: with a win, or as
    a draw once no moving snake is left. `last_standing_wins` ends it as soon as one snake is left,
    which has won. `ends_with_learner` is for training: the episode ends when the learner dies (lost
    if the opponent lives), but continues if only its opponent does. The time limit truncates, which
    is a draw.

    `opponents` are scripts (`envs.two_snake.opponents`), one of which is drawn for each episode.
    With `rival` they may also be "rival" or "guest", snakes moved by an agent: then an action has
    an entry for each snake (ignored where a script plays), and an observation is a dict of "own",
    "other" (the same, from the opponent's side, or `[P - 1, ...]` of several) and "rival": uint32,
    random, constant within an episode, by which a trainer selects a member of its pool. With a
    guest among the opponents it has "guest" as well, whether that is who plays.

    Action: int32, 0 forward, 1 left, 2 right; with `rival` int32 `[P]`. Observation: float32, see
    `envs.two_snake.observations`. Reward: the learner's, see `envs.two_snake.rewards`.
    `info["outcome"]`: `won`, `lost`, `draw`; `score` and `opponent_score`, meals; the learner's
    cause of death, `death_wall`, `death_self` or `death_other`; `opponent_died`; and `opponent`,
    the index of the script.

    Raises ValueError for sizes, numbers of snakes and names that do not exist, and, once it is
    traced, for `Params.opponent_weights` that are not one number for each opponent.
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
        snakes: int = 2,
    ):
        super().__init__()
        rows, cols, snakes = map(python_integer, (rows, cols, snakes))
        for name, size, least in (("rows", rows, SMALLEST), ("cols", cols, NARROWEST)):
            if not (isinstance(size, int) and least <= size <= LARGEST):
                raise ValueError(f"{name} is {size!r}; expected {least} to {LARGEST} cells")
        check_name("observation", observation, OBSERVATIONS)
        if isinstance(opponents, str) or not opponents:
            raise ValueError(f"opponents is {opponents!r}; expected a tuple of one name or more")
        for opponent in opponents:
            check_name("opponent", opponent, (*OPPONENTS, *MOVED) if rival else OPPONENTS)
        if not (isinstance(snakes, int) and 2 <= snakes <= MOST_SNAKES):
            raise ValueError(f"snakes is {snakes!r}; expected 2 to {MOST_SNAKES}")
        self.board = Board(rows, cols)
        self.snakes = snakes
        self.observation = observation
        self.opponents = tuple(opponents)
        self.rival = rival
        self.last_standing_wins = last_standing_wins
        self.ends_with_learner = ends_with_learner

    @property
    def default_params(self) -> Params:
        """Numbers of the published duel, with equal weights of all opponents."""
        return Params(swap_sides=1 - 1 / self.snakes, opponent_weights=(1.0,) * len(self.opponents))

    def chances(self, key: jax.Array) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
        """Random words by purpose, only those that this environment needs.

        The word for food serves a move and the start that may follow it, as no ending depends on
        it; an opponent's random turn, which may end the game, has a separate one.
        """
        purposes = ["food", "side"]
        purposes += ["turn"] if "random" in self.opponents else []
        purposes += ["opponent"] if len(self.opponents) > 1 else []
        purposes += ["rival"] if self.rival else []
        more_turns = self.snakes - 2 if "turn" in purposes else 0
        words = jax.random.bits(key, (len(purposes) + more_turns,))
        words = jax.lax.optimization_barrier(words)  # or every use recomputes them
        chance = {purpose: words[i] for i, purpose in enumerate(purposes)}
        if more_turns:
            turns = [chance["turn"], *(words[len(purposes) + i] for i in range(more_turns))]
            chance["turn"] = jnp.stack(turns)  # one for each other snake
        return chance, chance

    def start(self, chance: dict[str, jax.Array], params: Params) -> State:
        return rules.start(
            self.board,
            self._drawn_side(chance, params),
            chance["food"],
            self._drawn_opponent(chance, params),
            chance.get("rival", 0),
            OBSERVATIONS[self.observation].needs_order,
            self.snakes,
        )

    def _drawn_side(self, chance: dict[str, jax.Array], params: Params) -> jax.Array:
        """The place in `rules.starts` where the learner begins; all but the first are equal."""
        number = snake.uniform(chance["side"])
        swapped = (number < params.swap_sides).astype(jnp.int32)
        if self.snakes == 2:
            return swapped
        place = (number / params.swap_sides * (self.snakes - 1)).astype(jnp.int32)
        return swapped * (1 + jnp.minimum(place, self.snakes - 2))

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
        return jnp.sum(bounds[:-1] <= snake.uniform(chance["opponent"]) * bounds[-1])

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
            "lost": of_others(won, jnp.any),
            "draw": draw,
            "score": next_state.score[LEARNER],
            "opponent_score": of_others(next_state.score, jnp.max),
            "death_wall": cause == HIT_WALL,
            "death_self": cause == HIT_SELF,
            "death_other": cause == HIT_OTHER,
            "opponent_died": of_others(next_state.cause, jnp.min) != ALIVE,
            "opponent": next_state.opponent,
        }
        return next_state, reward, is_over, {"outcome": outcome}

    def _turns(
        self, chance: dict[str, jax.Array], state: State, action: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """The relative actions of all, int32 `[P]`, and whether each moves, bool `[P]`."""
        action = jnp.asarray(action, jnp.int32)
        agents = [action[i] for i in range(self.snakes)] if self.rival else [action, 0, 0, 0]
        turns, word = agents[:1], chance.get("turn")
        for player in range(OTHER, self.snakes):
            script = scripts.turn(
                self.board,
                self.opponents,
                state.opponent,
                views.view(self.board, state, player),
                word if word is None or self.snakes == 2 else word[player - OTHER],
            )
            is_agent = self._plays(RIVAL, state) | self._plays(GUEST, state)
            turns.append(jnp.where(is_agent, agents[player], script))
        others_move = [~self._plays("static", state)] * (self.snakes - 1)
        moving = jnp.stack([jnp.bool_(True), *others_move])
        return jnp.stack(turns), moving

    def _plays(self, name: str, state: State) -> jax.Array:
        """Whether the opponent of this episode is `name`."""
        indices = [i for i, opponent in enumerate(self.opponents) if opponent == name]
        return jnp.any(state.opponent == jnp.array(indices, jnp.int32))

    def _verdict(
        self, after: State, event: rules.Event, moving: jax.Array, params: Params
    ) -> tuple[jax.Array, jax.Array]:
        """Who has won, bool `[P]`, and whether the game is over."""
        lives = rules.lives(after)
        won = event.ate & (after.score >= params.target)
        if self.last_standing_wins:
            won = won | is_last(lives)
        if self.ends_with_learner:
            survived = [lives[i] & ~lives[LEARNER] for i in range(OTHER, self.snakes)]
            won = won | jnp.stack([jnp.bool_(False), *survived])
        return won, jnp.any(won) | ~jnp.any(lives & moving)

    def is_truncated(self, state: State, params: Params) -> jax.Array:
        return state.time >= params.max_steps_in_episode

    def position(self, state: State, params: Params) -> tuple[State, jax.Array]:
        is_random = self._plays("random", state) & of_others(rules.lives(state), jnp.any)
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
        """The learner's, or with a rival those of all, `[P, ...]`."""
        if not OBSERVATIONS[self.observation].needs_regions:
            return ()
        find_regions = partial(find, self.board)
        if self.rival:
            return jax.vmap(find_regions)(views.all_views(self.board, state))
        return find_regions(views.view(self.board, state, LEARNER))

    def describe(self, state: State, features: Regions | tuple[()], params: Params) -> Any:
        def describe_view(view: View, regions: Regions | tuple[()]) -> jax.Array:
            scene = Scene(self.board, view, regions, params.target)
            return OBSERVATIONS[self.observation].describe(scene)

        if not self.rival:
            return describe_view(views.view(self.board, state, LEARNER), features)
        each = jax.vmap(describe_view)(views.all_views(self.board, state), features)
        others = OTHER if self.snakes == 2 else slice(OTHER, None)
        obs = {"own": each[LEARNER], "other": each[others], RIVAL: state.rival}
        return obs | ({GUEST: self._plays(GUEST, state)} if GUEST in self.opponents else {})

    @property
    def name(self) -> str:
        return "TwoSnake-v0"

    @property
    def num_actions(self) -> int:
        return views.NUM_MOVES

    def action_space(self, params: Params | None = None) -> spaces.Space:  # pyright: ignore
        if self.rival:
            return Actions(self.num_actions, self.snakes)
        return spaces.Discrete(self.num_actions)

    def observation_space(self, params: Params | None = None) -> spaces.Space:  # pyright: ignore
        shape = OBSERVATIONS[self.observation].shape(self.board)
        box = spaces.Box(-1.0, 1.0, shape, jnp.float32)
        if not self.rival:
            return box
        number = spaces.Box(0, jnp.uint32(2**32 - 1), (), jnp.uint32)
        if self.snakes > 2:
            shape = (self.snakes - 1, *shape)
        entries = {"own": box, "other": spaces.Box(-1.0, 1.0, shape, jnp.float32), RIVAL: number}
        if GUEST in self.opponents:
            entries[GUEST] = spaces.Box(0, 1, (), jnp.bool_)
        return Views(entries)


def is_last(lives: jax.Array) -> jax.Array:
    """Which snake is the only one alive, bool `[P]`."""
    if len(lives) == 2:
        return lives & ~lives[::-1]
    return lives & (jnp.sum(lives) == 1)
