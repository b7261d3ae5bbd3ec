"""What was not finite in an update, where it came from, and what to do about it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrl.numerics import nonfinite
from train.host.compilation.compiled import Report
from train.host.files.run_directory import resume_flag
from train.host.plain_config import flag, flatten

DESCENDS = ("loss", "grad_norm", "elbo")
"""Ends of the names of measures of an agent that learns by gradient steps."""


class Problem(NamedTuple):
    """The first update of a chunk that is not finite."""

    description: str
    is_of_environment: bool
    learns_by_gradient: bool


def first_problem(report: Report, updates: int, seeds: Sequence[int]) -> Problem:
    """The first update of a chunk that is not finite, its seed, and what was first in it.

    `updates` are those before the chunk.
    """
    u, s = np.argwhere(~report.finite)[0]
    update = f"update {updates + int(u) + 1} of seed {seeds[s]}"
    learns = any(name.endswith(DESCENDS) for name in report.metrics.agent)
    origin = report.metrics.origin
    if origin and origin.step[u, s] != nonfinite.NEVER:
        part = nonfinite.PARTS[origin.part[u, s]]
        place = {"env": int(origin.env[u, s]), "step": int(origin.step[u, s]) + 1}
        return Problem(
            f"{update}: {nonfinite.HAPPENED[part].format(**place)}", part != "action", learns
        )
    measures = {**report.metrics.finished, **report.metrics.agent}
    is_finite = lambda x: all(np.all(np.isfinite(part[u, s])) for part in jax.tree.leaves(x))
    names = [name for name, x in measures.items() if not is_finite(x)]
    subject = " and ".join(names) or "the parameters"
    verb = "is" if len(names) == 1 else "are"
    return Problem(f"{update}: {subject} {verb} not finite", False, learns)


def advice(problem: Problem, config: Mapping[str, Any], policy: str, run: str) -> str:
    """What to do about a problem that ended a run with the `on_nonfinite` policy.

    `config` is that of the run, as plain data; `run` its directory.
    """
    alternatives = " or ".join(x for x in ("restore", "skip") if x != policy)
    retry = f"try {resume_flag(run)} --run.on-nonfinite {alternatives}"
    if problem.is_of_environment:
        mending = "" if policy == "skip" else "; skip also starts that environment anew"
        return f"mend the environment, or {retry}{mending}"
    rates = [flag(name) for name in flatten(dict(config)) if name.endswith("learning_rate")]
    if problem.learns_by_gradient and rates:
        return f"lower {' or '.join(rates)}, or {retry}"
    return retry
