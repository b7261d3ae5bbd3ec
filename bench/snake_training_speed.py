"""Training steps a second of every algorithm on Snake, compile time apart.

python -m bench.snake_training_speed [NAME ...] [--seconds 5] [--repeats 5]

One seed. Names are of presets, and of the DQN of `bench.snake_scores` with one switch at a time, so
that `dqn` is not double here, and the preset `dqn` is `double`. For the DQN on the bare board also
the share of the time that its matrix products alone would take, each measured in a loop of its own:
forward of the learning and of the target network, backward to weights and to inputs, and the
forward passes of acting.
"""

import argparse
import itertools
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.products import product_seconds
from bench.snake_scores import ALGORITHMS
from bench.snake_speed import append, machine
from bench.training_speed import measure_speed, warmup_of
from train.snake.config import DQN, make_env
from train.snake.presets import PRESETS
from train.snake.training import make_training

RESULTS = Path(__file__).parent / "results" / "snake_training_speed.json"
BOARDS = ("board", "board20")
LIKE_PRESETS = (*BOARDS, "fill", "ppo", "pqn")
"""Measured as the presets are: PPO and PQN of the table of scores have shorter rollouts."""
CASES = {**ALGORITHMS, **{name: PRESETS[name].config for name in LIKE_PRESETS}}
Shape = tuple[int, int, int]  # rows, inner, columns


def products(config: DQN) -> Iterator[tuple[Shape, int]]:
    """The matrix products of one rollout and its updates, each with how often it is done."""
    env, params = make_env(config.env, training=True)
    inputs = env.observation_space(params).shape[0]
    widths = [inputs, *config.network.hidden, env.num_actions]
    rows, updates = config.agent.batch_size, config.agent.updates_per_rollout
    for layer, (ins, outs) in enumerate(itertools.pairwise(widths)):
        yield (config.loop.num_envs, ins, outs), config.loop.num_steps
        yield (rows, ins, outs), (3 if config.agent.double else 2) * updates
        yield (ins, rows, outs), updates
        if layer:
            yield (rows, outs, ins), updates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--seconds", type=float, default=5.0, help="of each timed call")
    parser.add_argument("--repeats", type=int, default=5, help="timed calls of each row")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    if unknown := set(options.names) - set(CASES):
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(CASES)}")
    rows = []
    print("| trained | sees | steps/s, median | least to most | of the products' limit | compile |")
    print("|---" * 6 + "|")
    for name in options.names or CASES:
        config = CASES[name]
        config = replace(config, run=replace(config.run, max_episodes=None))
        training, warmup = make_training(config), warmup_of(config)
        speed = measure_speed(training, options.seconds, options.repeats, warmup)
        row, rates, share = {"name": name, **speed}, speed["steps_per_second"], ""
        median = statistics.median(rates)
        if name in BOARDS:
            assert isinstance(config, DQN)
            ideal = sum(n * product_seconds(*s, options.repeats) for s, n in products(config))
            row["share_of_limit"] = ideal * median / config.loop.steps_per_update
            share = f"{row['share_of_limit']:.0%}"
        rows.append(row)
        spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
        print(
            f"| {name} | {config.env.observation} | {median:,.0f} | {spread} | {share} "
            f"| {row['compile_s']:.1f} s |",
            flush=True,
        )
    append(options.out, {**machine(), "seconds": options.seconds, "rows": rows})


if __name__ == "__main__":
    main()
