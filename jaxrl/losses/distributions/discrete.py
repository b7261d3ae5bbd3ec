"""Distributions over finitely many actions: of one choice, masked, and one for each node."""

from typing import Self

import chex
import jax
import jax.numpy as jnp
from flax import struct


@struct.dataclass
class Categorical:
    """One of A actions, int32 `[...]`. A logit of -inf forbids its action, exactly."""

    logits: jax.Array  # [..., A]; need not be normalised

    def sample(self, key: jax.Array) -> jax.Array:
        return jax.random.categorical(key, _centre_logits(self.logits)).astype(jnp.int32)

    def log_prob(self, action: jax.Array) -> jax.Array:
        log_p = jax.nn.log_softmax(self.logits)
        return jnp.take_along_axis(log_p, action[..., None], axis=-1)[..., 0]

    def entropy(self) -> jax.Array:
        p, log_p = self._p_log_p()
        return -jnp.sum(p * log_p, axis=-1)

    def kl(self, other: Self) -> jax.Array:
        """Infinite where `other` forbids an action that this one may take."""
        p, log_p = self._p_log_p()
        log_q = jnp.where(p > 0, jax.nn.log_softmax(other.logits), 0.0)
        return jnp.sum(p * (log_p - log_q), axis=-1)

    def mode(self) -> jax.Array:
        return jnp.argmax(self.logits, axis=-1).astype(jnp.int32)

    def describe(self) -> dict[str, jax.Array]:
        return {"probabilities": jax.nn.softmax(self.logits)}

    def _p_log_p(self) -> tuple[jax.Array, jax.Array]:
        """p and log p, with 0 in the place of log 0: 0 * -inf is nan, in the gradient too."""
        log_p = jax.nn.log_softmax(self.logits)
        p = jnp.exp(log_p)
        return p, jnp.where(p > 0, log_p, 0.0)


def _centre_logits(logits: jax.Array) -> jax.Array:
    """Subtracts about the largest logit, which may be too large for a sample's noise to be added.

    To the nearest multiple of 1,024: logits of an ordinary size stay as they are, to the last bit.
    """
    top = jax.lax.stop_gradient(jnp.max(logits, axis=-1, keepdims=True))
    return logits - jnp.where(jnp.isfinite(top), 1024.0 * jnp.round(top / 1024.0), 0.0)


def masked(logits: jax.Array, allowed: jax.Array) -> Categorical:
    """A Categorical over the allowed actions only; `logits` and `allowed` are `[..., A]`.

    Where nothing is allowed, as in the padding of a batch of graphs, everything is: the caller
    has to ignore such a row anyway, and its nan would reach every gradient.
    """
    chex.assert_equal_shape([logits, allowed])
    chex.assert_type(allowed, bool)
    none_allowed = ~jnp.any(allowed, axis=-1, keepdims=True)
    return Categorical(jnp.where(allowed | none_allowed, logits, -jnp.inf))


@struct.dataclass
class PerNode:
    """A Categorical for every node of a graph, independent of each other; int32 `[..., C]`.

    Only live nodes count in sums; the others always take action 0, and their logits may be
    anything, nan too.
    """

    logits: jax.Array  # [..., C, A]; need not be normalised
    live: jax.Array  # bool [..., C]; where `kl` compares two, this one's

    def sample(self, key: jax.Array) -> jax.Array:
        return jnp.where(self.live, self._node_policies().sample(key), 0)

    def log_prob(self, action: jax.Array) -> jax.Array:
        return self._sum(self._node_policies().log_prob(action))

    def entropy(self) -> jax.Array:
        return self._sum(self._node_policies().entropy())

    def kl(self, other: Self) -> jax.Array:
        return self._sum(self._node_policies().kl(other._node_policies()))

    def mode(self) -> jax.Array:
        return jnp.where(self.live, self._node_policies().mode(), 0)

    def describe(self) -> dict[str, jax.Array]:
        """ "node_probabilities" `[..., C, A]`, those of dead nodes 0."""
        p = jax.nn.softmax(self._node_policies().logits)
        return {"node_probabilities": jnp.where(self.live[..., None], p, 0.0)}

    def _node_policies(self) -> Categorical:
        """`[..., C]`; the dead ones uniform."""
        return Categorical(jnp.where(self.live[..., None], self.logits, 0.0))

    def _sum(self, terms: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(self.live, terms, 0.0), axis=-1)
