"""Settings of JAX that a run depends on: how it draws and multiplies, and what it cannot bear."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import jax

from train.host.errors import UsageError

KEYS = "jax_default_prng_impl"
PARTITIONS = "jax_threefry_partitionable"
COMMON = {KEYS: "threefry2x32", PARTITIONS: True}
"""The defaults of JAX. With others what is drawn depends on how seeds and blocks share devices."""
PRECISION = "jax_default_matmul_precision"
PRECISIONS = {"float32": "float32", "tf32": "tensorfloat32", "bfloat16": "bfloat16"}
"""What JAX calls the values of `training.Config.precision`, but for its default."""
GUARDS = ("", "_host_to_device", "_device_to_host", "_device_to_device")
UNUSABLE = {
    "jax_disable_jit": (
        (True,),
        "a run is one compiled program: leave it out, or call the init and update of a jaxrl.loop "
        "yourself",
    ),
    **{
        f"jax_transfer_guard{direction}": (
            ("disallow", "disallow_explicit"),
            "a run moves numbers to its devices and back: leave it out",
        )
        for direction in GUARDS
    },
    "jax_numpy_dtype_promotion": (
        ("strict",),
        "environments and agents mix whole numbers and floats: leave it out",
    ),
}
"""Values of settings with which nothing can be computed here, and why."""


def draw_settings() -> dict[str, Any]:
    """How this process draws."""
    return {name: getattr(jax.config, name) for name in COMMON}


def network_precision(name: str) -> AbstractContextManager:
    """A context with the precision of networks, as `training.Config.precision` names it.

    It holds for products that name none of their own and are traced meanwhile, by this thread.
    Those of estimates name theirs (`jaxrl.numerics.linalg.matmul`).
    """
    return jax.default_matmul_precision(PRECISIONS[name]) if name in PRECISIONS else nullcontext()


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
    own, past = draw_settings(), saved.get("settings", {})
    for name in COMMON:
        if past.get(name, own[name]) != own[name]:
            raise UsageError(
                f"{directory} draws random numbers with {name} {past[name]}, not {own[name]}: set "
                f"{name.upper()}={int(past[name]) if name == PARTITIONS else past[name]}"
            )


def refuse_unusable() -> None:
    """Raises UsageError, which names the variable, where JAX is set so that no run can work."""
    for name, (values, reason) in UNUSABLE.items():
        if (value := getattr(jax.config, name)) in values:
            value_text = "on" if value is True else value
            raise UsageError(f"{name.upper()} is {value_text}, but {reason}")
