"""The likeliest of several models that learn side by side; which one that is may be traced."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp


def likeliest_index(log_evidence: Sequence[jax.Array] | jax.Array) -> jax.Array:
    """The place, int32, of the largest logarithm of a marginal likelihood; NaN is the smallest."""
    evidence = jnp.asarray(log_evidence)
    return jnp.argmax(jnp.where(jnp.isnan(evidence), -jnp.inf, evidence)).astype(jnp.int32)


def select(place: jax.Array, values: Sequence[Any]) -> Any:
    """The tree at a `place`, which may be traced, of several of the same shapes."""
    if len(values) == 1:
        return values[0]
    return jax.tree.map(lambda *x: jnp.stack(x)[place], *values)
