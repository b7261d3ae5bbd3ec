"""Which of two algorithms is better, and how surely: comparisons that use all runs of both.

Agarwal et al. (2021), "Deep reinforcement learning at the edge of the statistical precipice".
Scores are `[S runs, K tasks]`, higher is better. A failed run may be -inf.
"""

import numpy as np
from numpy.typing import ArrayLike

from jaxrl.numerics import statistics


def probability_of_improvement(x: ArrayLike, y: ArrayLike) -> float:
    """P(X > Y) + ½ P(X = Y) of a run of each on the same task, averaged over tasks.

    `x [S1, K]` and `y [S2, K]`: on each task the share of all pairs of runs that x wins, ties
    counted half, which is U / (S1 S2) of Mann & Whitney (1947); section 4.3. One half: no
    difference. Raises ValueError for other shapes and for NaN.
    """
    first, second = _scores(x, "x")[:, None], _scores(y, "y")
    tasks, others = first.shape[-1], second.shape[-1]
    if tasks != others:
        raise ValueError(f"x has {tasks} tasks and y {others}; give [runs, tasks] of the same ones")
    wins, ties = first > second, first == second  # [S1, S2, K]
    return float(np.mean(wins + 0.5 * ties))


def improvement_interval(
    x: ArrayLike, y: ArrayLike, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """The 95 % stratified bootstrap interval of `probability_of_improvement(x, y)`.

    The runs of both are drawn anew, for each task by itself. Where every run of x beats every run
    of y it is (1, 1), however few they are. Raises ValueError for fewer than two runs of either,
    and as `probability_of_improvement` does.
    """
    rng = np.random.default_rng(seed)
    pairs = zip(
        statistics.bootstrap_samples(_scores(x, "x"), resamples, rng),
        statistics.bootstrap_samples(_scores(y, "y"), resamples, rng),
        strict=True,
    )
    low, high = np.percentile([probability_of_improvement(*pair) for pair in pairs], [2.5, 97.5])
    return float(low), float(high)


def performance_profile(
    scores: ArrayLike, thresholds: ArrayLike, averaged: bool = False
) -> np.ndarray:
    """The share `[P]` of `scores [S, K]` above each of the `thresholds [P]`; section 4.2.

    Of all runs on all tasks; or, `averaged`, of the tasks by their mean over runs, which is biased
    and has wider bands. Raises ValueError for other shapes and for NaN.
    """
    values = _scores(scores, "scores")
    values = values.mean(axis=0) if averaged else values.ravel()
    return np.mean(values[:, None] > np.asarray(thresholds, np.float64), axis=0)


def profile_band(
    scores: ArrayLike,
    thresholds: ArrayLike,
    averaged: bool = False,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % stratified bootstrap interval `([P], [P])` of a profile at each threshold by itself.

    Raises ValueError for fewer than two runs, and as `performance_profile` does.
    """
    rng = np.random.default_rng(seed)
    samples = statistics.bootstrap_samples(_scores(scores, "scores"), resamples, rng)
    profiles = [performance_profile(sample, thresholds, averaged) for sample in samples]
    low, high = np.percentile(profiles, [2.5, 97.5], axis=0)
    return low, high


def _scores(raw_scores: ArrayLike, name: str) -> np.ndarray:
    """The scores as float64 `[S, K]`."""
    values = np.asarray(raw_scores, np.float64)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"{name} has shape {list(values.shape)}; give [runs, tasks], one at least")
    if np.isnan(values).any():
        raise ValueError(f"{name} has NaN, which is neither better nor worse; -inf is a failed run")
    return values
