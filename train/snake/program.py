"""Snake as a program: `python -m train.snake`."""

from train.host.program import Evaluator, Program
from train.host.running.run import Result, train_program
from train.snake import evaluation, pictures, scene
from train.snake.config import PRESETS, AnyConfig, environment
from train.snake.training import make_training

PROGRAM = Program(
    name="snake",
    presets=PRESETS,
    training=make_training,
    module=__name__,
    environment=environment,
    pictures=pictures.draw,
    evaluator=Evaluator(evaluation.Options, evaluation.evaluate),
    film=pictures.film,
    episodes=scene.show,
    live=scene.live,
)


def train(config: AnyConfig, preset: str = "ppo") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    return train_program(PROGRAM, config, preset)
