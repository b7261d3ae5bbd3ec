"""Trains presets on the accelerator that is here and says how fast: steps/s, compile time apart.

python -m bench.accelerators.measurement [PROGRAM:PRESET ...] [--seconds 2] [--repeats 3]

Without arguments what each program trains on an accelerator by default. Prints a line for each and
adds the rows to `bench/results/accelerators_measured.json`, beside which those of
`bench.accelerators` are what a model expects.
"""

import argparse
import statistics
from dataclasses import replace
from typing import Any

from bench.accelerators.environment import ROOT
from bench.compiling import program_and_config
from bench.snake_speed import append, machine
from bench.training_speed import measure_speed, warmup_of

RESULTS = ROOT / "bench" / "results" / "accelerators_measured.json"
CASES = (
    "snake:near",
    "snake:ppo_wide",
    "snake:pqn_wide",
    "snake:dqn_wide",
    "snake:fill_wide",
    "two_snake:curriculum_wide",
    "gymnax:ppo_wide",
    "gymnax:ppo_minatar_wide",
    "gymnax:pqn_minatar_wide",
    "gymnax:recurrent_wide",
    "gymnax:sac_wide",
    "durotaxis:linear_wide",
    "allo:allo",
    "vector_field:seen",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.accelerators.measurement",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="*", metavar="PROGRAM:PRESET", default=CASES)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each timed call")
    parser.add_argument("--repeats", type=int, default=3, help="timed calls of each preset")
    options = parser.parse_args()
    for case in options.cases:
        row = measure(case, options.seconds, options.repeats)
        print(line(row), flush=True)
        append(RESULTS, {**machine(), **row})


def measure(case: str, seconds: float, repeats: int) -> dict[str, Any]:
    """The speed of one preset with one seed, or what kept it from running."""
    program, config = program_and_config(case, 1)
    if hasattr(config.run, "max_episodes"):
        config = replace(config, run=replace(config.run, max_episodes=None))
    try:
        training = program.training(program.complete(config))
        speed = measure_speed(training, seconds, repeats, warmup_of(config))
    except Exception as error:  # whatever the compiler or the card says is the result
        return {"case": case, "failed": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
    return {"case": case, **speed}


def line(row: dict[str, Any]) -> str:
    """One row in one line."""
    if "failed" in row:
        return f"{row['case']:34} does not run: {row['failed']}"
    rates = row["steps_per_second"]
    return (
        f"{row['case']:34} {statistics.median(rates):14,.0f} steps/s "
        f"({min(rates):,.0f} to {max(rates):,.0f})  {row['compile_s']:6.1f} s to compile"
    )


if __name__ == "__main__":
    main()
