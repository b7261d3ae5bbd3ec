"""Closed curves along which a map jumps in a few steps a lap, by the frequency of the path (NumPy).

Where a lap takes only two to eight steps nothing can be interpolated between them. But an orbit on
a closed curve is a function of its phase t / period mod 1: sorted by phase, its points lie along
the curve, one close to the next. Aperiodic orbits have no such period.

Letters: T steps, d dimensions of the state, P points of a curve.
"""

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

DENSE = 0.02
"""Distance of neighbours of equal phase, at most, in extents of the path."""
FASTEST = 8.0
"""Distance that neighbours may lie further apart for the time between their phases, in extents of
the path per period: on a circle it is π."""
WIDEST = 0.1
"""The widest gap between phases, in periods; there is one where few steps are near a whole lap."""
HARMONICS = 3
"""The frequency that is strongest may be the second or the third multiple of the lap's."""
PADDING = 8
"""Frequencies are looked at in such parts of 1 / T, before the best is refined."""


def closed_curve(path: np.ndarray, count: int) -> tuple[float, np.ndarray] | None:
    """`(period, points [P, d])` of a path `[T, d]` along a closed curve, or None.

    P = `count` points at equal parts of the period, the last equal to the first.
    """
    strongest, extent = frequency_of(path), np.ptp(path, axis=0).max()
    for k in range(1, HARMONICS + 1):
        phase = np.arange(len(path)) * strongest / k % 1
        order = np.argsort(phase)
        phase, ordered_path = (
            np.append(phase[order], phase[order[0]] + 1),
            path[np.append(order, order[0])],
        )
        gaps, jumps = np.diff(phase), np.linalg.norm(np.diff(ordered_path, axis=0), axis=1)
        if gaps.max() <= WIDEST and (jumps <= extent * (DENSE + FASTEST * gaps)).all():
            sample_phases = phase[0] + np.linspace(0, 1, count)
            points = np.stack([np.interp(sample_phases, phase, x) for x in ordered_path.T], axis=-1)
            return k / strongest, points
    return None


def mean_over_phases(path: np.ndarray, period: float) -> np.ndarray | None:
    """The mean `[d]` over a lap of a path `[T, d]` that repeats after `period` steps.

    Each state counts for half of the way to its neighbours in phase, since a mean over steps swings
    with the beat of steps and laps: of 2.01 steps a lap once in 200. None where a gap between
    phases is too wide, unless the period is a whole number of steps, at which all states are.
    """
    phase = np.arange(len(path)) / period % 1
    order = np.argsort(phase)
    gaps = np.diff(phase[order], append=phase[order[0]] + 1)
    if gaps.max() > WIDEST and period % 1:
        return None
    return (gaps + np.roll(gaps, 1)) / 2 @ path[order]


def frequency_of(path: np.ndarray) -> float:
    """The frequency per step that is strongest in a path `[T, d]`, along its main axis.

    Harris (1978): under a Hann window other lines hardly reach this one, so that its maximum is
    where the line is, to a small part of 1 / T.
    """
    centred = path - path.mean(0)
    signal = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1] * np.hanning(len(path))
    size = PADDING * len(path)
    peak = np.argmax(np.abs(np.fft.rfft(signal, size))) / size
    times = np.arange(len(path))
    weakness = lambda f: -np.abs(np.sum(signal * np.exp(-2j * np.pi * f * times)))
    bounds = (max(peak - 1 / size, 1e-9), peak + 1 / size)
    options = {"xatol": 1e-10}
    best: Any = minimize_scalar(weakness, bounds=bounds, method="bounded", options=options)
    return float(best.x)
