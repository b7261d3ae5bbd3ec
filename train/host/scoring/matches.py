"""Games that are played in pieces: between two of them a command can be stopped.

A piece takes about half a second. How long it is in steps follows the clock, and makes no
difference to the games.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.evaluate import Episodes, EvaluationState, PlayState, Trajectory, Watch
from train.host.compilation import ahead_of_time, memory
from train.host.machine.progress import show_activity

PIECE = 0.5
"""Seconds that a piece is to take."""
GROWTH = 4
"""A piece has at most so many times the steps of the one before; the first has one."""


@dataclass(frozen=True)
class Match:
    """Games of a player, which may be played in pieces; called, it plays all of them at once.

    Its functions are pure. What a player is, they know: the state of an agent, perhaps more.
    """

    start: Callable[[Any, jax.Array], EvaluationState]
    """`(player, key) -> evaluation` before the first step."""
    advance: Callable[[Any, EvaluationState, Watch], EvaluationState]
    """`(player, evaluation, watch) -> evaluation`, as `evaluate.advance`."""
    limit: int | None = None
    """Steps after which a game counts as not finished; None: not known."""

    def __call__(self, player: Any, key: jax.Array) -> Episodes:
        return self.advance(player, self.start(player, key), self.full_window()).episodes

    def full_window(self) -> Watch:
        """All steps, with endless rounds left out and nothing watched."""
        return Watch(0, 0, self.limit or 0, True)

    def map_players(self, player_of: Callable[[Any], Any]) -> "Match":
        """The same for what `player_of`, a pure function, makes a player of."""
        return Match(
            lambda source, key: self.start(player_of(source), key),
            lambda source, evaluation, window: self.advance(player_of(source), evaluation, window),
            self.limit,
        )

    def vectorize(self) -> "Match":
        """The same for players `[S, ...]` and keys `[S]`."""
        return Match(jax.vmap(self.start), jax.vmap(self.advance, (0, 0, None)), self.limit)


def to_match(episodes_of: Callable[[Any, jax.Array], Episodes]) -> Match:
    """A match of which no more is known than all of its games, a pure function; or that match."""
    if isinstance(episodes_of, Match):
        return episodes_of

    def start(player: Any, key: jax.Array) -> EvaluationState:
        episodes = episodes_of(player, key)
        games = jnp.asarray(episodes.length).shape
        over = PlayState((), jnp.full(games[:-1], games[-1]), jnp.zeros((), jnp.int32))  # pyright: ignore
        return EvaluationState(over, episodes, Trajectory((), ()))

    return Match(start, lambda player, evaluation, window: evaluation)


class Status(NamedTuple):
    """How far a match is."""

    step: jax.Array  # int32
    is_over: jax.Array  # bool


@dataclass(frozen=True)
class CompiledMatch:
    """A compiled match."""

    match: Match
    starts: ahead_of_time.CompiledFunction
    """`(player, key) -> (evaluation, status)`."""
    advances: ahead_of_time.CompiledFunction
    """`(player, evaluation, watch) -> (evaluation, status)`; consumes (donates) the evaluation."""

    def play(
        self, player: Any, key: jax.Array, between: Callable[[int], None] = lambda step: None
    ) -> Episodes:
        """All games of one player, as NumPy arrays.

        `between(step)` is called after each piece, and may raise what ends the match.
        """
        progress = self.play_until(
            player, self.starts(player, key), self.match.full_window(), between
        )
        return jax.device_get(progress[0].episodes)

    def play_with_progress(self, player: Any, key: jax.Array, activity: str) -> Episodes:
        """The same; `activity` is shown as progress, with the steps so far."""
        with show_activity(activity) as tell:
            most = self.match.limit
            say = lambda step: tell(f"{activity}, step {step:,} of at most {most:,}")
            return self.play(player, key, say)

    def watch(self, player: Any, key: jax.Array, which: int, num_steps: int) -> Trajectory:
        """The first steps of one environment in the same games, NumPy `[num_steps, ...]`."""
        progress, pieces = self.starts(player, key), []
        rows = len(jax.tree.leaves(progress[0].trajectory.action)[0])
        for first in range(0, num_steps, rows):
            until = min(first + rows, num_steps)
            progress = self.play_until(player, progress, Watch(which, first, until, False))
            part = lambda x, count=until - first: np.array(x[:count])
            pieces.append(jax.tree.map(part, progress[0].trajectory))
        return jax.tree.map(lambda *x: np.concatenate(x), *pieces)

    def play_until(
        self,
        player: Any,
        progress: tuple[EvaluationState, Status],
        window: Watch,
        between: Callable[[int], None] = lambda step: None,
    ) -> tuple[EvaluationState, Status]:
        """Plays to `window.until`, or until all is over; calls `between(step)` after each piece."""
        size, until = 1, int(window.until)
        while not progress[1].is_over and (step := int(progress[1].step)) < until:
            start_time = time.monotonic()
            end = min(step + size, until)
            progress = self.advances(player, progress[0], window._replace(until=end))
            jax.block_until_ready(progress[1])
            between(int(progress[1].step))
            size = next_size(size, time.monotonic() - start_time)
        return progress


def next_size(size: int, seconds: float) -> int:
    """The steps of the piece after one of `size` steps that took so many seconds."""
    return max(1, min(GROWTH * size, int(size * PIECE / max(seconds, 1e-9))))


def compile_match(match: Match, player: Any, key: jax.Array, name: str = "") -> CompiledMatch:
    """Compiles a match. Raises UsageError if its games need more memory than there is.

    `player` and `key` may be shapes. For `name` see `ahead_of_time.trace`.
    """
    with show_activity("compiling the games"):
        traced_start = ahead_of_time.trace(
            with_status(match.start), player, key, name=name and f"start of {name}"
        )
        starts = traced_start.compile()
        evaluation, _ = jax.tree.map(
            lambda x, sharding: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding),
            traced_start.out_info,
            starts.output_shardings,
        )
        arguments = player, evaluation, match.full_window()
        advances = ahead_of_time.trace(
            with_status(match.advance), *arguments, name=name, donate_argnums=1
        ).compile()
    memory.refuse_games(starts)
    memory.refuse_games(advances)
    return CompiledMatch(match, starts, advances)


def with_status(
    function: Callable[..., EvaluationState],
) -> Callable[..., tuple[EvaluationState, Status]]:
    """`function`, which also returns how far the match is."""

    def call_with_status(*arguments: Any) -> tuple[EvaluationState, Status]:
        evaluation = function(*arguments)
        return evaluation, Status(jnp.max(evaluation.playing.step), evaluation.is_over())

    return call_with_status
