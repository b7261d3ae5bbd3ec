"""How fast Durotaxis is: `python -m bench.durotaxis_speed` prints tables.

Environment: many colonies side by side in one `lax.scan`, automatic reset, a policy that keeps the
number of nodes steady. `hold` lets the colony double until it is large, then deletes half on every
step, which leaves N = 5/8 C; `small` deletes 55 per cent from the start, which leaves N = 6.
Children of `directed` colonies go far, at a random angle drawn beforehand, so an episode lasts
about 40 steps. `unseen` reads neither observation nor info, and the compiler leaves them out;
`local` and `full` write the observation to memory, as an agent would find it, and add it up.

With JAX_NUM_CPU_DEVICES=2 there are rows where two cores share the colonies, each a device.

Training: one call is some updates of `train.durotaxis`, all its own, evaluation apart.

All rows are measured in turns, so that a busy moment of the machine falls on all of them, and in
seconds of the clock as well as of the processor, which a shared machine disturbs less. The
original was not run beside ours: `BEFORE` holds what it was once measured at.
"""

import argparse
import dataclasses
import math
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from bench.snake_speed import LEAST_SECONDS, append, machine
from envs.durotaxis.env import Durotaxis
from train.durotaxis.config import Config
from train.durotaxis.training import make_training
from train.host.compilation import compiled

RESULTS = Path(__file__).parent / "results" / "durotaxis_speed.json"
BEFORE = {"last version, N = 76": 2.66, "reference version, N = 11": 11.8}
"""Environment steps per second, with policy and without learning, of one colony, which is all that
the original can step: its commits f93f3d6 and f1e7ee9, one run of 90 s each, measured before on
another machine, of two cores."""
SEEN = {"unseen": "local", "local": "local", "full": "full"}
"""What is read of a step, and the `observation` of the environment."""


class Policy(NamedTuple):
    """Numbers, so that both policies are one compilation."""

    grow_below: np.float32  # share of the capacity; with fewer nodes nobody is deleted
    ratio: np.float32  # share of the nodes to delete, otherwise


POLICIES = {
    "hold": Policy(np.float32(50 / 128), np.float32(0.5)),
    "small": Policy(np.float32(0), np.float32(0.55)),
}


class Case(NamedTuple):
    """One row: a compiled program that is run over and over on its own state."""

    name: str
    colonies: int
    capacity: int
    steps: int  # environment steps of all colonies in one call
    compile_s: float
    run: Callable[[], Any]  # blocks until done; gives the mean number of nodes, or nothing


class Timing(NamedTuple):
    case: Case
    runs: list[float]  # environment steps per second
    cpu: list[float]  # µs of processor time per step, of all cores together
    nodes: float  # mean number of nodes; 0 where unknown


def step_cases(
    observation: str,
    colonies: int,
    capacity: int,
    spawning: str,
    steps: int,
    policies: list[str],
    cores: int = 1,
) -> list[Case]:
    """The environment alone, under each of the policies; `cores` share the colonies equally."""
    # the environment of one core's share of the colonies
    share, remainder = divmod(colonies, cores)
    if remainder:
        raise ValueError(f"{cores} cores cannot share {colonies} colonies equally")
    form = "global" if spawning == "directed" else "ratio"
    env = Durotaxis(capacity, spawning=spawning, action=form, observation=SEEN[observation])
    params = dataclasses.replace(env.default_params, threshold_nodes=100 * capacity / 128)

    # young colonies grow until they reach the size of the policy, then it deletes a share
    def act(policy: Policy, state: Any, theta: jax.Array) -> jax.Array:
        is_young = state.colony.num_nodes < policy.grow_below * capacity
        ratio = jnp.where(is_young, 0.0, policy.ratio)
        return jnp.stack([ratio, 15.0, 0.5, 0.5, theta] if form == "global" else [ratio])

    # all steps of one call; the sum keeps the compiler from leaving anything out
    def scan(policy: Policy, carry: tuple) -> tuple:
        def one(carry, theta):
            state, key, total = carry
            key, step_key = jax.random.split(key)
            action = jax.vmap(act, (None, 0, 0))(policy, state, theta)
            obs, state, reward, terminated, _, _ = jax.vmap(env.step, (0, 0, 0, None))(
                jax.random.split(step_key, share), state, action, params
            )
            total += jnp.mean(reward + terminated)
            if observation != "unseen":
                total += checksum(jax.lax.optimization_barrier(obs)) / share
            return (state, key, total), jnp.mean(state.colony.num_nodes.astype(jnp.float32))

        state, key, total = carry
        key, angle_key = jax.random.split(key)
        angles = jax.random.uniform(angle_key, (steps, share), minval=-0.5, maxval=0.5)
        carry, nodes = jax.lax.scan(one, (state, key, total), angles)
        return carry, jnp.mean(nodes)

    def start(key: jax.Array) -> tuple:
        place_key, key = jax.random.split(key)
        keys = jax.random.split(place_key, share)
        return jax.vmap(env.reset, (0, None))(keys, params)[1], key, jnp.zeros(())

    def on_cores(function: Callable, *whole: P) -> Callable:
        """Maps a function of one core's share to one of all shares, which the first axis counts."""
        mesh = jax.make_mesh((cores,), ("core",), axis_types=(AxisType.Auto,))
        first = lambda tree: jax.tree.map(lambda x: x[0], tree)
        one = lambda *arguments: jax.tree.map(
            lambda x: x[None], function(*arguments[:-1], first(arguments[-1]))
        )
        specs = {"in_specs": (*whole, P("core")), "out_specs": P("core")}
        return jax.jit(jax.shard_map(one, mesh=mesh, check_vma=False, **specs))

    # one compilation serves all policies, which are numbers
    carry = on_cores(start)(jax.random.split(jax.random.key(0), cores))
    policy = POLICIES["hold"]
    started = time.perf_counter()
    program = on_cores(scan, P()).lower(policy, carry).compile()
    compile_s = time.perf_counter() - started

    # each case goes on with a state of its own
    def case(name: str) -> Case:
        latest_carry = [carry]

        def run() -> Any:
            latest_carry[0], nodes = jax.block_until_ready(program(POLICIES[name], latest_carry[0]))
            return jnp.mean(nodes)

        title = f"{spawning} {observation}, {name}" + (f", {cores} cores" if cores > 1 else "")
        return Case(title, colonies, capacity, steps * colonies, compile_s, run)

    return [case(name) for name in policies]


def checksum(tree: Any) -> jax.Array:
    return sum((jnp.sum(leaf.astype(jnp.float32)) for leaf in jax.tree.leaves(tree)), jnp.zeros(()))


def training_case(torso: str, updates: int) -> Case:
    """The default configuration of `train.durotaxis`, with this torso."""
    config = Config()
    config = dataclasses.replace(config, network=dataclasses.replace(config.network, torso=torso))
    training = make_training(config)
    started = time.perf_counter()
    start = compiled.trace_init(training.init, jnp.asarray(0))
    traced = compiled.trace(start, training.update, updates, skip=False)
    program = traced.compile()
    compile_s = time.perf_counter() - started
    latest_state = [program.init(jnp.asarray(0))]

    def run() -> None:
        latest_state[0], report = program.chunk(latest_state[0], np.int32(updates))
        jax.block_until_ready(report)

    loop = config.loop
    steps = updates * training.steps_per_update
    return Case(f"training, {torso}", loop.num_envs, config.env.capacity, steps, compile_s, run)


def measure(cases: list[Case], repeats: int) -> list[Timing]:
    """Times every case `repeats` times, in turns, after a warm-up that reaches the steady state."""
    timings, calls = [], []
    for case in cases:
        case.run()
        started = time.perf_counter()
        nodes = case.run()
        calls.append(max(1, round(LEAST_SECONDS / (time.perf_counter() - started))))
        timings.append(Timing(case, [], [], 0.0 if nodes is None else float(nodes)))
    for _ in range(repeats):
        for timing, count in zip(timings, calls, strict=True):
            started, cpu_started = time.perf_counter(), time.process_time()
            for _ in range(count):
                timing.case.run()
            steps = count * timing.case.steps
            timing.cpu.append(1e6 * (time.process_time() - cpu_started) / steps)
            timing.runs.append(steps / (time.perf_counter() - started))
    return timings


def all_cases(colonies: list[int], steps: int, updates: int) -> list[Case]:
    cases, cores = [], len(jax.devices())
    for number in colonies:
        for observation in SEEN:
            for num_cores in sorted({1, cores}):
                cases += step_cases(
                    observation, number, 128, "directed", steps, ["hold", "small"], num_cores
                )
        cases += step_cases("unseen", number, 128, "isotropic", steps, ["hold"])
    for capacity in (64, 256, 512):
        for observation in ("unseen", "local"):
            cases += step_cases(observation, colonies[0], capacity, "directed", steps, ["hold"])
    return cases + [training_case(torso, updates) for torso in ("graph", "pooled")]


def table(timings: list[Timing]) -> str:
    head = (
        "| Durotaxis | colonies | C | mean N | steps/s, best | median | µs of processor | compile |"
    )
    lines = [head, "|---" * 8 + "|"]
    for case, runs, cpu, nodes in timings:
        nodes_text = f"{nodes:.0f}" if nodes else ""
        lines.append(
            f"| {case.name} | {case.colonies} | {case.capacity} | {nodes_text} | {max(runs):,.0f} "
            f"| {statistics.median(runs):,.0f} | {min(cpu):.1f} | {case.compile_s:.1f} s |"
        )
    return "\n".join(lines)


def scaling(timings: list[Timing]) -> str:
    """How time grows with the capacity, where N does as well: flat if it is C log C."""
    lines = ["| directed, hold | C | µs of processor | ns per C log2 C |", "|---" * 4 + "|"]
    least = min(timing.case.colonies for timing in timings if "directed" in timing.case.name)
    chosen = [t for t in timings if t.case.colonies == least and t.case.name.endswith(", hold")]
    for observation in ("unseen", "local"):
        matching = [t for t in chosen if t.case.name == f"directed {observation}, hold"]
        for timing in sorted(matching, key=lambda t: t.case.capacity):
            capacity, cost = timing.case.capacity, min(timing.cpu)
            share = 1e3 * cost / (capacity * math.log2(capacity))
            lines.append(f"| {observation} | {capacity} | {cost:.1f} | {share:.1f} |")
    return "\n".join(lines)


def ratios(timings: list[Timing]) -> dict[str, float]:
    """Training, which acts and learns, over the original's steps with policy, without learning."""
    return {
        f"{timing.case.name} / {name}": max(timing.runs) / speed
        for timing in timings
        if timing.case.name.startswith("training")
        for name, speed in BEFORE.items()
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--colonies", type=int, nargs="+", default=[256, 2048], help="side by side")
    parser.add_argument("--steps", type=int, default=50, help="steps of each colony in one scan")
    parser.add_argument("--updates", type=int, default=2, help="updates of training in one call")
    parser.add_argument("--repeats", type=int, default=7, help="timed runs of each row")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args(arguments)
    busy = os.getloadavg()
    timings = measure(all_cases(options.colonies, options.steps, options.updates), options.repeats)
    speed_ratios = ratios(timings)
    print(table(timings), scaling(timings), sep="\n\n")
    print("\n| ratio, the original as measured before | times |\n|---|---|")
    print(*(f"| {name} | {ratio:,.0f} |" for name, ratio in speed_ratios.items()), sep="\n")
    rows = [
        {
            **timing.case._asdict(),
            "nodes": timing.nodes,
            "steps_per_second": [round(run) for run in timing.runs],
            "cpu_us_per_step": [round(cost, 2) for cost in timing.cpu],
        }
        for timing in timings
    ]
    for row in rows:
        del row["run"]
    record = {"load_before": busy, "before": BEFORE, "ratios": speed_ratios, "rows": rows}
    append(options.out, {**machine(), **record})


if __name__ == "__main__":
    main()
