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


class Played(NamedTuple):
    """The games of each seed, and the match in which they can be watched again."""

    games: list[Games]
    match: CompiledMatch


def tournament(
    config: AnyConfig, learned: Sequence[PyTree], seeds: Sequence[int], keys: Sequence[jax.Array]
) -> Evaluation:
    """Summaries of the games of each seed's network; `detail` is `Played`."""
    started = time.perf_counter()
    match = arena.compile_games(config, learned[0])
    ready = time.perf_counter()
    played = [
        matches(config, match, Sides(own, own), key, names=(f"seed {seed}", ITSELF))
        for own, seed, key in zip(learned, seeds, keys, strict=True)
    ]
    content = {
        "score": SCORE,
        "max_steps": match.match.limit,
        "compile_seconds": ready - started,
        "seconds": time.perf_counter() - ready,
        "seeds": [
            {"seed": seed, **summarised(games)} for seed, games in zip(seeds, played, strict=True)
        ],
    }
    return Evaluation(content, table(content), Played(played, match))


def summarised(games: Games) -> dict[str, Any]:
    """The row of one seed in `eval.json`: the score, and measures by opponent."""
    found = {label(name): measures(played) for name, played in games.items()}
    greedy = found["greedy"]
    return {
        **{name: greedy[name] for name in ("games", "incomplete")},
        SCORE: greedy["won"],
        "tournament": found,
    }


def measures(played: Episodes) -> dict[str, Any]:
    """`scores.summaries` of the games against one opponent, and the share won from each side."""
    won, whole = np.asarray(played.outcome["won"]), np.asarray(played.complete)  # [2, N / 2]
    sides = {f"won_{side}": scores.summary(won[i][whole[i]]) for i, side in enumerate(SIDES)}
    return {**scores.summaries(played), **sides}


def table(content: dict[str, Any]) -> Table:
    """Two lines for each seed and opponent, the second with 95 % intervals."""
    title = "Games against each opponent, half of them from each side: per cent, and means"
    matches = [found for row in content["seeds"] for found in row["tournament"].values()]
    caption = scores.without_score(content | {"seeds": matches})
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=0, show_edge=False)
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
    """The cells of one opponent; empty where no game was finished."""
    percent = lambda name: scores.number_text(found[name], ".1f", 100)
    deaths = [found[name]["mean"] for name in ("death_wall", "death_self", "death_other")]
    return [
        *(f"{percent(x)}\n{interval(found[x])}" for x in ("won", "draw", "lost", "first_won")),
        f"{100 * sum(deaths):.1f}" if found["games"] else "",
        percent("opponent_died"),
        *(scores.number_text(found[name], ".2f") for name in ("score", "opponent_score")),
        scores.number_text(found["length"], ".0f"),
    ]


def interval(value: dict[str, float | None]) -> str:
    low, high = (scores.number_text(value, ".1f", 100, end) for end in ("low", "high"))
    return f"{low}–{high}" if low else ""
