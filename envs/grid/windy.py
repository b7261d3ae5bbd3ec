"""A maze in which every episode has a wind of its own, which the walker does not see."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs.grid import tables
from envs.grid.env import BITS, Grid, choose
from envs.grid.env import Params as CalmParams
from envs.grid.layouts import Layout


@struct.dataclass
class State:
    position: jax.Array  # int32, index of the free cell
    time: jax.Array  # int32, steps since the start
    wind: jax.Array  # float32, of this episode


@struct.dataclass
class Params(CalmParams):
    """The maze as numbers; tables have an axis for gusts: left, none, right."""

    lowest: float = 0.0
    """Least wind of an episode."""
    highest: float = 0.0
    """Most wind of an episode; winds between them are equally likely."""


class WindyGrid(Grid):
    """A walk in a maze as in `Grid`, in wind drawn for each episode.

    The wind w is uniform in `lowest` to `highest`: with probability |w| a gust carries a move a
    cell to the right, or to the left where w < 0 (see `envs.grid.tables.dynamics`). The observation
    does not tell it, so that positions alone are not a Markov chain: two moves of one episode have
    the same wind.

    Raises ValueError as `Grid` does, and for winds that are not in ascending order in -1 to 1.
    """

    def __init__(
        self,
        maze: str | Layout = "GridRoom-4",
        observation: str = "coordinates",
        lowest: float = -0.5,
        highest: float = 0.5,
    ):
        if not -1 < lowest <= highest < 1:
            raise ValueError(
                f"winds are {lowest} to {highest}; expected ascending numbers between -1 and 1"
            )
        super().__init__(maze, observation)
        self.lowest, self.highest = lowest, highest
        self._gusts = tables.gusts(self.layout)
        self.num_outcomes = self._gusts.successor.shape[-1]

    def identity(self) -> dict[str, Any]:
        numbers = ("lowest", "highest", "_gusts")
        return {k: v for k, v in super().identity().items() if k not in numbers}

    @property
    def default_params(self) -> Params:  # pyright: ignore[reportIncompatibleVariableOverride]
        calm = super().default_params
        shared = {name: getattr(calm, name) for name in ("observations", "starts", "goal")}
        with jax.ensure_compile_time_eval():
            return Params(
                successor=jnp.asarray(self._gusts.successor),
                probability=jnp.asarray(self._gusts.probability),
                num_starts=calm.num_starts,
                lowest=self.lowest,
                highest=self.highest,
                **shared,
            )

    def chances(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Random words: of gust and outcome for the move, of place and wind for the start."""
        words = jax.lax.optimization_barrier(jax.random.bits(key, (4,)))
        return words[:2], words[2:]

    def start(self, chance: jax.Array, params: Params) -> State:
        calm_state = super().start(chance[0], params)
        share = _uniform(chance[1])
        wind = params.lowest + (params.highest - params.lowest) * share
        return State(calm_state.position, calm_state.time, jnp.asarray(wind, jnp.float32))

    def transition(
        self, chance: jax.Array, state: State, action: jax.Array, params: Params
    ) -> tuple[State, jax.Array, jax.Array, dict[str, Any]]:
        has_gust = _uniform(chance[0]) < jnp.abs(state.wind)
        gust = jnp.where(has_gust, 1 + jnp.sign(state.wind), 1).astype(jnp.int32)
        place = (state.position, action, gust)
        position = params.successor[place][choose(chance[1], params.probability[place])]
        arrived = params.goal[position]
        reward = jnp.where(arrived, 1.0, params.step_reward)
        info = {"outcome": {"arrived": arrived}}
        return State(position, state.time + 1, state.wind), reward, arrived, info

    @property
    def name(self) -> str:
        return "WindyGrid-v0"

    def __repr__(self) -> str:
        return f"WindyGrid({self.layout.name!r}, {self.observation!r})"


def transition_matrix(gusts: tables.Dynamics, wind: float, policy: np.ndarray | None = None):
    """P(s' | s) in a wind, float64 `[S, S]`: that of calm, and of gusts with probability |wind|."""
    share, side = abs(wind), 2 if wind > 0 else 0
    parts = [
        tables.transition_matrix(tables.Dynamics(*(x[:, :, i] for x in gusts)), policy)
        for i in (1, side)
    ]
    return (1 - share) * parts[0] + share * parts[1]


def _uniform(word: jax.Array) -> jax.Array:
    """A number in [0, 1) of a random uint32."""
    return (word >> (32 - BITS)).astype(jnp.float32) / 2**BITS
