"""What a file does not say of a state-space model: dimensions, kind of field, prior, steps.

Chosen by forecasts of an inner share of the training data, which never sees the held-out data. Of
several that are as good within the error of their difference, the simplest one counts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import jax
import numpy as np
from rich.table import Table

from train.host.numbers import quantity
from train.vector_field.config import Config, Dynamics
from train.vector_field.data.recordings import Data
from train.vector_field.recorded.choices.trials import (
    AT,
    STEPS,
    Problem,
    Trial,
    attempt,
    problem_of,
    run_parallel,
)

DIMENSIONS = (1, 2, 3, 4, 5)
SHORT = 0.35
"""Gradient steps of the candidate that stops early, as a share of those of others, `STEPS`."""
GRIDS_UP_TO = (1, 2, 3)
"""Dimensions in which a grid is tried: in more a network is cheaper."""
LITTLE = 0.01
"""Loss of R² that a simpler candidate may have, as a share of the R² of the best one."""
BLOCKS = 20
"""Stretches of time over which a difference of scores is compared with its error."""
USUAL_PRIOR, NARROW_PRIOR = 0.3, 0.1


def is_open(config: Config) -> bool:
    """Whether a configuration of data leaves something to be chosen by them."""
    dynamics = config.state_space
    # a prior that is traced is one of a sweep
    numbers = dynamics.dims, dynamics.steps, isinstance(dynamics.prior, jax.Array) or dynamics.prior
    chosen = all(numbers) and dynamics.field != "auto"
    return bool(config.data) and config.learner == "state_space" and not chosen


def choose(config: Config, training: Data, say: Callable[[str], None]) -> tuple[Dynamics, Table]:
    """What the data say of all that `config.state_space` leaves open, and the trials as a table.

    `say` is told what is tried. Raises ValueError for data of which no inner share can be scored.
    """
    problem = problem_of(config, training)
    trials: list[Trial] = []

    def run(candidates: Sequence[Dynamics]) -> list[Trial]:
        names = (f"{x.field} of {quantity(x.dims, 'dimensions')}" for x in candidates)
        say(f"trying {' and '.join(names)}")
        trials.extend(run_parallel(lambda x: attempt(problem, x), candidates))
        return trials[-len(candidates) :]

    best_size = choose_dims(problem, run)
    kind = choose_kind(problem, best_size, run)
    if kind.dynamics.field != best_size.dynamics.field:
        kind = choose_fewer_dims(problem, kind, run)
    best = choose_strength(problem, kind, run)
    return best, table(trials, best)


def choose_dims(problem: Problem, run: Callable[[Sequence[Dynamics]], list[Trial]]) -> Trial:
    """The trial of the fewest dimensions that forecast as well as any; two that do worse end it."""
    request, most = problem.dynamics, len(problem.is_count)
    sizes = [request.dims] if request.dims else [d for d in DIMENSIONS if d <= most]
    trials: list[Trial] = []
    for pair in pairs(sizes):
        newest = run([fill_defaults(request, d) for d in pair])
        worse = trials and simplest([*trials, *newest]) in trials
        trials += newest
        if worse and len(trials) > 2:
            break
    return simplest(trials)


def choose_kind(
    problem: Problem,
    usual: Trial,
    run: Callable[[Sequence[Dynamics]], list[Trial]],
) -> Trial:
    """The trial of the kind of field that forecasts best; a linear one if it is as good."""
    if problem.dynamics.field != "auto":
        return usual
    kinds = ["linear", "polynomial", "mlp"] + ["rbf"] * (usual.dynamics.dims in GRIDS_UP_TO)
    others = [replace(usual.dynamics, field=x) for x in kinds if x != usual.dynamics.field]
    kind_trials = [usual, *(trial for pair in pairs(others) for trial in run(pair))]
    linear = next(x for x in kind_trials if x.dynamics.field == "linear")
    best = max(kind_trials, key=lambda x: x.score)
    return simplest([linear, best])


def choose_fewer_dims(
    problem: Problem, usual: Trial, run: Callable[[Sequence[Dynamics]], list[Trial]]
) -> Trial:
    """The same kind of field with as few dimensions as forecast as well: another kind was tried
    when their number was chosen."""
    fewest = usual
    for dims in reversed(range(1, 1 if problem.dynamics.dims else usual.dynamics.dims)):
        (fewer,) = run([replace(usual.dynamics, dims=dims)])
        if simplest([fewer, usual]) is not fewer:
            break
        fewest = fewer
    return fewest


def choose_strength(
    problem: Problem, usual: Trial, run: Callable[[Sequence[Dynamics]], list[Trial]]
) -> Dynamics:
    """Its prior and its steps: narrower and fewer where more overfits."""
    request, total = problem.dynamics, problem.total_steps
    if request.prior and request.steps:
        return usual.dynamics
    early = replace(
        usual.dynamics,
        prior=request.prior or NARROW_PRIOR,
        steps=request.steps or max(1, round(SHORT * STEPS)),
    )
    (trial,) = run([early])
    chosen = trial if trial.score > usual.score else usual
    steps = request.steps or max(1, round(total * chosen.dynamics.steps / STEPS))
    return replace(chosen.dynamics, steps=steps)


def fill_defaults(dynamics: Dynamics, dims: int) -> Dynamics:
    """The candidate of so many dimensions, with usual values for what is open."""
    usual = "rbf" if dims in GRIDS_UP_TO else "mlp"
    return replace(
        dynamics,
        dims=dims,
        field=usual if dynamics.field == "auto" else dynamics.field,
        prior=dynamics.prior or USUAL_PRIOR,
        steps=dynamics.steps or STEPS,
    )


def pairs(items: Sequence) -> Iterator[Sequence]:
    """Two at a time, as many as are tried side by side."""
    return (items[i : i + 2] for i in range(0, len(items), 2))


def simplest(trials: Sequence[Trial]) -> Trial:
    """The first that is as good as the best one within the error of their difference."""
    best = min(trials, key=lambda x: x.errors.mean())
    return next(x for x in trials if is_as_good(x.errors, best.errors))


def is_as_good(errors: np.ndarray, best_errors: np.ndarray) -> bool:
    """Whether the mean difference is at most one standard error, by means of stretches of time.

    Or at most `LITTLE` of what the best one explains.
    """
    if np.array_equal(errors, best_errors):
        return True
    difference = errors - best_errors
    if not np.isfinite(difference).all():
        return False
    means = np.array([x.mean() for x in np.array_split(difference, BLOCKS) if len(x)])
    error = means.std(ddof=1) / np.sqrt(len(means))
    return bool(means.mean() <= max(error, LITTLE * (1 - best_errors.mean())))


def table(trials: Sequence[Trial], best: Dynamics) -> Table:
    """A row for each trial."""
    steps_text = ", ".join(f"+{k}" for k in AT)
    result = Table(
        title="what forecasts of an inner share of the training data say",
        caption=f"mean R² at {steps_text}; taken: {best.field} of "
        f"{quantity(best.dims, 'dimensions')}",
    )
    for heading in ("field", "dimensions", "prior", "gradient steps", "R²"):
        result.add_column(heading, justify="left" if heading == "field" else "right")
    for x in trials:
        steps = min(STEPS, x.dynamics.steps)  # as `attempt` takes
        numbers = (str(x.dynamics.dims), f"{x.dynamics.prior:g}", str(steps))
        result.add_row(x.dynamics.field, *numbers, f"{x.score:.4f}")
    return result
