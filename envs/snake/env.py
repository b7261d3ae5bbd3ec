"""Snake as an environment: rules, observations and rewards behind gymnax's interface."""

from dataclasses import replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces

from envs.arguments import check_name, python_integer
from envs.base import Environment
from envs.snake import bitboard, rewards, rules
from envs.snake.bitboard import Board
from envs.snake.cycles import cycle
from envs.snake.observations import OBSERVATIONS
from envs.snake.rewards import MODERN_REWARDS, Rewards
from envs.snake.rules import CLASSIC, MODERN, Rules, State
from envs.snake.scene import Regions, Scene, flood_regions, is_softly_entrapped, open_regions
from envs.snake.starts import grown, late, layouts, sizes

RULES = {"classic": CLASSIC, "modern": MODERN}
ENTRAPMENT = ("off", "judged", "seen")


@struct.dataclass
class Params:
    """The numbers of the game; a pytree that can be vmapped."""

    max_steps_in_episode: int = 1000
    """Steps after which an episode is truncated."""
    starvation_base: int = 80
    """A snake of length L starves after max(base + per_cell * L, 2 * rows * cols) steps unfed."""
    starvation_per_cell: int = 4
    rewards: Rewards = Rewards()
    """Rewards of moves, meals, deaths and wins."""
    grown_share: float = 0.3
    """Share of the games that begin with a long snake, with `grown_starts`."""
    late_share: float = 0.8
    """Share of the games that begin where an earlier one was late, with `late_starts`."""
    entrapment_threshold: float = 0.3
    """A snake that can reach less than this share of the free cells is softly entrapped."""


class Snake(Environment):
    """Snake on a `rows` × `cols` board.

    Observation: float32, see `envs.snake.observations.registry`. Action: int32; relative 0 forward,
    1 left, 2 right, or absolute 0 up, 1 right, 2 down, 3 left, where a reversal is ignored. Reward:
    see `envs.snake.rewards`. Terminates on death, on a full board if the rules call that a win, and
    on starvation if they say so; truncates after `max_steps_in_episode` steps. `info["outcome"]`:
    `score` (food eaten), `won`, and the cause of death: `death_wall`, `death_self`, `entrapped` (no
    move would have saved it) or `starved`.

    With `mirror`, left and right are swapped in half of the episodes, in observations and actions,
    as data augmentation. With `grown_starts`, a share of the games begins with a snake of any
    length; their `score` counts its cells beyond the first three.

    With `entrapment` "judged", `info["softly_entrapped"]` says after each step whether no move
    leads to as much as `entrapment_threshold` of the free cells, and the rewards for that count;
    with "seen", an observation that is a list of numbers has the same as one number more. That
    takes the flood fill of most observations; with "off" the rewards have no effect. Likewise the
    reward of crowding has none without `crowding`.

    With `obstacles`, so many cells of every game are closed to the snake, drawn anew each time as
    `envs.snake.starts.layouts` says: never do they cut the free cells apart. With `foods`, so many
    pieces of food lie on the board while there is room for them. With `smallest_side`, each game is
    played on a board of its own, whose rows and columns are drawn from so many to `rows` and
    `cols`, with `square_boards` as many rows as columns: see `envs.snake.starts.sizes`. With
    `late_starts`, `step` begins a share of the games where an earlier game of the same environment
    was late: see `envs.snake.starts.late`; their `score` counts as that of grown ones. Without any
    of them, the compiled program is that of a game that knows none.

    Rules `classic` are those of a published 256-game system, with three of its faults fixed: food
    never lands under the head, a time-out is a truncation with its final observation, and
    entrapment is judged by the heading before the action. Rules `modern` let the head follow the
    tail, win on a full board, end on starvation and start anywhere.

    Raises ValueError for unknown names, for boards outside of 4 to 32 cells a side, for more
    obstacles or food than fit, and for switches that do not go together.
    """

    def __init__(
        self,
        rows: int = 10,
        cols: int = 10,
        observation: str = "tail",
        rules: str | Rules = "classic",
        actions: Literal["relative", "absolute"] = "relative",
        mirror: bool = False,
        grown_starts: bool = False,
        entrapment: Literal["off", "judged", "seen"] = "off",
        crowding: bool = False,
        obstacles: int = 0,
        foods: int = 1,
        smallest_side: int = 0,
        square_boards: bool = False,
        late_starts: bool = False,
    ):
        super().__init__()
        rows, cols, obstacles, foods, smallest_side = map(
            python_integer, (rows, cols, obstacles, foods, smallest_side)
        )
        sizes.check_sides(rows, cols)
        check_name("observation", observation, OBSERVATIONS)
        check_name("actions", actions, ("relative", "absolute"))
        if isinstance(rules, str):
            check_name("rules", rules, RULES)
            rules = RULES[rules]
        self.board = Board(rows, cols)
        layouts.check(self.board, obstacles, foods, grown_starts)
        sizes.check(self.board, smallest_side, square_boards, obstacles, foods, grown_starts)
        check_view(self.board, observation, actions, mirror, entrapment)
        self.obstacles = obstacles
        self.foods = foods
        self.smallest_side = smallest_side
        self.square_boards = square_boards
        self.observation = observation
        self.rules = rules
        self.entrapment = entrapment
        self.crowding = crowding
        self.actions = actions
        self.mirror = mirror
        self.grown_starts = grown_starts
        self.late_starts = late_starts

    @property
    def default_params(self) -> Params:
        """Numbers of the 256-game system; with starvation, a time limit that is rarely reached."""
        if self.rules.starvation == "off":
            return Params()
        return Params(max_steps_in_episode=100_000, rewards=MODERN_REWARDS)

    def chances(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Random words `[]` and `[W]`: for food, and where needed for a random start, obstacles,
        more food, and at the end for a snake that begins grown or a board of its own.

        One draw serves both, at a third of the cost: a move uses it for food only, on which no
        ending depends, so the next start is independent of the ending.
        """
        count = 2 if self.rules.random_start else 1
        count += self.obstacles + (self.foods - 1) + self._num_grown_words
        count += sizes.NUM_WORDS if self.smallest_side else 0
        count += late.NUM_WORDS if self.late_starts else 0
        words = jax.random.bits(key, (count,))
        words = jax.lax.optimization_barrier(words)  # or every use recomputes them
        return words[0], words

    def start(self, chance: jax.Array, params: Params) -> State:
        if not self.late_starts:
            return self._start_fresh(chance, params)
        chance, late_words = chance[: -late.NUM_WORDS], chance[-late.NUM_WORDS :]
        return late.start(self.board, self._start_fresh(chance, params), late_words)

    def start_after(self, last_state: State, chance: jax.Array, params: Params) -> State:
        if not self.late_starts:
            return self._start_fresh(chance, params)
        chance, late_words = chance[: -late.NUM_WORDS], chance[-late.NUM_WORDS :]
        fresh, food_words = self._start_fresh(chance, params), self._food_words(chance)
        return late.start_after(
            self.board, last_state, fresh, params.late_share, late_words, food_words
        )

    def _start_fresh(self, chance: jax.Array, params: Params) -> State:
        """A game that knows of none before it."""
        keep_order = OBSERVATIONS[self.observation].needs_order
        if self.smallest_side:
            state = self._start_on_its_own_board(chance, keep_order)
        else:
            state = rules.start(self.board, self.rules, chance, keep_order)
        if self.obstacles or self.foods > 1:
            state = self._lay_out(state, chance)
        if self.grown_starts:
            words = chance[-self._num_grown_words :]
            state = grown.start(self.board, words, params.grown_share, state)
        if self._keeps_regions:
            state = replace(state, reached=self._find_first(self.board, self.rules, state).reached)
        # the food does not use the low bits of its word
        return replace(state, mirrored=chance[0] & 1 != 0) if self.mirror else state

    @property
    def _num_grown_words(self) -> int:
        """Random words of a snake that may begin grown."""
        return grown.NUM_WORDS + self.foods if self.grown_starts else 0

    @property
    def _keeps_regions(self) -> bool:
        """Whether a state holds what a flood fill found in it."""
        needs_regions = OBSERVATIONS[self.observation].needs_regions
        return self.entrapment != "off" or (self.late_starts and needs_regions)

    def _start_on_its_own_board(self, chance: jax.Array, keep_order: bool) -> State:
        words = chance[-sizes.NUM_WORDS :]
        size = sizes.draw_size(self.board, self.smallest_side, self.square_boards, words)
        # classic rules draw no place, and no word for it
        place = sizes.draw_start(self.rules, size, chance[1])
        state = rules.start(self.board, self.rules, chance, keep_order, place)
        beyond = sizes.cells_beyond(self.board, size)
        return rules.scatter_food(
            self.board, replace(state, size=size, obstacles=beyond), [chance[0]]
        )

    def _lay_out(self, state: State, chance: jax.Array) -> State:
        """A new game with its obstacles and all its food."""
        if self.obstacles:
            words = self._layout_words(chance)[: self.obstacles]
            state = replace(state, obstacles=layouts.draw_obstacles(self.board, state, words))
        return rules.scatter_food(self.board, state, self._food_words(chance))

    def _food_words(self, chance: jax.Array) -> list[jax.Array]:
        """The random word of each piece of food."""
        words = self._layout_words(chance)
        return [chance[0], *(words[self.obstacles + i] for i in range(self.foods - 1))]

    def _layout_words(self, chance: jax.Array) -> jax.Array:
        """The random words of obstacles, of the second piece of food and so on, and the others."""
        return chance[2 if self.rules.random_start else 1 :]

    def transition(
        self, chance: jax.Array, state: State, action: jax.Array, params: Params
    ) -> tuple[State, jax.Array, jax.Array, dict[str, Any]]:
        # The move, in the frame of the game.
        if state.mirrored is not None:
            swapped = jnp.array([0, 2, 1], jnp.int32)[action]
            action = jnp.where(state.mirrored, swapped, action)
        heading = rules.turn(state, action, self.actions == "relative")
        next_state, event = rules.move(self.board, self.rules, state, heading, chance)
        # How it ended, and what it earned.
        won = event.filled & self.rules.full_board_wins
        starved = self.is_starved(next_state, params) & ~event.died
        died = event.died | starved if self.rules.starvation == "terminate" else event.died
        entrapment = {}
        if self._keeps_regions:  # the observation is made of the same flood fill
            regions = flood_regions(self.board, self.rules, next_state)
            next_state = replace(next_state, reached=regions.reached)
            if self.entrapment != "off":
                flag = self._is_softly_entrapped(next_state, regions, params)
                entrapment["softly_entrapped"] = flag
        reward = rewards.reward(
            self.board,
            params.rewards,
            state,
            next_state,
            died=died,
            ate=event.ate,
            won=won,
            timed_out=self.is_truncated(next_state, params),
            crowded=self.crowding and rewards.is_crowded(self.board, self.rules, next_state),
            entrapped=entrapment.get("softly_entrapped", False),
        )
        outcome = self._outcome(state, heading, event, next_state, won=won, starved=starved)
        if self.late_starts:
            next_state = late.keep(self.board, state, next_state)
        return next_state, reward, died | won, {"outcome": outcome} | entrapment

    def _outcome(
        self,
        state: State,
        heading: jax.Array,
        event: rules.Event,
        next_state: State,
        *,
        won: jax.Array,
        starved: jax.Array,
    ) -> dict[str, jax.Array]:
        """The episode so far, with the cause of a death."""
        entrapped = event.died & rules.is_entrapped(self.board, self.rules, state)
        target = state.head + rules.offset(self.board, heading)
        into_wall = ~bitboard.contains(rules.open_cells(self.board, state), target)
        return {
            "score": next_state.length - rules.START_LENGTH,
            "won": won,
            "entrapped": entrapped,
            "death_wall": event.died & ~entrapped & into_wall,
            "death_self": event.died & ~entrapped & ~into_wall,
            "starved": starved,
        }

    def _is_softly_entrapped(self, state: State, regions: Regions, params: Params) -> jax.Array:
        return is_softly_entrapped(self.board, state, regions, params.entrapment_threshold)

    def patience(self, state: State, params: Params) -> jax.Array:
        """The steps that a snake may go without food."""
        limit = params.starvation_base + params.starvation_per_cell * state.length
        return jnp.maximum(limit, 2 * rules.num_cells(self.board, state))

    def is_starved(self, state: State, params: Params) -> jax.Array:
        """Whether the snake has gone without food for too long, under rules with starvation."""
        if self.rules.starvation == "off":
            return jnp.zeros_like(state.hunger, bool)
        return state.hunger >= self.patience(state, params)

    def is_truncated(self, state: State, params: Params) -> jax.Array:
        is_late = state.time >= params.max_steps_in_episode
        if self.rules.starvation == "truncate":
            is_late = is_late | self.is_starved(state, params)
        return is_late

    def position(self, state: State, params: Params) -> tuple[State, jax.Array] | None:
        if OBSERVATIONS[self.observation].sees_hunger and self.rules.starvation != "off":
            return None
        ahead = params.max_steps_in_episode - state.time
        if self.rules.starvation != "off":
            steps_left = jnp.ceil(self.patience(state, params) - state.hunger)
            ahead = jnp.minimum(ahead, steps_left.astype(jnp.int32))
        zero = jnp.zeros_like(state.time)
        return replace(state, time=zero, hunger=zero), ahead

    def advance_clocks(self, state: State, steps: jax.Array) -> State:
        return replace(state, time=state.time + steps, hunger=state.hunger + steps)

    def features(self, state: State, params: Params) -> Regions | tuple[()]:
        return self._regions(flood_regions, state)

    def initial_features(self, state: State, params: Params) -> Regions | tuple[()]:
        return self._regions(self._find_first, state)

    @property
    def _find_first(self):
        """What finds the regions of a new game: a long snake may divide the board.

        Not where it lies on a closed tour, the rest of which is a path.
        """
        divides = self.grown_starts and not cycle(self.board).is_closed
        return flood_regions if divides else open_regions

    def _regions(self, find, state: State) -> Regions | tuple[()]:
        if not OBSERVATIONS[self.observation].needs_regions and self.entrapment != "seen":
            return ()
        if state.reached is not None:
            return Regions(state.reached)
        return find(self.board, self.rules, state)

    def describe(self, state: State, features: Regions | tuple[()], params: Params) -> jax.Array:
        starving = state.hunger / self.patience(state, params)
        if self.rules.starvation == "off":
            starving = jnp.zeros_like(starving)
        scene = Scene(self.board, self.rules, state, features, starving)
        view = OBSERVATIONS[self.observation]
        obs = view.describe(scene)
        if view.reflect is not None and state.mirrored is not None:
            obs = jnp.where(state.mirrored, view.reflect(obs), obs)
        if self.entrapment != "seen":
            return obs
        flag = self._is_softly_entrapped(state, features, params)  # pyright: ignore[reportArgumentType]
        return jnp.append(obs, flag.astype(jnp.float32))

    @property
    def name(self) -> str:
        return "Snake-v0"

    @property
    def num_actions(self) -> int:
        return 3 if self.actions == "relative" else 4

    def action_space(self, params: Params | None = None) -> spaces.Discrete:
        return spaces.Discrete(self.num_actions)

    def observation_space(self, params: Params | None = None) -> spaces.Box:
        shape = OBSERVATIONS[self.observation].shape(self.board)
        shape = (shape[0] + 1,) if self.entrapment == "seen" else shape
        return spaces.Box(-1.0, 1.0, shape, jnp.float32)


def check_view(board: Board, observation: str, actions: str, mirror: bool, entrapment: str) -> None:
    """Raises ValueError for an observation that a mirror or entrapment does not go with."""
    view = OBSERVATIONS[observation]
    if mirror and (view.reflect is None or actions == "absolute"):
        views = (name for name, view in OBSERVATIONS.items() if view.reflect is not None)
        raise ValueError(
            f"a mirror needs actions relative and an observation in the head's frame, one of "
            f"{', '.join(views)}; got {actions} and {observation}"
        )
    check_name("entrapment", entrapment, ENTRAPMENT)
    if entrapment == "seen" and len(view.shape(board)) != 1:
        raise ValueError(f"{observation} is an image, which has no place for entrapment seen")
