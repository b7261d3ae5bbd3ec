"""A maze as an environment: tables of what actions do, behind gymnax's interface.

Mazes of one size differ in the numbers in `Params` only, so mazes of equal shapes share one
compilation.
"""

from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces

from envs.arguments import check_name
from envs.base import Environment
from envs.grid.layouts import Layout
from envs.grid.mazes import layout_by_name
from envs.grid.observations import OBSERVATIONS, check_size, shape
from envs.grid.tables import Dynamics, dynamics

BITS = 24  # of a random number below 1; as many as float32 holds


@struct.dataclass
class State:
    position: jax.Array  # int32, index of the free cell
    time: jax.Array  # int32, steps since the start


@struct.dataclass
class Params:
    """The maze as numbers. S states, A = 4 actions, K outcomes of an action."""

    successor: jax.Array  # int32 [S, A, K]
    probability: jax.Array  # float32 [S, A, K], 0 where there are fewer than K outcomes
    observations: jax.Array  # [S, ...], the observation of each state
    starts: jax.Array  # int32 [S], the states where episodes start come first
    num_starts: jax.Array  # uint32, how many of `starts` are used; each is equally likely
    goal: jax.Array  # bool [S]
    max_steps_in_episode: int = 50
    """Steps after which an episode is truncated."""
    step_reward: float = 0.0
    """Reward of every step that does not enter a goal."""


class Grid(Environment):
    """A walk in a maze, which is a name that `envs.grid.mazes.layout_by_name` knows or a `Layout`.

    Observation: see `envs.grid.observations`. Action: int32, 0 up, 1 right, 2 down, 3 left; a move
    into a wall stays. Reward: 1 and the end on entering a goal, else `step_reward`; without goals
    only the time limit ends an episode. `info["outcome"]` has `arrived`: whether this step entered
    a goal. Episodes start on the maze's starts, by default on every free cell that is not a goal.
    For `wind` see `envs.grid.tables.dynamics`.

    Two environments are equal, and share one compilation, if observation, number of states, shape
    of the observation and the largest number of outcomes of an action agree.

    Raises ValueError for unknown mazes and observations, for wind outside -1 to 1, and for
    observations of all states that need more than 2 GiB.
    """

    def __init__(
        self,
        maze: str | Layout = "GridRoom-4",
        observation: str = "coordinates",
        wind: float = 0.0,
    ):
        super().__init__()
        if not isinstance(maze, str | Layout):
            raise ValueError(f"maze is {maze!r}; expected a name such as 'GridRoom-4' or a Layout")
        check_name("observation", observation, OBSERVATIONS)
        self.layout = layout_by_name(maze) if isinstance(maze, str) else maze
        check_size(observation, self.layout)
        self.wind = wind
        self.observation = observation
        self._dynamics: Dynamics = dynamics(self.layout, wind)
        self.num_states, _, self.num_outcomes = self._dynamics.successor.shape
        self.observation_shape = shape(observation, self.layout)

    def identity(self) -> dict[str, Any]:
        """All but the numbers in `Params`."""
        numbers = ("layout", "wind", "_dynamics", "default_params")
        return {name: value for name, value in vars(self).items() if name not in numbers}

    @cached_property
    def default_params(self) -> Params:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The numbers of the maze, computed when first needed, so that imports stay fast."""
        layout, goal = self.layout, np.zeros(self.num_states, bool)
        goal[[layout.index[cell] for cell in layout.goals]] = True
        starts = layout.start_states
        with jax.ensure_compile_time_eval():  # they outlive the trace that first asks for them
            return Params(
                successor=jnp.asarray(self._dynamics.successor),
                probability=jnp.asarray(self._dynamics.probability),
                observations=jnp.asarray(OBSERVATIONS[self.observation](layout)),
                starts=jnp.asarray(np.resize(starts, self.num_states)),
                num_starts=jnp.asarray(len(starts), jnp.uint32),
                goal=jnp.asarray(goal),
            )

    def chances(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Random words for the move and for the start, from one draw.

        Without random outcomes the move is given the word of the start, which it does not use.
        """
        words = jax.random.bits(key, (min(self.num_outcomes, 2),))
        words = jax.lax.optimization_barrier(words)  # or every use recomputes them
        return words[-1], words[0]

    def start(self, chance: jax.Array, params: Params) -> State:
        # 32 bits modulo some thousand: uniform within a few in a million
        position = params.starts[chance % params.num_starts]
        return State(position, jnp.zeros((), jnp.int32))

    def transition(
        self, chance: jax.Array, state: State, action: jax.Array, params: Params
    ) -> tuple[State, jax.Array, jax.Array, dict[str, Any]]:
        successor = params.successor[state.position, action]  # [K]
        slot = 0
        if self.num_outcomes > 1:
            slot = choose(chance, params.probability[state.position, action])
        position = successor[slot]
        arrived = params.goal[position]
        reward = jnp.where(arrived, 1.0, params.step_reward)
        return State(position, state.time + 1), reward, arrived, {"outcome": {"arrived": arrived}}

    def describe(self, state: State, features: Any, params: Params) -> jax.Array:
        return params.observations[state.position]

    @property
    def name(self) -> str:
        return "Grid-v0"

    @property
    def num_actions(self) -> int:
        return 4

    def action_space(self, params: Params | None = None) -> spaces.Discrete:
        return spaces.Discrete(self.num_actions)

    def observation_space(self, params: Params | None = None) -> spaces.Box | spaces.Discrete:
        if self.observation == "index":
            return spaces.Discrete(self.num_states)
        low = -1.0 if self.observation == "coordinates" else 0.0
        return spaces.Box(low, 1.0, self.observation_shape, jnp.float32)

    def __repr__(self) -> str:
        return f"Grid({self.layout.name!r}, {self.observation!r}, wind={self.wind})"


def choose(word: jax.Array, probability: jax.Array) -> jax.Array:
    """An index drawn with `probability` `[K]`; never one whose probability is 0.

    `word` is a random uint32. If rounding leaves the sum below 1, the rest goes to the last
    possible index.
    """
    uniform = (word >> (32 - BITS)).astype(jnp.float32) / 2**BITS
    cumulative_before = jnp.cumsum(probability) - probability
    possible = (probability > 0) & (cumulative_before <= uniform)
    return jnp.max(jnp.where(possible, jnp.arange(probability.size), 0))
