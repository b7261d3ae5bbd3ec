"""Kinds of fixed points of a map, by the eigenvalues λ of its Jacobian there.

After Strogatz (2015), sections 5.2 and 10.1, and Guckenheimer & Holmes (1983), section 1.4.
"""

from typing import Any

import numpy as np

NEUTRAL = 0.003
"""Two thresholds: of growth, in units of rotation, below which a deviation that turns neither grows
nor decays (by less than this share in a radian, 2 % a turn); and of rotation, in units of growth,
below which what grows or decays does not turn (by fewer radians than this in its time constant)."""
STILL = 1e-5
"""Growth per step, below which a direction that does not rotate is neutral: rounding."""


def rates(eigenvalues: Any) -> tuple[np.ndarray, np.ndarray]:
    """`(growth, rotation)` `[d]` per step, log |λ| and |arg λ|; 0 where neutral."""
    with np.errstate(divide="ignore"):
        growth = np.log(np.abs(eigenvalues))
    is_real = eigenvalues.imag == 0
    rotation = np.where(is_real & (eigenvalues.real > 0), 0.0, np.abs(np.angle(eigenvalues)))
    # A pair that rounding has split from a double eigenvalue does not rotate.
    rotates = rotation > NEUTRAL * np.abs(growth)
    rotation = np.where(rotates | is_real, rotation, 0.0)
    least = np.where(is_real | ~rotates, STILL, np.maximum(STILL, NEUTRAL * rotation))
    return np.where(np.abs(growth) <= least, 0.0, growth), rotation


def kind_of(eigenvalues: Any) -> str:
    """The kind of a fixed point with these eigenvalues `[d]` of its map.

    stable or unstable point (d = 1), node, spiral; saddle, or saddle-focus where a direction
    rotates; centre where a rotation neither grows nor decays; neutral point where another direction
    does neither.
    """
    growth, rotation = rates(eigenvalues)
    rotates = rotation > 0
    rotates &= eigenvalues.imag != 0  # a negative real eigenvalue jumps from side to side
    shape = "point" if len(growth) == 1 else "spiral" if rotates.any() else "node"
    if (growth > 0).any():
        if (growth < 0).any():
            return "saddle-focus" if rotates.any() else "saddle"
        return f"unstable {shape}"
    if (growth == 0).any():
        return "centre" if rotates[growth == 0].all() else "neutral point"
    return f"stable {shape}"
