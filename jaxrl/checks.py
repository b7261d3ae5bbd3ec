"""Refusing numbers that would only show after compilation, or never."""

import math
from typing import Any


def number(
    name: str,
    value: Any,
    least: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> None:
    """Raises ValueError unless a number is finite, at least `least`, above `above`, below `below`.

    What is traced, as under `vmap` over configurations, cannot be looked at and passes.
    """
    if not isinstance(value, int | float):
        return
    if not (math.isfinite(value) and value >= least and above < value < below):
        bounds = {f"at least {least}": least, f"above {above}": above, f"below {below}": below}
        told = " and ".join(text for text, bound in bounds.items() if math.isfinite(bound))
        raise ValueError(f"{name} is {value}, expected a number {told or 'that is finite'}")
