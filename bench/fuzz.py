"""`python -m bench.fuzz --minutes 60`: files and command lines of strangers, for long.

Prints how many inputs were tried for every loader and command, how many of them ended in a
traceback or another wrong answer, took above two seconds or wrote a file, and each such input.
"""

import itertools
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from tests.train import fuzz

BATCH = 50
SHOWN = 5
"""Inputs that are printed for each problem."""


@dataclass(frozen=True)
class Options:
    minutes: float = 60.0
    """How long in all."""
    only: tuple[str, ...] = ()
    """Loaders and commands to try, by name; none: all."""
    seed: int = 0
    """Of the random inputs."""


def try_batch(strategy: st.SearchStrategy, trial: Callable[[Any, Path], fuzz.Outcome], number: int):
    """`(input, Outcome)` of each of about `BATCH` random inputs."""
    results: list[tuple[Any, fuzz.Outcome]] = []

    @seed(number)
    @settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=fuzz.UNCHECKED,
    )
    @given(strategy)
    def run(content):
        with tempfile.TemporaryDirectory() as folder:
            fuzz.broken_run(Path(folder))
            results.append((content, trial(content, Path(folder))))

    run()
    return results


def targets() -> dict[str, tuple[st.SearchStrategy, Callable[[Any, Path], fuzz.Outcome]]]:
    """The inputs and the trial of every loader and command."""
    loader = lambda name: lambda content, folder: fuzz.load(name, content, folder)
    typed = lambda name: lambda line, folder: fuzz.type_in(name, line, folder)
    files = {name: (fuzz.contents(x), loader(name)) for name, x in fuzz.LOADERS.items()}
    lines = {
        f"train.{name}": (fuzz.command_lines(name), typed(name))
        for name in (*fuzz.PROGRAMS, *fuzz.COMMANDS)
    }
    return files | lines


def main(options: Options) -> None:
    chosen = {k: x for k, x in targets().items() if not options.only or k in options.only}
    deadline, counts, num_printed = time.monotonic() + 60 * options.minutes, Counter(), Counter()
    for number in itertools.count(options.seed):
        for name, (strategy, trial) in chosen.items():
            if time.monotonic() > deadline:
                report(chosen, counts)
                return
            for content, tried in try_batch(strategy, trial, number):
                counts[name, "tried"] += 1
                counts[name, "accepted"] += tried.accepted
                verdict = tried.problem or slowness(tried, trial, content)
                counts[name, kind(verdict)] += 1
                problem = f"{name}: {verdict}"
                if verdict and num_printed[problem[:60]] < SHOWN:
                    num_printed[problem[:60]] += 1
                    print(f"{problem}\n    {content!r:.400}", flush=True)


def slowness(tried: fuzz.Outcome, trial: Callable[[Any, Path], fuzz.Outcome], content: Any) -> str:
    """The time of a slow trial, if it is slow once more: compiling may have taken it before."""
    if tried.seconds > fuzz.PATIENCE:
        with tempfile.TemporaryDirectory() as folder:
            fuzz.broken_run(Path(folder))
            tried = trial(content, Path(folder))
    return f"took {tried.seconds:.1f} s" if tried.seconds > fuzz.PATIENCE else ""


def kind(problem: str) -> str:
    """The column of a problem."""
    if problem.startswith("wrote "):
        return "wrote"
    return "slow" if problem.startswith("took ") else "wrong" if problem else "right"


def report(names: Any, counts: Counter) -> None:
    columns = ("tried", "accepted", "wrong", "slow", "wrote")
    print(f"{'':24}" + "".join(f"{column:>10}" for column in columns))
    for name in names:
        print(f"{name:24}" + "".join(f"{counts[name, column]:10,}" for column in columns))
    total = [sum(counts[name, column] for name in names) for column in columns]
    print(f"{'all':24}" + "".join(f"{number:10,}" for number in total))


if __name__ == "__main__":
    main(tyro.cli(Options))
