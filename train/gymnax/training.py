"""The training of a configuration of `train.gymnax`, and the agent that is evaluated."""

from jaxrl.loop import make_loop
from train.gymnax import environments
from train.gymnax.config import AnyConfig, check, make_agent
from train.host import games, settings

LIMIT = 10_000
"""Steps after which a game of an environment without a time limit of its own is left out."""


def make_training(config: AnyConfig) -> settings.Training:
    """Raises ValueError, in one line, for an invalid configuration."""
    check(config)
    made = environments.make(config.env)
    loop = make_loop(made.env, made.params, make_agent(config, made), config.loop)
    player = make_agent(config, made, config.run.evaluation_greedy)
    return settings.Training(
        init=loop.init,
        update=loop.update,
        evaluate=games.of_player(
            made.env, made.params, player, config.run.evaluation_games, made.limit or LIMIT
        ),
        blocks=config.loop.blocks,
        steps_per_update=config.loop.steps_per_update,
        budget_shapes_learning=getattr(config, "anneal", False),
    )
