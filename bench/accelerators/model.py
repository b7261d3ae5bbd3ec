"""A model of time on an accelerator, to plan by until one is at hand.

On a GPU a small kernel takes as long as its launch; a loop whose length the compiler does not know
waits, each round, for the host to read the condition back; and no kernel is faster than memory
brings its bytes. XLA estimates a TPU's seconds itself, but not of custom calls, and loops
of unknown length count once.
"""

from typing import Any

from bench.accelerators.chips import CHIPS, Gpu

LAUNCH = 2.5e-6  # seconds of a kernel on a GPU
ROUND = 15e-6  # seconds more of a round of a loop of unknown length
TPU_KERNEL = 0.5e-6  # seconds between two kernels on a TPU, which starts them itself
MEMORY_SHARE = 0.8  # of the bandwidth that a kernel reaches
MEMBERS = 8  # of a run that are compiled side by side


def seconds(chip: str, counts: dict[str, float]) -> float:
    """The time of one execution of a program with `kernels.Counts`; open loops go round once."""
    launch, wait = (LAUNCH, ROUND) if isinstance(CHIPS[chip], Gpu) else (TPU_KERNEL, 0.0)
    moved = counts["bytes"] / (MEMORY_SHARE * CHIPS[chip].bandwidth)
    return max(counts["kernels"] * launch, moved) + counts["open_loops"] * wait


def exchange_seconds(chip: str, devices: int, exchanges: float, size: float) -> float:
    """The time of so many sums over 8 or 64 devices, of `size` bytes together, around a ring."""
    link = CHIPS[chip].links[devices]
    return exchanges * link.latency + 2 * (devices - 1) / devices * size / link.bandwidth


def line(row: dict[str, Any]) -> str:
    """One row in one line."""
    title = f"{row['case']:34} {row['chip']:5} x{row['devices']}"
    update = row.get("update", row)
    if "failed" in update:
        return f"{title} does not compile: {update['failed']}"
    counts, memory = update["counts"], update["argument_bytes"] + update["temporary_bytes"]
    time, steps = seconds(row["chip"], counts), row["steps"]
    return (
        f"{title} {update['compile_seconds']:6.1f} s to compile  {memory / 1e6:8.1f} MB  "
        f"{counts['kernels'] / steps:8.3f} kernels a step  {counts['open_loops']:4.0f} open loops  "
        f"{counts['exchanges']:4.0f} exchanges  {steps / time:12,.0f} steps/s"
    )
