"""`python -m train.goals RUN`: how much sooner learned eigenvectors let a learner find goals."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console

from jaxrl.agents import q_learning
from train import allo, goal_features, goal_scores, goal_tasks, runs
from train.command import command, parse_flags
from train.errors import UsageError
from train.goal_scores import Arm
from train.goal_tasks import Progress
from train.progress import Display

FAR = 8
"""Moves from a start to its goal at least, where the maze is large enough."""
STEPS_PER_STATE = 200
"""Budget of a learner; without help it is about enough in a maze of a hundred states."""
CHECKPOINTS = 40
GAMES = 10  # greedy episodes at each checkpoint

ARMS = (
    Arm("none"),
    Arm("none, optimistic", optimistic=True),
    Arm("learned distance", "learned", optimistic=True, control="none, optimistic"),
    Arm("true distance", "true", optimistic=True, control="none, optimistic"),
    Arm("eigen-options", options=True, control="none"),
    Arm("distance + options", "learned", True, optimistic=True, control="none, optimistic"),
)
"""Shaping makes what was never tried look worse than it is, by up to its weight, and is therefore
given to optimists (see `q_learning.shaping`), who explore in another way than others do. So there
are two learners without help, and an arm is held against the one whose first values it shares.
"""


@dataclass(frozen=True)
class Options:
    """Finds random goals by tabular Q-learning, with and without the learned eigenvectors.

    They shape rewards (by the commute-time distance to the goal) or explore (as eigen-options).
    Writes RUN/goals.json and RUN/goals.png. The training seeds of RUN serve the learners in turn.
    """

    run: Annotated[str, tyro.conf.Positional]
    """Directory of a run of train.allo."""
    goals: int = 12
    """Different goals, drawn at random."""
    learners: int = 20
    """Independent learners of each goal; their luck is the same for all goals and arms."""
    distance: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Least moves from a start to the goal; None: 8, or half the longest way of a small maze."""
    steps: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Environment steps of each learner, rounded up to 40 checkpoints; None: 200 per state."""
    weight: float = 0.1
    """Reward that a whole potential is worth, and the first value of those who are optimistic."""
    key: int = 3
    """Root of the random numbers."""


def main(arguments: list[str]) -> int:
    def compare() -> None:
        options = parse_flags("python -m train.goals", Options, arguments)
        check(options)
        run = load(options.run)
        try:
            content = experiment(run, options)
        except ValueError as error:
            raise UsageError(" ".join(str(error).split())) from error
        Console().print(goal_scores.table(content))
        for path in goal_scores.write(run.directory, content):
            print(path)

    return command(compare)


def check(options: Options) -> None:
    """Raises UsageError for numbers that make no experiment."""
    for name in ("goals", "learners", "distance", "steps"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name} is {value}; expected at least 1")
    if not 0 < options.weight < np.inf:
        raise UsageError(f"--weight is {options.weight}; expected a positive number, such as 0.1")


def load(directory: str) -> runs.Run:
    """The run, or UsageError if it is none whose features are of use here."""
    run = runs.load(directory)
    if run.entry is not allo:
        name = run.entry.__name__
        raise UsageError(f"{directory} is a run of {name}; expected one of train.allo")
    if (d := run.config.agent.num_features) < 2:
        raise UsageError(
            f"{directory} has learned {d} feature; expected at least 2, for the first one is "
            "constant: train with a larger --agent.num-features"
        )
    return run


def experiment(run: runs.Run, options: Options) -> dict[str, Any]:
    """All arms, as `goals.json` holds them. Raises ValueError if the maze has too few goals."""
    problem = allo.make_problem(run.config)
    params, ways = problem.params, goal_tasks.ways(problem.params)
    config = plan(options, ways)
    goals = goal_tasks.draw_goals(params, options.goals, options.key, config)
    learned = [goal_features.represent(run.config, problem, agent) for agent in run.agents]
    given = goal_features.make_help(params, learned, goals, ways, options.learners)
    keys = jax.random.split(jax.random.key(options.key), options.learners)

    def play(arm: Arm) -> Progress:
        return jax.device_get(
            goal_tasks.learn_goals(
                problem.env,
                params,
                jnp.asarray(goals),
                jax.random.clone(keys),  # the same luck for every arm
                config,
                learner(arm, options.weight),
                given.potentials[arm.potential],
                given.options,
            )
        )

    began = time.perf_counter()
    found = play_all(play, options.goals * options.learners * config.num_steps)
    return {
        "maze": problem.layout.name,
        "states": problem.layout.num_states,
        "training_seeds": run.seeds,
        "updates": run.updates,
        "goals": goals.tolist(),
        "learners": options.learners,
        "distance": config.min_distance,
        "max_steps": config.max_steps,
        "games": config.games,
        "level": config.level,
        "weight": options.weight,
        "key": options.key,
        "seconds": time.perf_counter() - began,
        "arms": goal_scores.summaries(ARMS, found),
    }


def plan(options: Options, ways: np.ndarray) -> goal_tasks.Config:
    """Sizes that suit the maze, whose ways `[S, S]` may be infinite."""
    longest = np.max(ways, where=np.isfinite(ways), initial=2)
    every = -(-(options.steps or STEPS_PER_STATE * len(ways)) // CHECKPOINTS)
    return goal_tasks.Config(
        num_steps=CHECKPOINTS * every,
        evaluate_every=every,
        games=GAMES,
        min_distance=options.distance or int(min(FAR, longest // 2)),
    )


def learner(arm: Arm, weight: float) -> q_learning.Config:
    """All arms are given options and potential, if only to ignore them: one compiled program."""
    return q_learning.Config(
        option_share=float(arm.options),
        initial_value=weight if arm.optimistic else 0.0,
        shaping_weight=weight if arm.potential else 0.0,
    )


def play_all(play: Callable[[Arm], Progress], steps: int) -> list[Progress]:
    """Every arm, `steps` environment steps each, with a word on how far that is."""
    found = []
    with Display("goals") as display:
        display.begin(0.0)
        began = time.monotonic()
        for done, arm in enumerate(ARMS, start=1):
            found.append(play(arm))
            rate = done * steps / (time.monotonic() - began)
            score = f"area of {arm.name}", float(found[-1].area.mean())
            display.update(done / len(ARMS), done * steps, rate, score)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
