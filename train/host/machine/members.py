"""The members of a run: trainings side by side, each with a seed and perhaps numbers of its own.

Seeds of one configuration are members without numbers. In a sweep each member also has numbers, the
values of some float fields of its configuration; they are part of its state and traced, so that one
compilation serves all members.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxrl.loop import Metrics
from jaxrl.sharding import BLOCK, MEMBER
from jaxrl.types import PyTree

Chunk = Callable[[Any, jax.Array], tuple[Any, Any]]
"""`(state, count) -> (state, report)`."""
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
    `training.Training`, whose states are of the type `kind`.
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


def all_of(chunk: Chunk, mesh: Mesh | None) -> Chunk:
    """`chunk` of one member, whose report is `[U, ...]`, as that of all: `[U, M, ...]`."""
    every = side_by_side(chunk) if mesh is None else on_each_device(chunk, mesh)

    def of_all(states: PyTree, count: jax.Array) -> tuple[PyTree, PyTree]:
        states, reports = every(states, count)
        return states, jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), reports)

    return of_all


def on_each_device(chunk: Chunk, mesh: Mesh) -> Chunk:
    """`chunk` of all members, each device training its own and asking no other.

    Cores of a CPU train them in turns, which keeps the state of one in the cache.
    """
    in_turns = mesh.devices.flat[0].platform == "cpu"
    return jax.shard_map(
        one_after_another(chunk) if in_turns else side_by_side(chunk),
        mesh=mesh,
        in_specs=(P(MEMBER), P()),
        out_specs=P(MEMBER),
        axis_names=frozenset({MEMBER} if mesh.shape[BLOCK] > 1 else mesh.axis_names),
        check_vma=False,
    )


def side_by_side(chunk: Chunk) -> Chunk:
    """`chunk` of all members at once."""
    return jax.vmap(chunk, in_axes=(0, None))


def one_after_another(chunk: Chunk) -> Chunk:
    """`vmap` of `chunk` over states as a loop, which replaces each state where it lies."""

    def every(states: PyTree, count: jax.Array) -> tuple[PyTree, PyTree]:
        numbers, kinds = without_keys(states)
        size = len(jax.tree.leaves(numbers)[0])

        @partial(jax.jit, inline=True)  # traced once
        def one(i: jax.Array | int, numbers: PyTree) -> tuple[PyTree, PyTree]:
            pick = lambda x: jax.lax.dynamic_index_in_dim(x, i, keepdims=False)
            state, report = chunk(with_keys(jax.tree.map(pick, numbers), kinds), count)
            return without_keys(state)[0], report

        def turn(i: jax.Array, carry: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
            place = lambda whole, x: jax.lax.dynamic_update_index_in_dim(whole, x, i, 0)
            return jax.tree.map(place, carry, one(i, carry[0]))

        _, report = jax.eval_shape(one, jnp.int32(0), numbers)
        blank = jax.tree.map(lambda x: jnp.zeros((size, *x.shape), x.dtype), report)
        numbers, reports = jax.lax.fori_loop(0, size, turn, (numbers, blank))
        return with_keys(numbers, kinds), reports

    return every


def without_keys(tree: PyTree) -> tuple[PyTree, PyTree]:
    """A tree with its keys as numbers, and of each leaf the kind of key, or "" for none.

    JAX's check for keys that are used twice takes a key in an array for the whole array.
    """
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    kinds = jax.tree.map(lambda x: str(jax.random.key_impl(x)) if is_key(x) else "", tree)
    return jax.tree.map(lambda x: jax.random.key_data(x) if is_key(x) else x, tree), kinds


def with_keys(tree: PyTree, kinds: PyTree) -> PyTree:
    """The inverse of `without_keys`."""
    return jax.tree.map(
        lambda x, kind: jax.random.wrap_key_data(x, impl=kind) if kind else x, tree, kinds
    )
