"""A sweep trains each member as a run of its own would, keeps what it has, and chooses honestly."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jaxrl import checkpoint
from tests.train import tiny
from tests.train.host.crashes import timeless_rows
from tests.train.sweep.tiny_sweep import EPISODES, RATES, VARY, arguments, sweep, table
from train.host.compilation import compiled
from train.host.errors import INTERRUPTED, REFUSED, UsageError
from train.host.files import metrics_file
from train.host.machine import signals
from train.host.running import saved_runs
from train.host.running.run import run
from train.host.training import Score
from train.policies import export
from train.sweep import __main__ as command
from train.sweep import batches, files
from train.sweep.sweep import Sweep


@pytest.fixture(scope="module")
def finished_sweep(tmp_path_factory) -> Path:
    """Two rates of two seeds, and a size that needs a program of its own."""
    directory = tmp_path_factory.mktemp("sweep") / "finished"
    assert sweep(directory, "--vary", VARY, "--vary", "agent.replay=3,7") == 0
    return directory


class TestMembers:
    def test_each_member_is_trained_as_a_run_of_its_own(self, finished_sweep, tmp_path):
        for row in table(finished_sweep)[::3]:
            preset = tiny.PRESETS["plain"].config
            agent = dataclasses.replace(
                preset.agent,
                learning_rate=float(row["agent.learning_rate"]),
                replay=int(row["agent.replay"]),
            )
            alone = dataclasses.replace(
                preset,
                agent=agent,
                run=dataclasses.replace(
                    preset.run,
                    seed=int(row["seed"]),
                    max_episodes=EPISODES,
                    directory=str(tmp_path / row["member"]),
                ),
            )
            result = run(tiny.make_training(alone), alone, tiny.PROGRAM.address, "plain")
            assert result.evaluation is not None
            score = result.evaluation.content["seeds"][0]["right"]["mean"]
            assert float(row["score"]) == pytest.approx(score)
            losses = [x["agent"]["loss"] for x in metrics_file.read_metrics(result.directory)]
            sweep_losses = [
                x["agent"]["loss"]
                for path in (finished_sweep / "batches").iterdir()
                for x in metrics_file.read_metrics(path)
                if x["member"] == int(row["member"])
            ]
            # numbers are traced in float32 here, and constants of the compiler there
            np.testing.assert_allclose(sweep_losses, losses, rtol=1e-4)
            assert int(row["updates"]) == result.updates
        assert len({row["updates"] for row in table(finished_sweep)}) > 1

    @pytest.mark.slow
    def test_each_member_begins_with_the_policy_that_a_run_begins_with(
        self, finished_sweep, tmp_path
    ):
        policy = export.export(finished_sweep / "best", tmp_path / "p.safetensors")
        begun = ["--run.policy", str(policy), "--vary", VARY]
        assert sweep(tmp_path / "s", *begun, "--seeds=1", "--confirm=0") == 0
        preset = tiny.PRESETS["plain"].config
        settings = dataclasses.replace(
            preset.run,
            policy=str(policy),
            max_episodes=EPISODES,
            directory=str(tmp_path / "alone"),
        )
        agent = dataclasses.replace(preset.agent, learning_rate=float(RATES[1]))
        alone = dataclasses.replace(preset, agent=agent, run=settings)
        result = run(tiny.make_training(alone), alone, tiny.PROGRAM.address, "plain")
        losses = [x["agent"]["loss"] for x in metrics_file.read_metrics(result.directory)]
        rows = metrics_file.read_metrics(tmp_path / "s" / "batches" / "000")
        sweep_losses = [x["agent"]["loss"] for x in rows if x["member"] == 1]
        np.testing.assert_allclose(sweep_losses, losses, rtol=1e-4)
        random, *_ = metrics_file.read_metrics(finished_sweep / "best")
        assert abs(losses[0] - random["agent"]["loss"]) > 1e-3

    def test_numbers_share_a_program_and_sizes_have_their_own(self, finished_sweep):
        plan = files.read_plan(finished_sweep)
        rows = table(finished_sweep)
        sizes = [{rows[i]["agent.replay"] for i in batch} for batch in plan["batches"]]
        assert sizes == [{"3"}, {"7"}]
        assert [len(batch) for batch in plan["batches"]] == [4, 4]

    @pytest.mark.slow
    def test_one_compilation_serves_all_members(self, monkeypatch, tmp_path):
        traces = []
        make = tiny.make_training

        def make_counted(config: tiny.Config):
            training = make(config)

            def update(state):
                traces.append(1)
                return training.update(state)

            return training._replace(update=update)

        monkeypatch.setattr(tiny, "PROGRAM", tiny.PROGRAM._replace(training=make_counted))
        rates = ",".join(str(0.001 * i) for i in range(1, 9))
        assert sweep(tmp_path / "s", "--vary", f"agent.learning_rate={rates}", "--confirm=0") == 0
        few = len(traces)
        traces.clear()
        assert sweep(tmp_path / "t", "--vary", VARY, "--confirm=0") == 0
        assert few == len(traces)

    @pytest.mark.slow
    def test_a_member_that_fails_leaves_the_others_alone(self, tmp_path, finished_sweep):
        rates = f"{RATES[0]},inf"  # and a rate that is refused is refused before anything else
        assert sweep(tmp_path / "bad", "--vary", f"agent.learning_rate={rates}") == REFUSED
        poison = "--vary=agent.poison=-1,inf"
        assert sweep(tmp_path / "s", poison, "--agent.learning-rate", RATES[0]) == 0
        rows = table(tmp_path / "s")
        assert [row["state"] for row in rows] == ["done", "done", "failed", "failed"]
        healthy = [x for x in table(finished_sweep) if x["agent.learning_rate"] == RATES[0]]
        healthy = [x for x in healthy if x["agent.replay"] == "7"]
        assert [x["score"] for x in rows[:2]] == [x["score"] for x in healthy]

    @pytest.mark.slow
    def test_batches_that_fit_give_the_same_scores(self, finished_sweep, tmp_path, monkeypatch):
        monkeypatch.setattr(batches, "max_members", lambda program, group: 3)
        assert sweep(tmp_path / "s", "--vary", VARY) == 0
        plan = files.read_plan(tmp_path / "s")
        assert [len(batch) for batch in plan["batches"]] == [2, 2]
        one = [row["score"] for row in table(finished_sweep) if row["agent.replay"] == "7"]
        assert [row["score"] for row in table(tmp_path / "s")] == one


class TestFiles:
    def test_who_gives_a_sweep_as_a_run_is_told_of_its_best(self, finished_sweep, tmp_path):
        best = str(finished_sweep / "best")
        with pytest.raises(UsageError, match=rf"is a sweep, not a run: give {re.escape(best)}, "):
            saved_runs.load(finished_sweep)
        shutil.copy(finished_sweep / files.PLAN, tmp_path)
        with pytest.raises(UsageError, match="best member will be in "):
            saved_runs.load(tmp_path)

    def test_the_best_is_a_run_like_any_other(self, finished_sweep):
        rows = table(finished_sweep)
        best = saved_runs.load(finished_sweep / "best")
        chosen = max(rows, key=lambda row: float(row["score"]))
        assert best.config.agent.learning_rate == float(chosen["agent.learning_rate"])
        assert best.config.run.seed == int(chosen["seed"])
        key = compiled.keys_of(best.config.run.seed)[1]
        training = best.program.training(best.config)
        evaluation = training.evaluate(best.agents, best.seeds, [key]).content["seeds"][0]
        assert evaluation["right"]["mean"] == pytest.approx(float(chosen["score"]))
        steps = [row["steps"] for row in metrics_file.read_metrics(best.directory)]
        assert steps[-1] == tiny.PER_UPDATE * best.updates
        assert best.updates == int(chosen["updates"])

    def test_fresh_seeds_confirm_what_was_chosen(self, finished_sweep):
        content = json.loads((finished_sweep / files.CONFIRMED).read_text())
        assert content["fresh"]["seeds"] == [2, 3]
        assert content["chosen"]["seeds"] == [0, 1]
        summary = json.loads((finished_sweep / files.SUMMARY).read_text())
        assert content["configuration"] == summary["configurations"][0]["index"]

    def test_a_sweep_that_has_ended_is_left_as_it_is(self, finished_sweep, tmp_path, monkeypatch):
        """Its best run may have been trained further, and there may be less memory now."""
        directory = Path(shutil.copytree(finished_sweep, tmp_path / "s"))
        config = directory / "best" / "config.yaml"
        config.write_text(config.read_text() + "# mine\n")
        monkeypatch.setattr(batches, "max_members", lambda program, group: 1)
        assert command.main(["--resume", str(directory)]) == 0
        assert config.read_text().endswith("# mine\n")
        names = sorted(path.name for path in (directory / "confirmation").iterdir())
        assert names == ["000", "batches.json"]
        confirmed = [(x / files.CONFIRMED).read_bytes() for x in (directory, finished_sweep)]
        assert confirmed[0] == confirmed[1]

    def test_a_damaged_batch_is_named(self, finished_sweep, tmp_path, capsys):
        directory = Path(shutil.copytree(finished_sweep, tmp_path / "s"))
        batch = files.batch(directory, 0)
        (batch / files.SCORES).unlink()
        for path in (batch / "checkpoints").glob("*/state.npz"):
            os.truncate(path, 100)
        assert command.main(["--resume", str(directory)]) == REFUSED
        assert f"delete {batch} to train this batch again\n" in capsys.readouterr().err

    @pytest.mark.slow
    def test_an_interrupted_sweep_continues_exactly(self, finished_sweep, tmp_path, monkeypatch):
        directory = tmp_path / "s"
        flags = ("--vary", VARY, "--vary", "agent.replay=3,7")
        stop_requests = iter([False] * 14 + [True] + [False] * 1000)
        monkeypatch.setattr(
            signals.StopRequest,
            "requested",
            property(lambda self: next(stop_requests), lambda self, value: None),
            raising=False,
        )
        assert sweep(directory, *flags) == INTERRUPTED
        assert any(row["state"] == "" for row in table(directory))
        assert command.main(["--resume", str(directory)]) == 0
        assert table(directory) == table(finished_sweep)
        for i in range(2):
            one, other = (files.batch(x, i) for x in (directory, finished_sweep))
            assert timeless_rows(one) == timeless_rows(other)

    @pytest.mark.slow
    def test_members_that_came_out_identical_are_pointed_out(self, tmp_path, capsys):
        assert sweep(tmp_path / "s", "--vary", "agent.burn=0,1", "--confirm=0") == 0
        assert "agent.burn (0, 1) had no effect" in capsys.readouterr().out


@pytest.mark.slow
def test_each_batch_takes_as_many_devices_as_divide_its_members(finished_sweep, tmp_path):
    """Two of two for a batch of four members, and one of two for a confirmation on three seeds."""
    directory, flags = tmp_path / "s", ["--devices", "2", "--confirm", "3", "--vary", VARY]
    process = subprocess.run(
        [sys.executable, "-m", "train.sweep", *arguments(directory, *flags)],
        cwd=Path(__file__).resolve().parents[3],
        env=os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    for name, count in (("batches", 2), ("confirmation", 1)):
        assert checkpoint.read_meta(directory / name / "000" / "checkpoints")["devices"] == count
    alone = [row["score"] for row in table(finished_sweep) if row["agent.replay"] == "7"]
    scores = [float(row["score"]) for row in table(directory)]
    assert scores == pytest.approx([float(score) for score in alone], rel=1e-5)
    assert saved_runs.load(directory / "best").config.run.devices == "auto"


@pytest.mark.slow
def test_a_sweep_goes_on_where_there_are_fewer_devices(finished_sweep, tmp_path):
    """It was begun on more than there are here, and a sweep that is resumed takes no flags."""
    directory = tmp_path / "s"
    shutil.copytree(finished_sweep, directory)
    shutil.rmtree(directory / "batches" / "001")
    plan_path = directory / files.PLAN
    plan_path.write_text(plan_path.read_text().replace("devices: auto", "devices: '4096'"))
    assert "4096" in plan_path.read_text()
    assert command.main(["--resume", str(directory)]) == 0
    assert table(directory) == table(finished_sweep)


@pytest.mark.parametrize(("evaluates", "name"), [(True, "r2_10"), (False, "log_likelihood")])
def test_fits_are_compared_by_what_their_evaluations_score(evaluates, name):
    """And by their training where there are none."""
    training = SimpleNamespace(score=Score("log_likelihood", evaluation="r2_10"))
    config = SimpleNamespace(run=SimpleNamespace(evaluates=evaluates))
    sweep: Any = SimpleNamespace(training=training, config=config)
    assert Sweep.score_name.fget(sweep) == name  # pyright: ignore[reportOptionalCall]
