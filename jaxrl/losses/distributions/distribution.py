"""What every distribution over actions can do."""

from typing import Any, Protocol, Self

import jax

from jaxrl.types import Action


class Distribution(Protocol):
    """The interface of all distributions."""

    def sample(self, key: jax.Array) -> Action:
        """One draw for each batch element. Consumes `key`."""
        ...

    def log_prob(self, action: Any) -> jax.Array:
        """Logarithm of the probability, or of the density, at `action`; `[...]`."""
        ...

    def entropy(self) -> jax.Array:
        """-E log p, `[...]`."""
        ...

    def kl(self, other: Self) -> jax.Array:
        """KL(self ‖ other) of two distributions of one kind, `[...]`."""
        ...

    def mode(self) -> Action:
        """The greedy action."""
        ...

    def describe(self) -> dict[str, jax.Array]:
        """To show it: "probabilities", "node_probabilities", or "mean", "low" and "high".

        The last two are the ends of the middle 68 %.
        """
        ...
