"""When a search compares its candidates, and for how long it lasts; in updates."""

from typing import NamedTuple

from jaxrl.checks import INT32
from train.host.errors import UsageError
from train.host.training import Config, Training

HALVINGS = 3
"""Comparisons of a candidate on its way to the end, by default."""
PERIODS = 20
"""Comparisons of a population, by default."""
BUDGETS = 4
"""Budgets of a candidate that a slot of successive halving trains, by default."""


class Schedule(NamedTuple):
    """All chunks are equally long, and whole chunks lie between two comparisons."""

    chunk: int
    period: int  # of a population; the first rung of halving
    budget: int  # of a candidate that is trained to the end
    total: int  # of a slot

    @property
    def candidates(self) -> int:
        """Of a slot, at most: each is trained for a chunk at least."""
        return self.total // self.chunk + 1

    def rungs(self, reduction: int) -> list[int]:
        """The ages of successive halving, the last one the end."""
        found = [self.period]
        while found[-1] * reduction < self.budget:
            found.append(found[-1] * reduction)
        return [*found, self.budget]


def of(training: Training, run: Config, rung: int | None, parts: int, budgets: int) -> Schedule:
    """The schedule of a search whose candidates are trained for the budget of `run`.

    `rung` are the steps asked for between two comparisons; None: a part of `parts` of the budget.
    It is changed a little so that the budget is a whole number of them, and the budget is rounded
    up to that. Raises UsageError if there would be nothing to compare.
    """
    per_update = training.steps_per_update
    whole = run.total_updates(per_update)
    asked = -(-whole // parts) if rung is None else max(1, round(rung / per_update))
    periods = round(whole / asked)
    if periods < 2:
        told = f"--rung {rung:,} leaves" if rung else f"--run.total-steps {run.total_steps:,} leave"
        raise UsageError(
            f"{told} nothing to compare before the end, at {whole * per_update:,} "
            f"{training.unit}, {per_update:,} an update: choose a rung below half of that"
        )
    period = -(-whole // periods)
    fewest = -(-period // run.chunk_updates(per_update))
    pieces = min(range(fewest, 2 * fewest + 1), key=lambda x: (-period % x, x))
    chunk = -(-period // pieces)
    period = chunk * pieces
    found = Schedule(chunk, period, period * periods, period * periods * budgets)
    if found.total > INT32:
        raise UsageError(f"{found.total:,} updates of each slot are more than {INT32:,}: ask less")
    return found
