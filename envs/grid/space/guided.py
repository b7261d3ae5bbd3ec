"""A walk between walls that is paid for a potential, and for arriving at a goal."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from envs.grid.layouts import Layout
from envs.grid.space import continuous
from envs.grid.space.continuous import ContinuousMaze, is_free_way


@struct.dataclass
class State(continuous.State):
    start_potential: jax.Array  # float32, Φ where the episode began


@struct.dataclass
class Params(continuous.Params):
    """Numbers of the maze and of the task."""

    potential: Any = None
    """Φ, float32 [H parts, W parts], higher is better; in walls no higher than the highest free
    place, as `way` is measured up to the highest of all."""
    highest: Any = None
    """The highest Φ that a walk can get to from each place, [H parts, W parts]; None: that of all,
    as where the space does not fall into parts."""
    num_starts: Any = None
    """int32, how many of the tiles `cells`, the first ones, episodes start in; None: all."""
    goal: Any = None
    """float32 [2], a position."""
    radius: float = -1.0
    """How near to the goal, in tiles and in sight of it, an episode ends; at most 1; negative:
    never."""
    weight: float = 1.0
    """Reward per unit of potential."""
    shaping_discount: float = 1.0
    """γ of the reward γ Φ(s') - Φ(s)."""


class GuidedWalk(ContinuousMaze):
    """`ContinuousMaze` with rewards: weight (γ Φ(s') - Φ(s)), and 1 for arriving at the goal.

    The potential Φ is one number for each of `parts` x `parts` cells in a tile. Φ is 0 after
    arriving, so that with γ of the learner the best policy is that of the goal alone (Ng, Harada &
    Russell 1999). Outcome: `arrived`; `climbed`, how much higher Φ is than where the episode began;
    and `way`, how much higher the highest place is that a walk can get to.
    """

    def __init__(self, maze: str | Layout = "GridRoom-4", step: float = 0.5, parts: int = 8):
        super().__init__(maze, step)
        self.parts = parts

    def identity(self) -> dict[str, Any]:
        return super().identity() | {"parts": self.parts}

    @property
    def default_params(self) -> Params:  # pyright: ignore[reportIncompatibleVariableOverride]
        base = super().default_params
        with jax.ensure_compile_time_eval():
            flat = jnp.zeros((self.height * self.parts, self.width * self.parts))
            return Params(base.free, base.cells, base.step, potential=flat, goal=jnp.zeros(2))

    def num_starts(self, params: Params) -> Any:
        every = super().num_starts(params)
        return every if params.num_starts is None else params.num_starts

    def start(self, chance: jax.Array, params: Params) -> State:
        state = super().start(chance, params)
        return State(state.position, state.time, self.potential_at(state.position, params))

    def transition(
        self, chance: jax.Array, state: State, action: jax.Array, params: Params
    ) -> tuple[State, jax.Array, jax.Array, dict[str, Any]]:
        inner, *_ = super().transition(chance, state, action, params)
        before = self.potential_at(state.position, params)
        after = self.potential_at(inner.position, params)
        near = jnp.linalg.norm(inner.position - params.goal) <= params.radius
        arrived = near & is_free_way(params.free, inner.position, params.goal, jnp)
        gain = params.shaping_discount * jnp.where(arrived, 0.0, after) - before
        start = state.start_potential
        reward = arrived + params.weight * gain
        if params.highest is None:
            highest = jnp.max(params.potential)
        else:
            highest = self.look_up(params.highest, state.position)
        way = highest - start
        outcome = {"arrived": arrived, "climbed": after - start, "way": way}
        state = State(inner.position, inner.time, start)
        return state, reward, arrived, {"outcome": outcome}

    def potential_at(self, position: jax.Array, params: Params) -> jax.Array:
        return self.look_up(params.potential, position)

    def look_up(self, numbers: jax.Array, position: jax.Array) -> jax.Array:
        """The number at a position, of one for each fine cell, `[H parts, W parts]`."""
        row, col = jnp.floor(position * self.parts).astype(jnp.int32)
        return numbers[row, col]

    @property
    def name(self) -> str:
        return "GuidedWalk-v0"
