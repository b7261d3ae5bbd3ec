"""How fast Snake is, beside Jumanji's: `python -m bench.snake_speed` prints a table.

Random actions, drawn beforehand, automatic reset, many games side by side in one `lax.scan`, in a
steady state. Where an observation counts, it is carried from step to step, so that it must be
written to memory as an agent would find it; where it does not, it is unused and the compiler
leaves it out, for Jumanji as for ours. All rows are measured in turns, so that a busy moment of the
machine falls on all of them.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from envs.snake.env import Snake

RESULTS = Path(__file__).parent / "results" / "snake_speed.json"
LEAST_SECONDS = 0.5  # a timed run is repeated until it lasts about this long


class Case(NamedTuple):
    """One row: how to begin many games, and how to take one step of all."""

    name: str
    actions: int  # of which random ones are drawn
    begin: Callable[[jax.Array, int], Any]  # (key, games) -> carry
    step: Callable[[Any, jax.Array, jax.Array], tuple[Any, jax.Array]]
    """`(carry, key, action [N]) -> (carry, [N] floats)`."""


class Timing(NamedTuple):
    """Steps of all games per second, and seconds of compilation."""

    name: str
    compile_s: float
    runs: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.runs)


def our_case(name: str, rows: int, cols: int, view: str, see: bool) -> Case:
    """Our Snake under classic rules; `see` tells whether the observation is used."""
    env = Snake(rows, cols, view)
    params = env.default_params

    def begin(key, games):
        obs, state = jax.vmap(env.reset, in_axes=(0, None))(jax.random.split(key, games), params)
        return state, obs if see else ()

    def step(carry, key, action):
        keys = jax.random.split(key, len(action))
        obs, state, reward, terminated, _, _ = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
            keys, carry[0], action, params
        )
        return (state, obs if see else ()), reward + terminated

    return Case(name, env.num_actions, begin, step)


def jumanji_cases() -> list[Case]:
    """Snake-v1 under both of Jumanji's automatic resets; none if it is not installed."""
    try:
        game = import_module("jumanji").make("Snake-v1")
        wrappers = import_module("jumanji.wrappers")
    except ImportError as error:
        print(f"jumanji is left out, as it cannot be imported ({error}); see the extra `bench`")
        return []
    one, many = wrappers.AutoResetWrapper(game), wrappers.VmapAutoResetWrapper(game)
    steps = {"AutoReset": jax.vmap(one.step), "VmapAutoReset": many.step}
    return [
        jumanji_case(f"jumanji 12×12 {sight}, {wrapper}", game, many.reset, step, see)
        for sight, see in (("seen", True), ("unseen", False))
        for wrapper, step in steps.items()
    ]


def jumanji_case(name: str, game, reset, vector_step, see: bool) -> Case:
    def begin(key, games):
        state, timestep = reset(jax.random.split(key, games))
        return state, timestep.observation.grid if see else ()

    def step(carry, key, action):
        del key  # the state has its own
        state, timestep = vector_step(carry[0], action)
        observation = timestep.observation.grid if see else ()
        return (state, observation), timestep.reward + timestep.last()

    return Case(name, game.action_spec.num_values, begin, step)


def compile_case(case: Case, games: int, steps: int) -> tuple[Callable, Any, float]:
    """The scan over `steps` steps of `games` games, its first carry, and seconds of compilation."""

    def run(carry):
        def one(carry, action):
            state, key, checksum = carry
            key, step_key = jax.random.split(key)
            state, number = case.step(state, step_key, action)
            return (state, key, checksum + number), None

        state, key, checksum = carry
        key, action_key = jax.random.split(key)
        action = jax.random.randint(action_key, (steps, games), 0, case.actions)
        return jax.lax.scan(one, (state, key, checksum), action)[0]

    begin_key, key = jax.random.split(jax.random.key(0))
    carry = (jax.jit(case.begin, static_argnums=1)(begin_key, games), key, jnp.zeros(games))
    started = time.perf_counter()
    program = jax.jit(run).lower(carry).compile()
    return program, carry, time.perf_counter() - started


def measure(cases: list[Case], games: int, steps: int, repeats: int) -> list[Timing]:
    """Times every case `repeats` times, in turns, after a warm-up that reaches the steady state."""
    programs, carries, timings, calls = [], [], [], []
    for case in cases:
        program, carry, compile_s = compile_case(case, games, steps)
        carry = jax.block_until_ready(program(carry))
        started = time.perf_counter()
        carry = jax.block_until_ready(program(carry))
        calls.append(max(1, round(LEAST_SECONDS / (time.perf_counter() - started))))
        programs.append(program)
        carries.append(carry)
        timings.append(Timing(case.name, compile_s, []))
    for _ in range(repeats):
        for i, program in enumerate(programs):
            started = time.perf_counter()
            for _ in range(calls[i]):
                carries[i] = program(carries[i])
            jax.block_until_ready(carries[i])
            seconds = time.perf_counter() - started
            timings[i].runs.append(games * steps * calls[i] / seconds)
    return timings


def all_cases() -> list[Case]:
    return [
        our_case("10×10 unseen", 10, 10, "features", see=False),
        our_case("10×10 features", 10, 10, "features", see=True),
        our_case("10×10 flood", 10, 10, "flood", see=True),
        our_case("10×10 tail", 10, 10, "tail", see=True),
        our_case("12×12 unseen", 12, 12, "features", see=False),
        our_case("12×12 planes", 12, 12, "planes", see=True),
        *jumanji_cases(),
    ]


def ratios(timings: list[Timing]) -> dict[str, float]:
    """Ours over the faster of Jumanji's wrappers; empty without Jumanji."""
    speed = {timing.name: timing.median for timing in timings}
    theirs = {
        sight: max([s for name, s in speed.items() if f" {sight}," in name], default=0.0)
        for sight in ("seen", "unseen")
    }
    pairs = [("12×12 planes", "seen"), ("12×12 unseen", "seen"), ("12×12 unseen", "unseen")]
    return {
        f"{name} / jumanji {sight}": speed[name] / theirs[sight]
        for name, sight in pairs
        if theirs[sight]
    }


def table(timings: list[Timing]) -> str:
    lines = ["| Snake | M steps/s, median | least to most | compile, s |", "|---|---|---|---|"]
    for name, compile_s, runs in timings:
        median, least, most = (f(runs) / 1e6 for f in (statistics.median, min, max))
        lines.append(f"| {name} | {median:.2f} | {least:.2f} to {most:.2f} | {compile_s:.1f} |")
    ratio_lines = [f"| {name} | {ratio:.1f} |" for name, ratio in ratios(timings).items()]
    if ratio_lines:
        lines += ["", "| ratio | times |", "|---|---|", *ratio_lines]
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """Hardware, versions and date."""
    packages = ("jax", "jaxlib", "numpy", "gymnax", "jumanji")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "device": jax.devices()[0].device_kind,
        "python": platform.python_version(),
        "versions": {package: version_of(package) for package in packages},
    }


def cpu_model() -> str:
    """The name that Linux gives the processor, or what Python knows of it elsewhere."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    model_names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return model_names[0] if model_names else platform.processor()


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def append(path: Path, record: dict[str, Any]) -> None:
    """Adds a record to a JSON list; what was measured before stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    records = json.loads(path.read_bytes()) if path.exists() else []
    path.write_text(
        json.dumps([*records, record], indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=2048, help="games side by side")
    parser.add_argument("--steps", type=int, default=500, help="steps of each game in one scan")
    parser.add_argument("--repeats", type=int, default=7, help="timed runs of each row")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    timings = measure(all_cases(), options.games, options.steps, options.repeats)
    print(table(timings))
    append(
        options.out,
        {
            **machine(),
            "games": options.games,
            "steps": options.steps,
            "steps_per_second": {t.name: [round(run) for run in t.runs] for t in timings},
            "compile_seconds": {t.name: round(t.compile_s, 2) for t in timings},
            "ratios": ratios(timings),
        },
    )


if __name__ == "__main__":
    main()
