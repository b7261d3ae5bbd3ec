"""Trained snakes, by the name of a run or of a policy."""

from pathlib import Path
from typing import Any, NamedTuple

from jaxrl.types import AgentState
from jaxrl.wrappers import self_play
from train.host.errors import UsageError
from train.host.files.run_directory import RunDirectory
from train.host.program import Run
from train.host.running import saved_policies
from train.two_snake.config import AnyConfig


class Player(NamedTuple):
    """A trained snake."""

    name: str
    config: AnyConfig
    learned: Any  # parameters of its network


def load(name: str, best: bool = False) -> Player:
    """The snake of a run directory, a policy file, or a policy of the library.

    Of a run of several seeds it is the first, which its name says then.
    `best` takes the policy of a run that was best while training. Raises UsageError if there is no
    such snake.
    """
    return load_all(name, best)[0]


def load_all(name: str, best: bool = False) -> list[Player]:
    """The snakes of all seeds of a run, or the one of a policy, as for `load`."""
    is_run = RunDirectory(Path(name)).has_config
    run = saved_policies.load_source(name, best)
    _refuse_other_program(name, run)
    title = saved_policies.name_of(name, None) if is_run else saved_policies.name_of(None, name)
    titles = [f"{title}, seed {seed}" for seed in run.seeds] if len(run.seeds) > 1 else [title]
    return [
        Player(title, run.config, parameters(agent))
        for title, agent in zip(titles, run.agents, strict=True)
    ]


def load_config(name: str) -> AnyConfig:
    """The configuration of the snake that `load` returns, for which nothing is traced."""
    run = saved_policies.load_source_without_agents(name)
    _refuse_other_program(name, run)
    return run.config


def _refuse_other_program(name: str, run: Run) -> None:
    if run.program.name != "two_snake":
        raise UsageError(f"{name} is of {run.program.address}; expected players of train.two_snake")


def parameters(player: AgentState) -> Any:
    """The parameters of the learner's network, from its state or that of self-play."""
    return (player.learner if isinstance(player, self_play.State) else player).params
