"""Gains along a path at extreme scales, against float64 between bounds of the rounding of K.

The determinant of I + precision K has no digits where K is nearly singular and the precision large:
a rounding of K then counts as information. So a gain has to lie between those of two kernels, K
plus and K less a few roundings of its diagonal (the backward error of a Cholesky factorisation).
"""

from itertools import combinations
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from jaxrl.dynamics.planning import fisher
from tests.jaxrl.extremes import (
    EPS,
    MAX,
    TINY,
    assert_within,
    double,
    extreme,
    numbers,
    scales,
    seeds,
    single,
)

P = 3  # parameters
rows_of = st.sampled_from([1, 2, 4])
kernels = jax.jit(lambda x, s: (fisher.kernel(x, s), fisher.squared_kernel(x, s)))
d_gain, a_gain = jax.jit(fisher.d_gain), jax.jit(fisher.a_gain)


def log_det(gram: np.ndarray, precision: Any) -> float:
    """log det(I + precision K) by elimination in extended precision; -inf where K is not positive.

    Pivots are kept less their 1, so that small ones keep their digits.
    """
    remainder, total = np.longdouble(precision) * gram.astype(np.longdouble), 0.0
    diagonal = np.diag(remainder).copy()
    for k in range(len(remainder)):
        if remainder[k, k] < -1e-15 * diagonal[k] or diagonal[k] < 0:
            return -np.inf
        total += np.log1p(max(remainder[k, k], 0))
        remainder = remainder - remainder[:, [k]] * remainder[[k]] / (1 + remainder[k, k])
    return float(total)


@pytest.mark.slow
@extreme(
    seed=seeds, rows=rows_of, feature_scale=scales, deviation_scale=scales,
    kind=st.sampled_from(["full", "repeated", "no features"]),
)  # fmt: skip
def test_kernels(seed, rows, feature_scale, deviation_scale, kind):
    """Roundings of |J| |S| |Sᵀ| |Jᵀ|; the products are never negative on the diagonal."""
    rng = np.random.default_rng(seed)
    x = numbers(rng, (rows, P), feature_scale)
    x = {"full": x, "repeated": np.broadcast_to(x[:1], x.shape), "no features": 0 * x}[kind]
    root = single(np.sqrt(deviation_scale) * rng.uniform(-2, 2, size=(P, P)))
    gram, squared = kernels(x, root)
    x, root = double(x), double(root)
    through, size = x @ root, abs(x) @ abs(root)
    lost = TINY * P * (1 + size.max() ** 0.5)
    assert_within(gram, through @ through.T, EPS * (3 * P + 3) * size @ size.T + lost)
    through, size = through @ root.T, size @ abs(root).T
    if (size**2).sum() < MAX / 4:  # else there is no answer in float32, as `squared_kernel` says
        lost = EPS * (5 * P + 5) * size @ size.T + TINY * 1e13
        assert_within(squared, through @ through.T, lost)
    assert np.all(np.diagonal(gram) >= 0)


def gram_of(rng, rows, scale, kind) -> Any:
    """Positive semidefinite in float32: of full rank, of rank 1, or 0."""
    factor = numbers(rng, (rows, 1 if kind == "rank 1" else rows + 1), np.sqrt(scale))
    factor = np.clip(double(factor), -1e9, 1e9) * (kind != "nothing")
    return single(factor @ factor.T)


kinds = st.sampled_from(["full", "rank 1", "nothing"])


@extreme(
    seed=seeds, rows=rows_of, scale=scales, precision=st.one_of(scales, st.just(0.0)), kind=kinds
)
def test_d_gain(seed, rows, scale, precision, kind):
    """Not above the gain of K and some roundings, nor below that of any part of K less those."""
    rng = np.random.default_rng(seed)
    gram, precision = gram_of(rng, rows, scale, kind), single(precision)
    gain = float(d_gain(gram, precision))
    exact, scaled = double(gram), double(precision)
    assert 0 <= gain < np.inf
    ridge = EPS * 16 * rows**2 * np.diag(exact)
    above = log_det(exact + np.diag(ridge), scaled)
    parts = [list(c) for k in range(1, rows + 1) for c in combinations(range(rows), k)]
    below = max(log_det((exact - np.diag(ridge))[np.ix_(c, c)], scaled) for c in parts)
    assert gain <= above * (1 + 32 * rows * EPS) + TINY * rows
    assert gain >= max(below, 0) * (1 - 32 * rows * EPS) - TINY * rows * (1 + scaled)


@extreme(
    seed=seeds, rows=rows_of, scale=scales, precision=st.one_of(scales, st.just(0.0)), kind=kinds
)
def test_a_gain_of_independent_rows(seed, rows, scale, precision, kind):
    """Where J P² Jᵀ = c K, so that the gain is c tr of precision K (I + precision K)⁻¹."""
    rng = np.random.default_rng(seed)
    diagonal = abs(double(numbers(rng, (rows,), scale))) * (kind != "nothing")
    gram = single(np.diag(diagonal))
    factor = single(2.0 ** rng.integers(-20, 20))
    gain = a_gain(gram, factor * gram, single(precision))
    part = double(single(precision)) * double(gram).diagonal()
    exact = double(factor) * np.sum(part / (1 + part))
    assert_within(gain, exact, EPS * (16 + rows) * exact + TINY * 2.0**20 * (1 + precision))


@extreme(seed=seeds, rows=rows_of, scale=scales, precision=scales, kind=kinds)
def test_a_gain_of_any_kernel(seed, rows, scale, precision, kind):
    """The gain is at most the rank and the trace, at least that of any one row; J = √K and P = I.

    Where precision K exceeds 10¹², only finite: see `fisher.a_gain`.
    """
    gram = gram_of(np.random.default_rng(seed), rows, scale, kind)
    gain = float(a_gain(gram, gram, single(precision)))
    part = double(single(precision)) * double(gram).diagonal()
    off = 64 * rows * EPS
    assert 0 <= gain < np.inf
    if part.max() > 1e12:
        return
    off = off + 4 * EPS * np.sqrt(part.max())
    assert gain <= min(np.sum(part > 0), np.sum(part)) * (1 + off) + TINY
    assert gain >= np.max(part / (1 + part)) * (1 - off) - TINY * (1 + precision)


observation_kernel = jax.jit(fisher.observation_kernel)
propagation_matrix = jax.jit(fisher.propagation_matrix)


@extreme(
    seed=seeds, steps=st.sampled_from([1, 3]), scale=scales, move_scale=scales, dt=scales,
    information_scale=scales, shared=st.booleans(),
)  # fmt: skip
def test_observation_kernels(seed, steps, scale, move_scale, dt, information_scale, shared):
    """√M L K Lᵀ √M: its entries by diagonal M and K, where roots are known."""
    rng, d = np.random.default_rng(seed), 2
    moves = numbers(rng, (steps, d, d), min(move_scale, 1e4))
    path = propagation_matrix(moves, single(dt))
    exact_path, size = np.zeros((2, steps * d, steps * d))
    for t in range(steps):
        for s in range(t + 1):
            block = bound = double(single(dt)) * np.eye(d)
            for a in range(s + 1, t + 1):
                block, bound = double(moves[a]) @ block, abs(double(moves[a])) @ bound
            at = np.ix_(range(t * d, t * d + d), range(s * d, s * d + d))
            exact_path[at], size[at] = block, bound
    assert_within(path, exact_path, EPS * 3 * steps * d * size + TINY * 1e13)
    diagonals = abs(double(numbers(rng, (steps, d), information_scale)))
    information = single(diagonals[..., None] * np.eye(d))
    gram = single(np.diag(abs(double(numbers(rng, (steps if shared else steps * d,), scale)))))
    if not np.all(np.isfinite(path)) or size.max() ** 2 * 1e26 > MAX:
        return
    kernel = np.asarray(observation_kernel(gram, path, information))
    whole = np.kron(double(gram), np.eye(d)) if shared else double(gram)
    root_diagonal = np.sqrt(np.concatenate([m.diagonal() for m in double(information)]))[:, None]
    through, bound = root_diagonal * double(path), root_diagonal * abs(double(path))
    flushed = TINY * 1e26 * (1 + size.max())
    assert_within(
        kernel,
        through @ whole @ through.T,
        EPS * (8 + 4 * steps * d) * bound @ whole @ bound.T + flushed,
    )
    assert not np.isnan(kernel).any()
