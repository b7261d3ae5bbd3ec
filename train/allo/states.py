"""States as whoever uses an encoder gives them, and what the network is shown of each.

Axes: N states, S numbered states.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.grid.layouts import Layout
from envs.grid.space import continuous
from envs.grid.space.continuous_frames import Colours, frame_shape

FARTHEST = 1e30
"""Of the range that was recorded: a vector beyond is a mistake, and near what float32 can hold."""


class StateSpace(NamedTuple):
    """A way in which states are given."""

    name: str  # what one of them is, for documentation and messages
    template: jax.ShapeDtypeStruct  # of one state
    observe: Callable[[jax.Array], jax.Array]
    """The network's input for one state; a pure function."""
    refuse: Callable[[np.ndarray], None] = lambda states: None
    """Raises ValueError, in one line, if one of the states `[N, ...]` does not exist."""
    prepare: Callable[[np.ndarray], np.ndarray] | None = None
    """The network's input for states `[N, ...]` of float64, where float32 would lose digits;
    None: `observe` makes it of each."""

    @property
    def input_template(self) -> jax.ShapeDtypeStruct:
        """The template of a state before it is prepared."""
        dtype = self.template.dtype if self.prepare is None else np.float64
        return jax.ShapeDtypeStruct(self.template.shape, dtype)


def cells(layout: Layout, inputs: np.ndarray) -> StateSpace:
    """Free cells of a maze, int32 (row, col); `inputs` `[S, ...]` are those of the network."""
    index, table = jnp.asarray(layout.index), jnp.asarray(inputs)
    refuse = lambda states: refuse_first(
        states, lie_free(layout, states), "a free cell of the maze"
    )
    template = jax.ShapeDtypeStruct((2,), jnp.int32)
    return StateSpace("row and column", template, lambda cell: table[index[tuple(cell)]], refuse)


def positions(layout: Layout) -> StateSpace:
    """Points between the walls of a maze, float32 (row, col) in tiles."""
    expected = "a place between the walls"
    refuse = lambda states: refuse_first(states, lie_free(layout, states), expected)
    observe = lambda position: continuous.coordinates(position, layout.height, layout.width)
    template = jax.ShapeDtypeStruct((2,), jnp.float32)
    return StateSpace("position in tiles", template, observe, refuse)


def frames(layout: Layout, tile: int, colours: Colours) -> StateSpace:
    """Pictures of a walker, float32 `[h, w, C]` in 0 to 1, as `ContinuousMaze` shows them."""

    def refuse(states: np.ndarray) -> None:
        inside = ((states >= 0) & (states <= 1)).reshape(len(states), -1).all(axis=1)
        if not inside.all():
            raise ValueError(f"frame {int(np.argmin(inside))} has numbers outside of 0 to 1")

    shape = frame_shape(layout.height, layout.width, tile, colours)
    return StateSpace("frame", jax.ShapeDtypeStruct(shape, jnp.float32), lambda x: x, refuse)


def observations(template: jax.ShapeDtypeStruct) -> StateSpace:
    """What an environment shows, of its shape and dtype."""
    return StateSpace("observation", template, lambda x: x)


def lie_free(layout: Layout, places: np.ndarray) -> np.ndarray:
    """Whether the tiles of cells or positions `[N, 2]` are free, bool `[N]`."""
    inside = np.all((places >= 0) & (places < np.array(layout.free.shape)), axis=1)
    rows, cols = np.where(inside[:, None], places, 0).astype(int).T
    return inside & layout.free[rows, cols]


def ids(inputs: np.ndarray, occurs: np.ndarray) -> StateSpace:
    """Ids 0..S-1 of recorded states; `inputs` `[S, ...]` are those of the network.

    Ids that do not occur in the recording, bool `[S]`, are refused: nothing was learned of them.
    """
    table = jnp.asarray(inputs)

    def refuse(states: np.ndarray) -> None:
        is_id = (states >= 0) & (states < len(inputs))
        refuse_first(states, is_id, f"an id from 0 to {len(inputs) - 1:,}")
        count = f"{int(np.sum(occurs)):,} of {len(occurs):,}"
        refuse_first(states, occurs[states], f"an id that a recorded transition has, as {count} do")

    return StateSpace("id", jax.ShapeDtypeStruct((), jnp.int32), lambda i: table[i], refuse)


def vectors(middle: np.ndarray, scale: float) -> StateSpace:
    """Vectors as they were recorded, `[D]`; the network sees (x - middle) / scale.

    The difference is taken in float64: of vectors far from 0, such as places on a map of the Earth
    in metres, float32 keeps little of what differs between them.
    """
    template = jax.ShapeDtypeStruct(middle.shape, jnp.float32)
    centre, unit = middle.astype(np.float32), np.float32(scale)

    def refuse(states: np.ndarray) -> None:
        is_near = np.all(np.abs(states / scale - middle / scale) < FARTHEST, axis=1)
        refuse_first(states, is_near, f"numbers within {FARTHEST:g} ranges of the recorded ones")

    prepare = lambda states: ((states - middle) / scale).astype(np.float32)
    return StateSpace("vector", template, lambda x: (x - centre) / unit, refuse, prepare)


def refuse_first(states: np.ndarray, exists: np.ndarray, expected: str) -> None:
    """Raises ValueError, which names the first of the states `[N, ...]` that does not exist."""
    if not exists.all():
        n = int(np.argmin(exists))
        state: Any = states[n].tolist()
        raise ValueError(f"state {n} is {state}; expected {expected}")
