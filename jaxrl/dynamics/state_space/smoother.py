"""The states of a record given all of it: a fixed-interval smoother, and paths drawn from it.

Letters: T steps, d dimensions of the state, S paths.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.state_space.filter import FilteredStates
from jaxrl.dynamics.state_space.small_matrices import inverse
from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul


class _BackwardStep(NamedTuple):
    """What leads from a state to the one before it."""

    belief: Belief  # of the state at t, given the present
    after: Belief  # of the state at t + 1, given the present
    gain: jax.Array  # [d, d]


def smooth_states(filtered: FilteredStates, valid: jax.Array) -> Belief:
    """Beliefs `[T, ...]` given all observations, after Rauch, Tung & Striebel (1965).

    `valid`, bool `[T]`, is false in padding, where nothing is known of the states.
    """

    def smooth_step(
        next_belief: Belief, now: tuple[_BackwardStep, jax.Array]
    ) -> tuple[Belief, Belief]:
        (belief, after, gain), is_inside = now
        mean = belief.mean + matmul(gain, next_belief.mean - after.mean)
        surplus = next_belief.covariance - after.covariance
        covariance = belief.covariance + matmul(matmul(gain, surplus), gain.T)
        smoothed = Belief(mean, (covariance + covariance.T) / 2)
        smoothed = jax.tree.map(lambda a, b: jnp.where(is_inside, a, b), smoothed, belief)
        return smoothed, smoothed

    last = jax.tree.map(lambda x: x[-1], filtered.belief)
    _, earlier = jax.lax.scan(
        smooth_step, last, (_backward_steps(filtered), valid[1:]), reverse=True
    )
    return jax.tree.map(lambda x, end: jnp.concatenate([x, end[None]]), earlier, last)


def sample_paths(
    filtered: FilteredStates, valid: jax.Array, count: int, key: jax.Array
) -> jax.Array:
    """S = `count` paths `[S, T, d]` of the state given all observations; consumes `key`.

    Backwards from the last state (Carter & Kohn 1994), each the next one's Gaussian condition.
    """
    steps, size = filtered.belief.mean.shape
    noise = jax.random.normal(key, (count, steps, size))
    back, is_inside = _backward_steps(filtered), valid[1:]
    covariance = jax.vmap(_covariance_given_next)(back, is_inside)
    # Where the noise of a step is small a covariance may be 0, up to roundings of either sign.
    roots = linalg.root(jnp.concatenate([covariance, filtered.belief.covariance[-1:]]))
    noise = jnp.einsum("tij,stj->tsi", roots, noise, precision="highest")

    def sample_step(next_state: jax.Array, now: tuple) -> tuple[jax.Array, jax.Array]:
        (belief, after, gain), is_inside, draw = now
        towards = matmul(next_state - after.mean[None], gain.T)
        z = belief.mean[None] + jnp.where(is_inside, towards, 0.0) + draw
        return z, z

    end = filtered.belief.mean[-1][None] + noise[-1]
    _, earlier = jax.lax.scan(sample_step, end, (back, is_inside, noise[:-1]), reverse=True)
    return jnp.concatenate([earlier, end[None]]).swapaxes(0, 1)


def _backward_steps(filtered: FilteredStates) -> _BackwardStep:
    """What leads back from the steps 1 to T - 1."""
    belief, cross = jax.tree.map(lambda x: x[:-1], (filtered.belief, filtered.cross))
    after = jax.tree.map(lambda x: x[1:], filtered.before)
    return _BackwardStep(belief, after, jax.vmap(_gain)(cross, after.covariance))


def _gain(cross: jax.Array, after: jax.Array) -> jax.Array:
    """Cov(z_t, z_{t+1}) Cov(z_{t+1})⁻¹, `[d, d]`."""
    return matmul(cross, inverse(after)[0])


def _covariance_given_next(back: _BackwardStep, is_inside: jax.Array) -> jax.Array:
    """The covariance `[d, d]` of a state whose next one is known; in padding it is not."""
    covariance = back.belief.covariance - matmul(
        matmul(back.gain, back.after.covariance), back.gain.T
    )
    return jnp.where(is_inside, (covariance + covariance.T) / 2, back.belief.covariance)
