"""The best policy of each member of a run, by games played while it trains.

`best/` in the directory of a run is a checkpoint (see `jaxrl.checkpoint`) of the parameters that
each member had when it scored best. A score of some games is also luck, and the best of many such
scores more so: `python -m train.evaluate RUN --best` plays fresh games.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrl import checkpoint
from jaxrl.types import AgentState
from train.host.errors import UsageError
from train.host.files import policy_files
from train.host.machine.members import Members
from train.host.numbers import quantity
from train.host.scoring.matches import CompiledMatch, compile_match, in_one_piece
from train.host.scoring.scores import summaries
from train.host.training import PlayConfig, Training

BEST = "best"
STREAM = 2**31 - 1
"""Folded into the key of a seed, so that no other games use the same random numbers."""


class Kept(NamedTuple):
    """What `best/` holds."""

    arrays: dict[str, np.ndarray]  # parameters by name, [S, ...]
    scores: list[float | None]  # [S] the best so far
    updates: list[int]  # [S] when that was


@dataclass
class Best:
    """Scores the members of a run from time to time, and keeps the best of each."""

    directory: Path
    members: Members
    score: str
    lower: bool  # is better
    match: CompiledMatch  # of the agents and keys of all members
    kept: Kept | None
    is_played: bool = False  # by this process

    def evaluate(
        self, agents: AgentState, updates: int, between: Callable[[int], None]
    ) -> list[dict[str, Any]]:
        """What the rows of the record say of the games of each member after so many updates.

        For `between` see `CompiledMatch.play`.
        """
        episodes = self.match.play(agents, keys(self.members, updates), between)
        self.is_played = True
        several = len(self.members.seeds) > 1
        found = []
        for s in range(len(self.members.seeds)):
            of_one = jax.tree.map(lambda x, s=s: x[s], episodes) if several else episodes
            row = summaries(of_one)
            measure = {k: row[self.score].get(k) for k in ("mean", "low", "high")}
            found.append({"games": row["games"], **measure})
        self.keep(agents, [row["mean"] for row in found], updates)
        return found

    def keep(self, agents: AgentState, scores: list[float | None], updates: int) -> None:
        """Writes the parameters of the members that have never been better."""
        now = stacked(agents, self.members)
        count = len(self.members.seeds)
        kept = self.kept or Kept(jax.tree.map(np.zeros_like, now), [None] * count, [0] * count)
        better = [s for s, score in enumerate(scores) if self.is_better(score, kept.scores[s])]
        if not better:
            return
        for s in better:
            kept.scores[s], kept.updates[s] = scores[s], updates
            for name, x in now.items():
                kept.arrays[name][s] = x[s]
        meta = {
            "score": self.score,
            "lower": self.lower,
            "scores": kept.scores,
            "updates": kept.updates,
        }
        checkpoint.save(self.directory / BEST, updates, kept.arrays, meta, keep=1)
        self.kept = kept

    def told(self, steps_per_update: int, unit: str) -> str:
        """A line on the best scores so far; empty before the first games."""
        if self.kept is None:
            return (
                f"{self.line_without_scores}: no policy is kept in {BEST}/"
                if self.is_played
                else ""
            )
        known = [
            f"{score:.4g} after {updates * steps_per_update:,} {unit}"
            for score, updates in zip(self.kept.scores, self.kept.updates, strict=True)
            if score is not None
        ]
        more = f" and {quantity(len(known) - 3, 'more seeds')}" if len(known) > 3 else ""
        return f"best {self.score} while training: {', '.join(known[:3])}{more}; kept in {BEST}/"

    @property
    def line_without_scores(self) -> str:
        """What is said where no policy has a score."""
        limit = self.match.match.limit
        within = "" if limit is None else f" within {quantity(limit, 'steps')}"
        return f"no game while training was finished{within} with a finite return"

    def why_to_stop(self, patience: int) -> str:
        """A line on a run that ends as no member has improved."""
        if self.kept is None:
            return f"{self.line_without_scores}, in {patience} evaluations"
        return f"no better score in {patience} evaluations"

    def is_better(self, score: float | None, than: float | None) -> bool:
        if score is None or than is None:
            return score is not None
        return score < than if self.lower else score > than

    def waited(self, updates: int, period: int) -> int:
        """For how many evaluations, one each `period` updates, no member has improved."""
        return (updates - max(self.kept.updates if self.kept else [0])) // period


def stacked(agents: AgentState, members: Members) -> dict[str, np.ndarray]:
    """The parameters of all members by name, `[S, ...]`, also of a single one."""
    found = {name: np.array(x) for name, x in policy_files.parameters(agents).items()}
    return found if len(members.seeds) > 1 else {name: x[None] for name, x in found.items()}


def read(directory: Path, agents: AgentState, members: Members) -> Kept:
    """What `best/` of a run holds, whose agents have the shapes `agents`.

    Raises UsageError if there is nothing that can be read.
    """
    like = dict(policy_files.parameters(agents))
    if len(members.seeds) == 1:
        like = {k: jax.ShapeDtypeStruct((1, *x.shape), x.dtype) for k, x in like.items()}
    try:
        arrays, meta, _ = checkpoint.restore(directory / BEST, like)
    except checkpoint.CheckpointError as error:
        raise UsageError(
            f"{error}: there is one once a game for a score is finished while training with "
            "--run.evaluate-every"
        ) from error
    return Kept({k: np.array(x) for k, x in arrays.items()}, meta["scores"], meta["updates"])


def make(
    training: Training, settings: Any, members: Members, directory: Path, agents: AgentState
) -> Best | None:
    """Compiles the games for agents of the shapes `agents`; None if the run plays none.

    Raises UsageError if the program plays none, or they need more memory than there is.
    """
    if not isinstance(settings, PlayConfig) or not settings.evaluate_every:
        return None
    per_update = training.steps_per_update
    first = settings.evaluate_every * settings.chunk_updates(per_update)
    if settings.total_updates(per_update) < first:
        return None
    if training.games is None:
        raise UsageError("this program plays no games while it trains: leave out evaluate-every")
    match = in_one_piece(training.games(settings.evaluate_games))
    match = match if len(members.seeds) == 1 else match.side_by_side()
    agents = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), agents)  # on one device
    compiled = compile_match(match, agents, keys(members, 0))
    known = checkpoint.steps(directory / BEST)
    kept = read(directory, agents, members) if known else None
    return Best(directory, members, training.score, training.lower_is_better, compiled, kept)


def luck(directory: Path, fresh: dict[str, Any]) -> list[str]:
    """A line for each seed: the score that chose its policy, and the one of fresh games.

    `directory` is `best/` of a run, `fresh` the content of an `eval.json`.
    """
    kept, name = checkpoint.read_meta(directory), fresh["score"]
    found = []
    for row, chosen, updates in zip(fresh["seeds"], kept["scores"], kept["updates"], strict=True):
        mean = row[name]["mean"] if name in row else None
        if mean is None or chosen is None or name != kept["score"]:
            continue
        told = f"{name} {chosen:.4g} when it was chosen, after {quantity(updates, 'updates')}"
        better = mean - chosen if kept["lower"] else chosen - mean
        said = f"choosing flattered it by {better:.2g}" if better > 0 else "choosing was not luck"
        found.append(f"seed {row['seed']}: {told}; {mean:.4g} on fresh games: {said}")
    return found


def keys(members: Members, updates: int) -> jax.Array:
    """The key of the games of each seed after so many updates; no axis for a single seed."""
    seeds = np.asarray(members.seeds, np.int32)
    of_one = lambda seed: jax.random.fold_in(
        jax.random.fold_in(jax.random.key(seed), STREAM), updates
    )
    return of_one(seeds[0]) if len(seeds) == 1 else jax.vmap(of_one)(seeds)
