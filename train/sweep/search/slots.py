"""The state of a slot of a search, and how its candidate is replaced."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.loop import Metrics
from jaxrl.types import PyTree, where_tree
from train.host.machine.compiled import keys_of
from train.host.machine.members import Members, Numbers, Varied, varied
from train.sweep.search.rules import Replacement, Slots

Init = Callable[[jax.Array, Slots], "Searched"]


class Searched(NamedTuple):
    """The state of a slot: a `RunState`."""

    agent: PyTree
    key: jax.Array
    rest: dict[str, PyTree]  # the other fields of the state of the training
    age: jax.Array  # int32, updates of the candidate
    slot: Slots  # without the axis M


class Searchers(Members):
    """The slots of a search as the members of a `Session`."""

    slots: Slots

    @classmethod
    def of(cls, seeds: list[int], slots: Slots) -> "Searchers":
        found = cls(seeds, None, range(len(seeds)))
        found.slots = slots
        return found

    @property
    def starts(self) -> PyTree:
        """Seeds `[M]`, and the slots."""
        return jnp.asarray(self.seeds, jnp.int32), self.slots


def searched(
    training_of: Callable[[Numbers], Any], kind: Any
) -> tuple[Init, Callable[[Searched], tuple[Searched, Metrics]]]:
    """`init(key, slot)` and `update` of a slot; as `members.varied`, with numbers that change."""
    init_member, update_member = varied(training_of, kind)

    def init(key: jax.Array, slot: Slots) -> Searched:
        member = init_member(key, slot.numbers)
        return Searched(member.agent, member.key, member.rest, jnp.zeros((), jnp.int32), slot)

    def update(state: Searched) -> tuple[Searched, Metrics]:
        member = Varied(state.agent, state.key, state.rest, state.slot.numbers)
        after, metrics = update_member(member)
        moved = {"agent": after.agent, "key": after.key, "rest": after.rest}
        return state._replace(**moved, age=state.age + 1), metrics

    return init, update


def replacing(init: Init) -> Callable[[Searched, Replacement], Searched]:
    """`(states, replacement) -> states` of all slots `[M]`; what they know of scores stays.

    A fresh candidate begins as a run with its seed does. A copy goes on with random numbers of its
    own, or it would see the same chances as its source.
    """

    def replaced(states: Searched, replacement: Replacement) -> Searched:
        source, fresh, numbers, seeds = replacement
        slots = states.slot._replace(numbers=numbers)
        start = lambda seed, slot: init(keys_of(seed)[0], slot)
        begun = jax.vmap(start)(seeds, slots)._replace(slot=())
        copied = jax.tree.map(lambda x: x[source], states._replace(slot=()))
        after = where_tree(fresh, begun, copied)
        is_copy = ~fresh & (source != jnp.arange(len(source), dtype=source.dtype))
        own = jax.vmap(jax.random.fold_in)(after.key, seeds)
        key = jnp.where(is_copy, own, jax.random.clone(after.key))  # each slot uses one of both
        return after._replace(key=key, slot=slots)

    return replaced
