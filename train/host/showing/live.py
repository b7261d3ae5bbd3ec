"""A game that goes on step by step while somebody looks on, who may interfere: for `train.play`."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.types import Agent, AgentState, PyTree, Transition
from train.host.showing import episodes
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


class InvalidRequest(ValueError):
    """A wish that cannot be granted; the game is as before."""


class GameState(NamedTuple):
    """A game between two steps."""

    state: PyTree
    obs: PyTree
    memory: PyTree
    agent_state: AgentState
    action: PyTree  # that the agent takes next
    explained: dict[str, jax.Array]
    thought: tuple[PyTree, PyTree]  # the agent's memory and extras after that action
    key: jax.Array


class Game:
    """One game in progress, for one person."""

    def __init__(self, live: Live, seed: int):
        self.live = live
        self.players = None if live.duel is None else live.duel.start
        self.scores: dict[tuple[str, str], list[int]] = {}  # by players: won, drawn, lost
        self.new(seed)

    def new(self, seed: int, players: tuple[str, str] | None = None) -> None:
        """A new game, in a duel between other players if there are any."""
        if players is not None:
            self._seat(players)
        self.seed, self.is_fair = seed, True
        self.now = _begin(self.live, self.live.agent_state, jax.random.key(seed))
        self.is_fresh = True  # the constants may have changed since they were shown
        self.moment, self.total, self.reward, self.ending = 0, 0.0, float("nan"), ""

    def step(self, direction: int | None = None) -> None:
        """One step, steered by a person if there is a direction.

        Raises InvalidRequest after the end of the game, and for a direction that leads nowhere.
        """
        if self.ending:
            raise InvalidRequest("the game is over; begin a new one")
        action = self.now.action
        if direction is not None:
            if self.live.steer is None:
                raise InvalidRequest("nobody can steer here")
            if direction not in (UP, RIGHT, DOWN, LEFT):
                raise InvalidRequest(
                    f"direction is {direction}; expected 0 to 3: up, right, down, left"
                )
            action, self.is_fair = self.live.steer(self.now.state, action, direction), False
        self.now, reward, terminated, truncated, outcome = _step(self.live, self.now, action)
        self.reward = float(np.sum(reward))
        self.total, self.moment = self.total + self.reward, self.moment + 1
        if terminated or truncated:
            endings = {"terminated": terminated, "truncated": truncated}
            outcome = {**jax.device_get(outcome), **endings}
            self.ending = self.live.ending(outcome) or "the episode is over"
            self._count(outcome)

    def _seat(self, players: tuple[str, str]) -> None:
        """Lets two other players meet."""
        if self.live.duel is None:
            raise InvalidRequest("nobody meets another player here")
        for name in players:
            if name not in self.live.duel.names:
                raise InvalidRequest(f"there is no player {name!r}")
        agent, agent_state = self.live.duel.between(*players)
        self.live, self.players = self.live._replace(agent=agent, agent_state=agent_state), players

    def _count(self, outcome: Mapping[str, Any]) -> None:
        """Adds a game to the score of its players, unless somebody has interfered."""
        if self.live.duel is not None and self.players is not None and self.is_fair:
            winner = self.live.duel.winner(outcome)
            place = 1 if winner is None else 2 * winner
            self.score[place] += 1

    @property
    def score(self) -> list[int]:
        """Games won, drawn and lost of the first of the two players against the other."""
        assert self.players is not None
        return self.scores.setdefault(self.players, [0, 0, 0])

    def edit(self, name: str, value: Any) -> None:
        """A change of the state. Raises InvalidRequest for one that cannot be."""
        if name not in self.live.edits:
            raise InvalidRequest(f"there is no edit {name!r}")
        if self.ending:
            raise InvalidRequest("the game is over; begin a new one")
        edit = self.live.edits[name]
        count = 2 if edit.limits is None else 1
        numbers = np.atleast_1d(np.asarray(value, np.float64)) if _is_numbers(value) else None
        if numbers is None or numbers.shape != (count,) or not np.isfinite(numbers).all():
            numbers_text = "a finite number" if count == 1 else f"{count} finite numbers"
            raise InvalidRequest(f"{name} is {value!r}; expected {numbers_text}")
        low, high = edit.limits or (-1e6, 1e6)
        if (numbers < low).any() or (numbers > high).any():
            raise InvalidRequest(f"{name} is {value!r}; expected {low:g} to {high:g}")
        argument = tuple(numbers.tolist()) if edit.limits is None else float(numbers[0])
        try:
            state = edit.apply(self.now.state, self.live.params, argument)
        except ValueError as error:
            raise InvalidRequest(str(error)) from error
        self.now, self.is_fresh = _replace_state(self.live, self.now, state), True
        self.is_fair = False

    def recording(self) -> Recording:
        """The state now, and what the agent is about to do, as a recording of one step.

        After the end, which it says as `terminated`, that step never comes.
        """
        add_axis = lambda tree: jax.tree.map(lambda x: np.asarray(x)[None], jax.device_get(tree))
        game_state = self.now
        return Recording(
            state=add_axis(game_state.state),
            obs=add_axis(game_state.obs),
            action=add_axis(game_state.action),
            reward=np.zeros(1, np.float32),
            explained=add_axis(game_state.explained),
            outcome={},
            terminated=bool(self.ending),
            truncated=False,
        )

    def moment_data(self) -> dict[str, Any]:
        """All that a page needs to draw this moment, as arrays and plain data."""
        recording = self.recording()
        if self.live.learns:
            learned = {"agent": self.now.agent_state}  # for scenes that show what it has learned
            recording = recording._replace(explained=recording.explained | learned)
        frames, bars = self.live.look(recording)
        row = -1 if self.ending else 0  # bars of actions have a last one, of no step
        return {
            "moment": self.moment,
            "frames": {name: np.asarray(x)[:1] for name, x in frames.items()},
            "lines": self._lines(recording),
            "bars": {
                name: {
                    "labels": list(x.labels),
                    "limits": x.limits,
                    "values": np.asarray(x.values, np.float32)[[row]],
                    "chosen": -1 if x.chosen is None else int(x.chosen[row]),
                }
                for name, x in bars.items()
            },
            "ending": self.ending,
            **({} if self.players is None else {"players": self.players, "score": self.score}),
            **self._rarely_changed(),
        }

    def _lines(self, recording: Recording) -> dict[str, float]:
        if self.live.measure is not None:
            return dict(self.live.measure(recording))
        value = episodes.lines(recording).get("value")
        thought = {} if value is None else {"value": float("nan") if self.ending else value[0]}
        return {**thought, "reward": self.reward, "return so far": self.total}

    def _rarely_changed(self) -> dict[str, Any]:
        """What is told of a new game and after an edit alone."""
        if not self.is_fresh:
            return {}
        self.is_fresh = False
        state, edits = jax.device_get(self.now.state), self.live.edits
        numbers = {name: x.number(state) for name, x in edits.items() if x.limits}
        return {"constants": dict(self.live.constants(state)), "numbers": numbers}


def _is_numbers(value: Any) -> bool:
    """A number, or a list of a few."""
    is_number = lambda x: isinstance(x, int | float) and not isinstance(x, bool)
    if isinstance(value, list):
        return len(value) <= 4 and all(is_number(x) and abs(x) < 1e15 for x in value)
    return is_number(value) and abs(value) < 1e15


def _begin(live: Live, agent_state: AgentState, key: jax.Array) -> GameState:
    start_key, key = jax.random.split(key)
    obs, state = live.env.reset(start_key, live.params)
    return _think(live.agent, agent_state, live.agent.memory(), state, obs, key)


@partial(jax.jit, static_argnums=0)
def _think(
    agent: Agent, agent_state: AgentState, memory: PyTree, state: PyTree, obs: PyTree, key: Any
) -> GameState:
    """What the agent makes of an observation."""
    act_key, key = jax.random.split(key)
    explained = agent.explain(agent_state, memory, obs)
    action, after, extras = agent.act(agent_state, memory, obs, act_key)
    return GameState(state, obs, memory, agent_state, action, explained, (after, extras), key)


@partial(jax.jit, static_argnums=0)
def _move(env: Any, params: PyTree, state: PyTree, action: PyTree, key: jax.Array) -> tuple:
    """One transition, with the time limit and without a reset."""
    obs, state, reward, terminated, info = env.step_env(key, state, action, params)
    truncated = env.is_truncated(state, params)
    return obs, state, jnp.asarray(reward, jnp.float32), terminated, truncated, info


@partial(jax.jit, static_argnums=0)
def _observe(env: Any, params: PyTree, state: PyTree) -> PyTree:
    return env.get_obs(state, params)


@partial(jax.jit, static_argnums=0)
def _update(agent: Agent, agent_state: AgentState, transition: Transition, key: Any) -> AgentState:
    rollout = jax.tree.map(lambda x: jnp.asarray(x)[None, None], transition)
    return agent.update(agent_state, rollout, key)[0]


def _step(live: Live, game_state: GameState, action: PyTree) -> tuple:
    """`(game_state, reward, terminated, truncated, outcome)` after an action."""
    step_key, learn_key, key = jax.random.split(game_state.key, 3)
    results = _move(live.env, live.params, game_state.state, action, step_key)
    obs, state, reward, terminated, truncated, info = results
    memory, extras = game_state.thought
    agent_state = game_state.agent_state
    if live.learns:
        transition = Transition(game_state.obs, action, reward, obs, terminated, truncated, extras)
        agent_state = _update(live.agent, agent_state, transition, learn_key)
    after = _think(live.agent, agent_state, memory, state, obs, key)
    return after, reward, bool(terminated), bool(truncated), info.get("outcome", {})


def _replace_state(live: Live, game_state: GameState, state: PyTree) -> GameState:
    """The game in another state, which the agent now sees."""
    obs = _observe(live.env, live.params, state)
    return _think(live.agent, game_state.agent_state, game_state.memory, state, obs, game_state.key)
