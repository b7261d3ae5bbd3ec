"""The configuration of `python -m train.goals`, and the arms of its experiment."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import tyro

from jaxrl import checks
from jaxrl.checks import Count, Positive, Seed
from jaxrl.spectral.control import q_learning
from train.goals import tasks
from train.goals.scores import Arm
from train.host import training as settings

FAR = 8
"""Least number of moves from a start to its goal, where the maze is large enough."""
STEPS_PER_STATE = 200
"""Budget of a learner; about enough without help in a maze of a hundred states."""
CHECKPOINTS = 40
GAMES = 10
"""Greedy episodes at each checkpoint."""

ARMS = (
    Arm("none"),
    Arm("none, optimistic", optimistic=True),
    Arm("learned distance", "learned", optimistic=True, control="none, optimistic"),
    Arm("true distance", "true", optimistic=True, control="none, optimistic"),
    Arm("eigen-options", options=True, control="none"),
    Arm("distance + options", "learned", True, optimistic=True, control="none, optimistic"),
)
"""Shaping lowers the values of untried actions by up to its weight. It therefore needs optimistic
initial values (see `q_learning.shaping`), which change exploration. So there are two arms without
help, and every other arm is compared with the one that has the same initial values.
"""


@dataclass(frozen=True)
class Config:
    """Finds random goals by tabular Q-learning, with and without learned eigenvectors.

    The eigenvectors shape rewards (commute-time distance to the goal) or guide exploration
    (eigen-options).
    """

    learned: Annotated[str, tyro.conf.arg(prefix_name=False, metavar="RUN")] = ""
    """Directory of a run of train.allo; its flag may be left out where it stands first, after
    the preset, or after the value of another flag: python -m train.goals RUN. Learners use its
    training seeds in turn."""
    goals: Count = 12
    """Different goals, drawn at random."""
    task_seed: Annotated[Seed | None, tyro.conf.arg(metavar="INT")] = None
    """Seed by which goals are drawn; None: run.seed, in a sweep that of its first members."""
    learners: Count = 20
    """Independent learners of each goal; their random numbers are the same for all goals and
    arms."""
    distance: Annotated[Count | None, tyro.conf.arg(metavar="INT")] = None
    """Least moves from a start to the goal, with the best luck where wind or doors leave them to
    chance; None: 8, or half the longest path of a small maze."""
    steps: Annotated[Count | None, tyro.conf.arg(metavar="INT")] = None
    """Environment steps of each learner over 40 checkpoints, rounded up; None: 200 per state."""
    weight: Positive = 0.1
    """Shaping reward for a whole unit of potential, and initial value of optimistic learners."""
    run: settings.Config = field(
        default_factory=lambda: settings.Config(seed=3, total_steps=CHECKPOINTS, chunk_steps=1)
    )
    """Steps of the budget are checkpoints."""


def seed_of_tasks(config: Any) -> int:
    """What draws the goals of a `Config` or of a `SpaceConfig`."""
    return config.run.seed if config.task_seed is None else config.task_seed


def with_tasks_kept(config: Any) -> Any:
    """`config` of learners of several seeds, which all have the goals of the first one."""
    return replace(config, task_seed=seed_of_tasks(config))


DIRECTED = (Arm("symmetric distance", "symmetric", optimistic=True, control="none, optimistic"),)
"""What a run of a directed walk is compared with, too. Its "learned distance" is by hitting times,
this one by commute times of the self-adjoint part of the same recorded walk, which knows all but
the direction; options climb the eigenvectors of that part, which are real."""


def check(config: Config) -> None:
    """Raises ValueError for invalid numbers and without a run."""
    checks.config(config)
    if not config.learned:
        raise ValueError("expected the directory of a run of train.allo: python -m train.goals RUN")


def plan(config: Config, distances: np.ndarray) -> tasks.Config:
    """Sizes that suit the maze; `distances` `[S, S]` are the shortest ones, perhaps infinite."""
    longest = np.max(distances, where=np.isfinite(distances), initial=2)
    return tasks.Config(
        evaluate_every=-(-(config.steps or STEPS_PER_STATE * len(distances)) // CHECKPOINTS),
        games=GAMES,
        min_distance=config.distance or int(min(FAR, longest // 2)),
    )


def learner(arm: Arm, weight: float) -> q_learning.Config:
    """The configuration of an arm. Arms differ in numbers alone and share one compiled program."""
    return q_learning.Config(
        option_share=float(arm.options),
        initial_value=weight if arm.optimistic else 0.0,
        shaping_weight=weight if arm.potential else 0.0,
    )
