"""Range checks for configurations, raised before anything is compiled."""

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
    """Raises ValueError unless a number is finite and within the given bounds.

    A traced value, as under `vmap` over configurations, cannot be checked and passes.
    """
    if not isinstance(value, int | float):
        return
    if not (math.isfinite(value) and least <= value <= most and above < value < below):
        bounds = {"at least": least, "above": above, "below": below, "at most": most}
        expected = " and ".join(
            f"{x} {bound}" for x, bound in bounds.items() if math.isfinite(bound)
        )
        raise ValueError(f"{name} is {value}, expected a number {expected or 'that is finite'}")


def may_be_positive(value: Any) -> bool:
    """Whether a number is above 0, or traced and so unknown.

    Decides what a program must allocate; a traced number may turn out to be 0.
    """
    return not isinstance(value, int | float) or value > 0


def fields(where: str, config: Any, *names: str, **bounds: float) -> None:
    """Raises ValueError unless these fields of a configuration are within the same bounds."""
    for name in names:
        number(f"{where}{name}", getattr(config, name), **bounds)
