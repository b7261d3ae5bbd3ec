"""Groups of policies that share one compiled body.

They are those that differ only in numbers, such as how long a random input is held; the others have
one each.

Axes: F fields, P policies of a group.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.planning import stimulation
from jaxrl.numerics.trees import take
from train.host.machine.members import with_keys, without_keys

NUMBERS = ("hold_steps", "at_edge", "strength")
"""Fields in which policies may differ and still share one compiled body."""


class Group(NamedTuple):
    """Policies that share one compiled body."""

    policies: tuple[str, ...]
    base: stimulation.Config
    numbers: dict[str, jax.Array]  # [P] each of `NUMBERS`


def groups(policies: dict[str, stimulation.Config]) -> list[Group]:
    """Groups policies that share one compiled body: all that only hold random inputs."""
    held = tuple(name for name, policy in policies.items() if policy.kind == "hold")
    together = [held, *[(name,) for name in policies if name not in held]]
    return [
        Group(
            names,
            policies[names[0]],
            {n: jnp.array([getattr(policies[name], n) for name in names]) for n in NUMBERS},
        )
        for names in together
        if names
    ]


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
    """`body` for all policies of a group on F = `fields` fields: `(numbers, ...)` -> `[P, F]`.

    `by_policy` says for each further argument whether it is `[P, F, ...]`, or `[F, ...]`, the same
    for all policies. Both axes are flattened into one for `vmap`, as jaxlib has fast matrix
    products only for arrays of few axes (see `cpu_kernels.compiler_options`). In turns, what one
    experiment does not need is not computed, and its state stays in the cache.
    """
    map_experiments = map_in_turns(body) if in_turns else jax.vmap(body)
    size = len(group.policies), fields
    unflatten = lambda x: x.reshape(*size, *x.shape[1:])
    flatten = lambda x: x.reshape(size[0] * size[1], *x.shape[2:])
    repeat_policies = lambda x: flatten(jnp.broadcast_to(x[None], (size[0], *x.shape)))

    def run(numbers: dict, *arguments):
        flat_numbers = {name: jnp.repeat(x, size[1]) for name, x in numbers.items()}
        flat = (
            jax.tree.map(flatten if varies_by_policy else repeat_policies, x)
            for varies_by_policy, x in zip(by_policy, arguments, strict=True)
        )
        return jax.tree.map(unflatten, map_experiments(flat_numbers, *flat))

    return run


def map_in_turns(body: Callable) -> Callable:
    """`jax.vmap(body)` as a loop."""

    def run(*arguments):
        numbers, kinds = without_keys(arguments)
        return jax.lax.map(lambda x: body(*with_keys(x, kinds)), numbers)

    return run
