"""`python -m train.snake`: an agent learns Snake.

Presets: `ppo` (default), `a2c`, `reinforce`, `pqn`, `dqn`, `rainbow`; `board` and `board20`, a DQN
that sees the bare board; `fill`, which learns to fill the board.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from envs.snake import drawing
from envs.snake.bitboard import Board
from envs.snake.env import Params, Snake
from envs.snake.rules import State
from jaxrl import evaluate
from jaxrl.loop import make_loop
from jaxrl.types import Agent, AgentState
from train import (
    command,
    pictures,
    programs,
    records,
    runs,
    scores,
    settings,
    snake_evaluation,
)
from train.progress import busy
from train.run import Result, run
from train.snake_config import (
    PRESETS,
    AnyConfig,
    check,
    make_agent,
    make_env,
    steps_per_update,
)

SCORE = "score"
"""Pieces of food eaten in a game."""
evaluation = snake_evaluation


def make_training(config: AnyConfig) -> settings.Training:
    """Raises ValueError, in one line, for what does not fit together."""
    check(config)
    env, params = make_env(config.env, training=True)
    loop = make_loop(env, params, make_agent(config, env.num_actions), config.loop)

    def episodes_of(agent_state: AgentState, key: jax.Array) -> evaluate.Episodes:
        env, params, player = make_player(config)
        games, limit = config.run.evaluation_games, config.env.max_steps_in_episode
        return evaluate.evaluate(env, params, player, agent_state, key, games, 1, limit)

    return settings.Training(
        init=loop.init,
        update=loop.update,
        evaluate=scores.games(episodes_of, SCORE),
        steps_per_update=steps_per_update(config),
        score=SCORE,
        budget_shapes_learning=config.anneal_steps is None,
    )


def make_player(config: AnyConfig) -> tuple[Snake, Params, Agent]:
    """The game to be scored in, and the agent that plays it."""
    env, params = make_env(config.env, training=False)
    return env, params, make_agent(config, env.num_actions, config.run.evaluation_greedy)


def train(config: AnyConfig, preset: str = "ppo") -> Result:
    """Trains, evaluates and draws: what the command does, for notebooks and programs."""
    result = run(make_training(config), config, "snake", preset)
    finish(config, result)
    return result


def finish(config: AnyConfig, result: Result) -> None:
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


def draw_curve(directory: Path, config: AnyConfig) -> Path:
    """Writes `learning_curve.png` into a run directory."""
    path = directory / "learning_curve.png"
    title = f"Snake {config.env.rows}×{config.env.cols}, {config.env.observation}"
    evaluation = scores.read_evaluation(directory)
    pictures.learning_curve(records.read_metrics(directory), path, SCORE, title, evaluation)
    return path


def draw_film(
    directory: Path,
    config: AnyConfig,
    agent_state: AgentState,
    key: jax.Array,
    episodes: evaluate.Episodes,
) -> Path:
    """Writes `best_game.gif`: the game with the most food of those that `key` has led to."""
    path = directory / "best_game.gif"
    board = Board(config.env.rows, config.env.cols)
    with busy("filming the best game"):
        film = best_game(config, agent_state, key, episodes)
        drawing.film(board, film.states, path, ending=film.ending)
    return path


class Film(NamedTuple):
    """One game, to be shown."""

    states: State  # NumPy [S, ...], from the first position to the last
    ending: str  # one of drawing.LOOKS


def best_game(
    config: AnyConfig, agent_state: AgentState, key: jax.Array, episodes: evaluate.Episodes
) -> Film:
    """The game with the most food among `episodes [N, 1]`, played again to see how it went.

    `key` must be the one that `make_training(config).evaluate` played them with.
    """
    env, params, agent = make_player(config)
    best = int(np.argmax(episodes.outcome["score"][:, 0]))
    num_envs, num_steps = len(episodes.length), int(episodes.length[best, 0])
    game = jax.jit(evaluate.trajectory, static_argnums=(0, 2, 5, 7))(
        env, params, agent, agent_state, key, num_envs, best, num_steps
    )
    last_state = jax.tree.map(lambda x: x[-1], game.state)
    chance, _ = env.chances(jax.random.key(0))
    final, *_ = jax.jit(env.transition)(chance, last_state, game.action[-1], params)
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
