"""The arrays of a state by name, and how two states differ."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxrl.types import PyTree


def leaves_of(tree: PyTree) -> dict[str, Any]:
    """Leaves by path, such as `.agent.params['Dense_0']['kernel']`."""
    leaves = {jax.tree_util.keystr(k): x for k, x in jax.tree_util.tree_leaves_with_path(tree)}
    for name, x in leaves.items():
        if not hasattr(x, "dtype"):
            raise TypeError(f"a checkpoint holds arrays only; {name} is a {type(x).__name__}")
    return leaves


def is_key(x) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def describe(x) -> str:
    """Dtype and shape, such as `float32[3,4]`."""
    return f"{x.dtype}[{','.join(map(str, x.shape))}]"


def mismatch(actual: dict[str, Any], expected: dict[str, Any]) -> str:
    """In one line, the first three names whose values differ and how many more; empty: none do."""
    differences = [
        f"{name or 'state'} is {actual.get(name, 'missing')}, expected {expected.get(name, 'none')}"
        for name in sorted(actual.keys() | expected.keys())
        if actual.get(name) != expected.get(name)
    ]
    more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
    return "; ".join(differences[:3]) + more
