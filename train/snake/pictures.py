"""The learning curve of a run of Snake, how its games ended, and films of them."""

from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from envs.snake.bitboard import Board
from envs.snake.pictures import drawing
from envs.snake.rules import START_LENGTH, State
from jaxrl import evaluate
from jaxrl.evaluate import Episodes
from jaxrl.types import AgentState
from train.host.machine.progress import show_activity
from train.host.numbers import quantity
from train.host.program import Run
from train.host.running import saved_runs
from train.host.scoring import games, scores
from train.host.scoring.games import GameResults
from train.host.showing import outcomes, pictures
from train.host.training import Evaluation
from train.snake.config import AnyConfig, environment, make_env
from train.snake.training import ENDINGS, SCORE, make_training


def draw(run: Run, count: int, key: jax.Array, evaluation: Evaluation | None = None) -> list[Path]:
    """Curve and endings of a run; a histogram of `count` games with `key`, a film of the best."""
    title = environment(run.config)
    paths = [pictures.draw_curve(run.directory, SCORE, title)]
    if path := outcomes.draw_endings(run.directory, ENDINGS, f"{title}: how training games ended"):
        paths.append(path)
    if not count:
        return paths
    config = saved_runs.with_run_fields(run.config, evaluation_games=count)
    if evaluation is None:
        first_agent = run.agents[:1], run.seeds[:1], [jax.random.clone(key)]
        evaluation = make_training(config).evaluate(*first_agent)
    results = evaluation.detail
    paths.append(draw_scores(run, title, results.episodes))
    film = draw_film(run.directory, config, run.agents[0], key, results, results.episodes[0])
    return [*paths, film]


def draw_scores(run: Run, title: str, episodes_by_seed: list[Episodes]) -> Path:
    """Writes `scores.png`, the food of the games of each seed."""
    seeds = run.seeds[: len(episodes_by_seed)]
    names = [f"seed {seed}" if len(seeds) > 1 else "" for seed in seeds]
    food = [scores.scored_games(episodes).outcome[SCORE] for episodes in episodes_by_seed]
    panel = dict(zip(names, food, strict=True))
    return outcomes.draw_scores(run.directory, title, "food eaten in a game", {"": panel})


def film(run: Run, count: int, key: jax.Array, directory: Path) -> tuple[Path, str]:
    """Films the game with the most food, of several the shortest, into `directory`.

    Returns the path and a line with the scores of all games.
    """
    config = saved_runs.with_run_fields(run.config, evaluation_games=count, evaluation_greedy=True)
    first_agent = run.agents[:1], run.seeds[:1], [jax.random.clone(key)]
    evaluation = make_training(config).evaluate(*first_agent)
    episodes = short_games_first(evaluation.detail.episodes[0])
    path = draw_film(directory, config, run.agents[0], key, evaluation.detail, episodes)
    food, won = (evaluation.content["seeds"][0][name] for name in ("score", "won"))
    most = config.env.rows * config.env.cols - config.env.obstacles - START_LENGTH
    if food["mean"] is None:
        return path, scores.missing_score_note(evaluation.content) or ""
    mean, best = (scores.number_text(food, name=name) for name in ("mean", "max"))
    line = f"{quantity(count, 'games')}: food {mean} on average, {best} at best of {most}"
    return path, f"{line}; {won['mean']:.1%} won"


def short_games_first(episodes: Episodes) -> Episodes:
    """The same games `[N, 1]`, with ties in the score broken in favour of the shorter game."""
    lateness = episodes.length / (1.0 + np.max(episodes.length))
    score = episodes.outcome["score"] - lateness
    return episodes._replace(outcome={**episodes.outcome, "score": score})


def draw_film(
    directory: Path,
    config: AnyConfig,
    agent_state: AgentState,
    key: jax.Array,
    results: GameResults,
    episodes: Episodes,
) -> Path:
    """Writes `best_game.gif`: the game with the highest score among `episodes`.

    They are those of `results`, played with `key`, their scores perhaps with ties broken.
    """
    path = directory / "best_game.gif"
    board = Board(config.env.rows, config.env.cols)
    with show_activity("filming the best game"):
        film = best_game(config, agent_state, key, results, episodes)
        drawing.film(board, film.states, path, ending=film.ending)
    return path


class Film(NamedTuple):
    """One game to be drawn."""

    states: State  # NumPy [S, ...], from the first position to the last
    ending: str  # one of drawing.LOOKS


def best_game(
    config: AnyConfig,
    agent_state: AgentState,
    key: jax.Array,
    results: GameResults,
    episodes: Episodes,
) -> Film:
    """The game with the highest score among `episodes [N, 1]`, played again to see its states."""
    best = games.best_game(episodes.outcome["score"], episodes)
    steps = games.steps_to_show(episodes.length[best, 0], results.limit)
    assert results.replay is not None  # games of `games.of_player` can be watched
    game = results.replay(agent_state, key, best, steps)
    env, params = make_env(config.env, training=False)
    chance, _ = env.chances(jax.random.key(0))  # only decides where the next food would be
    move = lambda state, action: env.transition(chance, state, action, params)[0]
    states = evaluate.states(game, move)
    return Film(states, ending_of(jax.tree.map(lambda x: x[best, 0], episodes)))


def ending_of(episode: Episodes) -> str:
    """How one game ended, in the words of `drawing.LOOKS`; empty if it goes on."""
    if not episode.complete:
        return ""
    if episode.outcome["won"]:
        return "board full"
    if episode.outcome["starved"]:
        return "starved"
    return "crashed" if episode.terminated else "time up"
