"""ALLO as a program: `python -m train.allo`."""

from train.allo import pictures, scene
from train.allo.config import PRESETS, SUMMARIES, Config, idle
from train.allo.training import make_training
from train.host.program import Program
from train.host.run import Result, train_program

PROGRAM = Program(
    name="allo",
    presets=PRESETS,
    training=make_training,
    module=__name__,
    summaries=SUMMARIES,
    idle=idle,
    static={
        "env.wind": "the true eigenvectors are computed on the host, in double precision",
        "agent.discount": "the true eigenvectors are computed on the host, in double precision",
    },
    pictures=pictures.draw,
    episodes=scene.show,
)


def train(config: Config, preset: str = "allo") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    return train_program(PROGRAM, config, preset)
