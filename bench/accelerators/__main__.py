"""Compiles every program for accelerators that are not here, and predicts how fast they are.

python -m bench.accelerators [PROGRAM:PRESET ...] [--chips h100 t4 v5e] [--devices 1 8]
                             [--parts update]

Without arguments all presets of all programs. Prints a line for each, as soon as it is compiled,
and adds it to `bench/results/accelerators.json`. The compilers lie in an environment of their own,
made at first use.

What it proves is that programs compile, what memory they take, how many kernels they start, how
they loop and what they exchange. Seconds are a model's (`bench.accelerators.model`).
"""

import argparse
import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.accelerators import chips, model
from bench.accelerators.environment import ROOT, python_with_compilers
from bench.snake_speed import append, machine
from train.host.program import find

RESULTS = ROOT / "bench" / "results" / "accelerators.json"
PROGRAMS = ("gymnax", "snake", "two_snake", "durotaxis", "allo", "goals", "vector_field")
PARTS = ("init", "update", "chunk", "members", "evaluation")


def main() -> None:
    options = parse()
    python = python_with_compilers()
    cases = options.cases or list(all_cases())
    questions = [(x, chip, n) for x in cases for chip in options.chips for n in options.devices]
    with ThreadPoolExecutor(options.jobs) as pool:
        ask = lambda question: compile_case(python, question, options.text, options.parts)
        for row in pool.map(ask, questions):
            print(model.line(row), flush=True)
            append(RESULTS, {**machine(), **row})


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.accelerators",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="*", metavar="PROGRAM:PRESET")
    parser.add_argument("--chips", nargs="+", choices=chips.CHIPS, default=["h100", "t4", "v5e"])
    parser.add_argument("--devices", nargs="+", type=int, choices=(1, 8), default=[1])
    parser.add_argument("--parts", nargs="+", default=[], choices=PARTS, help="all if left out")
    parser.add_argument("--jobs", type=int, default=1, help="compilations side by side")
    parser.add_argument("--text", type=Path, help="folder to write the compiled modules into")
    return parser.parse_args()


def all_cases() -> list[str]:
    """Every preset of every program."""
    presets = {name: find(name, "the command line").presets for name in PROGRAMS}
    return [f"{name}:{preset}" for name, several in presets.items() for preset in several]


def compile_case(
    python: Path,
    question: tuple[str, str, int],
    text: Path | None = None,
    parts: Sequence[str] = (),
) -> dict[str, Any]:
    """The row of `(case, chip, devices)`, or of some parts, compiled in a process of its own."""
    case, chip, devices = question
    arguments = [case, chip, str(devices), *(["--text", str(text.resolve())] if text else [])]
    arguments += ["--parts", *parts] if parts else []
    command = [str(python), "-m", "bench.accelerators.compilation", *arguments]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    if answer.returncode:
        last = (answer.stderr.strip().splitlines() or [f"status {answer.returncode}"])[-1]
        return {"case": case, "chip": chip, "devices": devices, "failed": last[:300]}
    return json.loads(answer.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
