"""Limit cycles: closed orbits that attract, told from those that lie side by side.

Letters: S orbits, P points of a loop, d dimensions of the state.
"""

from typing import NamedTuple

import numpy as np

from jaxrl.dynamics.phase_portrait.attractors import Ends
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
    loops = [ends.loops[s] for s in which]
    groups = groups_of([loop for loop in loops if loop is not None])
    attracting, neutral = [], 0.0
    for group in range(groups.max(initial=-1) + 1):
        loop, members = loops[int(np.argmax(groups == group))], which[groups == group]
        assert loop is not None
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


def drop_growing_loops(ends: Ends, spectrum: np.ndarray) -> Ends:
    """Drops loops whose neighbours part from them: chaos that lingered at a weak repeller."""
    loops = [
        None if loop is not None and multiplier(loop, exponents) > GROWING else loop
        for loop, exponents in zip(ends.loops, spectrum, strict=True)
    ]
    return ends._replace(loops=loops)


def multiplier(loop: Loop, exponents: np.ndarray) -> float:
    """The largest Floquet multiplier but that along the loop, whose exponent is 0.

    The two largest exponents are added, since shear lends the first what it takes from the second.
    """
    total = exponents[:2].sum() if loop.is_curve else exponents[0]
    return float(np.exp(np.minimum(loop.period * total, 50.0)))
