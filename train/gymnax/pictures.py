"""The learning curve of a run of `train.gymnax`, and a film of its best game."""

from pathlib import Path
from typing import Any

import jax

from jaxrl import evaluate
from jaxrl.types import AgentState
from train.gymnax.drawings import drawing
from train.gymnax.training import make_training
from train.host.environments import environments
from train.host.environments.environments import Task
from train.host.machine.progress import show_activity
from train.host.numbers import digits_text, quantity
from train.host.program import Run
from train.host.running import saved_runs
from train.host.scoring import games, scores
from train.host.scoring.games import GameResults
from train.host.showing import pictures
from train.host.training import Evaluation

LONGEST = 1_000
"""Steps of a game that a film shows, from its start."""


def draw(run: Run, count: int, key: jax.Array, evaluation: Evaluation | None = None) -> list[Path]:
    """The curve of a run and, where the environment can be drawn, its best of `count` games."""
    paths = [pictures.draw_curve(run.directory, "return", run.title)]
    task = environments.make(run.config.env)
    if not count or not drawing.can_draw(task.env):
        return paths
    config = saved_runs.with_run_fields(run.config, evaluation_games=count)
    if evaluation is None:
        first_agent = run.agents[:1], run.seeds[:1], [jax.random.clone(key)]
        evaluation = make_training(config).evaluate(*first_agent)
    return [*paths, film_best(run.directory, task, run.agents[0], key, evaluation.detail)]


def film(run: Run, count: int, key: jax.Array, directory: Path) -> tuple[Path | str, ...]:
    """Films the best of `count` games; the path, and a line with the scores of all games."""
    config = saved_runs.with_run_fields(run.config, evaluation_games=count, evaluation_greedy=True)
    first_agent = run.agents[:1], run.seeds[:1], [jax.random.clone(key)]
    evaluation = make_training(config).evaluate(*first_agent)
    line = score_line(count, evaluation.content)
    task = environments.make(config.env)
    if not drawing.can_draw(task.env):
        return (f"{line}; {config.env.id} cannot be drawn",)
    return film_best(directory, task, run.agents[0], key, evaluation.detail), line


def score_line(count: int, evaluation: dict[str, Any]) -> str:
    """What is said of the games of a film: their scores, and how many have none."""
    returns = evaluation["seeds"][0]["return"]
    lines = [scores.missing_score_note(evaluation)]
    if returns["mean"] is not None:
        mean, most = digits_text(returns["mean"]), digits_text(returns["max"])
        lines.insert(0, f"{quantity(count, 'games')}: return {mean} on average, {most} at best")
    return "; ".join(filter(None, lines))


def film_best(
    directory: Path, task: Task, agent_state: AgentState, key: jax.Array, results: GameResults
) -> Path:
    """Writes `best_game.gif`: the game with the highest return of those played with `key`."""
    path, episodes = directory / "best_game.gif", results.episodes[0]
    with show_activity("filming the best game"):
        best = games.best_game(episodes.return_, episodes)
        length = int(episodes.length[best, 0])
        steps_shown = min(games.steps_to_show(length, results.limit), LONGEST)
        assert results.replay is not None  # games of `games.of_player` can be watched
        game = results.replay(agent_state, key, best, steps_shown)
        states, ending = game.state, ""
        if steps_shown == length:
            # what is up to chance in the last state may differ from the game's
            chance = jax.random.key(0)
            move = lambda state, action: task.env.step_env(chance, state, action, task.params)[1]
            states = evaluate.states(game, move)
            ending = "terminated" if episodes.terminated[best, 0] else "time up"
        drawing.film(task.env, task.params, states, path, ending)
    return path
