"""The law of pairs of recorded trajectories, from counts alone: host, float64.

A recording is n transitions in a row, of any number of trajectories of any length, one after the
other: `state` and `next_state` `[n]`, numbers 0..S-1, and `left` `[n]`, how many transitions of the
trajectory are left, this one included. Pairs are those of `jaxrl.spectral.pairs`.
"""

import numpy as np

NEGLIGIBLE = 1e-12  # offsets less likely than this are left out


def transitions_left(ends: np.ndarray) -> np.ndarray:
    """`left` int32 `[n]`, for bool `ends` `[n]`: whether a transition is its trajectory's last.

    The last transition of all is an end in any case.
    """
    ends = np.append(ends[:-1], True)
    last = np.flatnonzero(ends)
    return (last[np.searchsorted(last, np.arange(len(ends)))] - np.arange(len(ends)) + 1).astype(
        np.int32
    )


def pair_law(
    state: np.ndarray, next_state: np.ndarray, left: np.ndarray, discount: float, num_states: int
) -> np.ndarray:
    """M `[S, S]`, sums to 1: each transition begins a pair, which ends in the same trajectory.

    Σ p(k | n) over all pairs of times k apart, with n = `left` at the first. `discount` is 0 to 1.
    """
    longest = int(left.max())
    offsets = longest
    if discount < 1:
        reach = np.log(NEGLIGIBLE) / np.log(discount) if discount > 0 else 0
        offsets = min(longest, int(reach) + 1)
    total = np.cumsum(float(discount) ** np.arange(longest))  # 1 + g + … + g^(n-1)
    first = 1 / total[left - 1]  # p(1 | n)
    table = np.zeros(num_states**2)
    for k in range(1, offsets + 1):
        begins = np.flatnonzero(left >= k)
        cells = state[begins].astype(np.int64) * num_states + next_state[begins + k - 1]
        weight = first[begins] * float(discount) ** (k - 1)
        table += np.bincount(cells, weight, minlength=num_states**2)
    return (table / table.sum()).reshape(num_states, num_states)
