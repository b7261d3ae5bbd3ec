"""The training of a configuration of `train.gymnax`, and the agent that is evaluated."""

from jaxrl.agents import dqn, sac
from jaxrl.loop import make_loop
from train.gymnax.config import DQN, SAC, AnyConfig, caution, check, follows_budget, make_agent
from train.gymnax.players import player_inside
from train.host.environments import environments
from train.host.scoring import games, limits
from train.host.training import Training


def make_training(config: AnyConfig) -> Training:
    """Raises ValueError, in one line, for an invalid configuration."""
    check(config)
    task = environments.make(config.env)
    loop = make_loop(task.env, task.params, make_agent(config, task), config.loop)
    player = make_agent(config, task, config.run.evaluation_greedy)
    most = limits.most_steps(task.limit, config.run.evaluation_steps)
    count = config.run.evaluation_games
    evaluation = games.of_player(task.env, task.params, player, count, most)
    return Training(
        init=loop.init,
        update=loop.update,
        evaluate=evaluation,
        games=evaluation.of_size,
        score=evaluation.score,
        player=player_inside(task.env, task.params, player),
        blocks=config.loop.blocks,
        steps_per_update=config.loop.steps_per_update,
        budget_shapes_learning=follows_budget(config),
        after_warmup=measures_after_warmup(config),
        caution=caution(config),
    )


def measures_after_warmup(config: AnyConfig) -> tuple[str, ...]:
    """The measures of gradient updates of an agent with a replay."""
    if isinstance(config, SAC):
        return sac.MEASURED
    return dqn.MEASURED if isinstance(config, DQN) else ()
