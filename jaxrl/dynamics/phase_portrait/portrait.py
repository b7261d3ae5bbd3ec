"""The phase portrait of a map z' = step(z, u) under a constant input, where data have been.

    portrait = portrait_of(step, states, u)

Fixed points with their kinds, attracting cycles with their periods, and what share of the visited
states comes to each. The map has no noise; a learned field's expected next state is one. Nothing is
said of places that data never visited.

Letters: N visited states, S orbits, T states of an orbit, d dimensions of the state, m inputs.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.phase_portrait import attractors, fixed_points, orbits
from jaxrl.dynamics.phase_portrait.attractors import Effort, Ends
from jaxrl.dynamics.phase_portrait.cycles import (
    Cycle,
    cycles_of,
    drop_drifting_loops,
    drop_growing_loops,
)
from jaxrl.dynamics.phase_portrait.fixed_points import FixedPoint, Step
from jaxrl.dynamics.phase_portrait.region import Region, grid, region_of, subsample

MARGIN = 0.5
"""Fixed points so far outside the hull of the data, in units of their spread, are left out, unless
orbits from visited states end there."""
MOST = 64
"""Fixed points that are described, at most; those that attract most come first."""

CONVERGING = -3.0
"""Largest Lyapunov exponent times the steps in which it is measured, below which an orbit that has
not settled yet will do so."""
ORBIT = 2000
"""K, states of an aperiodic orbit that are kept, at most."""


class Aperiodic(NamedTuple):
    """Orbits that stay within the region and never repeat: chaos, or several rhythms at once."""

    exponents: np.ndarray  # [d] per step, Lyapunov's, the largest first; above 0 in chaos
    low: np.ndarray  # [d] of the states that these orbits visit
    high: np.ndarray  # [d]
    orbit: np.ndarray  # [K, d], part of one of them
    share: float  # of visited states that end there


class Portrait(NamedTuple):
    """What a map does under a constant input."""

    inputs: np.ndarray  # [m]
    fixed_points: tuple[FixedPoint, ...]  # those that attract most first
    cycles: tuple[Cycle, ...]  # those that attract most first
    aperiodic: Aperiodic | None
    neutral: float  # share of visited states that stay in closed orbits, each in its own
    unsettled: float  # share of them that come to rest nowhere in the time computed
    escaping: float  # share of them that leave the region


def portrait_of(step: Step, states: Any, u: Any = (), effort: Effort | None = None) -> Portrait:
    """The portrait of `step` in the region of visited `states` `[N, d]`, under the input `u` `[m]`.

    Call it with one and the same function for all inputs: it is compiled for each function anew.
    Raises ValueError for arrays of other shapes, for an effort out of range, and for numbers that
    are not finite, among them what the map makes of the visited states.
    """
    effort = effort or Effort()
    if min(effort) < 1 or effort.window < 64:
        raise ValueError(f"{effort}: expected 1 or more of each, and a window of 64 or more")
    region, inputs = region_of(states), np.asarray(u, float)
    u = _input_of(step, states, u)
    frame = tuple(jnp.asarray(x, u.dtype) for x in (region.mean, region.basis, region.inverse))
    # Where orbits end, Newton's method starts, too: what attracts is then among its points.
    ends = attractors.ends_of(step, region, frame, u, effort)
    half = effort.starts // 2
    starts = np.concatenate([subsample(region.visited, half), grid(region, half), ends.places])
    places = fixed_points.places_of(step, region, frame, jnp.asarray(starts, u.dtype), u)
    places = places[: 4 * MOST]
    points = [fixed_points.describe(step, region, place, u) for place in places]
    target = _resting_places(ends, places, points)
    spectrum = np.zeros(ends.places.shape)
    if (ends.is_open & (target < 0) | ends.is_loop).any():
        last = jnp.asarray(ends.places, u.dtype)
        spectrum = np.asarray(orbits.exponents(step, frame, last, u, effort.window), float)
    ends = drop_drifting_loops(drop_growing_loops(ends, spectrum), spectrum)
    wanders = ends.is_open & ~ends.drifts & (target < 0)
    wanders &= spectrum[:, 0] * effort.window > CONVERGING
    cycles, neutral = cycles_of(region, ends, spectrum)
    has_end = (target >= 0) | ends.is_loop | wanders | ends.has_left
    return Portrait(
        inputs,
        _select_points(points, target),
        cycles,
        _aperiodic_orbits(region, ends, spectrum, wanders),
        neutral,
        float(np.mean(~has_end)),
        float(np.mean(ends.has_left)),
    )


def _input_of(step: Step, states: Any, u: Any) -> jax.Array:
    """The input `[m]`, if the map can be computed with it."""
    states, u = jnp.asarray(states, jnp.result_type(float)), jnp.asarray(u, jnp.result_type(float))
    if u.ndim != 1 or not bool(jnp.isfinite(u).all()):
        raise ValueError(f"the input is {np.asarray(u).tolist()}; expected finite numbers [m]")
    after = jax.eval_shape(step, states[0], u)
    if getattr(after, "shape", None) != states[0].shape:
        raise ValueError(
            f"step returns {after} for a state of shape {states[0].shape}; expected the next state"
        )
    sample = states[:: max(1, len(states) // 4096)]
    is_finite = np.isfinite(np.asarray(_steps(step, sample, u))).all(1)
    if not is_finite.all():
        where = np.asarray(sample)[np.argmin(is_finite)].tolist()
        raise ValueError(f"the step from the visited state {where} is not finite; fit the map anew")
    return u


def _steps(step: Step, states: jax.Array, u: jax.Array) -> jax.Array:
    return jax.vmap(step, in_axes=(0, None))(states, u)


def _resting_places(ends: Ends, places: np.ndarray, points: list[FixedPoint]) -> np.ndarray:
    """Which fixed point each orbit comes to `[S]`, -1 for none."""
    target = np.full(len(ends.places), -1)
    for s in np.flatnonzero(ends.rests | ends.is_open).tolist() if points else ():
        away = np.linalg.norm(places - ends.places[s], axis=1)
        nearest = int(np.argmin(away))
        if ends.rests[s]:
            target[s] = nearest if away[nearest] <= 3 * fixed_points.SAME else -1
        elif points[nearest].is_attracting and attractors.is_contracting(ends, s, places[nearest]):
            target[s] = nearest
    return target


def _select_points(points: list[FixedPoint], target: np.ndarray) -> tuple[FixedPoint, ...]:
    """Keeps those of the region, and those that orbits come to, with their shares."""
    shared = [p._replace(share=float(np.mean(target == i))) for i, p in enumerate(points)]
    near = [p for p in shared if p.beyond <= MARGIN or p.share > 0]
    return tuple(sorted(near, key=lambda p: (-p.share, p.beyond, p.nearest))[:MOST])


def _aperiodic_orbits(
    region: Region, ends: Ends, spectrum: np.ndarray, wanders: np.ndarray
) -> Aperiodic | None:
    if not wanders.any():
        return None
    states = region.to_states(ends.path[:, wanders])  # [T, S', d]
    exponents = np.sort(spectrum[wanders].mean(0))[::-1]
    low, high = states.min((0, 1)), states.max((0, 1))
    return Aperiodic(exponents, low, high, states[-ORBIT:, 0], float(np.mean(wanders)))
