"""How well the next observation is foreseen, as samples come.

Letters: n channels.
"""

import numpy as np

MEMORY = 500.0
"""Samples over which moments are averaged, exponentially."""


class ForecastScores:
    """R² of forecasts one step ahead, over the newest samples."""

    def __init__(self, channels: int):
        zeros = np.zeros(channels)
        self._weight, self._mean, self._square, self._error = (zeros.copy() for _ in range(4))

    def add(self, y: np.ndarray, expected: np.ndarray) -> None:
        """An observation `[n]`, NaN where missing, and what was expected `[n]`."""
        keep, observed = 1 - 1 / MEMORY, np.isfinite(y)
        y = np.where(observed, y, 0.0).astype(float)  # squares of float32 hide small variances
        for total, value in (
            (self._weight, 1.0),
            (self._mean, y),
            (self._square, y**2),
            (self._error, (y - expected) ** 2),
        ):
            total[:] = np.where(observed, keep * total + value, total)

    @property
    def r2(self) -> float | None:
        """The mean over channels that vary; None before there are two samples of one."""
        counted = self._weight > 1.5
        weight = np.where(counted, self._weight, 1.0)
        variance = self._square - self._mean**2 / weight
        counted &= variance > 1e-9 * np.maximum(self._square, 1e-30)
        if not counted.any():
            return None
        return float(np.mean(1 - self._error[counted] / variance[counted]))
