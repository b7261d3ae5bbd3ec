"""Settings of JAX that a run depends on: how it draws random numbers, and that it compiles."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from train.host.errors import UsageError

KEYS = "jax_default_prng_impl"
PARTITIONS = "jax_threefry_partitionable"
COMMON = {KEYS: "threefry2x32", PARTITIONS: True}
"""The defaults of JAX. With others what is drawn depends on how seeds and blocks share devices."""


def draw_settings() -> dict[str, Any]:
    """How this process draws."""
    return {name: getattr(jax.config, name) for name in COMMON}


def caution() -> str:
    """A line for runs whose numbers depend on their devices; empty for others."""
    unusual = [f"{name} is {x}" for name, x in draw_settings().items() if x != COMMON[name]]
    if not unusual:
        return ""
    return (
        f"{' and '.join(unusual)}: numbers depend on the devices and on the seeds beside each other"
    )


def refuse_other_draws(directory: str | Path, saved: Mapping[str, Any]) -> None:
    """Raises UsageError if keys would draw other numbers than in a run.

    `saved` is the `meta` of its newest checkpoint; one from before these were recorded passes.
    """
    now, then = draw_settings(), saved.get("settings", {})
    for name in COMMON:
        if then.get(name, now[name]) != now[name]:
            raise UsageError(
                f"{directory} draws random numbers with {name} {then[name]}, not {now[name]}: set "
                f"{name.upper()}={int(then[name]) if name == PARTITIONS else then[name]}"
            )


def refuse_uncompiled() -> None:
    """Raises UsageError where JAX has been told to compile nothing: loops would not end."""
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]
        raise UsageError(
            "JAX_DISABLE_JIT is on, but a run is one compiled program: leave it out, or call the "
            "init and update of a jaxrl.loop yourself"
        )
