"""The command, and what its runs leave."""

from pathlib import Path

import jax

from jaxrl import checkpoint
from train.host.command_line import command
from train.host.compilation import compiled
from train.host.files.run_directory import CHECKPOINTS
from train.two_snake.program import PROGRAM
from train.two_snake.training import make_training


def two_snake_command(*arguments: str) -> int:
    return command.main(PROGRAM, arguments)


def assert_refused(flags: str, message: str, directory: Path, capsys) -> None:
    assert two_snake_command(*flags.split(), f"--run.directory={directory}") == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert not directory.exists()


def final_state(directory: Path):
    config, _ = command.parse(PROGRAM, ["--resume", str(directory)])
    training = make_training(config)
    template = jax.eval_shape(compiled.init_all(training.init, config.run.members.starts), 0)
    return checkpoint.restore(directory / CHECKPOINTS, template)[0]
