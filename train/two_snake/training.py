"""The training of a configuration of two snakes, in stages of opponents."""

from functools import partial

import jax
import jax.numpy as jnp

from envs.two_snake.env import RIVAL, Params
from jaxrl.agents import dqn
from jaxrl.loop import Curriculum, LoopMetrics, make_loop
from jaxrl.types import AgentState
from jaxrl.wrappers import self_play
from train.host.compilation.cpu_kernels import Work
from train.host.player import Player
from train.host.training import EpisodesOf, Score, Training
from train.two_snake import curriculum as stages
from train.two_snake import evaluation
from train.two_snake import tournament as arena
from train.two_snake.agents import make_agent
from train.two_snake.config import (
    DQN,
    AnyConfig,
    caution,
    check,
    follows_budget,
    make_env,
    total_updates,
)
from train.two_snake.curriculum import Progress
from train.two_snake.trained import parameters

ENDINGS = {
    "won": "won",
    "death_wall": "into the wall",
    "death_self": "into itself",
    "death_other": "into the other",
    "": "outrun, or time up",
}
"""How training games end for the learner, by name in the outcome."""


def make_training(config: AnyConfig) -> Training:
    """Raises ValueError, in one line, for an invalid configuration."""
    check(config)
    env, params = make_env(config)
    loop = make_loop(env, params, make_agent(config), config.loop, make_curriculum(config, params))
    return Training(
        init=loop.init,
        update=loop.update,
        evaluate=lambda agents, seeds, keys: evaluation.tournament(
            config, [parameters(agent) for agent in agents], seeds, keys
        ),
        games=partial(games_of, config),
        player=make_player(config),
        blocks=config.loop.blocks,
        steps_per_update=config.loop.steps_per_update,
        score=Score(evaluation.SCORE, endings=ENDINGS),
        budget_shapes_learning=follows_budget(config),
        after_warmup=dqn.MEASURED if isinstance(config, DQN) else (),
        caution=caution(config),
        work=Work(shared_words=True),
    )


def make_curriculum(config: AnyConfig, params: Params) -> Curriculum:
    """Stages of opponents; the player joins the pool when it enters a stage."""
    budget = total_updates(config)

    def advance(
        progress: Progress, player: AgentState, metrics: LoopMetrics
    ) -> tuple[Progress, AgentState, dict[str, jax.Array]]:
        after = stages.advance(config.curriculum, progress, metrics, budget)
        player = enter_stage(config, player, after.stage, after.stage != progress.stage)
        measures = {"stage": progress.stage.astype(jnp.float32), "stage_won": after.won_share}
        return after, player, measures

    return Curriculum(
        init=stages.start,
        params=lambda progress: stages.params_at(config.curriculum, params, progress.stage),
        advance=advance,
    )


def enter_stage(
    config: AnyConfig, player: AgentState, stage: jax.Array, is_new: jax.Array
) -> AgentState:
    """The player as it enters a stage: it joins the pool, which the stage may freeze."""
    if not isinstance(player, self_play.State):
        return player
    player = jax.lax.cond(is_new, self_play.snapshot, lambda player: player, player)
    return player._replace(is_frozen=stages.is_frozen(config.curriculum, stage))


def make_player(config: AnyConfig) -> Player:
    """The snake against itself: it moves both sides."""
    env, agent = arena.make_env(config), arena.make_agent(config)

    def on_both_sides(state: AgentState) -> arena.Sides:
        learned = parameters(state)
        return arena.Sides(learned, learned)

    return Player(env, arena.params_of(config, RIVAL, None), agent, on_both_sides)


def games_of(config: AnyConfig, count: int) -> EpisodesOf:
    """So many games against the script that decides the score."""
    return arena.match_against(config, "greedy", count).map_players(parameters)
