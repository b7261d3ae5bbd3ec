"""How probable an observation was: log-likelihoods, and its place in what was foretold.

Of each observation y there are P(Y < y) and P(Y ≤ y). They are the same for numbers, and differ by
P(Y = y) for counts; together they say how much of an interval covers y (`prediction_scores`). All
functions work elementwise on NumPy arrays; `ranks` on JAX arrays, too.
Letters: M draws.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import special

POISSON = 1e-3
"""Variances that exceed the mean by less than this share are those of a Poisson distribution."""


class Place(NamedTuple):
    """Where observations lie in their predictive distributions."""

    below: np.ndarray  # P(Y < y)
    at_most: np.ndarray  # P(Y ≤ y)
    log_likelihood: np.ndarray  # log P(Y = y), or log of the density at y; nats


def normal(mean: np.ndarray, variance: np.ndarray, y: np.ndarray) -> Place:
    """The place of numbers y in normal distributions."""
    standard = (y - mean) / np.sqrt(variance)
    chance = special.ndtr(standard)
    return Place(chance, chance, -0.5 * (standard**2 + np.log(2 * np.pi * variance)))


def counts(mean: np.ndarray, variance: np.ndarray, y: np.ndarray) -> Place:
    """The place of counts y in negative binomial distributions of that mean and variance.

    In Poisson distributions where the variance is not larger than the mean, which must be positive.
    With v = μ + μ² / r, P(Y ≤ y) = I_{r / (r + μ)}(r, y + 1), a regularised beta function.
    """
    mean, variance, y = np.broadcast_arrays(*(np.asarray(x, float) for x in (mean, variance, y)))
    wide = variance > (1 + POISSON) * mean
    factorial = special.gammaln(y + 1)
    log_chance = special.xlogy(y, mean) - mean - factorial
    at_most = np.empty(mean.shape)
    at_most[~wide] = special.pdtr(y[~wide], mean[~wide])
    mu, k = mean[wide], y[wide]
    size = mu**2 / (variance[wide] - mu)
    share = size / (size + mu)
    at_most[wide] = special.betainc(size, k + 1, share)
    combinations = special.gammaln(k + size) - special.gammaln(size) - factorial[wide]
    log_chance[wide] = combinations + size * np.log(share) + special.xlog1py(k, -share)
    below = np.maximum(at_most - np.exp(log_chance), 0)
    return Place(below, at_most, log_chance)


def place(is_count: np.ndarray, mean: np.ndarray, variance: np.ndarray, y: np.ndarray) -> Place:
    """The place of y `[..., n]`, `counts` in the channels that are, bool `[n]`, `normal` else."""
    mean, variance, y = np.broadcast_arrays(mean, variance, y)
    if is_count.all():
        return counts(mean, variance, y)
    whole = Place(*(np.empty(y.shape) for _ in Place._fields))
    for which, of_kind in ((is_count, counts), (~is_count, normal)):
        parts = of_kind(mean[..., which], variance[..., which], y[..., which])
        for out, part in zip(whole, parts, strict=True):
            out[..., which] = part
    return whole


def ranks(draws: Any, y: Any) -> tuple[Any, Any]:
    """P(Y < y) and P(Y ≤ y) of y `[...]` by draws `[M, ...]` of its predictive distribution.

    y counts as one draw more: if it is one, intervals between ranks hold what they should however
    few the draws are.
    """
    number = len(draws) + 1
    less, equal = (draws < y[None]).sum(0), (draws == y[None]).sum(0)
    return less / number, (less + equal + 1) / number
