"""Programs timed in turns, so that a busy moment of the machine falls on all of them."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

LEAST_ROUNDS = 3
LEAST_SECONDS = 0.2  # a program is called until so long has passed, and the mean taken


class Contender(NamedTuple):
    """A program: `run(carry, key) -> (carry, result, rest)`, whose carry is donated.

    The rest is computed, but not kept.
    """

    name: str
    run: Callable[[Any, jax.Array], tuple[Any, Any, Any]]
    begin: Callable[[], Any] = lambda: ()
    """The first carry, made before the clock starts."""


class Timing(NamedTuple):
    """Seconds of a call in each round, and what the rounds' last calls returned."""

    name: str
    compile_s: float
    wall_s: list[float]
    cpu_s: list[float]  # of all threads of this process; less moved by other work than `wall_s`
    results: list[Any]


class Ratio(NamedTuple):
    """How many times faster, in each round: median, least and most."""

    median: float
    least: float
    most: float


def time_in_turns(contenders: Sequence[Contender], seconds: float) -> list[Timing]:
    """Times all of them, round after round, for about so many seconds, compiling not counted.

    Each starts with two calls that are not counted. Every round begins with another contender and
    has a key of its own, the same for all.
    """
    timings, programs, carries, calls = [], [], [], []
    for contender in contenders:
        carry, key = jax.jit(contender.begin)(), jax.random.key(0)
        started = time.perf_counter()
        program = jax.jit(contender.run, donate_argnums=0).lower(carry, key).compile()
        timings.append(Timing(contender.name, time.perf_counter() - started, [], [], []))
        programs.append(program)
        carry, *_ = jax.block_until_ready(program(carry, key))
        started = time.perf_counter()
        carry, *_ = jax.block_until_ready(program(carry, key))
        calls.append(math.ceil(LEAST_SECONDS / (time.perf_counter() - started)))
        carries.append(carry)
    start, done = time.perf_counter(), 0
    while done < LEAST_ROUNDS or (time.perf_counter() - start) * (done + 1) / done < seconds:
        done += 1
        for turn in range(len(programs)):
            i = (done + turn) % len(programs)
            carries[i] = time_calls(
                programs[i], carries[i], jax.random.key(done), calls[i], timings[i]
            )
    return timings


def time_calls(
    program: Callable[..., Any], carry: Any, key: jax.Array, calls: int, timing: Timing
) -> Any:
    """Times so many calls, and adds their mean to the timing. Returns the next carry."""
    result = None
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        carry, result, _ = program(carry, key)
    jax.block_until_ready((carry, result))
    timing.wall_s.append((time.perf_counter() - wall) / calls)
    timing.cpu_s.append((time.process_time() - cpu) / calls)
    timing.results.append(jax.device_get(result))
    return carry


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> Ratio:
    """Seconds of one over seconds of the other, round by round."""
    ratios = [a / b for a, b in zip(theirs, ours, strict=True)]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))
