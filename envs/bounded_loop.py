"""A loop whose length the data decide, and that never takes more than a known number of rounds.

On a CPU it is `lax.while_loop`, which stops early. On a GPU that costs more than it saves: in every
round the host reads the condition back. So accelerators go all the rounds, many in one kernel.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp

Carry = TypeVar("Carry")

KERNEL = 128
"""Arrays that one kernel computes, in all its rounds: more save launches, but take the compiler
long."""


def while_loop(
    continues: Callable[[Carry], jax.Array],
    step: Callable[[Carry], Carry],
    start: Carry,
    *,
    most_rounds: int,
    to_fixed_point: bool = False,
    unroll: int | None = None,
) -> Carry:
    """`lax.while_loop` of a condition that is False after `most_rounds` rounds at the latest.

    `to_fixed_point` says that a step after the end changes nothing, which saves a quarter of the
    work. The same on all platforms, bit for bit. Of rounds that compute a few arrays entry by
    entry, as from bits, the compiler joins many to one kernel; `unroll` says how many, and is 1
    for rounds that gather or sum, which no kernel joins.
    """
    rounds = partial(
        all_rounds, most_rounds=most_rounds, to_fixed_point=to_fixed_point, unroll=unroll
    )
    return jax.lax.platform_dependent(
        start,
        cpu=partial(jax.lax.while_loop, continues, step),
        default=partial(rounds, continues, step),
    )


def all_rounds(
    continues: Callable[[Carry], jax.Array],
    step: Callable[[Carry], Carry],
    start: Carry,
    *,
    most_rounds: int,
    to_fixed_point: bool = False,
    unroll: int | None = None,
) -> Carry:
    """`while_loop` of a known length: once the condition is False, rounds change nothing."""

    def go_round(carry: Carry, _: None) -> tuple[Carry, None]:
        after = step(carry)
        if not to_fixed_point:
            keeps_on = continues(carry)
            after = jax.tree.map(lambda new, old: jnp.where(keeps_on, new, old), after, carry)
        return after, None

    per_kernel = unroll or max(1, KERNEL // len(jax.tree.leaves(start)))
    num_kernels = -(-most_rounds // per_kernel)
    per_kernel = -(-most_rounds // num_kernels)  # no more than it takes: few are in vain
    return jax.lax.scan(go_round, start, length=num_kernels * per_kernel, unroll=per_kernel)[0]
