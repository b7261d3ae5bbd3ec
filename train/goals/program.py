"""Goals as a program: `python -m train.goals RUN`."""

from pathlib import Path

import jax

from train.goals import scene, scores, training
from train.goals.config import Config, with_tasks_kept
from train.goals.presets import PRESETS, preset_for
from train.goals.space import space_pictures, space_training
from train.goals.space.space_config import SpaceConfig
from train.host.program import Program, Run, Views
from train.host.running.run import Result, train_program
from train.host.scoring.scores import read_evaluation
from train.host.showing import pictures
from train.host.training import Evaluation, Training


def make_training(config: Config | SpaceConfig) -> Training:
    """Learners in a maze of cells or in open space. Raises ValueError or UsageError, in a line."""
    in_space = isinstance(config, SpaceConfig)
    return space_training.make_training(config) if in_space else training.make_training(config)


def draw(run: Run, games: int, key: jax.Array, evaluation: Evaluation | None = None) -> list[Path]:
    """Writes `goals.png`: the success of the learners of the first seed, or their ways in space."""
    del games, key
    if isinstance(run.config, SpaceConfig):
        curve = pictures.draw_curve(
            run.directory,
            space_training.score_of(run.config),
            run.title,
            "environment steps of each learner",
        )
        return [curve, *space_pictures.draw_all(run.directory, run.config, run.agents)]
    content = evaluation.content if evaluation else read_evaluation(run.directory)
    if content is None:
        return []
    path = run.directory / "goals.png"
    scores.draw(content, path)
    return [path]


PROGRAM = Program(
    name="goals",
    presets=PRESETS,
    training=make_training,
    module=__name__,
    preset_for=preset_for,
    for_sweep=with_tasks_kept,
    static={"agent.anneal_updates": "a run whose learning rate falls keeps its budget"},
    environment=lambda config: config.learned,
    views=Views(pictures=draw, episodes=scene.show),
    alternative="train.report shows what the learners of a run do; see docs/allo.md",
    exports=False,
)


def train(config: Config | SpaceConfig, preset: str = "goals") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    return train_program(PROGRAM, config, preset)
