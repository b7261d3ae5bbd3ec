"""The training of a configuration of Snake, and the agent that is evaluated."""

from envs.snake.env import Params, Snake
from jaxrl.agents import dqn
from jaxrl.loop import make_loop
from jaxrl.types import Agent
from train.host.compilation.cpu_kernels import Work
from train.host.scoring import games, limits
from train.host.training import Score, Training
from train.snake.config import (
    DQN,
    AnyConfig,
    board_text,
    caution,
    check,
    follows_budget,
    make_agent,
    make_env,
)

SCORE = "score"
"""Pieces of food eaten in a game."""
ENDINGS = {
    "won": "board full",
    "death_wall": "into the wall",
    "death_self": "into itself",
    "entrapped": "no way out",
    "starved": "starved",
    "": "time up",
}
"""How games end, by name in the outcome."""


def make_training(config: AnyConfig) -> Training:
    """Raises ValueError, in one line, for an invalid configuration."""
    check(config)
    env, params = make_env(config.env, training=True)
    loop = make_loop(env, params, make_agent(config, env.num_actions), config.loop)
    evaluation = games.of_player(
        *make_player(config),
        config.run.evaluation_games,
        limits.most_steps(config.env.max_steps_in_episode, config.run.evaluation_steps),
        place=f" on {board_text(config.env)}",
        deterministic=config.run.evaluation_greedy,
        score=Score(SCORE, endings=ENDINGS),
    )
    return Training(
        init=loop.init,
        update=loop.update,
        **evaluation.fields,
        blocks=config.loop.blocks,
        steps_per_update=config.loop.steps_per_update,
        budget_shapes_learning=follows_budget(config),
        after_warmup=dqn.MEASURED if isinstance(config, DQN) else (),
        caution=caution(config),
        work=Work(shared_words=is_mostly_seeing(config)),
    )


def is_mostly_seeing(config: AnyConfig) -> bool:
    """Whether most of a step is what the snake sees of the cells around it.

    Where transitions are replayed, most of it is learning.
    """
    return config.env.observation in ("near", "far", "gaps") and not isinstance(config, DQN)


def make_player(config: AnyConfig) -> tuple[Snake, Params, Agent]:
    """The game for evaluation, and the agent that plays it."""
    env, params = make_env(config.env, training=False)
    return env, params, make_agent(config, env.num_actions, config.run.evaluation_greedy)
