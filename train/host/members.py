"""The members of a run: trainings side by side, each with a seed and perhaps numbers of its own.

Seeds of one configuration are members without numbers. In a sweep each member also has numbers, the
values of some float fields of its configuration; they are part of its state and traced, so that one
compilation serves all members.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrl.loop import Metrics
from jaxrl.types import PyTree

Numbers = Mapping[str, Any]
"""Values of float fields of a configuration, by dotted name."""


class Members(NamedTuple):
    """M members."""

    seeds: Sequence[int]
    numbers: Mapping[str, Sequence[float]] | None = None
    """Of a sweep: for each dotted name the number of each member."""
    names: Sequence[int] = ()
    """Of a sweep: what the members are called in the record."""

    @property
    def starts(self) -> PyTree:
        """What `compiled.init_all` begins with: seeds, or seeds and numbers, `[M]`.

        A single member without numbers is a scalar seed, which is not vmapped.
        """
        if self.numbers is None:
            return np.asarray(self.seeds if len(self.seeds) > 1 else self.seeds[0], np.int32)
        numbers = {name: np.asarray(x, np.float32) for name, x in self.numbers.items()}
        return np.asarray(self.seeds, np.int32), numbers

    def label(self, index: int) -> dict[str, int]:
        """What a row of the record says of the member it is of."""
        named = {"member": self.names[index]} if self.names else {}
        return {**named, "seed": self.seeds[index]}


class Varied(NamedTuple):
    """The state of a member with numbers: a `RunState`."""

    agent: PyTree
    key: jax.Array
    rest: dict[str, PyTree]  # the other fields of the state of the training
    numbers: dict[str, jax.Array]


def varied(
    training_of: Callable[[Numbers], Any], kind: Any
) -> tuple[Callable[[jax.Array, Numbers], Varied], Callable[[Varied], tuple[Varied, Metrics]]]:
    """`init(key, numbers)` and `update` of members with numbers.

    `training_of(numbers)` is called when traced; it makes what has `init` and `update`, such as a
    `settings.Training`, whose states are of the type `kind`.
    """

    def packed(state: Any, numbers: Numbers) -> Varied:
        rest = {name: x for name, x in state._asdict().items() if name not in ("agent", "key")}
        return Varied(state.agent, state.key, rest, dict(numbers))

    def init(key: jax.Array, numbers: Numbers) -> Varied:
        return packed(training_of(numbers).init(key), numbers)

    def update(member: Varied) -> tuple[Varied, Metrics]:
        after, metrics = training_of(member.numbers).update(unpacked(member, kind))
        return packed(after, member.numbers), metrics

    return init, update


def unpacked(member: Varied, kind: Any) -> Any:
    """The state of the training that a member's state holds; `kind` is its type."""
    return kind(agent=member.agent, key=member.key, **member.rest)
