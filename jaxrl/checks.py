"""Refusing numbers that would only show after compilation, or never."""

import math
from typing import Any


def number(
    name: str,
    value: Any,
    least: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    most: float = math.inf,
) -> None:
    """Raises ValueError unless a number is finite and within the bounds that are given.

    What is traced, as under `vmap` over configurations, cannot be looked at and passes.
    """
    if not isinstance(value, int | float):
        return
    if not (math.isfinite(value) and least <= value <= most and above < value < below):
        bounds = {"at least": least, "above": above, "below": below, "at most": most}
        told = " and ".join(f"{x} {bound}" for x, bound in bounds.items() if math.isfinite(bound))
        raise ValueError(f"{name} is {value}, expected a number {told or 'that is finite'}")


def fields(where: str, config: Any, *names: str, **bounds: float) -> None:
    """Raises ValueError unless these fields of a configuration are within the same bounds."""
    for name in names:
        number(f"{where}{name}", getattr(config, name), **bounds)
