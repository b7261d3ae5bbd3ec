"""ALLO as a program: `python -m train.allo`."""

from pathlib import Path

import jax

from train.allo import pictures, scene, training
from train.allo.config import PRESETS, Config, preset_for
from train.allo.environment import environment_pictures, environment_training
from train.allo.recorded import recorded_pictures, recorded_training
from train.host.program import Program, Run, Views
from train.host.running.run import Result, train_program
from train.host.training import Evaluation, Training


def make_training(config: Config) -> Training:
    """Learning in a maze or an environment, or from recorded data.

    Raises ValueError for what does not fit.
    """
    if config.transitions:
        return recorded_training.make_training(config)
    return (environment_training if config.env.id else training).make_training(config)


def draw(run: Run, games: int, key: jax.Array, evaluation: Evaluation | None = None) -> list[Path]:
    """The pictures and arrays of a run; nothing is played or drawn at random."""
    del games, key, evaluation
    module = environment_pictures if run.config.env.id else pictures
    module = recorded_pictures if run.config.transitions else module
    return module.draw_all(run.directory, run.config, run.agents)


def environment(config: Config) -> str:
    """What a configuration learns of, for titles."""
    return Path(config.transitions or config.env.maze_file).name or config.env.id or config.env.maze


PROGRAM = Program(
    name="allo",
    presets=PRESETS,
    training=make_training,
    module=__name__,
    environment=environment,
    preset_for=preset_for,
    static=dict.fromkeys(
        ("agent.discount", *(f"env.{name}" for name in ("wind", "wind_spread", "step"))),
        "the true eigenvectors are computed on the host, in double precision",
    )
    | dict.fromkeys(("env.door_back", "env.epsilon"), "tables are made of it on the host"),
    views=Views(pictures=draw, episodes=scene.show),
    alternative="train.allo.encoders loads what they have learned; see docs/allo.md",
)


def train(config: Config, preset: str = "allo") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    return train_program(PROGRAM, config, preset)
