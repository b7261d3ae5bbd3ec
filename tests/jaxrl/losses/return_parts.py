"""Rewards, values and endings of random rollouts."""

from typing import Any, NamedTuple

import numpy as np

T, N = 6, 4
DISCOUNT = 0.9


class Data(NamedTuple):
    """`[T, N]`, in the order of the arguments of `gae`."""

    reward: Any
    value: Any
    next_value: Any
    terminated: Any
    truncated: Any


def random_data(seed: int, shape: tuple[int, ...] = (T, N)) -> Data:
    """A rollout in which V(next_obs) is the next row of V, but for endings and the last row.

    Some steps are both terminated and truncated.
    """
    rng = np.random.default_rng(seed)
    reward, value, other_value = rng.normal(size=(3, *shape)).astype(np.float32)
    kind = rng.choice(["neither", "terminated", "truncated", "both"], shape, p=[0.5, 0.2, 0.2, 0.1])
    terminated = (kind == "terminated") | (kind == "both")
    truncated = (kind == "truncated") | (kind == "both")
    next_value = np.concatenate([value[1:], other_value[-1:]])
    next_value = np.where(truncated, other_value, next_value)
    return Data(reward, value, next_value, terminated, truncated)


def flags(*steps: int, length: int = 4) -> Any:
    return np.isin(np.arange(length), steps)
