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
        """Candidates of a slot, at most: each is trained for a chunk at least."""
        return self.total // self.chunk + 1

    def rungs(self, reduction: int) -> list[int]:
        """The ages of successive halving, the last one the end."""
        ages = [self.period]
        while ages[-1] * reduction < self.budget:
            ages.append(ages[-1] * reduction)
        return [*ages, self.budget]


def make(training: Training, run: Config, rung: int | None, parts: int, budgets: int) -> Schedule:
    """The schedule of a search whose candidates are trained for the budget of `run`.

    `rung` are the steps asked for between two comparisons; None: a part of `parts` of the budget.
    It is changed a little so that the budget is a whole number of them, and the budget is rounded
    up to that. Raises UsageError if there would be nothing to compare.
    """
    per_update = training.steps_per_update
    total_updates = run.total_updates(per_update)
    rung_updates = -(-total_updates // parts) if rung is None else max(1, round(rung / per_update))
    periods = round(total_updates / rung_updates)
    if periods < 2:
        flag = f"--rung {rung:,} leaves" if rung else f"--run.total-steps {run.total_steps:,} leave"
        raise UsageError(
            f"{flag} nothing to compare before the end, at {total_updates * per_update:,} "
            f"{training.unit}, {per_update:,} an update: choose a rung below half of that"
        )
    period = -(-total_updates // periods)
    fewest = -(-period // run.chunk_updates(per_update))
    pieces = min(range(fewest, 2 * fewest + 1), key=lambda x: (-period % x, x))
    chunk = -(-period // pieces)
    period = chunk * pieces
    schedule = Schedule(chunk, period, period * periods, period * periods * budgets)
    if schedule.total > INT32:
        raise UsageError(
            f"{schedule.total:,} updates of each slot are more than {INT32:,}: ask less"
        )
    return schedule
