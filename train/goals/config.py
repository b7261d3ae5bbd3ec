"""The configuration of `python -m train.goals`, and the arms of its experiment."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import tyro

from jaxrl import checks
from jaxrl.agents import q_learning
from train.goals import tasks
from train.goals.scores import Arm
from train.host import settings

FAR = 8
"""Moves from a start to its goal at least, where the maze is large enough."""
STEPS_PER_STATE = 200
"""Budget of a learner; without help it is about enough in a maze of a hundred states."""
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
"""Shaping makes what was never tried look worse than it is, by up to its weight. It is therefore
given to optimists (see `q_learning.shaping`), who explore differently. So there are two learners
without help, and an arm is compared with the one whose initial values it shares.
"""


@dataclass(frozen=True)
class Config:
    """Finds random goals by tabular Q-learning, with and without learned eigenvectors.

    They shape rewards (by the commute-time distance to the goal) or explore (as eigen-options).
    """

    learned: Annotated[str, tyro.conf.arg(prefix_name=False, metavar="RUN")] = ""
    """Directory of a run of train.allo. Its training seeds serve the learners in turn."""
    goals: int = 12
    """Different goals, drawn at random from run.seed."""
    learners: int = 20
    """Independent learners of each goal; their random numbers are the same for all goals and
    arms."""
    distance: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Least moves from a start to the goal; None: 8, or half the longest way of a small maze."""
    steps: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Environment steps of each learner in 40 checkpoints, rounded up; None: 200 per state."""
    weight: float = 0.1
    """Reward that a whole potential is worth, and the initial value of optimistic learners."""
    run: settings.Config = field(
        default_factory=lambda: settings.Config(seed=3, total_steps=CHECKPOINTS, chunk_steps=1)
    )
    """Steps of the budget are checkpoints."""


def check(config: Config) -> None:
    """Raises ValueError for numbers that make no experiment."""
    if not config.learned:
        raise ValueError("expected the directory of a run of train.allo: python -m train.goals RUN")
    for name in ("goals", "learners", "distance", "steps"):
        value = getattr(config, name)
        if value is not None:
            checks.number(f"--{name}", value, least=1)
    checks.number("--weight", config.weight, above=0.0)


def plan(config: Config, ways: np.ndarray) -> tasks.Config:
    """Sizes that suit the maze, whose ways `[S, S]` may be infinite."""
    longest = np.max(ways, where=np.isfinite(ways), initial=2)
    return tasks.Config(
        evaluate_every=-(-(config.steps or STEPS_PER_STATE * len(ways)) // CHECKPOINTS),
        games=GAMES,
        min_distance=config.distance or int(min(FAR, longest // 2)),
    )


def learner(arm: Arm, weight: float) -> q_learning.Config:
    """All arms are given options and potential, if only to ignore them: one compiled program."""
    return q_learning.Config(
        option_share=float(arm.options),
        initial_value=weight if arm.optimistic else 0.0,
        shaping_weight=weight if arm.potential else 0.0,
    )


PRESETS = {"goals": Config()}
SUMMARIES = {"goals": "Q-learning with six kinds of help, each with the same goals and chance."}
"""What each preset is."""
