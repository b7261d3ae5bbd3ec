"""The members of a run: trainings side by side, each with a seed and perhaps numbers of its own.

Seeds of one configuration are members without numbers. In a sweep each member also has numbers, the
values of some float fields of its configuration; they are part of its state and traced, so that one
compilation serves all members.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxrl.loop import LoopMetrics
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
        member_label = {"member": self.names[index]} if self.names else {}
        return {**member_label, "seed": self.seeds[index]}


class MemberState(NamedTuple):
    """The state of a member with numbers: a `RunState`."""

    agent: PyTree
    key: jax.Array
    rest: dict[str, PyTree]  # the other fields of the state of the training
    numbers: dict[str, jax.Array]


def make_member_functions(
    training_of: Callable[[Numbers], Any], kind: Any
) -> tuple[
    Callable[[jax.Array, Numbers], MemberState],
    Callable[[MemberState], tuple[MemberState, LoopMetrics]],
]:
    """`init(key, numbers)` and `update` of members with numbers.

    `training_of(numbers)` is called when traced; it makes what has `init` and `update`, such as a
    `training.Training`, whose states are of the type `kind`.
    """

    def pack_state(state: Any, numbers: Numbers) -> MemberState:
        others = {name: x for name, x in state._asdict().items() if name not in ("agent", "key")}
        return MemberState(state.agent, state.key, others, dict(numbers))

    def init(key: jax.Array, numbers: Numbers) -> MemberState:
        return pack_state(training_of(numbers).init(key), numbers)

    def update(member: MemberState) -> tuple[MemberState, LoopMetrics]:
        after, metrics = training_of(member.numbers).update(unpack_state(member, kind))
        return pack_state(after, member.numbers), metrics

    return init, update


def unpack_state(member: MemberState, kind: Any) -> Any:
    """The state of the training that a member's state holds; `kind` is its type."""
    return kind(agent=member.agent, key=member.key, **member.rest)


def map_members(chunk: Chunk, mesh: Mesh | None) -> Chunk:
    """`chunk` of one member, whose report is `[U, ...]`, as that of all: `[U, M, ...]`."""
    chunk_all = vmap_members(chunk) if mesh is None else shard_members(chunk, mesh)

    def all_members(states: PyTree, count: jax.Array) -> tuple[PyTree, PyTree]:
        states, reports = chunk_all(states, count)
        return states, jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), reports)

    return all_members


def shard_members(chunk: Chunk, mesh: Mesh) -> Chunk:
    """`chunk` of all members, each device training its own and asking no other.

    Cores of a CPU train them in turns, which keeps the state of one in the cache.
    """
    is_sequential = mesh.devices.flat[0].platform == "cpu"
    return jax.shard_map(
        loop_members(chunk) if is_sequential else vmap_members(chunk),
        mesh=mesh,
        in_specs=(P(MEMBER), P()),
        out_specs=P(MEMBER),
        axis_names=frozenset({MEMBER} if mesh.shape[BLOCK] > 1 else mesh.axis_names),
        check_vma=False,
    )


def vmap_members(chunk: Chunk) -> Chunk:
    """`chunk` of all members at once."""
    return jax.vmap(chunk, in_axes=(0, None))


def loop_members(chunk: Chunk) -> Chunk:
    """`vmap` of `chunk` over states as a loop, which replaces each state where it lies."""

    def chunk_all(states: PyTree, count: jax.Array) -> tuple[PyTree, PyTree]:
        numbers, kinds = without_keys(states)
        size = len(jax.tree.leaves(numbers)[0])

        @jax.jit  # traced once
        def chunk_one(i: jax.Array | int, numbers: PyTree) -> tuple[PyTree, PyTree]:
            take_member = lambda x: jax.lax.dynamic_index_in_dim(x, i, keepdims=False)
            state, report = chunk(with_keys(jax.tree.map(take_member, numbers), kinds), count)
            return without_keys(state)[0], report

        def step(i: jax.Array, carry: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
            put_member = lambda whole, x: jax.lax.dynamic_update_index_in_dim(whole, x, i, 0)
            return jax.tree.map(put_member, carry, chunk_one(i, carry[0]))

        _, report = jax.eval_shape(chunk_one, jnp.int32(0), numbers)
        blank = jax.tree.map(lambda x: jnp.zeros((size, *x.shape), x.dtype), report)
        numbers, reports = jax.lax.fori_loop(0, size, step, (numbers, blank))
        return with_keys(numbers, kinds), reports

    return chunk_all


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
