"""Action values: greedy choices, targets, and categorical distributions of returns.

Pure functions on action values `q [..., A]`, and on distributions over a grid of K returns, the
support (Bellemare et al. 2017): logits `[..., A, K]`, probabilities `[..., K]`. Leading axes are
carried along.
"""

import chex
import jax
import jax.numpy as jnp

from jaxrl.numerics.linalg import matmul


def value_of_action(q: jax.Array, action: jax.Array) -> jax.Array:
    """Q(s, a): `[..., A], [...] -> [...]`. A sum, whose gradient needs no scatter."""
    chosen = jax.nn.one_hot(action, q.shape[-1], dtype=bool)
    return jnp.sum(jnp.where(chosen, q, 0.0), axis=-1)


def max_value(target_q: jax.Array) -> jax.Array:
    """V = maxₐ Q⁻(s, a) (Mnih et al. 2015): `[..., A] -> [...]`."""
    return jnp.max(target_q, axis=-1)


def double_value(online_q: jax.Array, target_q: jax.Array) -> jax.Array:
    """V = Q⁻(s, argmaxₐ Q(s, a)) (van Hasselt et al. 2016): `[..., A] -> [...]`."""
    return value_of_action(target_q, jnp.argmax(online_q, axis=-1))


def logits_of_action(logits: jax.Array, action: jax.Array) -> jax.Array:
    """The distribution of one action: `[..., A, K], [...] -> [..., K]`; a sum, as above."""
    chosen = jax.nn.one_hot(action, logits.shape[-2], dtype=bool)[..., None]
    return jnp.sum(jnp.where(chosen, logits, 0.0), axis=-2)


def support(low: float | jax.Array, high: float | jax.Array, atoms: int) -> jax.Array:
    """`[K]` equally spaced returns from `low` to `high`; K = `atoms`, at least 2.

    Raises ValueError for fewer, and where float32 cannot tell neighbours apart; for ends that are
    traced this cannot be known.
    """
    if atoms < 2:
        raise ValueError(f"a support of {atoms} atoms, expected at least 2: raise atoms, say to 51")
    if isinstance(low, int | float) and isinstance(high, int | float):
        single = jnp.finfo(jnp.float32)
        least = 4 * float(single.eps) * max(abs(low), abs(high))
        if not least < (high - low) / (atoms - 1) < float(single.max):
            raise ValueError(
                f"{atoms} atoms from {low} to {high}, expected a grid that float32 resolves: "
                "give a finite low and a larger high"
            )
    return low + (high - low) * jnp.arange(atoms) / (atoms - 1)


def expectation(logits: jax.Array, support: jax.Array) -> jax.Array:
    """Q(s, a) = Σₖ pₖ zₖ: logits `[..., A, K]` and support `[K]` to `[..., A]`."""
    return matmul(jax.nn.softmax(logits), support)


def project(
    probabilities: jax.Array, return_: jax.Array, discount: jax.Array, support: jax.Array
) -> jax.Array:
    """The distribution of `return_ + discount * Z`, put back on the support of Z.

    Each atom is moved, kept within both ends, and its mass shared by its two neighbours on the grid
    in proportion to their nearness (Bellemare et al. 2017, eq. 7). Of the mass at position b, in
    units of the grid, neighbour i so receives the part max(0, 1 - |b - i|), which is all of it
    where an atom lands on the grid. Sums over all pairs of atoms: no scatter.

    Args:
      probabilities: `[..., K]` of Z.
      return_: `[...]` rewards before the bootstrap.
      discount: `[...]` of the bootstrap; 0 puts all mass at `return_`.
      support: `[K]` as `support` makes it.
    """
    chex.assert_equal_shape_prefix([probabilities, return_, discount], return_.ndim)
    last = support.shape[0] - 1
    low, spacing = support[0], (support[-1] - support[0]) / last
    atoms = support.reshape((1,) * return_.ndim + support.shape)
    target_atoms = return_[..., None] + discount[..., None] * atoms  # [..., K]
    spacing = jnp.where(spacing == 0, 1.0, spacing)  # one point: then any atom is the right one
    position = jnp.clip((target_atoms - low) / spacing, 0.0, last)
    grid = jnp.arange(last + 1, dtype=position.dtype).reshape((1,) * (return_.ndim + 1) + (-1,))
    share = jnp.maximum(1.0 - jnp.abs(position[..., None] - grid), 0.0)  # [..., K from, K to]
    return jnp.sum(probabilities[..., None] * share, axis=-2)


def epsilon_greedy(key: jax.Array, q: jax.Array, epsilon: float | jax.Array) -> jax.Array:
    """A random action with probability ε, else the best of `q [A]`; int32. Consumes `key`."""
    is_random, which = jax.random.uniform(key, (2,))
    random_action = (which * q.shape[-1]).astype(jnp.int32)
    return jnp.where(is_random < epsilon, random_action, jnp.argmax(q).astype(jnp.int32))


def huber_loss(error: jax.Array, delta: float | jax.Array) -> jax.Array:
    """½ e² where |e| <= δ, beyond it δ (|e| - ½ δ) (Huber 1964), of `error [...]`: `[...]`.

    As c (e - ½ c) with c = clip(e, -δ, δ). Its gradient is c to the last bit, whatever δ is. The
    usual ½ min(|e|, δ)² + δ (|e| - min(|e|, δ)) has that of e as a difference of numbers near δ,
    which in float32 loses errors below δ / 2²⁴.
    """
    clipped = jnp.clip(error, -delta, delta)
    return clipped * (error - clipped / 2)
