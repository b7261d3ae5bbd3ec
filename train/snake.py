"""`python -m train.snake`: an agent learns Snake. Presets: ppo (default), dqn."""

import math
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

import jax
import numpy as np
from flax import linen as nn

from envs.snake import drawing
from envs.snake.bitboard import Board
from envs.snake.env import Params, Snake
from envs.snake.rewards import Rewards
from envs.snake.rules import State
from jaxrl import evaluate
from jaxrl.agents import dqn, ppo
from jaxrl.loop import Config as LoopConfig
from jaxrl.loop import make_loop
from jaxrl.networks.conv import Conv
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.types import AgentState
from train import command, pictures, programs, records, runs, scores, settings
from train.run import Result, run


@dataclass(frozen=True)
class Game:
    """Which Snake is played, and what counts in it."""

    rows: int = 10
    """Height of the board, 4 to 20 cells."""
    cols: int = 10
    """Width of the board, 4 to 20 cells."""
    observation: Literal["features", "flood", "selective", "enhanced", "tail", "planes"] = "tail"
    """What the agent sees; envs/snake/observations.py says what is in each."""
    rules: Literal["classic", "modern"] = "classic"
    """classic: the tail kills, no win. modern: follow the tail, win on a full board, starve."""
    actions: Literal["relative", "absolute"] = "relative"
    """relative: forward, left, right. absolute: up, right, down, left."""
    max_steps_in_episode: int = 1000
    """Steps after which a game is cut."""
    rewards: Rewards = Rewards(step=-0.001, food=1.0, death=-1.0, shaping=0.0, timeout=0.0)
    """What moves, meals and deaths are worth."""


@dataclass(frozen=True)
class Network:
    """Dense layers; for `planes` two convolutions come first."""

    hidden: tuple[int, ...] = (128, 128)
    """Width of each hidden layer."""
    dueling: bool = False
    """Estimate the value of a state and the advantages of actions apart; with DQN."""


@dataclass(frozen=True)
class Config:
    """What every preset has."""

    env: Game = Game()
    network: Network = Network()
    loop: LoopConfig = LoopConfig(num_envs=512, num_steps=64)
    run: settings.PlayConfig = field(
        default_factory=lambda: settings.PlayConfig(total_steps=30_000_000)
    )


@dataclass(frozen=True)
class PPO(Config):
    """Learns Snake by proximal policy optimisation."""

    agent: ppo.Config = ppo.Config(discount=0.995)
    anneal: bool = True
    """Let learning rate and entropy weight fall to zero over the budget."""


@dataclass(frozen=True)
class DQN(Config):
    """Learns Snake by deep Q-learning, with the sizes of the 256-game system."""

    agent: dqn.Config = dqn.Config()


SCORE = "score"
"""Pieces of food eaten in a game."""

PRESETS = {
    "ppo": PPO(),
    "dqn": DQN(
        env=Game(observation="flood"),
        loop=LoopConfig(num_envs=256, num_steps=1),
        run=settings.PlayConfig(total_steps=2_000_000, max_episodes=5_000),
    ),
}


def make_training(config: PPO | DQN) -> settings.Training:
    """Raises ValueError, in one line, for what does not fit together."""
    env, params, agent = make_parts(config)
    _, _, player = make_parts(config, greedy=config.run.evaluation_greedy)
    games = config.run.evaluation_games
    loop = make_loop(env, params, agent, config.loop)

    def episodes_of(agent_state: AgentState, key: jax.Array) -> evaluate.Episodes:
        limit = config.env.max_steps_in_episode
        return evaluate.evaluate(env, params, player, agent_state, key, games, 1, limit)

    return settings.Training(
        init=loop.init,
        update=loop.update,
        evaluate=scores.games(episodes_of, SCORE),
        steps_per_update=steps_per_update(config),
        score=SCORE,
        budget_shapes_learning=isinstance(config, PPO) and config.anneal,
    )


def make_parts(config: PPO | DQN, greedy: bool = False):
    """The environment, its parameters and the agent of a configuration."""
    check(config)
    game = config.env
    env = Snake(game.rows, game.cols, game.observation, game.rules, game.actions)
    params = Params(max_steps_in_episode=game.max_steps_in_episode, rewards=game.rewards)
    torso = MLP(config.network.hidden)
    if game.observation == "planes":
        torso = nn.Sequential((Conv(), torso))
    if isinstance(config, DQN):
        network = QNetwork(torso, env.num_actions, dueling=config.network.dueling)
        return env, params, dqn.make(network, config.agent, greedy, config.loop.num_envs)
    agent_config = config.agent
    if config.anneal:
        updates = config.run.total_updates(steps_per_update(config))
        agent_config = replace(agent_config, anneal_updates=float(updates))
    network = ActorCritic(torso, env.num_actions)
    return env, params, ppo.make(network, agent_config, greedy)


def steps_per_update(config: Config) -> int:
    """Environment steps."""
    return config.loop.num_envs * config.loop.num_steps


def check(config: PPO | DQN) -> None:
    """Refuses what would only show after compilation, or never."""
    rate = config.agent.learning_rate
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"agent.learning_rate is {rate}; expected a positive number such as 1e-3")
    for name in ("num_envs", "num_steps"):
        if getattr(config.loop, name) < 1:
            raise ValueError(f"loop.{name} is {getattr(config.loop, name)}; expected at least 1")
    if config.env.max_steps_in_episode < 1:
        raise ValueError(
            f"env.max_steps_in_episode is {config.env.max_steps_in_episode}; expected at least 1"
        )


def train(config: PPO | DQN, preset: str = "ppo") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    result = run(make_training(config), config, "snake", preset)
    finish(config, result)
    return result


def finish(config: PPO | DQN, result: Result) -> None:
    """The pictures of a run that came to its end."""
    print(draw_curve(result.directory, config))
    if result.evaluation:
        agent = scores.agents_of(result.state.agent, config.run.num_seeds)[0]
        key = programs.keys_of(config.run.seed)[1]
        episodes = result.evaluation.detail.episodes[0]
        print(draw_film(result.directory, config, agent, key, episodes))


def draw(run: runs.Run, games: int, key: int) -> list[Path]:
    """The curve of a run, and a film of the best of `games` games that `key` has led to."""
    config = runs.with_evaluation(run.config, evaluation_games=games)
    agent, root = run.agents[0], jax.random.key(key)
    played = make_training(config).evaluate([agent], run.seeds[:1], [jax.random.clone(root)])
    episodes = played.detail.episodes[0]
    curve = draw_curve(run.directory, config)
    return [curve, draw_film(run.directory, config, agent, root, episodes)]


def draw_curve(directory: Path, config: PPO | DQN) -> Path:
    """Writes `learning_curve.png` into a run directory."""
    path = directory / "learning_curve.png"
    title = f"Snake {config.env.rows}×{config.env.cols}, {config.env.observation}"
    evaluation = scores.read_evaluation(directory)
    pictures.learning_curve(records.read_metrics(directory), path, SCORE, title, evaluation)
    return path


def draw_film(
    directory: Path,
    config: PPO | DQN,
    agent_state: AgentState,
    key: jax.Array,
    episodes: evaluate.Episodes,
) -> Path:
    """Writes `best_game.gif`: the game with the most food of those that `key` has led to."""
    path = directory / "best_game.gif"
    film = best_game(config, agent_state, key, episodes)
    board = Board(config.env.rows, config.env.cols)
    drawing.film(board, film.states, path, ending=film.ending)
    return path


class Film(NamedTuple):
    """One game, to be shown."""

    states: State  # NumPy [S, ...], from the first position to the last
    ending: str  # one of drawing.LOOKS


def best_game(
    config: PPO | DQN, agent_state: AgentState, key: jax.Array, episodes: evaluate.Episodes
) -> Film:
    """The game with the most food among `episodes [N, 1]`, played again to see how it went.

    `key` must be the one that `make_training(config).evaluate` played them with.
    """
    env, params, agent = make_parts(config, greedy=config.run.evaluation_greedy)
    best = int(np.argmax(episodes.outcome["score"][:, 0]))
    num_envs, num_steps = len(episodes.length), int(episodes.length[best, 0])
    game = jax.jit(evaluate.trajectory, static_argnums=(0, 2, 5, 7))(
        env, params, agent, agent_state, key, num_envs, best, num_steps
    )
    last_state = jax.tree.map(lambda x: x[-1], game.state)
    chance, _ = env.chances(jax.random.key(0))
    final, *_ = env.transition(chance, last_state, game.action[-1], params)
    states = jax.tree.map(lambda x, y: np.append(x, np.asarray(y)[None], 0), game.state, final)
    return Film(states, ending_of(jax.tree.map(lambda x: x[best, 0], episodes)))


def ending_of(episode: evaluate.Episodes) -> str:
    """How one game ended, in the words of `drawing.LOOKS`."""
    if episode.outcome["won"]:
        return "board full"
    if episode.outcome["starved"]:
        return "starved"
    return "crashed" if episode.terminated else "time up"


if __name__ == "__main__":
    sys.exit(command.main("snake", PRESETS, make_training, finish))
