"""Vector fields as a program: `python -m train.vector_field`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from train.host.errors import UsageError
from train.host.files import metrics_file
from train.host.numbers import quantity
from train.host.program import Program, Run, Views
from train.host.running.run import Result, train_program
from train.host.training import Evaluation
from train.vector_field import experiment_baselines
from train.vector_field.config import Config, preset_for
from train.vector_field.data import recordings
from train.vector_field.experiment import comparisons, run_record
from train.vector_field.idle import idle
from train.vector_field.pictures import dynamics_pictures, film, run_pictures, scene, vae_pictures
from train.vector_field.presets import PRESETS
from train.vector_field.recorded import baselines, dynamics_fit
from train.vector_field.training import make_training, samples_of


def draw(run: Run, games: int, key: jax.Array, evaluation: Evaluation | None = None) -> list[Path]:
    """The pictures of a run and, unless it fits recorded data, a film.

    The film repeats an experiment, so it is not made right after training, with an `evaluation`.
    """
    del games, key
    if run.config.data:
        has_filter = run.config.learner == "state_space"
        draw_all = (dynamics_pictures if has_filter else vae_pictures).draw_all
        return draw_all(run.directory, run.config, run.agents)
    traces = run_pictures.traces_of(run.config, run.state)
    simple = None
    try:
        with baselines.warn_of_failure():
            simple = experiment_baselines.load_or_measure(run)
    except UsageError:  # samples are lost, which `write_recordings` says after all else is drawn
        pass
    paths = run_pictures.draw_all(run.directory, run.config, run.agents, traces, simple)
    paths += write_recordings(run)
    samples = samples_of(run)
    if samples is not None:
        path = run_pictures.draw_channels(run.directory, run.config, run.agents, samples)
        paths += [path] if path else []
    if evaluation is None:
        paths.append(film.film(run.directory, run.config, make_training, run.updates))
    return paths


def write_recordings(run: Run) -> list[Path]:
    """Writes the recordings of all experiments; returns their folder, if there are any."""
    samples = samples_of(run)
    if samples is None:
        return []
    config = run.config
    lengths = run_record.samples_taken(run.directory, config)
    recordings.write_experiments(
        run.directory, samples, run.seeds, config.policies, config.env.fields, lengths
    )
    return [run.directory / "recordings"]


def tables(run: Run) -> Iterator[Any]:
    """R² of simple models; how many times fewer samples one policy needs than another; where
    experiments stopped; the number of invalid plans."""
    if run.config.data:
        return
    if simple := experiment_baselines.read(run.directory):
        yield experiment_baselines.table(run, simple)
    yield from comparisons.comparison_tables(run.directory, run.config)
    rows = metrics_file.read_metrics(run.directory)
    if run.config.stop_gain:
        yield run_record.stops_table(rows, run.config)
    for name, count in run_record.invalid_plans(rows, run.config).items():
        yield f"{name}: passed over {quantity(count, 'plans')}, of a cost that is not finite"


def environment(config: Config) -> str:
    """What a configuration learns in, for titles."""
    if config.data:
        return ", ".join(Path(x).name for x in config.data)
    return ", ".join(config.env.fields).replace("_", " ")


OF_FILES = ("env.bin_width", "validation_share", "step_time")
"""Numbers that say how recorded data are read and divided."""
PROGRAM = Program(
    name="vector_field",
    presets=PRESETS,
    training=make_training,
    module=__name__,
    idle=idle,
    preset_for=preset_for,
    complete=dynamics_fit.complete,
    guess=dynamics_fit.guess_completion,
    environment=environment,
    static={
        "stop_gain": "whether experiments may stop decides what is compiled",
        **dict.fromkeys(OF_FILES, "it decides what is read of recorded data"),
    },
    views=Views(pictures=draw, episodes=scene.show, live=scene.live, tables=tables),
    alternative="train.vector_field.fitted.load loads what a run has learned; see "
    "docs/recordings.md",
    exports=False,
)


def train(config: Config, preset: str = "vector_field") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs.

    Raises ValueError for recorded data without a learner of them.
    """
    if config.data and config.learner not in ("state_space", "sequence_vae"):
        raise ValueError(
            f"the learner {config.learner} makes experiments: for recorded data begin with "
            'PRESETS["recordings"].config, or give learner="sequence_vae"'
        )
    return train_program(PROGRAM, config, preset)
