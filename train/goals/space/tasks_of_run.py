"""The tasks of a run of `train.allo` that has no cells, in open space or in an environment."""

import jax

from train.goals.space import environment_tasks, space_tasks
from train.goals.space.space_config import SpaceConfig
from train.goals.space.space_tasks import Tasks
from train.host.errors import UsageError
from train.host.program import Run
from train.host.running import saved_runs


def make_tasks(config: SpaceConfig) -> Tasks:
    """Raises UsageError for a run that cannot be used, and ValueError for its actions and for
    more goals than it has places."""
    with jax.ensure_compile_time_eval():  # a sweep traces the numbers of its members
        return tasks_of(config, load(config.learned))


def tasks_of(config: SpaceConfig, run: Run) -> Tasks:
    """`make_tasks` of a run that has been loaded."""
    if config.options >= (d := run.config.agent.num_features):
        raise UsageError(
            f"options is {config.options}, but {config.learned} has learned {d} features, the "
            f"constant one included: ask for at most {d - 1}"
        )
    own = environment_tasks if run.config.env.id else space_tasks
    return own.make_tasks(config, run)


def load(directory: str) -> Run:
    """The run of train.allo in `directory`. Raises UsageError if it learned in cells."""
    run = saved_runs.load(directory)
    is_allo = run.program.name == "allo" and not run.config.transitions
    if not is_allo or not (run.config.env.step or run.config.env.id):
        raise UsageError(
            f"{directory} was not learned in open space; expected a run of train.allo with "
            "env.step or env.id, such as of the presets continuous, frames and environment"
        )
    return run
