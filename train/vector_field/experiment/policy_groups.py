"""Groups of policies that are compiled together.

They are those whose learners have states of one shape: all but those that seek novelty, whose
learners also hold networks. Within a group they differ in how inputs are chosen, and in its
numbers, such as how long a random input is held.

Axes: F fields, P policies of a group.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.planning import stimulation
from jaxrl.numerics.trees import take
from train.host.machine.members import with_keys, without_keys

NUMBERS = ("hold_steps", "at_edge", "strength")
"""Fields in which policies may differ that choose inputs in the same way."""


Way = tuple[str, tuple[str, ...]]
"""How inputs are chosen: the kind of a policy and its objectives."""


class Group(NamedTuple):
    """Policies that are compiled together."""

    policies: tuple[str, ...]
    ways: tuple[stimulation.Config, ...]
    """One policy of each way to choose inputs."""
    way: np.ndarray
    """int32 `[P]`: the place of each policy's way in `ways`."""
    numbers: dict[str, jax.Array]
    """`[P]` each of `NUMBERS`."""

    def arguments(self) -> dict[str, jax.Array]:
        """What tells the policies apart, `[P]` each."""
        return self.numbers | {"way": jnp.asarray(self.way)}


def groups(policies: dict[str, stimulation.Config]) -> list[Group]:
    """Groups policies that are compiled together."""
    novel = {name: each for name, each in policies.items() if "rnd" in each.objectives}
    others = {name: each for name, each in policies.items() if name not in novel}
    return [group(each) for each in (others, novel) if each]


def way_of(policy: stimulation.Config) -> Way:
    """How a policy chooses inputs."""
    return policy.kind, policy.objectives


def group(policies: dict[str, stimulation.Config]) -> Group:
    """All of them in one group."""
    ways: dict[Way, stimulation.Config] = {}
    for each in policies.values():
        ways.setdefault(way_of(each), each)
    way = np.array([[*ways].index(way_of(each)) for each in policies.values()], np.int32)
    numbers = {n: jnp.array([getattr(each, n) for each in policies.values()]) for n in NUMBERS}
    return Group(tuple(policies), tuple(ways.values()), way, numbers)


def join_groups(
    policies: dict[str, stimulation.Config], group_trees: dict[str, Any], axis: int = 0
) -> Any:
    """Trees of the groups, by the first policy of each, joined in the order of the policies.

    `axis` is that of the policies in each leaf.
    """
    policy_groups = groups(policies)
    names = [name for group in policy_groups for name in group.policies]
    order = jnp.array([names.index(name) for name in policies])
    trees = [group_trees[group.policies[0]] for group in policy_groups]
    return _join(trees, order, axis)


@partial(jax.jit, static_argnames="axis")
def _join(trees: list[Any], order: jax.Array, axis: int) -> Any:
    return jax.tree.map(lambda *x: jnp.take(jnp.concatenate(x, axis), order, axis), *trees)


def select_experiment(
    policies: dict[str, stimulation.Config],
    group_trees: dict[str, Any],
    policy: str,
    field: int,
) -> Any:
    """The tree of one experiment, out of those of the groups, `[P, F, ...]`, of one seed."""
    group = next(group for group in groups(policies) if policy in group.policies)
    place = group.policies.index(policy)
    return take(group_trees[group.policies[0]], (place, field))


def map_group(
    body: Callable, group: Group, by_policy: Sequence[bool], fields: int, in_turns: bool
) -> Callable:
    """`body` for all policies of a group on F = `fields` fields: `(...)` -> `[P, F]`.

    `body` takes `Group.arguments` of one policy, and then `arguments`. `by_policy` says for each of
    these whether it is `[P, F, ...]`, or `[F, ...]`, the same for all policies. Both axes are
    flattened into one for `vmap`, as jaxlib has fast matrix products only for arrays of few axes
    (see `cpu_kernels.compiler_options`). In turns, what one experiment does not need is not
    computed, and its state stays in the cache.
    """
    map_experiments = map_in_turns(body) if in_turns else jax.vmap(body)
    size = len(group.policies), fields
    unflatten = lambda x: x.reshape(*size, *x.shape[1:])
    flatten = lambda x: x.reshape(size[0] * size[1], *x.shape[2:])
    repeat_policies = lambda x: flatten(jnp.broadcast_to(x[None], (size[0], *x.shape)))

    def run(*arguments):
        flat_numbers = {name: jnp.repeat(x, size[1]) for name, x in group.arguments().items()}
        flat = (
            jax.tree.map(flatten if varies_by_policy else repeat_policies, x)
            for varies_by_policy, x in zip(by_policy, arguments, strict=True)
        )
        return jax.tree.map(unflatten, map_experiments(flat_numbers, *flat))

    return run


def map_ways(
    body: Callable, group: Group, by_policy: Sequence[bool], fields: int, in_turns: bool
) -> Callable:
    """`map_group` of `body`, which takes the ways to choose inputs first, for all in the group.

    Side by side all ways would be taken for every experiment, so each has a program of its own.
    """
    if in_turns:
        return map_group(partial(body, group.ways), group, by_policy, fields, in_turns)
    parts = [np.flatnonzero(group.way == i) for i in range(len(group.ways))]
    order = np.argsort(np.concatenate(parts))

    def run(*arguments):
        numbers, kinds = without_keys(arguments)
        results = []
        for rows, way in zip(parts, group.ways, strict=True):
            of_way, part = partial(body, (way,)), _part(group, rows, way)
            of_part = with_keys(_rows(numbers, rows, by_policy), kinds)
            results.append(map_group(of_way, part, by_policy, fields, in_turns)(*of_part))
        trees, result_kinds = zip(*map(without_keys, results), strict=True)
        joined = jax.tree.map(lambda *x: jnp.concatenate(x)[order], *trees)
        return with_keys(joined, result_kinds[0])

    return run


def _rows(arguments: tuple, rows: np.ndarray, by_policy: Sequence[bool]) -> tuple:
    """The arguments of the policies in these rows."""
    of_rows = lambda x: x[rows]
    return tuple(
        jax.tree.map(of_rows, x) if varies_by_policy else x
        for varies_by_policy, x in zip(by_policy, arguments, strict=True)
    )


def _part(group: Group, rows: np.ndarray, way: stimulation.Config) -> Group:
    """The policies in these rows, which have one way."""
    policies = tuple(group.policies[i] for i in rows)
    numbers = {name: x[rows] for name, x in group.numbers.items()}
    return Group(policies, (way,), np.zeros(len(rows), np.int32), numbers)


def map_in_turns(body: Callable) -> Callable:
    """`jax.vmap(body)` as a loop."""

    def run(*arguments):
        numbers, kinds = without_keys(arguments)
        return jax.lax.map(lambda x: body(*with_keys(x, kinds)), numbers)

    return run
