"""Bytes that a run needs against bytes that are free: too large a run is refused before it starts.

What is needed is at least the state and the largest array of an update, known from their shapes
before anything is compiled, and then what the compiler says that the program uses.
"""

import ctypes
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from jaxrl.types import PyTree
from train.host.compilation.cpu_kernels import equations
from train.host.errors import UsageError
from train.host.machine import control_groups
from train.host.plain_config import flag, flatten, plain

UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def refuse_state(state: PyTree, config: Any, devices: int = 1) -> None:
    """Raises UsageError if there is no room for `state`, a tree of shapes, on so many devices."""
    leaves = {jax.tree_util.keystr(k): x for k, x in jax.tree_util.tree_leaves_with_path(state)}
    name = max(leaves, key=lambda name: size_of(leaves[name]))
    needed = sum(map(size_of, leaves.values()))
    refuse(
        needed,
        f"the largest leaf of its state is {name.lstrip('.')}",
        leaves[name],
        config,
        devices,
    )


def refuse_program(state: PyTree, program: Any, config: Any, devices: int = 1) -> None:
    """Raises UsageError if there is no room for `state` and the largest array of a jaxpr."""
    largest = max(arrays(program), key=size_of)
    needed = sum(map(size_of, jax.tree.leaves(state))) + size_of(largest)
    refuse(needed, "the largest array of its program is", largest, config, devices)


def refuse_compiled(compiled: Any, program: Any, config: Any, devices: int = 1) -> None:
    """Raises UsageError if the compiled form of a jaxpr would need more than there is.

    So many devices of this process run it; CPUs need their parts of the same memory.
    """
    needed = program_bytes(compiled)
    if needed is None:
        return
    needed *= devices if jax.default_backend() == "cpu" else 1
    if fits(needed):
        return  # without a search for the largest array
    largest = max(arrays(program), key=size_of)
    refuse(needed, "the largest array of its program is", largest, config)


def return_free_memory() -> None:
    """Gives the system back what is free in this process.

    Compilers allocate much in small pieces, of which glibc keeps what is freed: after some large
    programs that is gigabytes.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc alone has it
        if trim is not None:
            trim(0)


def program_bytes(compiled: Any) -> int | None:
    """Bytes that a compiled program uses on each device, arguments and results included.

    None: unknown.
    """
    analysis = compiled.memory_analysis()
    if analysis is None:  # not every backend knows
        return None
    in_and_out = (
        analysis.argument_size_in_bytes
        + analysis.output_size_in_bytes
        - analysis.alias_size_in_bytes
    )
    return in_and_out + analysis.temp_size_in_bytes


def refuse_games(compiled: Any) -> None:
    """Raises UsageError if compiled games of an evaluation would need more than there is."""
    needed = program_bytes(compiled)
    if needed is not None and not fits(needed):
        raise UsageError(
            f"the games of an evaluation need {human(needed)} of memory and "
            f"{human(free_bytes() or 0)} are free: play fewer games"
        )


def refuse(needed: int, what: str, largest: Any, config: Any, devices: int = 1) -> None:
    """Raises UsageError, which names `largest` and the flags that size it, if there is no room.

    What is split over devices needs a part of their memory each; CPUs share that of the machine.
    """
    if fits(needed if jax.default_backend() == "cpu" else needed // devices):
        return
    flags = size_flags(largest.shape, config)
    advice = f"lower {' or '.join(flags)}" if flags else "choose smaller sizes"
    raise UsageError(
        f"this run needs {human(needed)} of memory and {human(free_bytes() or 0)} are free; {what} "
        f"{largest.dtype}{list(largest.shape)}, {human(size_of(largest))}: {advice}"
    )


def fits(size: int) -> bool:
    """Whether so many bytes are free, as far as that is known."""
    free = free_bytes()
    return free is None or size <= free


def size_of(x: Any) -> int:
    """Bytes of an array, given its shape and dtype."""
    return math.prod(x.shape) * x.dtype.itemsize


def arrays(program: Any) -> Iterator[Any]:
    """The shape and dtype of every array that a jaxpr computes, at any depth."""
    for equation in equations(program):
        yield from (x.aval for x in equation.outvars if hasattr(x.aval, "dtype"))


def size_flags(shape: tuple[int, ...], config: Any) -> list[str]:
    """The flags, two at most, whose values are the largest axes of an array."""
    flags: dict[int, str] = {}
    for name, value in flatten(plain(config)).items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int) and not isinstance(item, bool):
                flags.setdefault(item, f"{flag(name, config)} ({item:,})")
    return [flags[n] for n in sorted(set(shape), reverse=True) if n > 1 and n in flags][:2]


def free_bytes() -> int | None:
    """What is free on the device; on CPUs in this process's container or machine; None: unknown."""
    stats = jax.local_devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    amounts = [x for x in (machine_free_bytes(), control_groups.free_memory()) if x is not None]
    return min(amounts, default=None)


def machine_free_bytes() -> int | None:
    """`MemAvailable` of Linux."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    fields = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(fields[0][1]) * 1024 if fields else None


def human(size: int) -> str:
    """`12 GB`, `1.5 GB`, `800 MB`, in powers of 1000."""
    for factor, unit in UNITS:
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} bytes"
