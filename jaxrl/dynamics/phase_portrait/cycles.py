"""Limit cycles: closed orbits that attract, told from those that lie side by side.

Letters: S orbits, P points of a loop, d dimensions of the state.
"""

from typing import NamedTuple

import numpy as np

from jaxrl.dynamics.phase_portrait.attractors import Ends
from jaxrl.dynamics.phase_portrait.filled_curves import (
    curve_through,
    groups_of_neighbours,
    lies_on,
)
from jaxrl.dynamics.phase_portrait.loops import Loop, groups_of
from jaxrl.dynamics.phase_portrait.region import Region

NEUTRAL = 0.99
"""A closed orbit whose neighbours come nearer by less than this factor in a period does not
attract: there is another one beside it, as around a centre."""
GROWING = 1.05
"""A factor of more than this means that the orbit has not settled."""


class Cycle(NamedTuple):
    """A closed orbit to which its neighbours come: a limit cycle."""

    period: float  # steps, no whole number in general
    loop: np.ndarray  # [P, d], states of one period
    extent: np.ndarray  # [d], from the lowest to the highest value of each coordinate
    mean: np.ndarray  # [d]
    multiplier: float  # what is left of a small distance from it after a period, at most
    share: float  # of visited states that end there


def cycles_of(region: Region, ends: Ends, spectrum: np.ndarray) -> tuple[tuple[Cycle, ...], float]:
    """Cycles that attract, the widest basin first, and the share of orbits in other loops.

    `spectrum` `[S, d]` are the Lyapunov exponents of the orbits.
    """
    which = np.array([s for s, loop in enumerate(ends.loops) if loop is not None], int)
    loops = join_orbits([loop for loop in ends.loops if loop is not None], spectrum[which])
    groups = groups_of(loops)
    attracting, neutral = [], 0.0
    for group in range(groups.max(initial=-1) + 1):
        loop, members = loops[int(np.argmax(groups == group))], which[groups == group]
        share = len(members) / len(ends.loops)
        factor = multiplier(loop, spectrum[members].mean(0))
        if factor > NEUTRAL:
            neutral += share
            continue
        states = region.to_states(loop.points)
        mean = states[:-1].mean(0) if loop.is_curve else states.mean(0)
        extent = np.ptp(states, axis=0)
        attracting.append(Cycle(loop.period, states, extent, mean, factor, share))
    return tuple(sorted(attracting, key=lambda cycle: -cycle.share)), neutral


def join_orbits(loops: list[Loop], spectrum: np.ndarray) -> list[Loop]:
    """The same loops, but one closed curve in place of all orbits of points that fill it.

    Where a lap takes a rational number of steps, an orbit comes back to its own points on the
    curve, among those of others: neutral along it, attracted across it. `spectrum`
    `[len(loops), d]` are the Lyapunov exponents.
    """
    along = [multiplier(loop, x) for loop, x in zip(loops, spectrum, strict=True)]
    curves = [loop._replace(is_curve=True) for loop in loops]
    across = [multiplier(curve, x) for curve, x in zip(curves, spectrum, strict=True)]
    joined, periods = list(loops), np.array([loop.period for loop in loops])
    is_part = (np.array(along) > NEUTRAL) & (np.array(across) <= NEUTRAL)
    is_part &= np.array([not loop.is_curve for loop in loops], bool)
    known_curves = [loop for loop in loops if loop.is_curve]
    for i in np.flatnonzero(is_part):
        joined[i] = next((x for x in known_curves if lies_on(loops[i], x)), loops[i])
        is_part[i] = not joined[i].is_curve
    for period in np.unique(periods[is_part]):
        members = np.flatnonzero(is_part & (periods == period))
        orbits = np.stack([loops[i].points for i in members])  # [S, P, d]
        for group in groups_of_neighbours(orbits):
            curve = curve_through(orbits[group], float(period))
            for i in members[group]:
                joined[i] = curve or loops[i]
    return joined


def drop_growing_loops(ends: Ends, spectrum: np.ndarray) -> Ends:
    """Drops loops whose neighbours part from them: chaos that lingered at a weak repeller."""
    loops = [
        None if loop is not None and multiplier(loop, exponents) > GROWING else loop
        for loop, exponents in zip(ends.loops, spectrum, strict=True)
    ]
    return ends._replace(loops=loops)


def drop_drifting_loops(ends: Ends, spectrum: np.ndarray) -> Ends:
    """Drops loops on the way to one that attracts; `drifts` are then the orbits that were in them.

    Those that neither attract nor settle stay what they are, closed but for their rounding.
    """
    drifts = [
        bool(drifts) and loop is not None and multiplier(loop, exponents) <= NEUTRAL
        for loop, drifts, exponents in zip(ends.loops, ends.drifts, spectrum, strict=True)
    ]
    loops = [None if x else loop for x, loop in zip(drifts, ends.loops, strict=True)]
    return ends._replace(loops=loops, drifts=np.array(drifts))


def multiplier(loop: Loop, exponents: np.ndarray) -> float:
    """The largest Floquet multiplier but that along the loop, whose exponent is 0.

    The two largest exponents are added, since shear lends the first what it takes from the second.
    """
    total = exponents[:2].sum() if loop.is_curve else exponents[0]
    return float(np.exp(np.minimum(loop.period * total, 50.0)))
