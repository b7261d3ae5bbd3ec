"""The evaluation of a trained snake: summaries of the tournament."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from rich import box
from rich.table import Table

from jaxrl.evaluate import Episodes
from jaxrl.types import PyTree
from train.host.scoring import scores
from train.host.scoring.matches import CompiledMatch
from train.host.training import Evaluation
from train.two_snake import tournament as arena
from train.two_snake.config import AnyConfig
from train.two_snake.tournament import ITSELF, SIDES, Games, Sides, label, matches

SCORE = "won"
"""Share of games won; in a tournament, of those against the `greedy` script."""


class PlayedGames(NamedTuple):
    """The games of each seed, and the match in which they can be watched again."""

    games: list[Games]
    match: CompiledMatch


def tournament(
    config: AnyConfig, learned: Sequence[PyTree], seeds: Sequence[int], keys: Sequence[jax.Array]
) -> Evaluation:
    """Summaries of the games of each seed's network; `detail` is `PlayedGames`."""
    start_time = time.perf_counter()
    match = arena.compile_games(config, learned[0])
    ready_time = time.perf_counter()
    games_by_seed = [
        matches(config, match, Sides(own, own), key, names=(f"seed {seed}", ITSELF))
        for own, seed, key in zip(learned, seeds, keys, strict=True)
    ]
    content = {
        "score": SCORE,
        "max_steps": match.match.limit,
        "compile_seconds": ready_time - start_time,
        "seconds": time.perf_counter() - ready_time,
        "seeds": [
            {"seed": seed, **summarise(games)}
            for seed, games in zip(seeds, games_by_seed, strict=True)
        ],
    }
    return Evaluation(content, table(content), PlayedGames(games_by_seed, match))


def summarise(games: Games) -> dict[str, Any]:
    """The row of one seed in `eval.json`: the score, and measures by opponent."""
    measures_by_opponent = {label(name): measures(episodes) for name, episodes in games.items()}
    greedy = measures_by_opponent["greedy"]
    return {
        **{name: greedy[name] for name in ("games", "incomplete")},
        SCORE: greedy["won"],
        "tournament": measures_by_opponent,
    }


def measures(episodes: Episodes) -> dict[str, Any]:
    """`scores.summaries` of the games against one opponent, and the share won from each side."""
    won, whole = np.asarray(episodes.outcome["won"]), np.asarray(episodes.complete)  # [2, N / 2]
    sides = {f"won_{side}": scores.summary(won[i][whole[i]]) for i, side in enumerate(SIDES)}
    return {**scores.summaries(episodes), **sides}


def table(content: dict[str, Any]) -> Table:
    """Two lines for each seed and opponent, the second with 95 % intervals."""
    title = "Games against each opponent, half of them from each side: per cent, and means"
    matches = [summary for row in content["seeds"] for summary in row["tournament"].values()]
    caption = scores.missing_score_note(content | {"seeds": matches})
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("seed and\nopponent")
    for heading in ("won", "drawn", "lost", "won by\nfirst death", "died", "it\ndied"):
        table.add_column(heading, justify="right")
    for heading in ("food", "its\nfood", "steps"):
        table.add_column(heading, justify="right")
    for row in content["seeds"]:
        for name, summary in row["tournament"].items():
            table.add_row(f"{row['seed']} {name}", *cells(summary))
    return table


def cells(summary: dict[str, Any]) -> list[str]:
    """The cells of one opponent; empty where no game was finished."""
    percent = lambda name: scores.number_text(summary[name], ".1f", 100)
    deaths = [summary[name]["mean"] for name in ("death_wall", "death_self", "death_other")]
    return [
        *(f"{percent(x)}\n{interval(summary[x])}" for x in ("won", "draw", "lost", "first_won")),
        f"{100 * sum(deaths):.1f}" if summary["games"] else "",
        percent("opponent_died"),
        *(scores.number_text(summary[name], ".2f") for name in ("score", "opponent_score")),
        scores.number_text(summary["length"], ".0f"),
    ]


def interval(value: dict[str, float | None]) -> str:
    low, high = (scores.number_text(value, ".1f", 100, end) for end in ("low", "high"))
    return f"{low}–{high}" if low else ""
