"""Goals as a program: `python -m train.goals RUN`."""

from pathlib import Path

import jax

from train.goals import scene, scores
from train.goals.config import PRESETS, Config
from train.goals.training import make_training
from train.host.program import Program, Run, Views
from train.host.running.run import Result, train_program
from train.host.scoring.scores import read_evaluation
from train.host.training import Evaluation


def draw(run: Run, games: int, key: jax.Array, evaluation: Evaluation | None = None) -> list[Path]:
    """Writes `goals.png`: the success of the learners of the first seed."""
    del games, key
    content = evaluation.content if evaluation else read_evaluation(run.directory)
    if content is None:
        return []
    path = run.directory / "goals.png"
    scores.draw(content, content["seeds"][0], path)
    return [path]


PROGRAM = Program(
    name="goals",
    presets=PRESETS,
    training=make_training,
    module=__name__,
    views=Views(pictures=draw, episodes=scene.show),
    alternative="train.report shows what the learners of a run do; see docs/allo.md",
)


def train(config: Config, preset: str = "goals") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    return train_program(PROGRAM, config, preset)
