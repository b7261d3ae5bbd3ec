"""The systems that recordings are simulated of, and how large they are in benches and in tests.

`SYSTEMS` has them by name, `record` simulates one. Which units see what of the state is drawn with
the seed. Times are in bins, rates in counts a bin.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tests.recordings.simulation import Channels, Drift, Inputs, Model, Recording, simulate

PERIOD = 16.7
"""Bins of a cycle of the Stuart-Landau oscillator."""
Build = Callable[[np.random.Generator], tuple[Model, Inputs]]
Change = Callable[[Recording, np.random.Generator], Recording]


class System(NamedTuple):
    build: Build
    lengths: Sequence[int]  # of the episodes in a bench
    small: Sequence[int]  # and in a test
    change: Change = lambda recording, rng: recording  # of what was recorded


def record(name: str, seed: int, small: bool = False) -> Recording:
    """Simulates the system `name`. Raises ValueError for a name that is not in `SYSTEMS`."""
    if name not in SYSTEMS:
        raise ValueError(f"there is no system {name}: choose one of {', '.join(SYSTEMS)}")
    system, rng = SYSTEMS[name], np.random.default_rng(seed)
    model, inputs = system.build(rng)
    recording = simulate(model, inputs, system.small if small else system.lengths, rng)
    return system.change(recording, rng)


# What inputs do


def pulses(rng: np.random.Generator, steps: int) -> np.ndarray:
    """Pulses of 4 bins and of an amplitude within ± 1, one in 40 bins on average; `[T, 1]`."""
    u = np.zeros((steps, 1))
    for begin in np.flatnonzero(rng.random(steps) < 1 / 40):
        u[begin : begin + 4] = rng.uniform(-1, 1)
    return u


def levels(rng: np.random.Generator, steps: int) -> np.ndarray:
    """0 or 1, each held for 60 to 180 bins; `[T, 1]`."""
    u, level, end = np.zeros((steps, 1)), rng.integers(2), 0
    while end < steps:
        begin, end = end, end + int(rng.integers(60, 181))
        u[begin:end], level = level, 1 - level
    return u


def cues(rng: np.random.Generator, steps: int) -> np.ndarray:
    """Directions on a circle, (cos φ, sin φ) for 10 bins, once in 60 bins on average; `[T, 2]`."""
    u = np.zeros((steps, 2))
    for begin in np.flatnonzero(rng.random(steps) < 1 / 60):
        angle = rng.uniform(0, 2 * np.pi)
        u[begin : begin + 10] = np.cos(angle), np.sin(angle)
    return u


# How states are seen


def units(
    rng: np.random.Generator, count: int, dims: int, loading: float, rate: float = 0.35
) -> Channels:
    """Neurons with log-linear rates: loadings of that deviation, median rates around `rate`."""
    matrix = loading * rng.standard_normal((count, dims))
    offset = np.log(rate) + 0.3 * rng.standard_normal(count)
    return Channels(matrix, offset, np.ones(count, bool), np.zeros(count))


def numbers(rng: np.random.Generator, count: int, dims: int, noise: float) -> Channels:
    """Linear channels with loadings of deviation 1 and that deviation of their noise."""
    matrix = rng.standard_normal((count, dims))
    offset = 0.5 * rng.standard_normal(count)
    return Channels(matrix, offset, np.zeros(count, bool), np.full(count, noise))


# How states move


def oscillator_drift(period: float, growth: float = 0.1, effect: float = 0.25) -> Drift:
    """Stuart and Landau's oscillator of radius 1: z growth (1 - |z|²) + z i 2π / period + u."""
    speed = 2 * np.pi / period

    def drift(z: np.ndarray, u: np.ndarray) -> np.ndarray:
        x, y = z
        pull = growth * (1 - x * x - y * y)
        return np.stack([pull * x - speed * y + effect * u[0], pull * y + speed * x])

    return drift


def stuart_landau(rng: np.random.Generator) -> tuple[Model, Inputs]:
    channels = units(rng, 30, 2, 0.75)
    return Model(oscillator_drift(PERIOD), np.full(2, 0.06), channels), pulses


def many_channels(rng: np.random.Generator) -> tuple[Model, Inputs]:
    channels = units(rng, 200, 2, 0.7)
    return Model(oscillator_drift(PERIOD), np.full(2, 0.06), channels), pulses


def bursts(rng: np.random.Generator) -> tuple[Model, Inputs]:
    """Neurons that fire up to dozens of times in a bin, and then hardly at all."""
    channels = units(rng, 30, 2, 1.3, rate=0.6)
    return Model(oscillator_drift(PERIOD), np.full(2, 0.06), channels), pulses


def counts_and_numbers(rng: np.random.Generator) -> tuple[Model, Inputs]:
    """Ten channels of numbers beside twenty of counts."""
    pairs = zip(numbers(rng, 10, 2, 2.2), units(rng, 20, 2, 0.75), strict=True)
    channels = Channels(*map(np.concatenate, pairs))
    return Model(oscillator_drift(PERIOD), np.full(2, 0.06), channels), pulses


def van_der_pol(rng: np.random.Generator) -> tuple[Model, Inputs]:
    """x'' = 2 (1 - x²) x' - x, a bin is 0.25 units of time, a cycle 31 bins; z = (x, x' / 1.5)."""
    pace, stiffness, scale = 0.25, 2.0, 1.5

    def drift(z: np.ndarray, u: np.ndarray) -> np.ndarray:
        x, v = z
        force = stiffness * (1 - x * x) * v - x / scale
        return pace * np.stack([scale * v, force + 0.7 * u[0]])

    return Model(drift, np.full(2, 0.035), units(rng, 30, 2, 0.6, 0.2)), pulses


def fitzhugh_nagumo(rng: np.random.Generator) -> tuple[Model, Inputs]:
    """FitzHugh and Nagumo's neuron: at u = 0 it rests, at u = 1 it fires, a cycle in 38 bins.

    v' = v - v³/3 - w + 0.2 + 0.4 u, w' = 0.08 (v + 0.7 - 0.8 w), one bin a unit of time: its fixed
    point loses its stability at a current of 0.331. z = (v, 2 w - 1).
    """

    def drift(z: np.ndarray, u: np.ndarray) -> np.ndarray:
        v, w = z[0], 0.5 * (z[1] + 1)
        voltage = v - v * v * v / 3 - w + 0.2 + 0.4 * u[0]
        return np.stack([voltage, 0.16 * (v + 0.7 - 0.8 * w)])

    return Model(drift, np.array([0.04, 0.03]), units(rng, 30, 2, 0.5)), levels


DAMPING, TURN, SPREAD = 0.03, 0.2, 1.0
"""Of `linear`: per bin, radians per bin, and its stationary deviation without inputs."""


def linear(rng: np.random.Generator) -> tuple[Model, Inputs]:
    """A damped rotation that noise keeps going, in twelve channels of numbers."""

    def drift(z: np.ndarray, u: np.ndarray) -> np.ndarray:
        x, y = z
        return np.stack([-DAMPING * x - TURN * y + 0.4 * u[0], TURN * x - DAMPING * y])

    noise = np.full(2, SPREAD * (2 * DAMPING) ** 0.5)
    return Model(drift, noise, numbers(rng, 12, 2, 1.8)), pulses


def two_wells(rng: np.random.Generator) -> tuple[Model, Inputs]:
    """z' = 0.2 (z - z³) + 0.1 u, with noise that changes wells after some 180 bins."""

    def drift(z: np.ndarray, u: np.ndarray) -> np.ndarray:
        return 0.2 * (z - z * z * z) + 0.1 * u

    return Model(drift, np.array([0.22]), units(rng, 25, 1, 0.7)), pulses


def two_oscillators(rng: np.random.Generator) -> tuple[Model, Inputs]:
    """Cycles of 16.7 and 27 bins side by side; the input moves the first."""
    first, second = oscillator_drift(PERIOD), oscillator_drift(27.0)

    def drift(z: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.concatenate([first(z[:2], u), second(z[2:], 0 * u)])

    return Model(drift, np.full(4, 0.045), units(rng, 50, 4, 0.5)), pulses


def lorenz(rng: np.random.Generator) -> tuple[Model, Inputs]:
    """Lorenz' attractor, 10 times smaller and around the middle; a bin is 0.02 units of time."""
    pace = 0.02

    def drift(z: np.ndarray, u: np.ndarray) -> np.ndarray:
        x, y, above = z
        height = above + 2.4
        velocity = [
            10 * (y - x) + 3 * u[0],
            x * (28 - 10 * height) - y,
            10 * x * y - 8 / 3 * height,
        ]
        return pace * np.stack(velocity)

    return Model(drift, np.full(3, 0.02), units(rng, 60, 3, 0.5)), pulses


TUNED, UNTUNED, CURRENT_SIZE, RING_TIME = 12.0, -12.0, 3.0, 5.0
"""Weights of a ring's connections, the size of its currents, and their time constant in bins."""
HALF_RING = 9
"""Points on half a ring by which means over it are computed: 16 on all of it."""
RING_UNITS = 40


def ring_drift(cue: float, turn: float) -> Drift:
    """A ring of neurons with cosine connections (Ben-Yishai, Bar-Or & Sompolinsky 1995).

    The current of the neurons of direction θ is h(θ) = 3 (x cos θ + y sin θ + m), their activity
    σ(h), and 5 dh/dt = -h + <(J₀ + J₁ cos(θ - θ')) σ(h(θ'))> - J₀/2, the mean over all θ': a bump
    of activity that may stand anywhere. An input pulls it to a direction, by `cue` u a bin, or
    turns it, by `turn` u radians a bin. z = (x, y, m).
    """
    angle = np.linspace(0, np.pi, HALF_RING)  # from the middle of the bump
    weight = np.ones(HALF_RING)
    weight[[0, -1]] = 0.5
    weight /= weight.sum()

    def drift(z: np.ndarray, u: np.ndarray) -> np.ndarray:
        x, y, m = z
        radius = np.sqrt(x * x + y * y + 1e-12)
        peak, mean = np.zeros_like(m), np.zeros_like(m)
        for cosine, share in zip(np.cos(angle).tolist(), weight.tolist(), strict=True):
            activity = share / (1 + np.exp(-CURRENT_SIZE * (radius * cosine + m)))
            peak += cosine * activity
            mean += activity
        growth = TUNED / CURRENT_SIZE * peak / radius - 1
        level = UNTUNED / CURRENT_SIZE * (mean - 0.5) - m
        velocity = np.stack([growth * x, growth * y, level]) / RING_TIME
        if cue:
            velocity[:2] += cue * u
        if turn:
            velocity[:2] += turn * u[0] * np.stack([-y, x])
        return velocity

    return drift


def ring_channels(rng: np.random.Generator) -> Channels:
    """Neurons all around a ring, each with a sharpness and a rate of its own."""
    angle = 2 * np.pi * np.arange(RING_UNITS) / RING_UNITS
    currents = np.stack([np.cos(angle), np.sin(angle), np.ones(RING_UNITS)], axis=1)
    matrix = rng.uniform(0.8, 1.3, (RING_UNITS, 1)) * currents
    offset = np.log(0.35) + 0.3 * rng.standard_normal(RING_UNITS)
    return Channels(matrix, offset, np.ones(RING_UNITS, bool), np.zeros(RING_UNITS))


def ring(rng: np.random.Generator) -> tuple[Model, Inputs]:
    return Model(ring_drift(0.12, 0), np.full(3, 0.06), ring_channels(rng)), cues


def turned_ring(rng: np.random.Generator) -> tuple[Model, Inputs]:
    """An input that multiplies the state: it turns the bump, by up to 0.5 radians a bin."""
    return Model(ring_drift(0, 0.5), np.full(3, 0.06), ring_channels(rng)), pulses


# What happens to a recording


def shuffle(recording: Recording, rng: np.random.Generator) -> Recording:
    """Each channel's values in another order: the best forecast is their mean, the model here.

    Its counts are Poisson ones, of which those shuffled vary a little more.
    """
    y = recording.y.copy()
    for e, length in enumerate(recording.lengths):
        y[e, :length] = rng.permuted(y[e, :length], axis=0)
    channels = recording.model.channels
    flat = channels._replace(
        matrix=np.zeros_like(channels.matrix), offset=np.log(np.nanmean(y, axis=(0, 1)))
    )
    return recording._replace(y=y, model=recording.model._replace(channels=flat))


def hide(recording: Recording, rng: np.random.Generator) -> Recording:
    """A tenth of the values at random, all of 15 bins now and then, a channel in an episode."""
    y = recording.y.copy()
    y[rng.random(y.shape) < 0.1] = np.nan
    for episode_y in y:
        for begin in np.flatnonzero(rng.random(len(episode_y)) < 1 / 300):
            episode_y[begin : begin + 15] = np.nan
        episode_y[:, rng.integers(y.shape[-1])] = np.nan
    return recording._replace(y=y)


USUAL = (700, 900, 600, 1000, 800, 750, 850, 650, 900, 700)
SMALL = (180, 150, 200, 160, 190)
UNEQUAL = (60, 1000, 350, 120, 800, 75, 640, 300, 1000, 210, 900, 500)
SYSTEMS: dict[str, System] = {
    "stuart_landau": System(stuart_landau, USUAL, SMALL),
    "van_der_pol": System(van_der_pol, USUAL, SMALL),
    "fitzhugh_nagumo": System(fitzhugh_nagumo, USUAL, SMALL),
    "linear": System(linear, USUAL, SMALL),
    "two_wells": System(two_wells, USUAL, SMALL),
    "mixed": System(counts_and_numbers, USUAL, SMALL),
    "bursts": System(bursts, USUAL, SMALL),
    "many_channels": System(many_channels, USUAL, SMALL),
    "two_oscillators": System(two_oscillators, USUAL, SMALL),
    "lorenz": System(lorenz, USUAL, SMALL),
    "ring": System(ring, USUAL, SMALL),
    "turned_ring": System(turned_ring, USUAL, SMALL),
    "short": System(stuart_landau, (140,) * 5, (140,) * 5),
    "shuffled": System(stuart_landau, USUAL, SMALL, shuffle),
    "missing": System(stuart_landau, UNEQUAL, (60, 200, 120, 75, 210), hide),
    "long": System(stuart_landau, (1000,) * 80, SMALL),
    "largest": System(many_channels, (1000,) * 100, SMALL),
}
"""By name."""
