"""Any environment on gymnax's interface as a program: `python -m train.gymnax`."""

from collections.abc import Sequence

from train.gymnax import environments, pictures, scene
from train.gymnax.config import PRESETS, SUMMARIES, AnyConfig, idle, preset_for
from train.gymnax.training import make_training
from train.host import command, saved
from train.host.errors import UsageError
from train.host.program import Program
from train.host.run import Result, train_program

PROGRAM = Program(
    name="gymnax",
    presets=PRESETS,
    training=make_training,
    module=__name__,
    summaries=SUMMARIES,
    idle=idle,
    pictures=pictures.draw,
    film=pictures.film,
    episodes=scene.show,
    live=scene.live,
)


def suited(arguments: Sequence[str]) -> list[str]:
    """The command line with the preset that suits its environment.

    `ppo --env.id Breakout-MinAtar` becomes `ppo_minatar --env.id Breakout-MinAtar`, and says so.
    """
    given = list(arguments)
    if not any(x.partition("=")[0] in ("--env.id", "--env.options") for x in given):
        return given
    algorithm = given.pop(0) if not given[0].startswith("-") else next(iter(PRESETS))
    if algorithm not in PRESETS or saved.resumed(given) or saved.without_config(given)[0]:
        return list(arguments)
    config, _ = command.parse(PROGRAM, [algorithm, *given])
    try:
        family = environments.make(config.env).family
    except ValueError as error:
        raise UsageError(command.with_flags(command.in_one_line(error), config)) from error
    preset = preset_for(algorithm, family)
    if preset != algorithm:
        print(f"gymnax: {algorithm} for {config.env.id} is the preset {preset}")
    return [preset, *given]


def main(arguments: Sequence[str]) -> int:
    """The command line: as that of every program, with a preset that suits the environment."""
    found: list[str] = []
    code = command.command(lambda own: found.extend(suited(own)), arguments)
    return code or command.main(PROGRAM, found)


def train(config: AnyConfig, preset: str = "ppo") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    return train_program(PROGRAM, config, preset)
