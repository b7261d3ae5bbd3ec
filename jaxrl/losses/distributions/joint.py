"""The distribution of several independent actions."""

from collections.abc import Iterable
from typing import Any, Self

import chex
import jax
from flax import struct

from jaxrl.types import Action


@struct.dataclass
class Joint:
    """Independent parts, one action each: a tuple, or a dict. All have the same batch axes."""

    parts: Any  # a tuple or dict of Distributions, say (Categorical, Normal)

    def sample(self, key: jax.Array) -> Action:
        policies = values(self.parts)
        keys = jax.random.split(key, len(policies))
        return self._arrange(part.sample(key) for part, key in zip(policies, keys, strict=True))

    def log_prob(self, action: Action) -> jax.Array:
        pairs = zip(values(self.parts), values(action), strict=True)
        return total(part.log_prob(a) for part, a in pairs)

    def entropy(self) -> jax.Array:
        return total(part.entropy() for part in values(self.parts))

    def kl(self, other: Self) -> jax.Array:
        pairs = zip(values(self.parts), values(other.parts), strict=True)
        return total(p.kl(q) for p, q in pairs)

    def mode(self) -> Action:
        return self._arrange(part.mode() for part in values(self.parts))

    def describe(self) -> dict[str, jax.Array]:
        """What each part shows; a name that an earlier one has ends with the part's number."""
        numbers: dict[str, jax.Array] = {}
        for i, part in enumerate(values(self.parts)):
            entries = part.describe().items()
            numbers |= {f"{name}_{i}" if name in numbers else name: x for name, x in entries}
        return numbers

    def _arrange(self, actions: Iterable[Action]) -> Action:
        """A value for each part, in a tuple or dict as the parts are."""
        if isinstance(self.parts, dict):
            return dict(zip(sorted(self.parts), actions, strict=True))
        return tuple(actions)


def values(parts: Any) -> list[Any]:
    """The values of a tuple in its order, or of a dict in that of its names."""
    return [parts[name] for name in sorted(parts)] if isinstance(parts, dict) else list(parts)


def total(terms: Iterable[jax.Array]) -> jax.Array:
    """The sum over the parts of a Joint, `[...]`.

    Raises ValueError for no parts, and AssertionError for shapes that differ: none is broadcast.
    """
    terms = list(terms)
    if not terms:
        raise ValueError("a Joint of no parts, expected one distribution at least: give it parts")
    chex.assert_equal_shape(terms)
    return sum(terms[1:], start=terms[0])
