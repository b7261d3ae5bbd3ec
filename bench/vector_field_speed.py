"""Steps a second of the whole online loop: plan, act, observe, filter, learn; and of its parts.

python -m bench.vector_field_speed [--experiments 20] [--seconds 2] [--repeats 5] [--out FILE]

One experiment on the limit cycle, then many side by side under `vmap`, as the command runs them on
accelerators (on a CPU one after another). Bayesian rows have the four bases of their presets,
sequence VAEs 25 × 25 centres. A plan of a sequence VAE is 10 steps ahead, from 32 candidates in 5
draws, made at every step (`every step`) or, as by default, when 5 steps of it are taken. Compile
time is apart. In a step of a sequence VAE there is one gradient step on four windows.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bench.snake_speed import append, machine
from jaxrl import loop
from jaxrl.dynamics import rbf
from jaxrl.dynamics.learners import sequence_vae
from jaxrl.dynamics.networks.latent import Window
from jaxrl.dynamics.planning import icem, stimulation
from train.vector_field.config import Config
from train.vector_field.factories import make_env, make_learner, make_model, policy
from train.vector_field.learners.learner import constants_of
from train.vector_field.presets import PRESETS

RESULTS = Path(__file__).parent / "results" / "vector_field_speed.json"
CENTRES = 25
SEARCH = icem.Config(horizon=10, candidates=32, iterations=5, elites=8)


class Case(NamedTuple):
    name: str
    experiments: int
    run: Callable[[], Any]
    steps: int  # of all experiments, in one run
    compile_s: float


def with_search(config: Config) -> Config:
    """`config` with the search of the rows of sequence VAEs, and their 25 × 25 centres."""
    vae_policy = replace(config.vae.policy, planner=SEARCH)
    model = replace(config.model, grid=rbf.Grid(per_axis=CENTRES, half_width=4.0))
    return replace(config, vae=replace(config.vae, policy=vae_policy), model=model)


def online_case(
    name: str, config: Config, chosen: stimulation.Config, experiments: int, steps: int
) -> Case:
    """`steps` of the loop, of one experiment or of many."""
    env = make_env(config)
    params = env.default_params
    agent = make_learner(config).make(chosen, params)
    training = loop.make_loop(env, params, agent, loop.Config(1, 1))
    chunk, init, keys = loop.make_chunk(training.update, steps), training.init, jax.random.key(0)
    if experiments > 1:
        chunk, init = jax.vmap(chunk), jax.vmap(init)
        keys = jax.random.split(keys, experiments)
    latest_state = [jax.jit(init)(keys)]
    started = time.perf_counter()
    compiled = jax.jit(chunk, donate_argnums=0).lower(latest_state[0]).compile()
    compile_s = time.perf_counter() - started

    def run() -> None:
        latest_state[0], metrics = compiled(latest_state[0])
        jax.block_until_ready(metrics)

    return Case(name, experiments, run, steps * experiments, compile_s)


def part_case(name: str, body: Callable[[Any], Any], carry: Any, times: int) -> Case:
    """A part of a step, `times` in a row."""
    scan = jax.jit(lambda x: jax.lax.scan(lambda x, _: (body(x), None), x, length=times)[0])
    started = time.perf_counter()
    compiled = scan.lower(carry).compile()
    compile_s = time.perf_counter() - started
    return Case(name, 1, lambda: jax.block_until_ready(compiled(carry)), times, compile_s)


def parts(config: Config) -> list[Case]:
    """One gradient of the K-step bound, and one plan, of a sequence VAE."""
    model, params = make_model(config), make_env(config).default_params
    world = constants_of(params, config.env.num_inputs)
    vae = replace(config.vae, elbo=replace(config.vae.elbo, dt=world.dt))
    agent = sequence_vae.make(vae, model, world)
    state = agent.init(jax.random.key(0), jnp.zeros(config.env.channels))
    cases = []
    for windows in (1, vae.older_windows + 1):
        y = jax.random.normal(jax.random.key(1), (windows, vae.window, config.env.channels))
        window = Window(y, jnp.zeros((*y.shape[:2], 2)), jnp.ones(y.shape[:2], bool))

        def gradient(carry: tuple, batch: Window = window) -> tuple:
            weights, key = carry
            key, loss_key = jax.random.split(key)
            one = jnp.ones(())
            loss = jax.grad(sequence_vae.mean_loss, has_aux=True)
            grads, _ = loss(weights, vae, model, batch, loss_key, one)
            return jax.tree.map(lambda w, g: w - 1e-6 * g, weights, grads), key

        name = f"gradient, windows of {vae.window}: {windows}"
        cases.append(part_case(name, gradient, (state.params, jax.random.key(2)), 100))
    every = replace(vae.policy, replan_steps=1)
    planner = stimulation.make(
        every, lambda x: sequence_vae.predictive_model(vae, model, x), world.low, world.high
    )
    knowledge = sequence_vae.Knowledge(state.params, state.information, world)

    def plan(carry: tuple) -> tuple:
        z, stimulus, key = carry
        key, act_key = jax.random.split(key)
        action, stimulus = planner.act(knowledge, z, stimulus, act_key)
        return z + 0.01 * action, stimulus, key

    start = (jnp.zeros(2), planner.init(), jax.random.key(3))
    return [*cases, part_case("plan", plan, start, 50)]


def all_cases(experiments: int) -> list[Case]:
    cases = []
    seen_config = replace(
        PRESETS["seen"].config, env=replace(PRESETS["seen"].config.env, fields=("limit_cycle",))
    )
    latent = with_search(PRESETS["sequence_vae"].config)
    for label, config, plan in (
        ("state seen", seen_config, "d_optimal"),
        ("filtered", PRESETS["vector_field"].config, "d_optimal"),
        ("sequence VAE", latent, "d_optimal"),
    ):
        is_vae = config is latent
        for name in ("random", "myopic", plan):
            slow = is_vae or name == plan
            steps = 100 if is_vae else 500 if slow else 5_000
            for number in (1, experiments):
                length = steps if number == 1 else max(20, steps // 5)
                chosen = policy(config, name)
                cases.append(online_case(f"{label}, {name}", config, chosen, number, length))
    chosen = replace(policy(latent, "d_optimal"), replan_steps=1)
    cases.append(online_case("sequence VAE, d_optimal, every step", latent, chosen, 1, 100))
    return cases + parts(latent)


def measure(cases: list[Case], repeats: int, seconds: float) -> list[tuple[Case, list[float]]]:
    """Steps a second of each case, `repeats` times, in turns, after a warm-up."""
    calls = []
    for case in cases:
        case.run()
        started = time.perf_counter()
        case.run()
        calls.append(max(1, round(seconds / (time.perf_counter() - started))))
    speeds: list[list[float]] = [[] for _ in cases]
    for _ in range(repeats):
        for case, count, rates in zip(cases, calls, speeds, strict=True):
            started = time.perf_counter()
            for _ in range(count):
                case.run()
            rates.append(count * case.steps / (time.perf_counter() - started))
    return list(zip(cases, speeds, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=20, help="side by side")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each timed run")
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of each row")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    timings = measure(all_cases(options.experiments), options.repeats, options.seconds)
    print("| online loop | experiments | steps/s, median | least to most | µs | compile |")
    print("|---" * 6 + "|")
    rows = []
    for case, speeds in timings:
        middle = statistics.median(speeds)
        print(
            f"| {case.name} | {case.experiments} | {middle:,.0f} | {min(speeds):,.0f} to "
            f"{max(speeds):,.0f} | {1e6 / middle:,.0f} | {case.compile_s:.1f} s |"
        )
        row = {"name": case.name, "experiments": case.experiments, "compile_s": case.compile_s}
        rows.append({**row, "steps_per_second": [round(speed, 1) for speed in speeds]})
    append(options.out, {**machine(), "rows": rows})


if __name__ == "__main__":
    main()
