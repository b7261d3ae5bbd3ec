"""The last word on every input that goes out: a projection on what the rig allows.

Four limits: a box, a largest change from one sample to the next, and a largest charge, Σ |u| dt
over components, in any window of so many samples. An input is let out only if the quiet path after
it, as fast as allowed to the input of the least size, keeps to all limits. So there is always one:
the next one on the quiet path. The inputs that can be let out are a convex set; what is asked for
is clipped to box and change, then moved towards the quiet path as little as that takes.

Whoever does not hear from here, as with samples that are missing or a connection that is lost,
gives the inputs of the quiet path, one a sample, and so does the account.

Letters: m inputs, W samples in a window.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Input = tuple[float, ...]
MARGIN = 1e-9
"""Share by which limits are kept more strictly, so that they hold whatever sums are rounded to."""
LONGEST_PATH = 10_000
"""Samples in which the largest input must be reached from 0, at the largest change."""
NEARNESS = 1e-7
"""Share of the way to the quiet path, or of the charge, that may be given away."""
ATTEMPTS = 48
"""To find that place: enough for halving alone, half of them."""


@dataclass(frozen=True)
class RigLimits:
    """What a rig allows; sizes and units are the user's."""

    low: Input  # [m] smallest inputs
    high: Input  # [m] largest inputs
    rate: Input  # [m] largest change from a sample to the next; may be inf
    charge: float = math.inf  # largest Σ |u| dt in a window
    window: int = 1  # W
    dt: float = 1.0  # time of a sample

    def __post_init__(self):
        if not len(self.low) == len(self.high) == len(self.rate) > 0:
            raise ValueError(
                f"there are {len(self.low)} smallest inputs, {len(self.high)} largest and "
                f"{len(self.rate)} rates: give one each for every input"
            )
        for low, high, rate in zip(self.low, self.high, self.rate, strict=True):
            if not (math.isfinite(low) and math.isfinite(high) and low <= high and rate > 0):
                raise ValueError(
                    f"an input from {low:g} to {high:g} with changes of at most {rate:g}: expected "
                    "finite numbers, the smallest first, and a rate above 0"
                )
            if rate * LONGEST_PATH < max(abs(low), abs(high)):
                raise ValueError(
                    f"changes of at most {rate:g} need more than {LONGEST_PATH:,} samples to an "
                    f"input of {max(abs(low), abs(high)):g}: allow more, or smaller inputs"
                )
        if self.window < 1 or not (self.dt > 0 and math.isfinite(self.dt) and self.charge >= 0):
            raise ValueError(
                f"a charge of {self.charge:g} in {self.window} samples of {self.dt:g}: expected at "
                "least 0, one sample and a time above 0"
            )
        least = self.window * self.amount(self.quiet)
        if least > self.charge * (1 - MARGIN) and least > 0:
            raise ValueError(
                f"a charge of {self.charge:g} is less than {least:g}, that of the smallest input "
                f"that the bounds allow, for {self.window} samples: allow more"
            )

    @property
    def quiet(self) -> Input:
        """The input of the least size; 0 where that is allowed."""
        return tuple(min(max(0.0, x), y) for x, y in zip(self.low, self.high, strict=True))

    def amount(self, u: Input) -> float:
        """The charge of one sample."""
        return sum(map(abs, u)) * self.dt


class Account:
    """What went out: the last input, and the charges of the samples that may still count."""

    def __init__(self, limits: RigLimits, past: Sequence[Input] = ()):
        """`past` are the newest inputs that went out, the last one last; none: it was quiet."""
        self.limits = limits
        self.last = past[-1] if past else limits.quiet
        self._amounts = deque(map(limits.amount, past), maxlen=limits.window)

    def project(self, request: Sequence[float]) -> Input:
        """The input `[m]` nearest to a request, on the way to the quiet path; it goes out.

        A request that is not `[m]` finite numbers is one for the quiet path.
        """
        next_quiet = self._step_to_quiet(self.last)
        is_usable = len(request) == len(self.last) and all(map(math.isfinite, request))
        u = self._clip(request) if is_usable else next_quiet
        if math.isfinite(self.limits.charge) and u != next_quiet:
            u = self._reduce(u, next_quiet)
        self._enter(u)
        return u

    def fall_silent(self, samples: int) -> list[Input]:
        """The inputs of so many samples in which nothing goes out from here: the quiet path."""
        path = []
        for _ in range(samples):
            self._enter(self._step_to_quiet(self.last))
            path.append(self.last)
        return path

    def samples_to_quiet(self) -> int:
        """How many samples the quiet path from the last input takes."""
        u, count = self.last, 0
        while u != self.limits.quiet:
            u, count = self._step_to_quiet(u), count + 1
        return count

    def _enter(self, u: Input) -> None:
        self.last = u
        self._amounts.append(self.limits.amount(u))

    def _clip(self, request: Sequence[float]) -> Input:
        box = self.limits.low, self.limits.high
        rows = zip(request, self.last, self._rates, *box, strict=True)
        near = ((min(max(x, last - r), last + r), low, high) for x, last, r, low, high in rows)
        return tuple(min(max(x, low), high) for x, low, high in near)

    @property
    def _rates(self) -> Input:
        """A little less than allowed; not where all is."""
        return tuple(rate * (1 - MARGIN) for rate in self.limits.rate)

    def _step_to_quiet(self, u: Input) -> Input:
        """The next input on the quiet path after `u`."""
        steps = zip(u, self._rates, self.limits.quiet, strict=True)
        return tuple(min(max(quiet, x - rate), x + rate) for x, rate, quiet in steps)

    def _quiet_path(self, u: Input) -> list[Input]:
        """The inputs after `u` that are not yet quiet, and the first that is."""
        path: list[Input] = []
        while u != self.limits.quiet and len(path) < self.limits.window:
            u = self._step_to_quiet(u)
            path.append(u)
        return path

    def _reduce(self, u: Input, next_quiet: Input) -> Input:
        """The nearest input on the line from `u` to the quiet path that may be let out."""
        left = self._charge_left()
        mix = lambda share: tuple(y + share * (x - y) for x, y in zip(u, next_quiet, strict=True))
        # The excess is convex along the line, so where its chord is 0 it is not above 0.
        least, most, below, above = 0.0, 1.0, self._excess(next_quiet, left), self._excess(u, left)
        if above <= 0 or below > 0:  # the latter by rounding alone
            return u if above <= 0 else next_quiet
        for attempt in range(ATTEMPTS):
            if most - least < NEARNESS or below > -NEARNESS * self.limits.charge:
                break
            part = 0.5 if attempt % 2 else below / (below - above)
            share = least + part * (most - least)
            excess = self._excess(mix(share), left)
            if excess <= 0:
                least, below = share, excess
            else:
                most, above = share, excess
        return mix(least) if least > 0 else next_quiet

    def _charge_left(self) -> np.ndarray:
        """`[W]`: what the next samples may take until each of them, beside what is past."""
        past = np.array(self._amounts)[1 - self.limits.window or None :]
        if self.limits.window == 1:
            past = past[:0]
        leaving = np.zeros(self.limits.window)  # of the window, at each of the next samples
        leaving[self.limits.window - len(past) :] = past
        still_there = past.sum() - np.cumsum(leaving)
        return self.limits.charge * (1 - MARGIN) - still_there

    def _excess(self, u: Input, left: np.ndarray) -> float:
        """By how much `u` and the quiet path after it are beyond the charge; 0 or less: nowhere."""
        path = np.abs(np.array([u, *self._quiet_path(u)])[: self.limits.window])
        amounts = np.full(self.limits.window, self.limits.amount(self.limits.quiet))
        amounts[: len(path)] = path.sum(1) * self.limits.dt
        return float((np.cumsum(amounts) - left).max())
