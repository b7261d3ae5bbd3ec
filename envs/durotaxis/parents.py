"""Whose children the survivors are once others have died, by one of two rules.

`forest` hands the children of a deleted cell to its parent, or makes them roots if it has none, so
a colony may fall apart. `tree` hands them to the leftmost of them, and that one to the parent, so
it never does: it is the rule of the original's later versions, whose links lead from left to right.
C slots; `parent` int32 `[C]` is -1 for roots and beyond the last cell, `survives` bool `[C]`.

On a CPU a loop ends when nothing is left to do, on accelerators after as many rounds as may be
needed (`envs.bounded_loop`). The result is the same.
"""

from typing import Literal, get_args

import jax
import jax.numpy as jnp

from envs import bounded_loop

Deletion = Literal["forest", "tree"]
DELETIONS: tuple[str, ...] = get_args(Deletion)


def new_parents(
    parent: jax.Array, x: jax.Array, survives: jax.Array, deletion: str = "forest"
) -> jax.Array:
    """The slot of the parent that every survivor has once the others are gone, or -1: int32 `[C]`.

    `x` are the places of the cells, float32 `[C]` px, which the rule `tree` reads.
    """
    if deletion == "tree":
        return tree_parents(parent, x, survives)
    return nearest_survivor(parent, survives)


def nearest_survivor(parent: jax.Array, survives: jax.Array) -> jax.Array:
    """The nearest surviving ancestor of every cell, or -1: int32 `[C]`.

    `parent` int32 `[C]` is -1 for roots, `survives` bool `[C]`. Pointer jumping (Wyllie 1979): a
    pointer to a dead cell follows that cell's pointer, so every round doubles the distance. It
    stops as soon as nothing moves; chains of dead cells are mostly short.
    """
    slot = jnp.arange(parent.size, dtype=jnp.int32)

    def jump(pointers: jax.Array) -> jax.Array:
        following = jnp.where(survives, slot, pointers)
        return jnp.where(pointers >= 0, following[jnp.maximum(pointers, 0)], -1)

    start = (parent, jnp.bool_(True))
    still_moves = lambda carry: carry[1]

    def advance(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        pointers, _ = carry
        jumped = jump(pointers)
        return jumped, jnp.any(jumped != pointers)

    # no chain has more than C links, and one round more sees that nothing moves
    rounds = (parent.size - 1).bit_length() + 1
    return bounded_loop.while_loop(
        still_moves, advance, start, most_rounds=rounds, to_fixed_point=True, unroll=1
    )[0]


def tree_parents(parent: jax.Array, x: jax.Array, survives: jax.Array) -> jax.Array:
    """`new_parents` that keep a tree a tree: N cells stay connected by N - 1 links.

    The dead go one by one, from the highest slot to the lowest. Of the children of one the leftmost
    (of equal x that in the lowest slot) takes its place: it becomes the child of the parent, or a
    root, and the parent of the other children. As links lead away from the root, a cell has one
    parent at most; where children always lie to the right, links lead from left to right.
    """
    slot = jnp.arange(survives.size, dtype=jnp.int32)

    def remove(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        parent, dead = carry
        last = jnp.max(jnp.where(dead, slot, -1))
        is_child = parent == last
        leftmost_x = jnp.min(jnp.where(is_child, x, jnp.inf))
        successor = jnp.min(jnp.where(is_child & (x == leftmost_x), slot, slot.size))
        parent = jnp.where(slot == successor, parent[last], jnp.where(is_child, successor, parent))
        return jnp.where(slot == last, -1, parent), dead & (slot != last)

    # only those with a parent or a child leave a gap, and no slot beyond the last cell has either
    has_child = jnp.zeros_like(survives).at[jnp.maximum(parent, 0)].max(parent >= 0)
    dead = ~survives & ((parent >= 0) | has_child)

    any_dead = lambda carry: jnp.any(carry[1])
    return bounded_loop.while_loop(
        any_dead, remove, (parent, dead), most_rounds=slot.size, unroll=1
    )[0]
