"""Measures of the games of a tournament, against plain means of the games that ended."""

import numpy as np
import pytest

from jaxrl.evaluate import Episodes
from train.two_snake import evaluation

WAYS = ("won", "draw", "lost", "first_won", "opponent_died")
DEATHS = ("death_wall", "death_self", "death_other")
FOOD = ("score", "opponent_score")


def random_games(seed: int) -> Episodes:
    """Random games `[2, 30]`, from the left and from the right; a few have no end."""
    rng = np.random.default_rng(seed)
    draw = lambda: rng.random((2, 30)) < 0.4
    outcome = {name: draw() for name in (*WAYS, *DEATHS)}
    outcome |= {name: rng.integers(0, 9, (2, 30)) for name in FOOD}
    length, complete = rng.integers(5, 90, (2, 30)), rng.random((2, 30)) < 0.9
    return Episodes(1.0 * length, length, complete, ~complete, outcome, complete)  # pyright: ignore


def test_measures_are_means_over_all_games_that_ended():
    games = {name: random_games(seed) for seed, name in enumerate(("greedy", "rival"))}
    row = {"seed": 0, **evaluation.summarise(games)}
    assert list(row["tournament"]) == ["greedy", "itself"]
    for episodes, summary in zip(games.values(), row["tournament"].values(), strict=True):
        whole = np.asarray(episodes.complete)
        assert (summary["games"], summary["incomplete"]) == (whole.sum(), (~whole).sum())
        for name in (*WAYS, *DEATHS, *FOOD):
            mean = np.asarray(episodes.outcome[name])[whole].mean()
            assert summary[name]["mean"] == pytest.approx(mean)
        for name, won, ended in zip(
            ("won_left", "won_right"), episodes.outcome["won"], whole, strict=True
        ):
            assert summary[name]["mean"] == pytest.approx(won[ended].mean())
    assert row["won"] == row["tournament"]["greedy"]["won"]
    table = evaluation.table({"score": "won", "max_steps": 100, "seeds": [row]})
    assert table.row_count == 2
