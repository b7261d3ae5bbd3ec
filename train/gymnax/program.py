"""Any environment on gymnax's interface as a program: `python -m train.gymnax`."""

import envs as envs  # first of all, as it imports gymnax in less time
from train.gymnax import pictures, scene
from train.gymnax.config import AnyConfig, idle
from train.gymnax.presets import PRESETS, preset_for
from train.gymnax.training import make_training
from train.host.program import Program, Views
from train.host.running.run import Result, train_program

PROGRAM = Program(
    name="gymnax",
    presets=PRESETS,
    training=make_training,
    module=__name__,
    idle=idle,
    preset_for=preset_for,
    environment=lambda config: config.env.id,
    views=Views(pictures=pictures.draw, film=pictures.film, episodes=scene.show, live=scene.live),
)


def train(config: AnyConfig, preset: str = "ppo") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    return train_program(PROGRAM, config, preset)
