"""Gradient steps a second of ALLO, beside the script it replaces and the machine's limit.

python -m bench.allo_speed [--steps 200] [--repeats 7] [--out FILE]

All rows learn GridRoom-4 (104 states). "as before" does what that script does in each step, in our
own words: pairs drawn on the host with NumPy, three separate passes through the network over the
batch, one call of a compiled function. The others scan. The limit is what this machine makes of
products of matrices 256 wide alone, of which a step needs 6 FLOPs per weight and row: forward,
backward to the input and backward to the weights. The first layer, behind which nothing is
learned, counts like the others: by 0.1 % too much of a step with coordinates, by 2 to 4 % with the
34 inputs of the last four rows. The default's matrices are 128 wide. Compile time is apart.
"""

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bench.products import product_seconds
from bench.snake_speed import append, machine
from jaxrl.spectral.learning import allo as agents
from jaxrl.spectral.learning import allo_state, objectives
from train.allo.config import PRESETS, Config, learning_config, make_network
from train.allo.training import make_problem, make_training

RESULTS = Path(__file__).parent / "results" / "allo_speed.json"
TRANSITIONS = 50_000
KERNELS = ((104, 256, 256), (256, 104, 256))  # a layer forward or to its input; to its weights


class Case(NamedTuple):
    name: str
    run: Callable[[], Any]  # so many gradient steps
    seeds: int
    flops: float  # of the matrix products of one step of one seed
    compile_s: float


def make_config(preset: str, steps: int, hidden: tuple[int, ...] | None = None) -> Config:
    config = PRESETS[preset].config
    network = dataclasses.replace(config.network, hidden=hidden or config.network.hidden)
    agent = dataclasses.replace(config.agent, steps_per_update=steps)
    env = dataclasses.replace(config.env, transitions=TRANSITIONS)
    return dataclasses.replace(config, env=env, network=network, agent=agent)


def scan_case(name: str, config: Config, seeds: int) -> Case:
    """Our training: one call is one update of `steps_per_update` gradient steps."""
    training, keys = make_training(config), jax.random.split(jax.random.key(0), seeds)
    init, update = training.init, training.update
    if seeds > 1:
        init, update = jax.vmap(init), jax.vmap(update)
    state = jax.jit(init)(keys if seeds > 1 else keys[0])
    started = time.perf_counter()
    compiled = jax.jit(update, donate_argnums=0).lower(state).compile()
    compile_s = time.perf_counter() - started
    carry = [state]

    def run() -> None:
        carry[0], metrics = compiled(carry[0])
        jax.block_until_ready(metrics)

    leaves = jax.tree.leaves(state.agent.learner.params)
    weights = sum(x.size for x in leaves if x.ndim == 2 + (seeds > 1)) / seeds
    states = state.agent.inputs.shape[-2]
    return Case(name, run, seeds, 6 * weights * states, compile_s)


def previous_case(config: Config, steps: int) -> Case:
    """The same learning, with batches from the host and three passes a step."""
    # the problem, the network and the start of ours, but batches are drawn on the host
    problem = make_problem(config)
    network = make_network(config, problem.layout.num_states)
    learning, inputs = learning_config(config), jnp.asarray(problem.inputs)
    state = jax.jit(make_training(config).init)(jax.random.key(0)).agent
    optimizer, rng = agents.make_optimizer(learning), np.random.default_rng(0)
    tables = jax.device_get(state.walk.data)
    rows, columns = tables.left.shape

    # pairs of states: the second follows after a geometric time, within the same episode
    def sample() -> tuple[np.ndarray, np.ndarray]:
        row, env = (
            rng.integers(rows, size=learning.batch_size),
            rng.integers(columns, size=learning.batch_size),
        )
        steps_left, g = tables.left[row, env], learning.discount
        uniform = rng.random(learning.batch_size)
        offset = 1 + np.floor(np.log(1 - (1 - g**steps_left) * uniform) / np.log(g)).astype(int)
        offset = np.clip(offset, 1, steps_left)
        return tables.state[row, env], tables.next_state[row + offset - 1, env]

    # one gradient step on the network, and one on the multipliers
    @jax.jit
    def step(learner: allo_state.Learner, first, second, other) -> allo_state.Learner:
        def objective(params):
            encode = lambda index: jnp.asarray(network.apply(params, inputs[index]))
            u, u_next, u_b = encode(first), encode(second), encode(other)
            moments = objectives.sampled_moments(u, u_next, u, u_b, ordered=True)
            value, mask = agents.loss(learning, moments, learner.multipliers)
            return value, (moments, mask)

        grads, (moments, mask) = jax.grad(objective, has_aux=True)(learner.params)
        changes, opt_state = optimizer.update(grads, learner.opt_state, learner.params)
        size = agents.step_size(learning, learner.steps, learner.found_at)
        params = jax.tree.map(lambda p, change: p + size * change, learner.params, changes)
        multipliers = agents.dual_update(learning, learner.multipliers, moments, mask)
        found_at, steps = learner.found_at, learner.steps + 1
        return allo_state.Learner(params, opt_state, multipliers, found_at, steps)

    # the first call compiles
    started, carry = time.perf_counter(), [state.learner]
    carry[0] = jax.block_until_ready(step(carry[0], *sample(), sample()[0]))
    compile_s = time.perf_counter() - started

    def run() -> None:
        for _ in range(steps):
            carry[0] = step(carry[0], *sample(), sample()[0])
        jax.block_until_ready(carry[0])

    return Case("short, as before", run, 1, 0.0, compile_s)


def roofline(repeats: int) -> float:
    """FLOP/s of chained products of the shapes of a step, the mean of both, best of `repeats`."""
    rates = []
    for rows, inner, columns in KERNELS:
        seconds = product_seconds(rows, inner, columns, repeats, times=500)
        rates.append(2 * rows * inner * columns / seconds)
    return statistics.mean(rates)


def all_cases(steps: int) -> list[Case]:
    short, paper = make_config("short", steps), make_config("paper", steps)
    fast = make_config("allo", steps)
    adam = dataclasses.replace(
        make_config("allo", steps, (256, 256, 256)),
        agent=dataclasses.replace(
            fast.agent, optimizer="adam", schedule="budget", turn_every=0, spare_features=0
        ),
    )
    return [
        previous_case(short, steps),
        scan_case("short, batch 256", short, 1),
        scan_case("short, batch 256, 10 seeds", short, 10),
        scan_case("paper, batch 1024", paper, 1),
        scan_case("exact, adam, 256 wide", adam, 1),
        scan_case("exact, adam, 256 wide, 10 seeds", adam, 10),
        scan_case("allo, the default", fast, 1),
        scan_case("allo, the default, 10 seeds", fast, 10),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200, help="gradient steps in one timed call")
    parser.add_argument("--repeats", type=int, default=7, help="timed calls of each row")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    if options.steps % 50:
        parser.error(f"--steps is {options.steps}; expected a multiple of 50")
    # every case compiles and warms up before the clock starts
    limit, cases, rows = roofline(options.repeats), all_cases(options.steps), []
    for case in cases:
        case.run()
    times: dict[str, list[float]] = {case.name: [] for case in cases}
    for _ in range(options.repeats):  # in turns, so that a slow spell meets all
        for case in cases:
            started = time.perf_counter()
            case.run()
            times[case.name].append((time.perf_counter() - started) / options.steps)
    # a row for each case, and its share of the limit
    print(f"matrix products: {limit / 1e9:.0f} GFLOP/s\n")
    print(
        "| GridRoom-4 | ms a step, median | least to most | steps/s | of the limit | compile, s |"
    )
    print("|---" * 6 + "|")
    for case in cases:
        seconds = times[case.name]
        median = statistics.median(seconds)
        share = case.seeds * case.flops / median / limit
        rows.append({"name": case.name, "seconds": seconds, "share_of_limit": share})
        spread = f"{1e3 * min(seconds):.2f} to {1e3 * max(seconds):.2f}"
        share_text = f"{share:.0%}" if case.flops else ""
        print(
            f"| {case.name} | {1e3 * median:.2f} | {spread} | {case.seeds / median:,.0f} "
            f"| {share_text} | {case.compile_s:.1f} |"
        )
    before, after = (statistics.median(times[name]) for name in list(times)[:2])
    print(f"\nshort, as before / ours: {before / after:.1f} times")
    append(options.out, {**machine(), "steps": options.steps, "limit": limit, "rows": rows})


if __name__ == "__main__":
    main()
