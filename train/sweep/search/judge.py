"""What a search does between two chunks: scores, replacements, and the best one so far kept."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl import checkpoint
from train.host.files.rows import agent_means, episode_means
from train.host.machine import compiled
from train.host.training import Training
from train.sweep.search.rules import Replacement, Rule, Slots
from train.sweep.search.slots import Init, SlotState, make_replace

GOES_ON, DROPPED, FAILED, FINISHED = "goes on", "dropped", "failed", "finished"


class Verdict(NamedTuple):
    """What follows from the scores of a chunk."""

    slots: Slots
    replacement: Replacement
    scores: jax.Array  # [M], higher is better; NaN: unknown, -inf: not finite
    is_new: jax.Array  # [M] bool, the slot gets another candidate
    leader: jax.Array  # the best of all slots that are trained to the end now, or -1: none that is
    # better than all before


class Judge:
    """Called after each chunk of a search: see `Session.search`."""

    def __init__(self, training: Training, kind: type, rule: Rule, budget: int, directory: Path):
        """`training` is of `slots.slot_functions`, `kind` the type of its states before; the best
        that was trained for `budget` updates is kept in `directory`."""
        self.training, self.kind, self.budget, self.directory = training, kind, budget, directory
        self.sign = -1.0 if training.score.lower_is_better else 1.0
        self.judge = jax.jit(make_judge(rule, budget))
        init: Init = training.init  # pyright: ignore[reportAssignmentType]
        self.replace = jax.jit(make_replace(init), donate_argnums=0)

    def __call__(
        self, state: SlotState, report: compiled.Report, updates: int
    ) -> tuple[SlotState, list[dict[str, Any]]]:
        """The state to go on with, and what the rows of the chunk tell of each slot."""
        verdict = self.judge(state, self.scores(report))
        descriptions = self.describe_candidates(state, verdict)
        if (leader := int(verdict.leader)) >= 0:
            self.keep(state, leader, updates, descriptions[leader])
        state = state._replace(slot=verdict.slots)
        if np.any(verdict.is_new):
            state = self.replace(state, verdict.replacement)
        return state, descriptions

    def scores(self, report: compiled.Report) -> np.ndarray:
        """The score of each slot in a chunk `[M]`, higher is better; NaN: no episode ended."""
        scores = np.full(report.finite.shape[1], np.nan, np.float32)
        name = self.training.score.name
        for m in range(len(scores)):
            value = (agent_means(report, m) | episode_means(report, m)).get(name)
            if value is not None:
                scores[m] = self.sign * value if np.isfinite(value) else -np.inf
        return scores

    def describe_candidates(self, state: SlotState, verdict: Verdict) -> list[dict[str, Any]]:
        """What a row says of its candidate, which is the one of before the replacement."""
        slots, ages = jax.device_get((state.slot._replace(key=()), state.age))
        scores, is_new = np.asarray(verdict.scores), np.asarray(verdict.is_new)
        first_seed = int(verdict.replacement.seeds[0]) - int(verdict.slots.candidate[0])
        descriptions = []
        for m, candidate in enumerate(slots.candidate.tolist()):
            is_over = ages[m] >= self.budget
            fate = DROPPED if is_new[m] else GOES_ON
            fate = FAILED if np.isneginf(scores[m]) else FINISHED if is_over else fate
            parent = int(slots.parent[m])
            descriptions.append(
                {
                    "candidate": candidate,
                    "seed": first_seed + candidate,
                    "age": int(ages[m]) * self.training.steps_per_update,
                    "numbers": {name: float(x[m]) for name, x in slots.numbers.items()},
                    "parent": None if parent < 0 else parent,
                    "fate": fate,
                }
            )
        return descriptions

    def keep(self, state: SlotState, slot: int, updates: int, description: dict[str, Any]) -> None:
        """Saves the training of one slot as the best that was trained to the end."""
        one = jax.tree.map(lambda x: entry(x, slot), state._replace(slot=()))
        trained = self.kind(agent=one.agent, key=one.key, **one.rest)
        checkpoint.save(self.directory, updates, trained, description, keep=1)


def entry(x: jax.Array, index: int) -> jax.Array:
    """`x[index]`; of keys a copy, as their array is used again."""
    is_key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return jax.random.clone(x)[index] if is_key else x[index]


def make_judge(rule: Rule, budget: int) -> Callable[[SlotState, jax.Array], Verdict]:
    """`(states, scores [M]) -> verdict`; `scores` are -inf where parameters are not finite."""

    def judge(states: SlotState, scores: jax.Array) -> Verdict:
        finite = jax.vmap(lambda agent: compiled.all_finite(compiled.parameters(agent)))
        scores = jnp.where(finite(states.agent), scores, -jnp.inf)
        before = states.slot.scores[..., -1]
        best = jnp.max(jnp.where(jnp.isfinite(before), before, -jnp.inf))
        ended = jnp.where(states.age >= budget, jnp.nan_to_num(scores, nan=-jnp.inf), -jnp.inf)
        leader = jnp.where(jnp.max(ended) > best, jnp.argmax(ended), -1)
        slots, replacement = rule(states.slot, scores, states.age)
        is_new = slots.candidate != states.slot.candidate
        return Verdict(slots, replacement, scores, is_new, leader)

    return judge
