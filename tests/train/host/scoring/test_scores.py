"""Scores of games: which measure, and how long a game may last."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from jaxrl.evaluate import Episodes
from jaxrl.types import Agent
from tests.train import tiny
from train.host.compilation import compiled, memory
from train.host.errors import UsageError
from train.host.scoring import games, limits, scores
from train.host.scoring.games import GamesEvaluation
from train.host.training import Score, Training


class Params(NamedTuple):
    max_steps_in_episode: int


PLAYER = Agent(
    init=lambda key, obs: (),
    memory=lambda: (),
    act=lambda state, memory, obs, key: (jnp.float32(0), (), ()),
    update=lambda state, rollout, key: (state, {}),
)
ALONE = ([()], [0], [jax.random.key(3)])


def training_of(evaluation: GamesEvaluation) -> Training:
    nothing: Any = lambda *arguments: None
    return Training(nothing, nothing, steps_per_update=1, **evaluation.fields)


@pytest.mark.slow
def test_the_score_of_a_training_is_that_of_its_evaluation():
    right = games.of_player(tiny.Walk(), Params(20), PLAYER, 3, score=Score("right"))
    assert training_of(right).evaluate(*ALONE).content["score"] == "right"
    usual = games.of_player(tiny.Walk(), Params(20), PLAYER, 3)
    assert training_of(usual).evaluate(*ALONE).content["score"] == "return"


def test_who_plays_for_a_score_also_acts_and_plays_while_training():
    evaluation = games.of_player(tiny.Walk(), Params(20), PLAYER, 3, score=Score("right"))
    training = training_of(evaluation)
    assert (training.evaluate, training.score) == (evaluation, Score("right"))
    assert training.player is not None
    assert training.player.agent is PLAYER
    assert training.games is not None
    played = jax.eval_shape(training.games(5), (), jax.random.key(0))
    assert played.length.shape == (5, 1)


@pytest.mark.parametrize(("limit", "text"), [(None, None), (1, "3 of 3 games not finished within")])
def test_games_that_were_not_finished_are_reported(limit: int | None, text: str | None):
    """A walk that ends at ±4, by steps of at most 2, takes more than one step from between ±1."""
    evaluate = games.of_player(tiny.Walk(), Params(20), PLAYER, 3, limit)
    evaluation = evaluate(*ALONE)
    missing = 0 if limit is None else 3
    (row,) = evaluation.content["seeds"]
    assert (row["games"], row["incomplete"]) == (3 - missing, missing)
    assert np.isfinite(row["return"]["mean"] or 0.0)
    console = Console(width=100)
    with console.capture() as printed:
        console.print(evaluation.table)
    assert ("not finished" in printed.get()) == bool(missing)
    if text:
        assert f"{text} 1 step" in " ".join(printed.get().split())


def test_games_whose_return_is_not_finite_have_no_score():
    """Six games: one was not finished, NaN and infinity were paid in two, three are left."""
    returns = np.array([1.0, np.nan, 2.0, np.inf, 6.0, 0.0], np.float32)[:, None]
    complete = np.arange(6)[:, None] < 5
    episodes = Episodes(
        return_=jnp.asarray(returns),
        length=jnp.arange(6)[:, None],
        terminated=jnp.asarray(complete),
        truncated=jnp.asarray(~complete),
        outcome={},
        complete=jnp.asarray(complete),
    )
    content = games.evaluation_content([0], games.GameResults([episodes], 0.0, 0.0), "return")
    (row,) = content["seeds"]
    assert [row[name] for name in ("games", "incomplete", "nonfinite")] == [3, 1, 2]
    assert (row["return"]["mean"], row["return"]["max"], row["steps"]) == (3.0, 6.0, 0 + 2 + 4)
    assert scores.missing_score_note(content) == (
        "1 of 6 games not finished: they have no score; "
        "2 of 6 games had a return that is not finite: they have no score"
    )
    assert games.best_game(episodes.return_, episodes) == 4
    fine = jax.tree.map(lambda x: x[::2], episodes)
    assert "nonfinite" not in scores.summaries(fine)


class Wrapped(NamedTuple):
    env: Params


@pytest.mark.parametrize(
    ("params", "chosen", "most"),
    [
        ((), None, 10_000),  # no time limit
        (Params(2**30), None, 10_000),
        (Params(float("inf")), None, 10_000),  # pyright: ignore
        ((), 12, 12),
        (Params(float("inf")), 12, 12),  # pyright: ignore
        (Params(500), None, 500),
        (Params(500), 12, 12),
        (Params(500), 1_000, 500),  # it ends by then
        (Wrapped(Params(500)), None, 500),
        (Params(10**9), None, 100_000),
        (Params(10**9), 10**6, 10**6),
    ],
)
def test_every_game_for_a_score_ends(params, chosen: int | None, most: int):
    assert limits.most_steps(limits.time_limit(params), chosen) == most
    if chosen is None:
        assert games.of_player(tiny.Walk(), params, PLAYER, 3).match.limit == most


@pytest.mark.parametrize("text", ["", "[]", "{", '{"seeds": 3}', "[" * 5_000, "\udc80"])
def test_a_file_that_no_evaluation_has_written_is_refused(text: str, tmp_path: Path):
    assert scores.read_evaluation(tmp_path) is None
    (tmp_path / "eval.json").write_text(text, errors="surrogateescape")
    with pytest.raises(UsageError, match="is not an evaluation") as refused:
        scores.read_evaluation(tmp_path)
    assert "\n" not in str(refused.value)


def test_cpus_need_their_parts_of_a_program_in_the_same_memory(monkeypatch):
    monkeypatch.setattr(memory, "program_bytes", lambda compiled: 600)
    monkeypatch.setattr(memory, "free_bytes", lambda: 1_000)
    program = jax.make_jaxpr(jax.numpy.sin)(1.0).jaxpr
    memory.refuse_compiled(None, program, tiny.Config(), devices=1)
    with pytest.raises(UsageError, match=r"needs 1\.2 kB of memory and 1 kB are free"):
        memory.refuse_compiled(None, program, tiny.Config(), devices=2)


def test_more_games_than_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 1_000)
    evaluate = games.of_player(tiny.Walk(), Params(20), PLAYER, 3)
    with pytest.raises(UsageError, match="play fewer games"):
        evaluate([()], [0], [jax.random.key(0)])


def test_no_evaluation_has_the_keys_of_a_seed_and_its_training():
    seeds = list(range(4))
    data = lambda keys: {tuple(jax.random.key_data(x).tolist()) for x in keys}
    for root in seeds:
        for seed, key in zip(seeds, scores.evaluation_keys(root, seeds), strict=True):
            own = compiled.keys_of(seed)
            training_keys = [*own, *(x for k in own for x in jax.random.split(k, 8))]
            assert not data([key]) & data(training_keys)
    assert len(data(key for root in seeds for key in scores.evaluation_keys(root, seeds))) == 16
