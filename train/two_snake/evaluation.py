"""The evaluation of a trained snake: summaries of the tournament."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from rich import box
from rich.table import Table

from envs.two_snake.env import RIVAL
from jaxrl.evaluate import Episodes
from jaxrl.types import PyTree
from train.host import scores, settings
from train.two_snake import tournament as arena
from train.two_snake.config import AnyConfig
from train.two_snake.tournament import SIDES, Games, Play, Sides, matches

SCORE = "won"
"""Share of games won; in a tournament, of those against the `greedy` script."""
ITSELF = "itself"


class Played(NamedTuple):
    """The games of each seed, and what plays them again to be watched."""

    games: list[Games]
    play: Play


def tournament(
    config: AnyConfig, learned: Sequence[PyTree], seeds: Sequence[int], keys: Sequence[jax.Array]
) -> settings.Evaluation:
    """Summaries of the games of each seed's network; `detail` is `Played`."""
    started = time.perf_counter()
    play = arena.compile_games(config, learned[0])
    ready = time.perf_counter()
    played = [
        matches(config, play, Sides(own, own), key) for own, key in zip(learned, keys, strict=True)
    ]
    content = {
        "score": SCORE,
        "compile_seconds": ready - started,
        "seconds": time.perf_counter() - ready,
        "seeds": [
            {"seed": seed, **summarised(games)} for seed, games in zip(seeds, played, strict=True)
        ],
    }
    return settings.Evaluation(content, table(content), Played(played, play))


def summarised(games: Games) -> dict[str, Any]:
    """The row of one seed in `eval.json`: the score, and measures by opponent."""
    found = {label(name): measures(played) for name, played in games.items()}
    greedy = found["greedy"]
    return {"games": greedy["games"], SCORE: greedy["won"], "tournament": found}


def measures(played: Episodes) -> dict[str, Any]:
    """`scores.summaries` of the games against one opponent, and the share won from each side."""
    won = np.asarray(played.outcome["won"])  # [2, N / 2]
    sides = {f"won_{side}": scores.summary(won[i]) for i, side in enumerate(SIDES)}
    return {**scores.summaries(played), **sides}


def label(name: str) -> str:
    """The name of an opponent in results."""
    return ITSELF if name == RIVAL else name


def table(content: dict[str, Any]) -> Table:
    """Two lines for each seed and opponent, the second with 95 % intervals."""
    title = "Games against each opponent, half of them from each side: per cent, and means"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("seed and\nopponent")
    for heading in ("won", "drawn", "lost", "won by\nfirst death", "died", "it\ndied"):
        table.add_column(heading, justify="right")
    for heading in ("food", "its\nfood", "steps"):
        table.add_column(heading, justify="right")
    for row in content["seeds"]:
        for name, found in row["tournament"].items():
            table.add_row(f"{row['seed']} {name}", *cells(found))
    return table


def cells(found: dict[str, Any]) -> list[str]:
    """The cells of one opponent."""
    percent = lambda name: f"{100 * found[name]['mean']:.1f}"
    deaths = sum(found[name]["mean"] for name in ("death_wall", "death_self", "death_other"))
    return [
        *(f"{percent(x)}\n{interval(found[x])}" for x in ("won", "draw", "lost", "first_won")),
        f"{100 * deaths:.1f}",
        percent("opponent_died"),
        *(f"{found[name]['mean']:.2f}" for name in ("score", "opponent_score")),
        f"{found['length']['mean']:.0f}",
    ]


def interval(value: dict[str, float]) -> str:
    return f"{100 * value['low']:.1f}–{100 * value['high']:.1f}"
