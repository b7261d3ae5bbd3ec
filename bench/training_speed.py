"""Steps a second of a training, compile time apart."""

import time
from typing import Any

import jax
import jax.numpy as jnp

from train.host.compilation import compiled
from train.host.training import Training

WARMUP = 2_000  # environment steps before the clock starts, at least


def warmup_of(config: Any) -> int:
    """Steps before the clock starts: twice those before a replay is learned from."""
    return max(WARMUP, 2 * getattr(getattr(config, "agent", None), "warmup", 0))


def measure_speed(
    training: Training, seconds: float, repeats: int, warmup: int = WARMUP
) -> dict[str, Any]:
    """Steps of the budget a second, in `repeats` chunks of about so many seconds each.

    The clock starts after `warmup` steps (see `warmup_of`).
    """
    per_update = training.steps_per_update
    started = time.perf_counter()
    start = compiled.trace_init(training.init, jnp.int32(0))
    traced = compiled.trace(start, training.update, 100_000, False, work=training.work)
    program = traced.compile()
    compile_s = time.perf_counter() - started
    state = program.init(jnp.int32(0))

    def run(state: Any, updates: int) -> tuple[Any, float]:
        started = time.perf_counter()
        state, report = program.chunk(state, jnp.int32(updates))
        jax.block_until_ready(report)
        return state, time.perf_counter() - started

    state, _ = run(state, -(-warmup // per_update))
    updates, elapsed = 1, 0.0
    while elapsed < 0.2:  # a call long enough to tell the speed
        updates *= 2
        state, elapsed = run(state, updates)
    updates = max(1, min(100_000, round(updates * seconds / elapsed)))
    rates = []
    for _ in range(repeats):
        state, elapsed = run(state, updates)
        rates.append(updates * per_update / elapsed)
    return {"steps_per_second": rates, "compile_s": compile_s}
