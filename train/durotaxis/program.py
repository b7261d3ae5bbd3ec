"""Durotaxis as a program: `python -m train.durotaxis`."""

from pathlib import Path
from typing import Any

import jax

from train.durotaxis import pictures, scene, spawn_pictures
from train.durotaxis.config import Config, idle
from train.durotaxis.episodes import playing
from train.durotaxis.episodes.shown import look_of
from train.durotaxis.evaluation.evaluate import evaluate
from train.durotaxis.evaluation.options import Options
from train.durotaxis.presets import PRESETS
from train.durotaxis.training import SCORE, make_parts, make_training
from train.host.numbers import quantity
from train.host.program import Evaluator, Program, Run, Views
from train.host.running import saved_runs
from train.host.running.run import Result, train_program
from train.host.scoring import scores
from train.host.showing import pictures as curves
from train.host.training import Evaluation


def draw(run: Run, games: int, key: jax.Array, evaluation: Evaluation | None = None) -> list[Path]:
    """The curves of a run, and the climb of one of `games` colonies played with `key`."""
    experiment, title = run.config.env, environment(run.config)
    curve = curves.draw_curve(run.directory, SCORE, title)
    spawn_path = spawn_pictures.draw(run.directory, run.seeds, experiment, title)
    curve = [curve] if spawn_path is None else [curve, spawn_path]
    if not games:
        return curve
    return [*curve, *draw_climb(run, games, key, run.directory, evaluation)[0]]


def film(run: Run, games: int, key: jax.Array, directory: Path) -> list[Path | str]:
    """The climb of one of `games` colonies, and a line with the share of them that arrived."""
    config = saved_runs.with_run_fields(run.config, evaluation_greedy=True)
    paths, content = draw_climb(run._replace(config=config), games, key, directory)
    arrived = scores.number_text(content["seeds"][0]["arrived"], ".1%")
    line = (
        f"{quantity(games, 'colonies')}: {arrived} arrived"
        if arrived
        else scores.missing_score_note(content)
    )
    return [*paths, line or ""]


def draw_climb(
    run: Run, games: int, key: jax.Array, directory: Path, evaluation: Evaluation | None = None
) -> tuple[list[Path], dict[str, Any]]:
    """Pictures of a typical colony of `games` (`playing.typical_index`), and the scores of all."""
    config = saved_runs.with_run_fields(run.config, evaluation_games=games)
    if evaluation is None:
        first_seed = run.agents[:1], run.seeds[:1], [jax.random.clone(key)]
        evaluation = make_training(config).evaluate(*first_seed)
    episodes = evaluation.detail.episodes[0]
    env, params, agent = make_parts(config, greedy=config.run.evaluation_greedy)
    episode_index = playing.typical_index(episodes)
    (episode,) = playing.play(env, params, agent, run.agents[0], key, games, [episode_index])
    look = look_of(config.env)
    return pictures.climb(episode, params, directory, look), evaluation.content


def environment(config: Config) -> str:
    """What a configuration learns in, for titles."""
    experiment = config.env
    ground = "measured" if experiment.field_file else experiment.ground
    goal = f", goal {experiment.goal}" if experiment.goal != "right" else ""
    return f"Durotaxis, {ground} ground{goal}, {experiment.spawning} spawning"


PROGRAM = Program(
    name="durotaxis",
    presets=PRESETS,
    training=make_training,
    module=__name__,
    idle=idle,
    environment=environment,
    views=Views(pictures=draw, film=film, episodes=scene.show, live=scene.live),
    evaluator=Evaluator(Options, evaluate),
)


def train(config: Config, preset: str = "linear") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    return train_program(PROGRAM, config, preset)
