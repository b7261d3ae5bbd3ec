"""`python -m train.two_snake`: a snake learns to beat another one on the same board.

Presets: `curriculum` (default), five stages from an opponent that lies still to a pool of former
selves; `direct`, self-play from the first step; `greedy`, only the opponent that takes the shortest
path to the food.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl import self_play
from jaxrl.loop import Metrics, TrainState, make_loop
from jaxrl.types import AgentState
from train import (
    command,
    programs,
    runs,
    scores,
    settings,
    two_snake_curriculum,
    two_snake_evaluation,
    two_snake_pictures,
    two_snake_tournament,
)
from train.run import Result, run
from train.two_snake_config import (
    PRESETS,
    Config,
    check,
    make_agent,
    make_env,
    steps_per_update,
    total_updates,
)
from train.two_snake_curriculum import Progress, params_at

evaluation = two_snake_evaluation
"""What `train.evaluate` offers for runs of this module."""

SCORE = two_snake_evaluation.SCORE


class Student(NamedTuple):
    """What a run carries from update to update, where other runs have the state of an agent."""

    player: AgentState  # of PPO, or of self-play around it
    progress: Progress


def make_training(config: Config) -> settings.Training:
    """Raises ValueError, in one line, for what does not fit together."""
    check(config)
    env, params = make_env(config)
    agent = make_agent(config)
    curriculum, budget = config.curriculum, total_updates(config)

    def init(key: jax.Array) -> TrainState:
        state = make_loop(env, params_at(curriculum, params, 0), agent, config.loop).init(key)
        return state._replace(agent=Student(state.agent, two_snake_curriculum.start()))

    def update(state: TrainState) -> tuple[TrainState, Metrics]:
        player, progress = state.agent
        now = params_at(curriculum, params, progress.stage)
        learn = make_loop(env, now, agent, config.loop).update
        state, metrics = learn(state._replace(agent=player))
        after = two_snake_curriculum.advance(curriculum, progress, metrics, budget)
        player = promoted(config, state.agent, after.stage, after.stage != progress.stage)
        metrics.agent["stage"] = progress.stage.astype(jnp.float32)
        metrics.agent["stage_won"] = after.won_share
        return state._replace(agent=Student(player, after)), metrics

    return settings.Training(
        init=init,
        update=update,
        evaluate=lambda students, seeds, keys: two_snake_evaluation.tournament(
            config, [parameters(student) for student in students], seeds, keys
        ),
        steps_per_update=steps_per_update(config),
        score=SCORE,
        budget_shapes_learning=config.anneal or len(curriculum.stages()) > 1,
    )


def promoted(config: Config, player: AgentState, stage: jax.Array, is_new: jax.Array) -> AgentState:
    """The player as it enters a stage: it joins the pool, which a stage may then freeze."""
    if not isinstance(player, self_play.State):
        return player
    player = jax.lax.cond(is_new, self_play.snapshot, lambda player: player, player)
    return player._replace(is_frozen=two_snake_curriculum.is_frozen(config.curriculum, stage))


def parameters(student: Student) -> dict:
    """Of the network that has learnt."""
    player = student.player
    learner = player.learner if isinstance(player, self_play.State) else player
    return learner.params


def train(config: Config, preset: str = "curriculum") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    result = run(make_training(config), config, "two_snake", preset)
    finish(config, result)
    return result


def finish(config: Config, result: Result) -> None:
    """The pictures of a run that came to its end."""
    print(two_snake_pictures.draw_curve(result.directory, config))
    if result.evaluation:
        student = scores.agents_of(result.state.agent, config.run.num_seeds)[0]
        key = programs.keys_of(config.run.seed)[1]
        games = result.evaluation.detail[0]
        for path in two_snake_pictures.films(
            result.directory, config, parameters(student), key, games
        ):
            print(path)


def draw(run: runs.Run, games: int, key: int) -> list[Path]:
    """The curve of a run, and films of games against scripts, of as many that `key` has led to."""
    learned, root = parameters(run.agents[0]), jax.random.key(key)
    config = runs.with_evaluation(run.config, evaluation_games=games)
    play = two_snake_tournament.compile_games(config, learned)
    sides = two_snake_tournament.Sides(learned, learned)
    opponents = two_snake_pictures.FILMED
    played = two_snake_tournament.matches(config, play, sides, root, opponents)
    curve = two_snake_pictures.draw_curve(run.directory, run.config)
    return [curve, *two_snake_pictures.films(run.directory, config, learned, root, played)]


if __name__ == "__main__":
    sys.exit(command.main("two_snake", PRESETS, make_training, finish))
