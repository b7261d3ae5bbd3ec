"""The law of pairs of walks that each have a wind of their own."""

import numpy as np

from envs.grid import windy
from envs.grid.tables import Dynamics
from jaxrl.spectral import laplacian

NODES = 64
"""Winds on each side of 0, at most. So many integrate polynomials of degree 127 exactly, and the
law of pairs is one of degree T for walks of T transitions."""


def sampled_pairs(
    gusts: Dynamics,
    winds: tuple[float, float],
    steps: int,
    discount: float,
    policy: np.ndarray | None = None,
) -> np.ndarray:
    """M `[S, S]` of a walk in a wind w that is uniform between two, starting anywhere: E[M_w].

    M_w is that of `laplacian.sampled_pairs` for the chain in the wind w, which is a polynomial of w
    on each side of 0; its mean is taken by Gauss-Legendre quadrature. That is not the law of a
    chain: both states of a pair, however far apart, have the same wind.
    """
    low, high = winds
    size = gusts.successor.shape[0]
    start, M = np.full(size, 1 / size), np.zeros((size, size))
    nodes, weights = np.polynomial.legendre.leggauss(min(steps // 2 + 1, NODES))
    for first, last in ((low, min(high, 0.0)), (max(low, 0.0), high)):
        if last <= first:
            continue
        for node, weight in zip(nodes, weights, strict=True):
            wind = (first + last) / 2 + (last - first) / 2 * node
            P = windy.transition_matrix(gusts, wind, policy)
            share = weight / 2 * (last - first) / (high - low)
            M += share * laplacian.sampled_pairs(P, start, steps, discount)
    return M
