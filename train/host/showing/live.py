"""What a program has for people who look on while its policy plays, and may interfere."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxrl.types import Agent, AgentState, PyTree
from train.host.showing.episodes import Bars, Recording

UP, RIGHT, DOWN, LEFT = range(4)


class Edit(NamedTuple):
    """A change that a person may make."""

    label: str
    apply: Callable[[Any, Any, Any], Any]
    """`(state, params, value) -> state`; raises ValueError for what cannot be."""
    limits: tuple[float, float] | None = None
    """The range of a number; None: the value is a place (x, y) in the drawing."""
    number: Callable[[Any], float] = lambda state: 0.0
    """`state -> number`: what a number is in a state, on the host."""


class Duel(NamedTuple):
    """Players, any two of whom can meet."""

    names: Sequence[str]
    start: tuple[str, str]
    """Who meets first, by name."""
    sides: tuple[str, str]
    """What the two sides are called, such as their colours."""
    between: Callable[[str, str], tuple[Agent, AgentState]]
    """The agent that moves both sides, of the two players of these names."""
    winner: Callable[[Mapping[str, Any]], int | None]
    """Which side has won, 0 or 1, from the outcome of the last step; None: neither."""


class Live(NamedTuple):
    """A policy in its environment, as somebody looks at it."""

    env: Any  # with `step_env`, `is_truncated` and `get_obs`, as gymnax's and ours have
    params: PyTree
    agent: Agent
    agent_state: AgentState
    look: Callable[[Recording], tuple[Mapping[str, np.ndarray], Mapping[str, Bars]]]
    """What the scene draws, and what the agent thinks, from a recording of one step whose states
    are the one before it, alone: `(frames [1, ...], bars)`. `terminated` says that this step never
    comes, as the game has ended: of bars the last row counts then, otherwise the first."""
    scripts: Sequence[Path]  # as in `episodes.Scene`
    constants: Callable[[Any], Mapping[str, Any]] = lambda state: {}
    """What the scene draws that does not change from step to step, in a state of a new game, or one
    that was edited."""
    picture: Callable[[Any], np.ndarray] | None = None
    """`state -> uint8 [H, W, 3]`, for terminals; None: there is none."""
    cells: tuple[int, int] | None = None
    """Rows and columns of the board in that picture, blurred where small; None: no board."""
    ending: Callable[[Mapping[str, Any]], str] = lambda outcome: ""
    """How an episode ended, in a few words, from the outcome of its last step; beside that it has
    `terminated` and `truncated`."""
    steer: Callable[[Any, Any, int], Any] | None = None
    """`(state, action, direction) -> action`: that of a person who pressed an arrow key, `UP`,
    `RIGHT`, `DOWN` or `LEFT`; `action` is the policy's. None: nobody can take over."""
    hand: str = "steer yourself"
    """What taking over is called."""
    edits: Mapping[str, Edit] = {}
    measure: Callable[[Recording], Mapping[str, float]] | None = None
    """What is shown over time instead of value, reward and return."""
    learns: bool = False
    """Whether the agent learns from each step."""
    duel: Duel | None = None
    """Who may play instead of the two that `agent` moves; None: it plays alone."""
