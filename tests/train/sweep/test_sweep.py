"""A sweep trains each member as a run of its own would, keeps what it has, and chooses honestly."""

import csv
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
from train.host.compilation import compiled
from train.host.errors import INTERRUPTED, REFUSED, UsageError
from train.host.files import metrics_file
from train.host.machine import signals
from train.host.plain_config import rebuild, with_field
from train.host.program import find
from train.host.running import saved_runs
from train.host.running.run import run
from train.host.training import Score
from train.policies import export
from train.sweep import __main__ as command
from train.sweep import batches, build, files, plan
from train.sweep.options import Options, saved_options
from train.sweep.sweep import Sweep

RATES = ("0.005", "0.02")
EPISODES = 20
VARY = f"agent.learning_rate={','.join(RATES)}"


def arguments(directory: Path, *flags: str) -> list[str]:
    """What is typed for a small sweep, whose members end at different times."""
    always = ["--seeds", "2", "--run.max-episodes", str(EPISODES), "--directory", str(directory)]
    return ["tests.train.tiny", "plain", *always, *flags]


def sweep(directory: Path, *flags: str) -> int:
    return command.main(arguments(directory, *flags))


@pytest.fixture(scope="module")
def finished_sweep(tmp_path_factory) -> Path:
    """Two rates of two seeds, and a size that needs a program of its own."""
    directory = tmp_path_factory.mktemp("sweep") / "finished"
    assert sweep(directory, "--vary", VARY, "--vary", "agent.replay=3,7") == 0
    return directory


def table(directory: Path) -> list[dict[str, str]]:
    with (directory / files.TABLE).open() as file:
        return list(csv.DictReader(file))


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


class TestRandom:
    @pytest.mark.slow
    def test_draws_within_the_ranges_and_keeps_the_default(self, tmp_path):
        vary = ("--vary", "agent.learning_rate=log:1e-3..1e-1", "--random", "20", "--seeds", "1")
        assert sweep(tmp_path / "s", *vary, "--confirm=0") == 0
        rates = [float(row["agent.learning_rate"]) for row in table(tmp_path / "s")]
        assert rates[0] == tiny.PRESETS["plain"].config.agent.learning_rate
        assert all(1e-3 <= rate <= 1e-1 for rate in rates)
        assert len(set(rates)) == 21
        assert sum(rate < 1e-2 for rate in rates) in range(4, 17)  # 10 of 20; 0.3 % are outside


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--vary", "agent.nope=1"], "there is no field agent.nope"),
        (["--vary", "agent.learning_rate"], "expected FIELD=VALUE"),
        (["--vary", "agent.learning_rate=1,1"], "a value is there twice"),
        (["--vary", "agent.learning_rate=-1,1"], "--agent.learning-rate is -1.0"),
        (["--vary", "agent.learning_rate=0.1..0.2"], "--random"),
        (["--vary", "agent.learning_rate=0.2..0.1", "--random=2"], "LOW below HIGH"),
        (["--vary", "agent.learning_rate=.2..0.1", "--random=2"], "LOW below HIGH"),
        (["--vary", "agent.learning_rate=0.1..inf", "--random=2"], "a range has finite ends"),
        (["--vary", "agent.learning_rate=log:.1..inf", "--random=2"], "a range has finite ends"),
        (["--vary", "agent.learning_rate=log:0..1", "--random=2"], "begins above 0"),
        (
            ["--vary", "agent.replay=1..3", "--random=2"],
            "--vary agent.replay=1..3: whole numbers are listed, as agent.replay=4,16,64",
        ),
        (["--vary", "run.seed=1,2"], "fields of run"),
        (["--vary", VARY, "--vary", VARY], "varied twice"),
        (["--random", "3"], "give one"),
        (["--run.num-seeds", "3"], "--seeds"),
        (["--devices", "4096"], "--devices 4096: there are"),
        (["--run.log", "tensorboard"], "--run.log is for a single run: leave it out of a sweep"),
        (["--live"], "--live is for a single run: leave it out of a sweep"),
        (["--distributed=here:1,0,2"], "--distributed is for a single run: leave it out"),
        (
            ["--run.on-nonfinite=restore", "--vary", VARY],
            "--run.on-nonfinite restore is for a single run: leave it out of a sweep",
        ),
        (["--confirm=2"], "--confirm scores the best of several configurations again: leave"),
        (["--run.policy=snake-6x6"], "is a policy of snake, not of tests.train.tiny"),
        (
            ["--run.seed=2147483645", "--vary", VARY],
            "seeds must be below 2**31; 2 from --run.seed 2147483645 and 2 to confirm the best go "
            "up to 2147483648: choose a smaller one",
        ),
        (["--run.evaluation-greedy=3"], "--help"),
        (["--vary", "run.evaluation_greedy=on,off"], "fields of run"),
        (["--agent.nope", "3"], "--agent.nope"),
    ],
)
def test_bad_input_is_refused_in_one_line(flags, message, tmp_path, capsys):
    assert sweep(tmp_path / "s", *flags) == REFUSED
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "s").exists()


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


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "preset", "field", "right", "wrong"),
    [
        ("durotaxis", "linear", "env.threshold_nodes", (50.0, 60.0), 200.0),
        ("snake", "rainbow", "agent.value_low", (-10.0, -20.0), 200.0),
    ],
)
def test_every_configuration_is_refused_as_a_run_of_its_own(
    name, preset, field, right, wrong, place
):
    """What contradicts another field is refused wherever it stands among the values."""
    program = find(name, "here")
    config = program.presets[preset].config
    with pytest.raises(ValueError, match=r"expected") as alone:
        program.training(with_field(config, field, wrong))
    values = [*right[:place], wrong, *right[place:]]
    trials = plan.trials([{field: value} for value in values], [0, 1])
    with pytest.raises(UsageError) as refused:
        plan.groups(program, config, preset, trials)
    assert str(refused.value) == f"{field}={wrong:g}: {alone.value}"


@pytest.mark.parametrize(
    ("flags", "more"),
    [
        (["--seeds", "3"], "--seeds"),  # which is the default
        (["--vary", VARY, "--cluster=local"], "--vary"),
        (["--confirm=0"], "--confirm"),
        (["--random", "2"], "--random"),
        (["--directory", "x"], "--directory"),
        (["--agent.learning_rate=1"], "--agent.learning-rate"),
        (["here"], "here"),
    ],
)
def test_a_sweep_goes_on_as_it_began(flags, more, capsys):
    assert command.main(["--resume", "my sweep", *flags]) == REFUSED
    expected = "--resume 'my sweep' continues as it began, with nothing else but --cluster: leave"
    assert capsys.readouterr().err == f"{expected} out {more}\n"


def test_a_sweep_cannot_be_two(capsys):
    assert command.main(["--resume", "one", "--resume=other"]) == REFUSED
    assert "--resume is given twice, one and other; expected it once" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seeds"), [("allo", 10), ("snake", 1)])
def test_a_program_of_several_seeds_has_those_of_the_sweep(name, seeds, tmp_path):
    program = find(name, "here")
    assert next(iter(program.presets.values())).config.run.num_seeds == seeds
    options = Options(vary=["agent.learning_rate=1e-3,2e-3"], directory=str(tmp_path / "s"))
    new_sweep = build.begin(name, "", options, [])
    assert new_sweep.config.run.num_seeds == 1
    assert [trial.seed for trial in new_sweep.planned.trials] == [0, 1, 2] * 2


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("variation", "flags", "preset", "count"),
    [
        ("agent.learning_rate=1e-3,1e-4", ["--env.id", "Breakout-MinAtar"], "ppo_minatar", 1),
        ("agent.learning_rate=1e-3,1e-4", ["--env.id", "Acrobot-v1"], "ppo", 0),
        ("env.id=Breakout-MinAtar,Asterix-MinAtar", [], "ppo_minatar", 1),
        ("env.id=CartPole-v1,Acrobot-v1", [], "ppo", 0),
    ],
)
def test_members_have_the_preset_of_their_environment(variation, flags, preset, count, capsys):
    """A single run has the same preset, with the defaults that `--vary` leaves open."""
    program, options = find("gymnax", "here"), Options(vary=[variation])
    config, chosen, _ = build.read(program, "ppo", options, flags)
    assert chosen == preset
    assert config == dataclasses.replace(program.presets[preset].config, env=config.env)
    line = "gymnax: ppo for Breakout-MinAtar is the preset ppo_minatar\n"
    assert capsys.readouterr().out == count * line


def test_a_flag_may_need_the_environments_that_are_varied(tmp_path, capsys):
    """Convolutions are for images, which the default environment does not show."""
    variation = "env.id=Breakout-MinAtar,Asterix-MinAtar"
    flags = ["--network.channels", "4"]
    _, chosen, _ = build.read(find("gymnax", "here"), "", Options(vary=[variation]), flags)
    assert chosen == "ppo_minatar"
    vectors = ["--vary", "env.id=CartPole-v1,Acrobot-v1", "--directory", str(tmp_path / "s")]
    assert command.main(["gymnax", *vectors, *flags]) == REFUSED
    assert "--network.channels has no effect, as it needs images" in capsys.readouterr().err


def test_environments_of_several_presets_are_not_varied_together(tmp_path, capsys):
    vary = ["--vary", "env.id=CartPole-v1,Breakout-MinAtar", "--directory", str(tmp_path / "s")]
    assert command.main(["gymnax", "ppo", *vary]) == REFUSED
    assert capsys.readouterr().err == (
        "--vary needs different presets, ppo for CartPole-v1, ppo_minatar for Breakout-MinAtar: "
        "sweep each of them by itself\n"
    )
    assert not (tmp_path / "s").exists()


@pytest.mark.slow
@pytest.mark.parametrize("choices", ["on,off", "True,false"])
def test_a_switch_is_on_or_off(choices, tmp_path):
    vary = [f"agent.standardise={choices}"]
    new_sweep = build.begin("snake", "", Options(vary, directory=str(tmp_path / "s")), [])
    switches = [group.config.agent.standardise for group in new_sweep.planned.groups]
    assert switches == [True, False]
    with pytest.raises(UsageError, match="a switch is on or off"):
        build.begin("snake", "", Options(["agent.standardise=1,2"]), [])


@pytest.mark.slow
def test_what_a_configuration_leaves_to_its_data_is_found_out_once(tmp_path, monkeypatch):
    """The configuration is completed once for all members, before anything is written."""
    snake, calls = build.program_of("snake"), []

    def complete(config):
        calls.append(config)
        agent = dataclasses.replace(config.agent, clip=0.123)
        return dataclasses.replace(config, agent=agent)

    monkeypatch.setattr(build, "program_of", lambda name: snake._replace(complete=complete))
    options = Options(["agent.entropy_weight=0.01,0.02"], directory=str(tmp_path / "s"))
    new_sweep = build.begin("snake", "", options, [])
    assert len(calls) == 1
    assert new_sweep.config.agent.clip == 0.123

    def refuse(config):
        raise ValueError("FILE.npz is empty")

    monkeypatch.setattr(build, "program_of", lambda name: snake._replace(complete=refuse))
    options = Options(options.vary, directory=str(tmp_path / "other"))
    with pytest.raises(UsageError, match=r"FILE\.npz is empty"):
        build.begin("snake", "", options, [])
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(("evaluates", "name"), [(True, "r2_10"), (False, "log_likelihood")])
def test_fits_are_compared_by_what_their_evaluations_score(evaluates, name):
    """And by their training where there are none."""
    training = SimpleNamespace(score=Score("log_likelihood", evaluation="r2_10"))
    config = SimpleNamespace(run=SimpleNamespace(evaluates=evaluates))
    sweep: Any = SimpleNamespace(training=training, config=config)
    assert Sweep.score_name.fget(sweep) == name  # pyright: ignore[reportOptionalCall]


@pytest.mark.parametrize("name", ["nope", "os", "7", "snake/"])
def test_an_unknown_program_is_told_which_there_are(name, tmp_path, capsys):
    assert command.main([name, "--vary", VARY, "--directory", str(tmp_path / "s")]) == REFUSED
    guess = " (perhaps snake)" if name == "snake/" else ""
    start = (
        f"there is no program {name}{guess}: choose one of allo, durotaxis, goals, gymnax, snake"
    )
    error = capsys.readouterr().err
    assert error.startswith(start)
    assert error.count("\n") == 1


def test_a_program_that_lacks_a_package_is_not_unknown(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lacking_too.py").write_text("import not_installed")
    assert command.main(["lacking_too", "--vary", VARY]) == REFUSED
    error = capsys.readouterr().err
    assert "lacking_too cannot be imported (No module named 'not_installed')" in error
    assert "there is no program" not in error


def test_a_plan_from_before_searches_were_taken_out(finished_sweep):
    options = files.read_plan(finished_sweep)["options"]
    old_options = options | {"search": None, "members": None, "reduction": 2}
    plain_options = saved_options(options, finished_sweep)
    assert saved_options(old_options, finished_sweep) == plain_options
    assert [*plain_options.vary] == options["vary"]
    with pytest.raises(UsageError, match="is a search, which this version cannot continue"):
        saved_options(old_options | {"search": "halving"}, finished_sweep)


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("options", {"nope": 1}, "sweep.yaml: there is no option nope; there are vary, seeds"),
        ("options", None, "sweep.yaml: options is None, expected names and their values"),
        ("options", {"seeds": -1}, "sweep.yaml: --seeds is -1, expected a number at least 1"),
        ("options", {"confirm": "x"}, "sweep.yaml: --confirm is 'x', expected an integer"),
        ("options", {"vary": VARY}, "expected a list of FIELD=VALUE"),
        ("preset", ["plain"], r"has the preset ['plain'], which is unknown here"),
        ("batches", [[0, 1, 2, 3, 4, 5, 6, 7], [8]], "do not have each of its 8 members once"),
        ("batches", 3, "do not have each of its 8 members once"),
    ],
)
def test_a_plan_that_was_edited_is_refused_in_one_line(
    part, content, message, finished_sweep, tmp_path, capsys
):
    saved = files.read_plan(finished_sweep)
    saved[part] = saved[part] | content if isinstance(content, dict) else content
    files.write_plan(tmp_path, saved)
    assert command.main(["--resume", str(tmp_path)]) == REFUSED
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_saved_plan_can_be_read_by_people(finished_sweep):
    saved = files.read_plan(finished_sweep)
    assert saved["options"]["vary"] == [VARY, "agent.replay=3,7"]
    config = rebuild(tiny.PRESETS["plain"].config, saved["config"])
    assert config == with_field(tiny.PRESETS["plain"].config, "run.max_episodes", EPISODES)
