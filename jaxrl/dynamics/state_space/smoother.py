"""The states of a record given all of it: a fixed-interval smoother, and paths drawn from it.

Letters: T steps, d dimensions of the state, S paths.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.state_space.filter import Filtered
from jaxrl.dynamics.state_space.small_matrices import cholesky, solve_lower, solve_upper
from jaxrl.linalg import matmul


class _Back(NamedTuple):
    """What leads from a state to the one before it."""

    belief: Belief  # of the state at t, given the present
    after: Belief  # of the state at t + 1, given the present
    gain: jax.Array  # [d, d]


def smooth_states(filtered: Filtered, valid: jax.Array) -> Belief:
    """Beliefs `[T, ...]` given all observations, after Rauch, Tung & Striebel (1965).

    `valid`, bool `[T]`, is false in padding, where nothing is known of the states.
    """

    def retreat(later: Belief, now: tuple[_Back, jax.Array]) -> tuple[Belief, Belief]:
        (belief, after, gain), is_inside = now
        mean = belief.mean + matmul(gain, later.mean - after.mean)
        surplus = later.covariance - after.covariance
        covariance = belief.covariance + matmul(matmul(gain, surplus), gain.T)
        smooth = Belief(mean, (covariance + covariance.T) / 2)
        smooth = jax.tree.map(lambda a, b: jnp.where(is_inside, a, b), smooth, belief)
        return smooth, smooth

    last = jax.tree.map(lambda x: x[-1], filtered.belief)
    _, earlier = jax.lax.scan(retreat, last, (_backwards(filtered), valid[1:]), reverse=True)
    return jax.tree.map(lambda x, end: jnp.concatenate([x, end[None]]), earlier, last)


def sample_paths(filtered: Filtered, valid: jax.Array, count: int, key: jax.Array) -> jax.Array:
    """S = `count` paths `[S, T, d]` of the state given all observations; consumes `key`.

    Backwards from the last state (Carter & Kohn 1994), each the next one's Gaussian condition.
    """
    steps, size = filtered.belief.mean.shape
    noise = jax.random.normal(key, (count, steps, size))

    def retreat(later: jax.Array, now: tuple) -> tuple[jax.Array, jax.Array]:
        (belief, after, gain), is_inside, drawn = now
        left = belief.covariance - matmul(matmul(gain, after.covariance), gain.T)
        covariance = jnp.where(is_inside, left, belief.covariance)
        towards = matmul(later - after.mean[None], gain.T)
        mean = belief.mean[None] + jnp.where(is_inside, towards, 0.0)
        z = mean + matmul(drawn, cholesky(covariance).T)
        return z, z

    last = jax.tree.map(lambda x: x[-1], filtered.belief)
    end = last.mean[None] + matmul(noise[:, -1], cholesky(last.covariance).T)
    rows = (_backwards(filtered), valid[1:], noise[:, :-1].swapaxes(0, 1))
    _, earlier = jax.lax.scan(retreat, end, rows, reverse=True)
    return jnp.concatenate([earlier, end[None]]).swapaxes(0, 1)


def _backwards(filtered: Filtered) -> _Back:
    """What leads back from the steps 1 to T - 1."""
    belief, cross = jax.tree.map(lambda x: x[:-1], (filtered.belief, filtered.cross))
    after = jax.tree.map(lambda x: x[1:], filtered.before)
    return _Back(belief, after, jax.vmap(_gain)(cross, after.covariance))


def _gain(cross: jax.Array, after: jax.Array) -> jax.Array:
    """Cov(z_t, z_{t+1}) Cov(z_{t+1})⁻¹, `[d, d]`."""
    lower = cholesky(after)
    return solve_upper(lower, solve_lower(lower, cross.T)).T
