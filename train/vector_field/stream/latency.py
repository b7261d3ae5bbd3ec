"""How long answers took."""

from collections import deque

import numpy as np

MOST = 10_000
"""Newest answers that count."""


class Latencies:
    """Times from the arrival of a sample to its answer."""

    def __init__(self):
        self._seconds: deque[float] = deque(maxlen=MOST)
        self.count = 0

    def add(self, seconds: float) -> None:
        """One more."""
        self._seconds.append(seconds)
        self.count += 1

    def quantiles(self, *shares: float) -> list[float]:
        """Below which these shares of the newest answers lie, in seconds; 0 without any."""
        if not self._seconds:
            return [0.0] * len(shares)
        return np.quantile(np.array(self._seconds), shares).tolist()
