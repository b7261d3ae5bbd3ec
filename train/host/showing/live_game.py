"""One game in progress, for somebody who looks on and may interfere: for `train.play`."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from train.host.showing import episodes, live_steps
from train.host.showing.episodes import Recording
from train.host.showing.live import DOWN, LEFT, RIGHT, UP, Live


class InvalidRequest(ValueError):
    """A wish that cannot be granted; the game is as before."""


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
        self.now = live_steps.begin(self.live, self.live.agent_state, jax.random.key(seed))
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
        self.now, reward, terminated, truncated, outcome = live_steps.step(
            self.live, self.now, action
        )
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
        self.now, self.is_fresh = live_steps.replace_state(self.live, self.now, state), True
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
