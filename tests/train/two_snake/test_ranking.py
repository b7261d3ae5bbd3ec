"""Strengths of players against a closed form and a maximised likelihood, and a small tournament."""

import itertools
from dataclasses import replace

import chex
import jax
import numpy as np
import pytest
from rich.console import Console
from scipy.optimize import minimize

from tests.train import untrained
from train.two_snake import ranking, trained
from train.two_snake.config import DQN
from train.two_snake.program import PROGRAM
from train.two_snake.trained import Player, parameters


@pytest.fixture
def few_resamples(monkeypatch):
    """An interval from fewer draws, where how wide it is does not matter."""
    monkeypatch.setattr(ranking, "RESAMPLES", 50)


def test_two_players_differ_by_the_odds():
    points, games = np.array([[0, 75.0], [25.0, 0]]), np.array([[0, 100], [100, 0]])
    one, other = ranking.elo(points, games)
    assert one + other == pytest.approx(2 * ranking.MEAN)
    assert one - other == pytest.approx(400 * np.log10(75.5 / 25.5))


@pytest.mark.parametrize("seed", range(3))
def test_strengths_are_the_likeliest(seed):
    random = np.random.default_rng(seed)
    games = random.integers(1, 50, (4, 4))
    games = np.triu(games, 1) + np.triu(games, 1).T
    points = np.triu(random.uniform(size=(4, 4)) * games, 1)
    points += (np.triu(games, 1) - points).T * (np.tri(4, k=-1) > 0)
    met = games > 0

    def loss(strength: np.ndarray) -> float:
        gap = strength[:, None] - strength[None]
        return (
            np.sum(np.where(met, (points + 0.5) * np.logaddexp(0, -gap), 0)) + strength.sum() ** 2
        )

    best = minimize(loss, np.zeros(4), tol=1e-12).x
    expected = ranking.MEAN + ranking.SCALE * (best - best.mean())
    np.testing.assert_allclose(ranking.elo(points, games), expected, atol=0.05)


def test_whoever_wins_all_has_a_limit_and_an_interval(few_resamples):
    results = {(0, 1): np.ones(40), (0, 2): np.ones(40), (1, 2): np.array([0.5] * 40)}
    strength = ranking.elo(*ranking.sum_points(results, 3))
    assert np.isfinite(strength).all()
    assert strength[0] > strength[1] == pytest.approx(strength[2])
    mixed = results | {(1, 2): np.array([1.0, 0.0] * 20)}
    low, high = ranking.intervals(mixed, 3)
    strengths = ranking.elo(*ranking.sum_points(mixed, 3))
    assert (low <= strengths).all()
    assert (strengths <= high).all()
    assert high[1] > low[1]
    assert low[0] < strengths[0] - 100  # of 40 games won, nine of ten may be as likely
    assert high[0] > strengths[0] + 100
    surer_low, _ = ranking.intervals({pair: np.repeat(x, 10) for pair, x in mixed.items()}, 3)
    assert surer_low[0] > low[0] + 100


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, -1])
def test_players_with_other_networks_and_algorithms_meet(order: int, few_resamples):
    """PPO begins or a DQN does: each way round another game is compiled."""
    run = untrained.two_snakes()
    dqn_config = PROGRAM.presets["dqn"].config
    assert isinstance(dqn_config, DQN)
    agent = replace(dqn_config.agent, capacity=1000)
    wider = replace(dqn_config.network, hidden=(4, 4))
    other = untrained.untrained_run(
        PROGRAM, replace(dqn_config, env=run.config.env, agent=agent, network=wider)
    )
    players = [
        Player(name, x.config, parameters(x.agents[0])) for name, x in (("a", run), ("b", other))
    ]
    results = ranking.play_matches(players[::order], 9, jax.random.key(0))
    assert list(results) == [(0, 1)]
    (points,) = results.values()
    assert points.shape == (10,)  # an even number
    assert set(points.tolist()) <= {0.0, 0.5, 1.0}
    ranking_table = ranking.table(["a", "b"], results)
    assert ranking_table.row_count == 2
    assert len(ranking_table.columns) == 5
    assert all(list(column.cells) for column in itertools.islice(ranking_table.columns, 3))


def test_a_player_is_named_as_its_folder_is():
    console = Console(width=100)
    with console.capture() as capture:
        console.print(ranking.table(["run[old]", "b"], {(0, 1): np.ones(10)}))
    assert capture.get().count("run[old]") == 2  # in its row, and as a heading


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "got 0 players"),
        (["two-snakes"], "got 1 player; give at least two"),
        (["nowhere", "nobody"], "two-snakes), or a run directory"),
        (["snake-10x10", "snake-10x10"], "expected players of train.two_snake"),
        (["a", "b", "--games", "0"], "games is 0"),
    ],
)
def test_who_cannot_play_is_refused(arguments, message, capfd):
    assert ranking.main(arguments) == 2
    assert message in " ".join(capfd.readouterr().err.split())


def test_players_of_other_boards_cannot_meet(monkeypatch):
    run = untrained.two_snakes()
    larger = replace(run.config, env=replace(run.config.env, rows=8))
    configs = {"a": run.config, "b": larger}
    monkeypatch.setattr(trained, "load_all", lambda name, best: [Player(name, configs[name], ())])
    with pytest.raises(ranking.UsageError, match="b has another board than a"):
        ranking.load_players(ranking.Options(("a", "b")))


def test_each_seed_of_a_run_is_a_player(monkeypatch):
    run = untrained.two_snakes()
    settings = replace(run.config.run, seed=3, num_seeds=2)
    agents = [run.agents[0], jax.tree.map(lambda x: x + 1, run.agents[0])]
    seeds = run._replace(config=replace(run.config, run=settings), agents=agents)
    monkeypatch.setattr(trained.saved_policies, "load_source", lambda name, best: seeds)
    players = ranking.load_players(ranking.Options(("duel",)))
    assert [player.name for player in players] == ["duel, seed 3", "duel, seed 4"]
    for player, agent in zip(players, agents, strict=True):
        chex.assert_trees_all_equal(player.learned, parameters(agent))
    assert trained.load("duel").name == "duel, seed 3"
