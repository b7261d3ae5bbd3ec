"""Fixed points of a map z' = step(z, u): where they are, of which kind, and how inputs move them.

They are found by Newton's method for step(z, u) = z from many starts, damped as Levenberg (1944)
and Marquardt (1963) do.

Letters: S starts, d dimensions of the state, m inputs. Places are in units of the data's spread
(see `region`).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.phase_portrait.kinds import kind_of, rates
from jaxrl.dynamics.phase_portrait.region import Region
from jaxrl.numerics.linalg import matmul, solve_positive

Step = Callable[[jax.Array, jax.Array], jax.Array]
"""(z [d], u [m]) -> the next z [d]."""
ITERATIONS = 80
SMALL = 1e-4
"""Displacement at a fixed point, at most, relative to that at a typical visited state."""
SAME = 0.03
"""Places nearer to each other are one fixed point."""


class FixedPoint(NamedTuple):
    """A state that the map leaves where it is."""

    state: np.ndarray  # [d]
    kind: str  # stable node, stable spiral, saddle, ... (see `kind_of`)
    eigenvalues: np.ndarray  # complex [d] of the map's Jacobian, the largest |λ| first
    rotation_periods: np.ndarray  # [d] steps, 2π / |arg λ|; NaN of a direction that does not rotate
    time_constants: np.ndarray  # [d] steps, -1 / log |λ|; negative where it grows, NaN if neutral
    sensitivity: np.ndarray  # [d, m], derivative of its place by the input; NaN where undefined
    beyond: float  # distance from the hull of the data, in units of their spread; 0 within
    nearest: float  # distance from the nearest visited state, in the same units
    share: float  # of visited states that end there

    @property
    def is_attracting(self) -> bool:
        return self.kind.startswith("stable")


def move(step: Step, frame: tuple, x: jax.Array, u: jax.Array) -> jax.Array:
    """The place `[d]` after a step from the place `x` `[d]`; `frame` is mean, basis, inverse."""
    mean, basis, inverse = frame
    return matmul(inverse, step(mean + matmul(basis, x), u) - mean)


@partial(jax.jit, static_argnames="step")
def descend(step: Step, frame: tuple, starts: jax.Array, u: jax.Array):
    """`(places [S, d], displacements [S])` to which Newton's method comes from `starts` `[S, d]`.

    A step is taken where it lowers the displacement's length, and at most 1 long; its damping then
    falls, and rises where it does not.
    """
    displace = lambda x: move(step, frame, x, u) - x

    def improve(carry: tuple, _: None):
        x, size, damping = carry
        value, slope = displace(x), jax.jacfwd(displace)(x)
        normal = matmul(slope.T, slope)
        d = len(x)
        ridge = damping * jnp.trace(normal) / d + jnp.finfo(x.dtype).tiny
        right = matmul(slope.T, value)[:, None]
        change = -solve_positive(normal + ridge * jnp.eye(d, dtype=x.dtype), right)[:, 0]
        change = change / jnp.maximum(1.0, jnp.linalg.norm(change))
        trial = jnp.linalg.norm(displace(x + change))
        is_better = trial < size  # false for NaN
        x, size = jnp.where(is_better, x + change, x), jnp.where(is_better, trial, size)
        damping = jnp.clip(jnp.where(is_better, damping / 8, damping * 4), 1e-7, 1e7)
        return (x, size, damping), None

    def descend_from(x: jax.Array):
        start = (x, jnp.linalg.norm(displace(x)), jnp.asarray(1e-2, x.dtype))
        (x, size, _), _ = jax.lax.scan(improve, start, None, ITERATIONS)
        return x, jnp.where(jnp.isfinite(size), size, jnp.inf)

    return jax.vmap(descend_from)(starts)


def places_of(
    step: Step, region: Region, frame: tuple, starts: jax.Array, u: jax.Array
) -> np.ndarray:
    """The places `[k, d]` of fixed points that Newton's method finds from `starts` `[S, d]`.

    Each once, the most exact first. A place counts where the displacement is below `SMALL` times
    its median over visited states, or is nothing but rounding.
    """
    ends, sizes = (np.asarray(x, float) for x in descend(step, frame, starts, u))
    sample = jnp.asarray(region.visited[:: max(1, len(region.visited) // 512)], starts.dtype)
    typical = np.median(np.linalg.norm(displacements(step, frame, sample, u), axis=1))
    offset = np.linalg.norm(region.inverse @ region.mean)
    rounding = 16 * float(jnp.finfo(starts.dtype).eps) * (1 + offset)
    order = np.argsort(sizes, kind="stable")
    places = np.zeros((0, ends.shape[1]))
    for i in order[sizes[order] <= max(SMALL * typical, rounding)]:
        if not (np.linalg.norm(places - ends[i], axis=1) < SAME).any():
            places = np.concatenate([places, ends[i][None]])
    return places


@partial(jax.jit, static_argnames="step")
def displacements(step: Step, frame: tuple, places: jax.Array, u: jax.Array) -> jax.Array:
    """What a step adds to each of `places` `[S, d]`."""
    return jax.vmap(lambda x: move(step, frame, x, u) - x)(places)


@partial(jax.jit, static_argnames="step")
def slopes(step: Step, z: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Derivatives of a step by the state `[d, d]` and by the input `[d, m]`."""
    return jax.jacfwd(step)(z, u), jax.jacfwd(step, 1)(z, u)


def describe(step: Step, region: Region, place: np.ndarray, u: jax.Array) -> FixedPoint:
    """The fixed point at a place `[d]`, with a share of 0."""
    state = region.to_states(place)
    by_state, by_input = (
        np.asarray(x, float) for x in slopes(step, jnp.asarray(state, u.dtype), u)
    )
    eigenvalues = np.linalg.eigvals(by_state).astype(complex)
    eigenvalues = eigenvalues[np.argsort(-np.abs(eigenvalues), kind="stable")]
    growth, rotation = rates(eigenvalues)
    with np.errstate(divide="ignore"):
        times, periods = -1 / growth, 2 * np.pi / rotation
    return FixedPoint(
        state,
        kind_of(eigenvalues),
        eigenvalues,
        np.where(rotation > 0, periods, np.nan),
        np.where(growth == 0, np.nan, times),
        sensitivity(by_state, by_input),
        float(region.distance_outside(place[None])[0]),
        float(region.nearest_distance(place[None])[0]),
        0.0,
    )


def sensitivity(by_state: np.ndarray, by_input: np.ndarray) -> np.ndarray:
    """(I - J)⁻¹ B `[d, m]`: how a fixed point moves with the input (implicit function theorem).

    NaN where I - J is singular, as at a bifurcation.
    """
    system = np.eye(len(by_state)) - by_state
    if np.linalg.cond(system) > 1e6:
        return np.full(by_input.shape, np.nan)
    return np.linalg.solve(system, by_input)
