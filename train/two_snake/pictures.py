"""The learning curve of a run of `train.two_snake`, and films of its games."""

from pathlib import Path
from typing import Any

import jax
from matplotlib.axes import Axes

from envs.snake.bitboard import Board
from envs.two_snake import drawing
from envs.two_snake.env import RIVAL
from envs.two_snake.opponents import OPPONENTS
from envs.two_snake.rules import State
from jaxrl import evaluate
from jaxrl.evaluate import Episodes
from jaxrl.types import PyTree
from train.host.files import metrics_file
from train.host.scoring import games, scores
from train.host.scoring.matches import CompiledMatch
from train.host.showing import outcomes, pictures
from train.two_snake import tournament
from train.two_snake.config import AnyConfig
from train.two_snake.tournament import SIDES, Games, Sides

FEW = 0.01
"""Opponents met in at most this share of the games of a chunk are left out of its curve."""
FILMED = ("greedy", "defensive")
"""Scripted opponents whose games are filmed."""
COLOURS = {
    "static": "#999999",
    "random": "#56b4e9",
    "greedy": "#d55e00",
    "defensive": "#009e73",
    "rival": "#0072b2",
    "guest": "#cc79a7",
}
"""Colours of the opponents, safe for the colour-blind."""


def draw_curve(directory: Path, config: AnyConfig, title: str) -> Path:
    """Writes `learning_curve.png` into a run directory.

    The share of training games won over steps: a line for each opponent, the mean over seeds, and
    one for the games against the greedy script that score policies while they train. Dotted lines
    mark where the stages of the first seed begin; diamonds the tournament, one for each seed, where
    the curves end or, of agents that have learned more since, where they were then.
    """
    path = directory / "learning_curve.png"
    rows = metrics_file.read_metrics(directory)
    figure = pictures.titled_figure((9, 4), title)
    axes = figure.subplots()
    end = max((row["steps"] for row in rows), default=0)
    scale = pictures.style_axes(axes, "environment steps", pictures.STEPS, end)
    for name in config.curriculum.opponents():
        lines = pictures.curves([won_row(row, name) for row in rows], "won", "steps")
        if lines:
            label = "former selves" if name == RIVAL else name
            lines = [(x / scale, y) for x, y in lines]
            pictures.draw_mean(axes, lines, color=COLOURS[name], label=label)
    if lines := pictures.evaluated_curves(rows, "steps"):
        lines = [(x / scale, y) for x, y in lines]
        style: dict[str, Any] = {"color": pictures.VERMILLION, "markersize": 4, "linewidth": 0.8}
        pictures.draw_mean(axes, lines, ".-", label="greedily against greedy", **style)
    if evaluation := scores.read_evaluation(directory):
        place = pictures.evaluation_place(rows, "steps", evaluation.get("updates"))
        _mark_tournament(axes, place / scale, evaluation)
    if not rows:
        pictures.say_empty(axes, pictures.no_score(rows, bool(evaluation)))
    for steps, name in stage_starts(rows, list(config.curriculum.stages())):
        axes.axvline(steps / scale, color=pictures.GREY, linewidth=0.7, linestyle=":")
        axes.text(steps / scale, 0.02, name, color=pictures.GREY, fontsize=8, rotation=90)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("share of games won")
    pictures.legend_below(figure, axes.get_legend_handles_labels()[0])
    pictures.save(figure, path)
    return path


def won_row(row: dict[str, Any], name: str) -> dict[str, Any]:
    """A row of the record whose score `won` is the share of games won against one opponent.

    None if there were only a `FEW` games, left over from the stage before.
    """
    finished = row["finished"]
    met, won = finished.get(f"met_{name}"), finished.get(f"won_{name}")
    return {**row, "agent": {}, "finished": {"won": won / met if (met or 0) > FEW else None}}


def stage_starts(rows: list[dict[str, Any]], names: list[str]) -> list[tuple[int, str]]:
    """The steps at which the stages of the first seed began, to a chunk, and their names."""
    starts: list[tuple[int, str]] = []
    before = 0
    for row in rows:
        if row["seed"] == rows[0]["seed"]:
            stage = round(row["agent"]["stage"])
            if stage >= len(starts):  # several within a chunk share a line with the last one's name
                starts += [(before, names[stage])] * (stage + 1 - len(starts))
            before = row["steps"]
    return sorted(dict(starts).items())


def _mark_tournament(axes: Axes, x: float, evaluation: dict[str, Any]) -> None:
    """Marks the share won in the tournament, with intervals; without games against itself."""
    drawn_labels = set(axes.get_legend_handles_labels()[1])
    for name in OPPONENTS:
        for i, row in enumerate(evaluation["seeds"]):
            won = row["tournament"][name]["won"]
            if won["mean"] is None:  # no game was finished
                continue
            spread = [[won["mean"] - won["low"]], [won["high"] - won["mean"]]]
            style = {"fmt": "D", "color": COLOURS[name], "markersize": 4, "clip_on": False}
            label = None if i or name in drawn_labels else f"{name}, tournament only"
            axes.errorbar(x, won["mean"], spread, label=label, **style)


def draw_scores(directory: Path, games_by_opponent: Games) -> Path:
    """Writes `scores.png`: the food of both snakes in the games against each opponent."""
    whole = {name: scores.scored_games(episodes) for name, episodes in games_by_opponent.items()}
    panels = {
        f"against {tournament.label(name)}": {
            "own": episodes.outcome["score"],
            "its": episodes.outcome["opponent_score"],
        }
        for name, episodes in whole.items()
    }
    title = "Two snakes: food of the first seed and of its opponents"
    return outcomes.draw_scores(directory, title, "food eaten in a game", panels)


def films(
    directory: Path,
    config: AnyConfig,
    learned: PyTree,
    key: jax.Array,
    games_by_opponent: Games,
    match: CompiledMatch,
) -> list[Path]:
    """Writes `against_NAME.gif`: the first game won from the left side, or else the first game.

    `games_by_opponent` are those that `tournament.matches` played with `key`; `match` plays them
    again.
    """
    board, paths = Board(config.env.rows, config.env.cols), []
    for name in FILMED:
        episodes = jax.tree.map(lambda x: x[0], games_by_opponent[name])  # [N / 2]
        which = games.best_game(episodes.outcome["won"], episodes)
        path = directory / f"against_{name}.gif"
        steps = games.steps_to_show(episodes.length[which], match.match.limit)
        states = replay(config, learned, key, name, which, steps, match)
        drawing.film(board, states, path, ending_of(episodes, which))
        paths.append(path)
    return paths


def replay(
    config: AnyConfig,
    learned: PyTree,
    key: jax.Array,
    opponent: str,
    which: int,
    length: int,
    match: CompiledMatch,
) -> State:
    """The positions of a game of the tournament from the left side, NumPy `[length + 1, ...]`."""
    params = tournament.params_of(config, opponent, SIDES[0])
    player = params, Sides(learned, learned)
    game = match.watch(player, tournament.keys_of(key, opponent)[0], which, length)
    env = tournament.make_env(config)
    chance, _ = env.chances(jax.random.key(0))  # only decides where the next food would be
    move = lambda state, action: env.transition(chance, state, action, params)[0]
    return evaluate.states(game, move)


def ending_of(episodes: Episodes, which: int) -> str:
    """How one of the games `[N]` ended, in the words of `drawing.FRAMES`; empty if it goes on."""
    if not episodes.complete[which]:
        return ""
    if episodes.truncated[which] and not episodes.terminated[which]:
        return "time up"
    return next(name for name in ("won", "lost", "draw") if episodes.outcome[name][which])
