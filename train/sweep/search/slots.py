"""The state of a slot of a search, and how its candidate is replaced."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.loop import LoopMetrics
from jaxrl.types import PyTree, where_tree
from train.host.machine.compiled import keys_of
from train.host.machine.members import Members, MemberState, Numbers, make_member_functions
from train.sweep.search.rules import Replacement, Slots

Init = Callable[[jax.Array, Slots], "SlotState"]


class SlotState(NamedTuple):
    """The state of a slot: a `RunState`."""

    agent: PyTree
    key: jax.Array
    rest: dict[str, PyTree]  # the other fields of the state of the training
    age: jax.Array  # int32, updates of the candidate
    slot: Slots  # without the axis M


class SlotMembers(Members):
    """The slots of a search as the members of a `Session`."""

    slots: Slots

    @classmethod
    def make(cls, seeds: list[int], slots: Slots) -> "SlotMembers":
        members = cls(seeds, None, range(len(seeds)))
        members.slots = slots
        return members

    @property
    def starts(self) -> PyTree:
        """Seeds `[M]`, and the slots."""
        return jnp.asarray(self.seeds, jnp.int32), self.slots


def slot_functions(
    training_of: Callable[[Numbers], Any], kind: Any
) -> tuple[Init, Callable[[SlotState], tuple[SlotState, LoopMetrics]]]:
    """`init(key, slot)` and `update` of a slot: as `members.make_member_functions` makes them, with
    numbers that change."""
    init_member, update_member = make_member_functions(training_of, kind)

    def init(key: jax.Array, slot: Slots) -> SlotState:
        member = init_member(key, slot.numbers)
        return SlotState(member.agent, member.key, member.rest, jnp.zeros((), jnp.int32), slot)

    def update(state: SlotState) -> tuple[SlotState, LoopMetrics]:
        member = MemberState(state.agent, state.key, state.rest, state.slot.numbers)
        after, metrics = update_member(member)
        moved = {"agent": after.agent, "key": after.key, "rest": after.rest}
        return state._replace(**moved, age=state.age + 1), metrics

    return init, update


def make_replace(init: Init) -> Callable[[SlotState, Replacement], SlotState]:
    """`(states, replacement) -> states` of all slots `[M]`; what they know of scores stays.

    A fresh candidate begins as a run with its seed does. A copy goes on with random numbers of its
    own, or it would see the same chances as its source.
    """

    def replace(states: SlotState, replacement: Replacement) -> SlotState:
        source, fresh, numbers, seeds = replacement
        slots = states.slot._replace(numbers=numbers)
        start = lambda seed, slot: init(keys_of(seed)[0], slot)
        fresh_states = jax.vmap(start)(seeds, slots)._replace(slot=())
        copied_states = jax.tree.map(lambda x: x[source], states._replace(slot=()))
        after = where_tree(fresh, fresh_states, copied_states)
        is_copy = ~fresh & (source != jnp.arange(len(source), dtype=source.dtype))
        own = jax.vmap(jax.random.fold_in)(after.key, seeds)
        key = jnp.where(is_copy, own, jax.random.clone(after.key))  # each slot uses one of both
        return after._replace(key=key, slot=slots)

    return replace
