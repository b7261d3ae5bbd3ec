"""The best policy of a run: scored on games of its own, kept, never changed by a resume."""

import dataclasses
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from jaxrl import checkpoint
from tests.train import tiny
from tests.train.host import descent
from train.host.command_line.command import main
from train.host.compilation import memory
from train.host.errors import REFUSED, Interrupted, UsageError
from train.host.files import metrics_file, policy_files
from train.host.files.run_directory import RunDirectory
from train.host.running import saved_policies, saved_runs
from train.host.running.run import run
from train.host.scoring import best
from train.host.training import Score
from train.policies import compiled, export

EVERY, CHUNKS = 2, 10
LENGTH = 2  # updates of a chunk


def configure(directory: Path, **changes) -> tiny.Config:
    preset = tiny.PRESETS["plain"].config
    about = {"evaluate_every": EVERY, "evaluate_games": 9, "evaluation_games": 0}
    about |= {"directory": str(directory)} if "resume" not in changes else {}
    agent = dataclasses.replace(preset.agent, learning_rate=0.1)
    settings = dataclasses.replace(preset.run, **(about | changes))
    return dataclasses.replace(preset, agent=agent, run=settings)


def train(directory: Path, **changes):
    config = configure(directory, **changes)
    return run(tiny.make_training(config), config, tiny.PROGRAM.address, "plain")


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("best") / "run"
    train(directory, num_seeds=2)
    return directory


def scores_of(directory: Path, seed: int) -> dict[int, float]:
    """The scores in the record, by the number of updates."""
    rows = [row for row in metrics_file.read_metrics(directory) if row["seed"] == seed]
    return {row["updates"]: row["evaluated"]["mean"] for row in rows if "evaluated" in row}


def interrupt_games(monkeypatch, course: list[bool]) -> None:
    """Sends a signal while games are played, as the course says; never after its end."""
    play, is_interrupted = best.CompiledMatch.play, iter(course)

    def press_ctrl_c(self, player, key, between):
        if next(is_interrupted, False):
            os.kill(os.getpid(), signal.SIGINT)
            between(1)
        return play(self, player, key, between)

    monkeypatch.setattr(best.CompiledMatch, "play", press_ctrl_c)


def read_best(directory: Path) -> best.BestPolicies:
    state = saved_runs.load(directory)
    return best.read(RunDirectory(directory).best, state.state.agent, state.config.run.members)


def test_scores_are_recorded_when_they_are_due(finished_run):
    rows = metrics_file.read_metrics(finished_run)
    assert len(rows) == 2 * CHUNKS
    for seed in (0, 1):
        assert list(scores_of(finished_run, seed)) == [4, 8, 12, 16, 20]
    evaluated = [row["evaluated"] for row in rows if "evaluated" in row]
    assert all(row["games"] == 9 and row["low"] <= row["mean"] <= row["high"] for row in evaluated)


def test_the_best_of_each_seed_is_kept_as_it_was(finished_run, tmp_path):
    policies = read_best(finished_run)
    for s, seed in enumerate((0, 1)):
        scores = scores_of(finished_run, seed)
        assert policies.scores[s] == max(scores.values())
        assert policies.updates[s] == next(n for n, x in scores.items() if x == policies.scores[s])
        steps = policies.updates[s] * tiny.PER_UPDATE
        rerun = train(tmp_path / str(seed), num_seeds=2, total_steps=steps)
        for name, x in policy_files.parameters(rerun.state.agent).items():
            np.testing.assert_array_equal(policies.arrays[name][s], x[s])


def test_a_score_is_that_of_games_played_by_themselves(finished_run):
    config = configure(finished_run)
    training = tiny.make_training(config)
    policies, members = (
        read_best(finished_run),
        dataclasses.replace(config.run, num_seeds=2).members,
    )
    for s in (0, 1):
        chosen = saved_runs.load(finished_run, best=True).agents[s]
        key = best.keys(members, policies.updates[s])[s]
        assert training.games is not None
        games = jax.jit(training.games(9))(chosen, key)  # pyright: ignore[reportOptionalCall]
        assert float(games.outcome["right"].mean()) == pytest.approx(policies.scores[s])


def test_the_games_do_not_change_what_is_learned(finished_run, tmp_path):
    plain = train(tmp_path / "plain", num_seeds=2, evaluate_every=0)
    state = saved_runs.load(finished_run).state
    for x, y in zip(jax.tree.leaves(plain.state), jax.tree.leaves(state), strict=True):
        if not jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key):
            np.testing.assert_array_equal(x, y)


@pytest.mark.slow
def test_an_interrupted_run_keeps_the_same(finished_run, tmp_path):
    directory = tmp_path / "run"
    train(directory, num_seeds=2, total_steps=14 * tiny.PER_UPDATE)  # two chunks after a score
    train(directory, num_seeds=2, resume=str(directory))
    one, other = read_best(finished_run), read_best(directory)
    assert (one.scores, one.updates) == (other.scores, other.updates)
    for name in one.arrays:
        np.testing.assert_array_equal(one.arrays[name], other.arrays[name])
    for seed in (0, 1):
        assert scores_of(finished_run, seed) == scores_of(directory, seed)


@pytest.mark.slow
def test_patience_ends_a_run_that_no_longer_improves(tmp_path, monkeypatch):
    course = iter([0.5, 0.7, 0.6, 0.7, 0.9])
    score = lambda episodes: {"games": 9, "right": {"mean": next(course)}}
    monkeypatch.setattr(best, "summaries", score)
    directory = tmp_path / "run"
    result = train(directory, patience=2)
    assert result.updates == 4 * EVERY * LENGTH  # 0.6 and 0.7 are not better than 0.7
    meta = checkpoint.read_meta(RunDirectory(directory).best)
    assert (meta["scores"], meta["updates"]) == ([0.7], [2 * EVERY * LENGTH])
    assert train(directory, patience=2, resume=str(directory)).updates == result.updates
    assert train(directory, patience=3, resume=str(directory)).updates == CHUNKS * LENGTH


@pytest.mark.slow
def test_a_run_that_patience_ends_when_it_is_resumed_has_ended(tmp_path, monkeypatch):
    """A signal came while the games were played after which it ends."""
    course, directory = iter([0.5, 0.4, 0.3]), tmp_path / "run"
    score = lambda episodes: {"games": 9, "right": {"mean": next(course)}}
    monkeypatch.setattr(best, "summaries", score)
    interrupt_games(monkeypatch, [False, False, True])
    with pytest.raises(Interrupted):
        train(directory, patience=2)
    for _ in range(2):
        result = train(directory, patience=2, resume=str(directory))
        assert result.updates == 3 * EVERY * LENGTH
        assert scores_of(directory, 0) == {4: 0.5, 8: 0.4, 12: 0.3}


def test_a_small_score_can_be_the_better_one(tmp_path):
    policies = best.BestPolicies({}, [None], [0])
    for lower, better_score in ((True, 0.2), (False, 0.8)):
        match: Any = None
        one = best.BestTracker(
            tmp_path, tiny.PRESETS["plain"].config.run.members, Score("x", lower), match, policies
        )
        assert one.is_better(better_score, 0.5)
        assert not one.is_better(1 - better_score, 0.5)
        assert one.is_better(0.5, None)
        assert not one.is_better(None, None)


def test_the_best_is_evaluated_and_exported(finished_run, tmp_path, capsys):
    from train import evaluate

    assert evaluate.main([str(finished_run), "--best", "--games", "30"]) == 0
    output = capsys.readouterr().out
    assert output.count("when it was chosen") == 2
    assert (RunDirectory(finished_run).best / "eval.json").is_file()
    path = export.export(finished_run, tmp_path / "policy", seed=1, best=True)
    assert policy_files.read_metadata(path)["updates"] == read_best(finished_run).updates[1]
    (agent,) = saved_policies.as_run(path).agents
    chosen = saved_runs.load(finished_run, best=True).agents[1]
    for name, x in policy_files.parameters(chosen).items():
        np.testing.assert_array_equal(x, policy_files.parameters(agent)[name])


def test_each_seed_has_learned_from_the_updates_that_its_best_policy_says(
    finished_run, tmp_path, monkeypatch
):
    directory = RunDirectory(Path(shutil.copytree(finished_run, tmp_path / "run")))
    arrays, meta = read_best(finished_run).arrays, checkpoint.read_meta(directory.best)
    checkpoint.save(directory.best, 4, arrays, meta | {"updates": [2, 4]}, keep=1)
    monkeypatch.setattr(compiled, "compile_policy", lambda run: (b"", {"updates": run.updates}))
    for seed, updates in enumerate((2, 4)):
        out = str(tmp_path / f"{seed}.jax")
        flags = [str(directory), "--best", f"--seed={seed}", "--out", out]
        assert export.main(["compile", *flags]) == 0
        assert json.loads((tmp_path / f"{seed}.json").read_text()) == {"updates": updates}


class TestRefusals:
    def test_without_a_best_policy(self, tmp_path):
        train(tmp_path / "run", evaluate_every=0)
        with pytest.raises(UsageError, match="evaluate-every"):
            saved_runs.load(tmp_path / "run", best=True)

    def test_of_a_run_without_games(self, tmp_path):
        """Which has no flag for scores while it trains."""
        directory, name = RunDirectory(tmp_path), "tests.train.host.descent"
        directory.write_config(name, "bowl", descent.Config())
        with pytest.raises(UsageError, match="no best policies, as descent plays no games while"):
            saved_runs.load(tmp_path, best=True)
        with pytest.raises(UsageError, match=f"has no checkpoint: .* --resume {tmp_path}"):
            saved_runs.load(tmp_path)

    def test_of_a_program_without_games(self, tmp_path):
        config = configure(tmp_path / "run")
        training = tiny.make_training(config)
        object.__setattr__(training, "games", None)
        with pytest.raises(UsageError, match="plays no games"):
            run(training, config, tiny.PROGRAM.address, "plain")

    def test_of_more_games_than_fit(self, tmp_path, monkeypatch):
        monkeypatch.setattr(memory, "fits", lambda needed: False)
        config = configure(tmp_path)
        training = tiny.make_training(config)
        agents = jax.eval_shape(training.init, jax.random.key(0)).agent
        with pytest.raises(UsageError, match="play fewer games"):
            best.make(training, config.run, config.run.members, tmp_path, agents)

    @pytest.mark.parametrize("flags", [["--run.patience=3"], ["--run.evaluate-games=5"]])
    def test_of_flags_without_effect(self, flags, tmp_path, capsys):
        assert main(tiny.PROGRAM, ["plain", *flags, f"--run.directory={tmp_path}/x"]) == REFUSED
        assert "evaluate-every" in capsys.readouterr().err.replace("_", "-")


@pytest.mark.slow
def test_a_policy_that_was_found_meanwhile_is_not_taken_for_the_one_that_was_scored(tmp_path):
    """The run went on: its second seed is better after 8 updates than what was scored, after 4."""
    meta = {"score": "right", "lower": False, "scores": [0.5, 0.75], "updates": [4, 2]}
    rows = [{"seed": 0, "right": {"mean": 0.25}}, {"seed": 1, "right": {"mean": 0.5}}]
    fresh = {"score": "right", "updates": 4, "seeds": rows}
    checkpoint.save(tmp_path, 4, {}, meta)
    assert [x.split(":")[0] for x in best.selection_bias_report(tmp_path, fresh)] == [
        "seed 0",
        "seed 1",
    ]
    checkpoint.save(tmp_path, 8, {}, meta | {"scores": [0.5, 1.0], "updates": [4, 8]})
    (line,) = best.selection_bias_report(tmp_path, fresh)
    assert line == f"{tmp_path} holds a better policy by now: start again to score that one"


@pytest.mark.slow
def test_a_signal_while_games_are_played_loses_no_chunk(finished_run, tmp_path, monkeypatch):
    """The rows are written without the score, which is played again when the run goes on."""
    directory = tmp_path / "run"
    interrupt_games(monkeypatch, [False, True])  # the second score of five is interrupted
    with pytest.raises(Interrupted, match=f"stopped after {8 * tiny.PER_UPDATE} of"):
        train(directory, num_seeds=2)
    assert list(scores_of(directory, 0)) == [4]
    assert metrics_file.read_metrics(directory)[-1]["updates"] == 8
    assert checkpoint.steps(directory / "checkpoints")[-1] == 8
    train(directory, num_seeds=2, resume=str(directory))
    assert [row["updates"] for row in metrics_file.read_metrics(directory)[::2]] == [
        *range(LENGTH, LENGTH * CHUNKS + 1, LENGTH)
    ]
    for seed in (0, 1):
        assert scores_of(finished_run, seed) == scores_of(directory, seed)
    assert read_best(finished_run).updates == read_best(directory).updates


def test_scores_that_would_come_after_the_end_are_told(tmp_path, caplog):
    config = configure(tmp_path, evaluate_every=CHUNKS + 1)
    agents: Any = None
    parts = tiny.make_training(config), config.run, config.run.members, tmp_path
    assert best.make(*parts, agents) is None
    assert "--run.evaluate-every 11 is in chunks, and the run has 10" in caplog.text


def test_games_without_an_end_are_told(tmp_path, monkeypatch, capsys):
    nobody = lambda episodes: {"games": 0, "right": {"mean": None}}
    monkeypatch.setattr(best, "summaries", nobody)
    result = train(tmp_path / "run", patience=2)
    assert result.updates == 2 * EVERY * LENGTH
    line = "no game while training was finished with a finite return"
    out = capsys.readouterr().out
    assert f"{line}, in 2 evaluations" in out
    assert f"{line}: no policy is kept in best/" in out
    with pytest.raises(UsageError, match="once a game for a score is finished"):
        saved_runs.load(tmp_path / "run", best=True)


def test_several_processes_keep_what_the_first_one_scored(finished_run, tmp_path, monkeypatch):
    """Each plays the same games, but a machine of another kind may round otherwise."""
    agents = saved_runs.load(finished_run).state.agent
    config = configure(tmp_path, num_seeds=2)
    settings, training = config.run, tiny.make_training(config)
    tracker = best.make(training, settings, settings.members, tmp_path / "best", agents)
    assert tracker is not None
    of_the_first = [{"games": 9, "mean": mean, "low": 0.0, "high": 1.0} for mean in (0.25, None)]
    monkeypatch.setattr(best.distributed, "is_alone", lambda: False)
    monkeypatch.setattr(best.distributed, "broadcast_text", lambda text: json.dumps(of_the_first))
    assert tracker.evaluate(agents, 4, lambda step: None) == of_the_first
    assert tracker.policies is not None
    assert tracker.policies.scores == [0.25, None]
