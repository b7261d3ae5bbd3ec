"""Snake as a program: `python -m train.snake`."""

from train.host.program import Evaluator, Program, Views
from train.host.running.run import Result, train_program
from train.snake import evaluation, pictures, scene
from train.snake.config import AnyConfig, environment
from train.snake.presets import PRESETS
from train.snake.training import make_training

PROGRAM = Program(
    name="snake",
    presets=PRESETS,
    training=make_training,
    module=__name__,
    environment=environment,
    views=Views(pictures=pictures.draw, film=pictures.film, episodes=scene.show, live=scene.live),
    evaluator=Evaluator(evaluation.Options, evaluation.evaluate),
)


def train(config: AnyConfig, preset: str = "ppo") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    return train_program(PROGRAM, config, preset)
