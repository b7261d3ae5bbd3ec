"""Inputs that act some steps after they are given.

Axes: E episodes, T steps, m inputs.
"""

from collections.abc import Sequence

import numpy as np

from train.host.numbers import one_or_each, quantity
from train.vector_field.data.recordings import Data


def delays_of(delay: Sequence[int], inputs: int) -> tuple[int, ...]:
    """The steps after which each of the m = `inputs` acts: one number for all, or one for each.

    0 of none. Raises ValueError for another number of numbers.
    """
    if len(delay) not in (0, 1, inputs):
        count, expected = quantity(len(delay), "numbers"), one_or_each(inputs)
        raise ValueError(f"state_space.delay has {count}, expected {expected}")
    return tuple(delay) * inputs if len(delay) == 1 else tuple(delay) or (0,) * inputs


def delay_rows(u: np.ndarray, delays: Sequence[int]) -> np.ndarray:
    """Rows `[..., T, m]`, each input so many steps later; before the first row it was as there."""
    steps = np.arange(u.shape[-2])
    later = [u[..., np.maximum(steps - delay, 0), k] for k, delay in enumerate(delays)]
    return np.stack(later, axis=-1)


def delay_inputs(data: Data, delay: Sequence[int]) -> Data:
    """The data with inputs at the steps at which they act.

    Raises ValueError for a delay after which no input would act within any episode.
    """
    delays = delays_of(delay, data.u.shape[-1])
    if not any(delays):
        return data
    if max(delays) >= (longest := int(data.lengths.max())):
        raise ValueError(
            f"state_space.delay is {max(delays):,}, expected less than {longest:,}, the steps of "
            "the longest episode: later no input acts"
        )
    inside = np.arange(data.u.shape[1]) < data.lengths[:, None]
    return data._replace(u=np.where(inside[..., None], delay_rows(data.u, delays), 0))
