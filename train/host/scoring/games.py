"""Games that trained agents play for a score: how many, how long, and one of them watched."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import jax
import numpy as np

from jaxrl import evaluate
from jaxrl.evaluate import Episodes, Trajectory
from jaxrl.types import Agent, AgentState, Environment, PyTree
from train.host.player import Player
from train.host.scoring.limits import most_steps, time_limit
from train.host.scoring.matches import Match, compile_match, to_match
from train.host.scoring.scores import evaluation_table, have_score, summaries
from train.host.training import EpisodesOf, Evaluation, Score

ROWS, BYTES = 4_096, 2**24
"""A game is watched in pieces of at most so many steps, and bytes."""
UNFINISHED = 1_000
"""Steps that a film shows of a game that was not finished."""


class GameResults(NamedTuple):
    """The games of some agents."""

    episodes: list[Episodes]  # NumPy arrays [N, G], for each agent
    compile_seconds: float
    seconds: float
    replay: Callable[[AgentState, jax.Array, int, int], Trajectory] | None = None
    """`(agent_state, key, which, num_steps) -> trajectory`: plays the games with `key` again and
    returns the first steps of one environment, NumPy `[num_steps, ...]`; None: not watched."""
    limit: int | None = None
    """Steps after which a game counts as not finished; None: not known."""


@dataclass(frozen=True)
class GamesEvaluation:
    """A `Training.evaluate` that plays games; `Evaluation.detail` is `GameResults`.

    Its `fields` are those of the training: `Training(..., **evaluation.fields)`.
    """

    match: Match
    of_size: Callable[[int], Match] | None = None
    """`count -> match` of another number of games, where that can be chosen."""
    score: Score = Score()
    """What of the games is the score."""
    place: str = ""
    """Where the games are played, for the progress: " on 8×8"."""
    is_watched: bool = False
    """Whether the match keeps the steps of one environment."""
    player: Player | None = None
    """Who plays, as far as that is known."""
    name: str = ""
    """What the games are kept as, once traced (see `ahead_of_time.trace`)."""

    def __call__(
        self, agents: list[AgentState], seeds: list[int], keys: list[jax.Array]
    ) -> Evaluation:
        activities = [f"playing games to the end{self.place}, seed {x}" for x in seeds]
        results = play(self.match, agents, keys, activities, self.name)
        if not self.is_watched:
            results = results._replace(replay=None)
        content = evaluation_content(seeds, results, self.score.name)
        return Evaluation(content, evaluation_table(content), results)

    @property
    def fields(self) -> "GamesFields":
        """What a training has from it."""
        return {
            "evaluate": self,
            "games": self.of_size,
            "player": self.player,
            "score": self.score,
        }


class GamesFields(TypedDict):
    """Fields of a `Training`; its docstrings say what they are."""

    evaluate: GamesEvaluation
    games: Callable[[int], Match] | None
    player: Player | None
    score: Score


def of_player(
    env: Environment,
    env_params: PyTree,
    player: Agent,
    games_each: int,
    limit: int | None = None,
    place: str = "",
    deterministic: bool = False,
    score: Score = Score(),
) -> GamesEvaluation:
    """The `Training.evaluate` in which `player` plays `games_each` complete games.

    A game of more than `limit` steps is left out and reported; None: what `limits.most_steps` says.
    `place`, such as " on 8×8", is shown as progress. A player that draws no random numbers is
    `deterministic`: its endless rounds are left out.
    """
    longest = most_steps(time_limit(env_params)) if limit is None else int(limit)

    def match(games: int, rows: int = 0) -> Match:
        return match_of(env, env_params, player, games, longest, rows, deterministic)

    watched_match = match(games_each, watched_rows(env, env_params, longest))
    acting_player = Player(env, env_params, player)
    return GamesEvaluation(
        watched_match, match, score, place, is_watched=True, player=acting_player
    )


def match_of(
    env: Environment,
    env_params: PyTree,
    player: Agent,
    games: int,
    limit: int,
    rows: int = 0,
    deterministic: bool = False,
) -> Match:
    """One game in each of `games` environments, of which `rows` steps of one can be watched."""
    game = env, env_params, player
    return Match(
        lambda state, key: evaluate.start(*game, state, key, games, 1, rows, deterministic),
        lambda state, course, window: evaluate.advance(*game, state, course, window),
        limit,
    )


def best_game(scores: Any, episodes: Episodes) -> int:
    """The index of the game `[N, 1]` with the highest of `scores`; 0 if none has one."""
    return int(np.argmax(np.where(have_score(episodes), np.ravel(scores), -np.inf)))


def steps_to_show(length: Any, limit: int | None) -> int:
    """The steps of a game that a film shows, from its start: all, unless it was not finished.

    `length` is 0 then, and `limit` as in `GameResults`.
    """
    return int(length) or min(UNFINISHED, limit or UNFINISHED)


def watched_rows(env: Environment, env_params: PyTree, limit: int) -> int:
    """Steps of a game that are kept at a time."""
    _, state = jax.eval_shape(env.reset, jax.random.key(0), env_params)
    size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))
    return max(1, min(int(limit), ROWS, BYTES // max(size, 1)))


def of_episodes(episodes_of: EpisodesOf, score: Score = Score()) -> GamesEvaluation:
    """The `Training.evaluate` that plays `episodes_of(agent_state, key)`, a pure function."""
    return GamesEvaluation(to_match(episodes_of), score=score)


def play(
    episodes_of: EpisodesOf,
    agents: list[AgentState],
    keys: list[jax.Array],
    activities: list[str],
    name: str = "",
) -> GameResults:
    """Compiles `episodes_of` once and plays its games with each agent.

    In pieces, if it is a `Match`. `activities` are shown as progress, one for each agent. For
    `name` see `ahead_of_time.trace`. Raises UsageError if so many games need more memory than there
    is.
    """
    start_time = time.perf_counter()
    match = compile_match(to_match(episodes_of), agents[0], keys[0], name)
    ready_time = time.perf_counter()
    episodes = [
        match.play_with_progress(*each) for each in zip(agents, keys, activities, strict=True)
    ]
    durations = ready_time - start_time, time.perf_counter() - ready_time
    return GameResults(episodes, *durations, match.watch, match.match.limit)


def evaluation_content(seeds: list[int], results: GameResults, score: str) -> dict[str, Any]:
    """The `Evaluation.content` of games."""
    return {
        "score": score,
        **({} if results.limit is None else {"max_steps": results.limit}),
        "compile_seconds": results.compile_seconds,
        "seconds": results.seconds,
        "seeds": [
            {"seed": seed, **summaries(episodes)}
            for seed, episodes in zip(seeds, results.episodes, strict=True)
        ],
    }
