"""The best policy of each member of a run, by games played while it trains.

The newest checkpoint in `best/` of a run (see `jaxrl.checkpoint`) has the parameters that each
member had when it scored best; an older one is for a run that returns to before that. A score of
some games is also luck, and the best of many such scores more so:
`python -m train.evaluate RUN --best` plays fresh games.
"""

import json
import logging
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
from train.host.machine import distributed
from train.host.machine.members import Members
from train.host.numbers import digits_text, quantity
from train.host.scoring.matches import CompiledMatch, compile_match, to_match
from train.host.scoring.scores import summaries
from train.host.training import PlayConfig, Score, Training

STREAM = 2**31 - 1
"""Folded into the key of a seed, so that no other games use the same random numbers."""
_log = logging.getLogger(__name__)


class BestPolicies(NamedTuple):
    """What `best/` holds."""

    arrays: dict[str, np.ndarray]  # parameters by name, [S, ...]
    scores: list[float | None]  # [S] the best so far
    updates: list[int]  # [S] when that was


@dataclass
class BestTracker:
    """Scores the members of a run from time to time, and keeps the best of each."""

    folder: Path  # `best/` of the run
    members: Members
    score: Score
    match: CompiledMatch  # of the agents and keys of all members
    policies: BestPolicies | None
    is_played: bool = False  # by this process
    saved_updates: int = 0  # of the newest checkpoint of the run, to which it may return

    def evaluate(
        self, agents: AgentState, updates: int, between: Callable[[int], None]
    ) -> list[dict[str, Any]]:
        """What the rows of the record say of the games of each member after so many updates.

        For `between` see `CompiledMatch.play`.
        """
        episodes = self.match.play(agents, keys(self.members, updates), between)
        self.is_played = True
        several = len(self.members.seeds) > 1
        rows = []
        for s in range(len(self.members.seeds)):
            member_episodes = jax.tree.map(lambda x, s=s: x[s], episodes) if several else episodes
            row = summaries(member_episodes)
            measure = {k: row[self.score.name].get(k) for k in ("mean", "low", "high")}
            rows.append({"games": row["games"], **measure})
        if not distributed.is_alone():  # whose machines may round otherwise: the first one decides
            rows = json.loads(distributed.broadcast_text(json.dumps(rows)))
        self.keep(agents, [row["mean"] for row in rows], updates)
        return rows

    def keep(self, agents: AgentState, scores: list[float | None], updates: int) -> None:
        """Writes the parameters of the members that have never been better."""
        parameters = stack_parameters(agents, self.members)
        count = len(self.members.seeds)
        policies = self.policies or BestPolicies(
            jax.tree.map(np.zeros_like, parameters), [None] * count, [0] * count
        )
        improved = [
            s for s, score in enumerate(scores) if self.is_better(score, policies.scores[s])
        ]
        if not improved:
            return
        for s in improved:
            policies.scores[s], policies.updates[s] = scores[s], updates
            for name, x in parameters.items():
                policies.arrays[name][s] = x[s]
        meta = {
            "score": self.score.name,
            "lower": self.score.lower_is_better,
            "scores": policies.scores,
            "updates": policies.updates,
        }
        later = sum(step > self.saved_updates for step in checkpoint.steps(self.folder))
        checkpoint.save(self.folder, updates, policies.arrays, meta, keep=later + 2)
        self.policies = policies

    def return_to(self, updates: int) -> None:
        """Forgets what was found after so many updates, which the run has given up."""
        checkpoint.delete_after(self.folder, updates)
        if self.policies is None or not checkpoint.steps(self.folder):
            self.policies = None
        else:
            self.policies = _read(self.folder, self.policies.arrays)

    def summary_line(self, steps_per_update: int, unit: str) -> str:
        """A line on the best scores so far; empty before the first games."""
        if self.policies is None:
            return (
                f"{self.line_without_scores}: no policy is kept in {self.folder.name}/"
                if self.is_played
                else ""
            )
        entries = [
            f"{digits_text(score)} after {updates * steps_per_update:,} {unit}"
            for score, updates in zip(self.policies.scores, self.policies.updates, strict=True)
            if score is not None
        ]
        more = f" and {quantity(len(entries) - 3, 'more seeds')}" if len(entries) > 3 else ""
        scores = f"{', '.join(entries[:3])}{more}"
        return f"best {self.score.name} while training: {scores}; kept in {self.folder.name}/"

    @property
    def line_without_scores(self) -> str:
        """What is said where no policy has a score."""
        limit = self.match.match.limit
        within = "" if limit is None else f" within {quantity(limit, 'steps')}"
        return f"no game while training was finished{within} with a finite return"

    def why_to_stop(self, patience: int) -> str:
        """A line on a run that ends as no member has improved."""
        if self.policies is None:
            return f"{self.line_without_scores}, in {patience} evaluations"
        return f"no better score in {patience} evaluations"

    def is_better(self, score: float | None, than: float | None) -> bool:
        if score is None or than is None:
            return score is not None
        return score < than if self.score.lower_is_better else score > than

    def evaluations_without_improvement(self, updates: int, period: int) -> int:
        """The number of evaluations, one each `period` updates, since any member improved."""
        return (updates - max(self.policies.updates if self.policies else [0])) // period


def stack_parameters(agents: AgentState, members: Members) -> dict[str, np.ndarray]:
    """The parameters of all members by name, `[S, ...]`, also of a single one."""
    arrays = {name: np.array(x) for name, x in policy_files.parameters(agents).items()}
    return arrays if len(members.seeds) > 1 else {name: x[None] for name, x in arrays.items()}


def read(folder: Path, agents: AgentState, members: Members) -> BestPolicies:
    """What `folder`, `best/` of a run, holds, whose agents have the shapes `agents`.

    Raises UsageError if there is nothing that can be read.
    """
    like = dict(policy_files.parameters(agents))
    if len(members.seeds) == 1:
        like = {k: jax.ShapeDtypeStruct((1, *x.shape), x.dtype) for k, x in like.items()}
    try:
        return _read(folder, like)
    except checkpoint.CheckpointError as error:
        raise UsageError(
            f"{error}: there is one once a game for a score is finished while training with "
            "--run.evaluate-every"
        ) from error


def _read(folder: Path, like: dict[str, Any]) -> BestPolicies:
    """The newest policies in `folder`, of the shapes `like`. Raises CheckpointError."""
    arrays, meta, _ = checkpoint.restore(folder, like)
    arrays = {name: np.array(x) for name, x in arrays.items()}
    return BestPolicies(arrays, meta["scores"], meta["updates"])


def make(
    training: Training, settings: Any, members: Members, folder: Path, agents: AgentState
) -> BestTracker | None:
    """Compiles the games for agents of the shapes `agents`; None if the run plays none.

    The best are kept in `folder`.
    Raises UsageError if the program plays none, or they need more memory than there is.
    """
    if not isinstance(settings, PlayConfig) or not settings.evaluate_every:
        return None
    per_update = training.steps_per_update
    length, updates = settings.chunk_updates(per_update), settings.total_updates(per_update)
    if updates < settings.evaluate_every * length:
        _log.warning(
            "no policy is scored while training: --run.evaluate-every %d is in chunks, and the run "
            "has %d",
            *(settings.evaluate_every, -(-updates // length)),
        )
        return None
    if training.games is None:
        raise UsageError("this program plays no games while it trains: leave out evaluate-every")
    match = to_match(training.games(settings.evaluate_games))
    match = match if len(members.seeds) == 1 else match.vectorize()
    agents = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), agents)  # on one device
    compiled = compile_match(match, agents, keys(members, 0), name="games while training")
    policies = read(folder, agents, members) if checkpoint.steps(folder) else None
    return BestTracker(folder, members, training.score, compiled, policies)


def selection_bias_report(folder: Path, fresh: dict[str, Any]) -> list[str]:
    """A line for each seed: the score that chose its policy, and the one of fresh games.

    `folder` is `best/` of a run, `fresh` the content of an `eval.json`. A run that goes on may have
    found better policies while these were scored: one line says so then.
    """
    meta, name = checkpoint.read_meta(folder), fresh["score"]
    if max(meta["updates"]) != fresh["updates"]:
        return [f"{folder} holds a better policy by now: start again to score that one"]
    lines = []
    for row, chosen, updates in zip(fresh["seeds"], meta["scores"], meta["updates"], strict=True):
        mean = row[name]["mean"] if name in row else None
        if mean is None or chosen is None or name != meta["score"]:
            continue
        then, now = digits_text(chosen), digits_text(mean)
        choice = f"{name} {then} when it was chosen, after {quantity(updates, 'updates')}"
        better = mean - chosen if meta["lower"] else chosen - mean
        gain = digits_text(better, 2)
        bias = f"choosing flattered it by {gain}" if better > 0 else "choosing was not luck"
        lines.append(f"seed {row['seed']}: {choice}; {now} on fresh games: {bias}")
    return lines


def keys(members: Members, updates: int) -> jax.Array:
    """The key of the games of each seed after so many updates; no axis for a single seed."""
    seeds = np.asarray(members.seeds, np.int32)
    game_key = lambda seed: jax.random.fold_in(
        jax.random.fold_in(jax.random.key(seed), STREAM), updates
    )
    return game_key(seeds[0]) if len(seeds) == 1 else jax.vmap(game_key)(seeds)
