"""A run gives the same numbers however it is interrupted, and never loses what it has."""

import json
import logging
import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from jaxrl import checkpoint
from jaxrl.evaluate import evaluate
from tests.train import tiny
from tests.train.host.crashes import bits, timeless_rows
from tests.train.host.running.short_runs import (
    UPDATES,
    Healthy,
    configure,
    start,
    state_in,
    train,
    wait_for_rows,
)
from train import evaluate as evaluation_command
from train.host.command_line.command import main, parse
from train.host.compilation import compiled, cpu_kernels
from train.host.errors import INTERRUPTED, QUIT, Interrupted, UsageError
from train.host.files import metrics_file
from train.host.files.run_directory import CHECKPOINTS
from train.host.machine import jax_settings
from train.host.running import preparation
from train.host.running.run import Result, after_training, run, train_program
from train.host.training import Score


def assert_equal_runs(directory: Path, state: Any, whole_run: Result) -> None:
    assert bits(state) == bits(whole_run.state)
    assert bits(state_in(directory, whole_run.state)) == bits(whole_run.state)
    assert timeless_rows(directory) == timeless_rows(whole_run.directory)


def test_the_record_tells_what_the_updates_reported(whole_run: Result, healthy: Healthy):
    rows = metrics_file.read_metrics(whole_run.directory)
    assert [row["updates"] for row in rows] == list(range(2, UPDATES + 1, 2))
    episodes = 0
    for i, row in enumerate(rows[:4]):
        reports = healthy.reports[2 * i : 2 * i + 2]
        count = sum(int(r.episodes) for r in reports)
        episodes += count
        assert row["seed"] == row["skipped"] == row["restores"] == 0
        assert row["steps"] == row["updates"] * tiny.PER_UPDATE
        assert row["episodes"] == episodes
        for name in ("return", "length", "right"):
            total = sum(float(r.finished[name]) for r in reports)
            expected = pytest.approx(total / count, rel=1e-5) if count else None
            assert row["finished"][name] == expected
        loss = np.mean([r.agent["loss"] for r in reports])
        assert row["agent"]["loss"] == pytest.approx(loss, rel=1e-4)
        assert row["steps_per_second"] > 0
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds)


def test_half_a_run_and_the_rest_are_a_whole_one(tmp_path: Path, whole_run: Result):
    """Even where the first half ends within a chunk, though that adds a row to the record."""
    directory, half = tmp_path / "run", 7
    train(configure(updates=half, directory=directory))
    assert checkpoint.steps(directory / "checkpoints") == [6, half]
    result = train(configure(resume=directory))
    assert bits(result.state) == bits(whole_run.state)
    updates = [row["updates"] for row in metrics_file.read_metrics(directory)]
    assert updates == sorted({*range(2, UPDATES + 1, 2), half})


@pytest.mark.slow
def test_seeds_side_by_side(tmp_path: Path, whole_run: Result):
    """Each is the run of that seed alone, up to rounding, also after a resumption."""
    seeds: dict[str, Any] = {"num_seeds": 2, "chunk_steps": 4 * tiny.PER_UPDATE}
    train(configure(updates=4, directory=tmp_path / "run", **seeds))
    result = train(configure(updates=8, resume=tmp_path / "run", **seeds))
    assert jax.tree.leaves(result.state.agent.params)[0].shape[0] == 2
    rows = metrics_file.read_metrics(tmp_path / "run")
    assert [(row["seed"], row["updates"]) for row in rows] == [(0, 4), (1, 4), (0, 8), (1, 8)]
    alone = metrics_file.read_metrics(whole_run.directory)
    for row, chunks in ((rows[0], alone[:2]), (rows[2], alone[2:4])):  # chunks of two updates
        assert row["episodes"] == chunks[1]["episodes"]
        for name, value in row["agent"].items():
            mean = np.mean([chunk["agent"][name] for chunk in chunks])
            assert value == pytest.approx(mean, rel=1e-4)
    assert rows[0]["agent"]["bits"] != rows[1]["agent"]["bits"]


def test_sigterm_saves_and_the_run_goes_on(tmp_path: Path, whole_run: Result):
    """`timeout` sends the signal twice at once: that is one request."""
    directory = tmp_path / "run"
    process = start("slow", "--run.directory", directory, "--run.evaluation-games", 0)
    wait_for_rows(process, directory, 4)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, err
    assert "SIGTERM: finishing the chunk" in out
    assert re.fullmatch(rf"stopped after \d+ of 300 environment steps: --resume {directory}\n", err)
    stopped_at = checkpoint.steps(directory / "checkpoints")[-1]
    assert stopped_at == metrics_file.read_metrics(directory)[-1]["updates"] < UPDATES
    process = start("--resume", directory)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert_equal_runs(directory, state_in(directory, whole_run.state), whole_run)


@pytest.mark.slow
def test_a_crash_loses_only_what_came_after_the_checkpoint(
    tmp_path: Path, whole_run: Result, caplog: pytest.LogCaptureFixture
):
    """Killed in the middle, half a row written, the newest checkpoint cut short as well."""
    directory = tmp_path / "run"
    process = start("slow", "--run.directory", directory, "--run.evaluation-games", 0)
    wait_for_rows(process, directory, 7)  # checkpoints at the updates 6 and 12
    process.kill()
    process.communicate()
    with (directory / "metrics.jsonl").open("ab") as file:
        file.write(b'{"seed": 0, "upd')
    newest = directory / "checkpoints" / "0000000012"
    os.truncate(newest / checkpoint.ARRAYS, 20)
    with caplog.at_level(logging.WARNING):
        result = train(configure(resume=directory))
    assert any(f"{newest} is skipped" in r.getMessage() for r in caplog.records)
    assert_equal_runs(directory, result.state, whole_run)


@pytest.mark.slow
def test_a_second_signal_quits_at_once(tmp_path: Path):
    """Even while a chunk runs that would take hours."""
    process = start("endless", "--run.directory", tmp_path / "run")
    assert process.stdout is not None
    while "compiled" not in process.stdout.readline():
        pass
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert "SIGINT: finishing the chunk" in process.stdout.readline()
    time.sleep(0.7)
    assert process.poll() is None
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == QUIT
    assert time.monotonic() - began < 5
    process.communicate()


def test_an_interrupt_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The exception says how to go on, and Ctrl-C is Ctrl-C again."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    append = metrics_file.MetricsFile.append

    def press_ctrl_c(self, rows):
        append(self, rows)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(metrics_file.MetricsFile, "append", press_ctrl_c)
    with pytest.raises(Interrupted, match=f"30 of 300 environment steps: --resume {tmp_path}"):
        train(configure(directory=tmp_path / "run"))
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.set_wakeup_fd(-1) == -1
    assert checkpoint.steps(tmp_path / "run" / "checkpoints") == [2]


def test_another_configuration_is_refused(whole_run: Result, capsys: pytest.CaptureFixture):
    arguments = ["--resume", str(whole_run.directory), "--agent.learning_rate", "0.5"]
    assert main(tiny.PROGRAM, [*arguments, "--agent.replay", "9"]) == 2
    _, err = capsys.readouterr()
    assert "(agent.learning_rate: 0.01 -> 0.5; agent.replay: 7 -> 9)" in err
    assert err.count("\n") == 1
    assert main(tiny.PROGRAM, [*arguments[:2], "--run.directory", "elsewhere"]) == 2
    _, err = capsys.readouterr()
    assert err.startswith("a run stays where it is: leave out --run.directory elsewhere, or copy")


@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        (lambda: jax.default_prng_impl("rbg"), "set JAX_DEFAULT_PRNG_IMPL=threefry2x32"),
        (lambda: jax.threefry_partitionable(False), "set JAX_THREEFRY_PARTITIONABLE=1"),
    ],
)
def test_a_run_goes_on_with_the_kind_of_keys_that_it_began_with(
    setting: Callable, advice: str, whole_run: Result, capsys: pytest.CaptureFixture
):
    assert jax_settings.caution() == ""
    with setting():
        assert main(tiny.PROGRAM, ["--resume", str(whole_run.directory)]) == 2
        assert re.fullmatch(
            ".*: numbers depend on the devices and on the seeds .*", jax_settings.caution()
        )
    assert capsys.readouterr().err.strip().endswith(advice)


@pytest.mark.parametrize(
    ("past", "cautions"),
    [
        (
            {"devices": 4},
            ["devices: 4 -> 1 since the run was saved: it may not continue bit for bit"],
        ),
        ({"devices": 1}, []),
        ({}, []),  # from before it was saved
    ],
)
def test_another_number_of_devices_is_told(
    past: dict,
    cautions: list,
    tmp_path: Path,
    whole_run: Result,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    restore = checkpoint.restore

    def restore_from_others(*arguments: Any) -> Any:
        state, meta, step = restore(*arguments)
        assert meta.pop("devices") == 1
        return state, meta | past, step

    monkeypatch.setattr(checkpoint, "restore", restore_from_others)
    train(configure(resume=shutil.copytree(whole_run.directory, tmp_path / "run")))
    assert [x.getMessage() for x in caplog.records if x.levelno == logging.WARNING] == cautions


def test_an_edited_config_file_is_noticed(tmp_path: Path, whole_run: Result):
    directory = shutil.copytree(whole_run.directory, tmp_path / "run")
    path = directory / "config.yaml"
    path.write_text(path.read_text().replace("learning_rate: 0.01", "learning_rate: 0.02"))
    config, _ = parse(tiny.PROGRAM, ["--resume", str(directory)])
    with pytest.raises(UsageError, match=r"agent\.learning_rate: 0\.01 -> 0\.02"):
        train(config)


def test_fields_that_were_added_since_a_run_began_have_their_defaults(
    whole_run: Result, monkeypatch: pytest.MonkeyPatch
):
    saved = checkpoint.read_meta(whole_run.directory / CHECKPOINTS)
    del saved["config"]["agent"]["replay"], saved["config"]["run"]["evaluate_games"]
    monkeypatch.setattr(checkpoint, "read_meta", lambda _: saved)
    refuse = lambda config: preparation.refuse_other_config(
        tiny.make_training(config), config, tiny.PROGRAM.address
    )
    refuse(configure(resume=whole_run.directory))
    with pytest.raises(UsageError, match=r"agent\.replay: 7 -> 8"):
        refuse(configure(resume=whole_run.directory, agent={"replay": 8}))


@pytest.mark.slow
def test_networks_of_a_run_have_its_precision(
    tmp_path: Path, whole_run: Result, monkeypatch: pytest.MonkeyPatch
):
    config = configure(directory=tmp_path / "run", precision="float32")
    assert precisions(configure()) == {"None"}
    assert precisions(config) == {"(Precision.HIGHEST, Precision.HIGHEST)"}
    result = train(config)
    assert_equal_runs(result.directory, result.state, whole_run)  # a CPU knows only one
    with pytest.raises(UsageError, match=r"run\.precision: float32 -> tf32"):
        train(configure(resume=result.directory, precision="tf32"))
    # an evaluation of the run takes it from its configuration
    settings, play = [], tiny.evaluate.evaluate
    setting = lambda: settings.append(getattr(jax.config, jax_settings.PRECISION))
    monkeypatch.setattr(tiny.evaluate, "evaluate", lambda *x: (setting(), play(*x))[1])
    assert evaluation_command.main([str(result.directory), "--games", "3"]) == 0
    assert set(settings) == {"float32"}


def precisions(config: tiny.Config) -> set[str]:
    """The precisions of the products of a chunk."""
    traced = preparation.trace(tiny.make_training(config), config)
    products = cpu_kernels.equations(traced.chunk.jaxpr.jaxpr)
    return {str(x.params["precision"]) for x in products if x.primitive.name == "dot_general"}


def test_a_budget_that_shapes_learning_stays(whole_run: Result):
    config = configure(updates=2 * UPDATES, resume=whole_run.directory)
    training = tiny.make_training(config)._replace(budget_shapes_learning=True)
    with pytest.raises(UsageError, match=r"run\.total_steps: 300 -> 600"):
        run(training, config, tiny.PROGRAM.address)


def test_a_state_of_another_program_is_refused(whole_run: Result):
    """The configuration is the same, the code is not."""
    config = configure(resume=whole_run.directory)
    other = tiny.make_training(configure(agent={"replay": 8}))
    with pytest.raises(
        UsageError, match=r"\.agent\.replay is float32\[35,3\], expected .*\[40,3\]"
    ):
        run(other, config, tiny.PROGRAM.address)


def test_a_directory_has_one_writer(whole_run: Result):
    refusal = pytest.raises(UsageError, match="another process")
    with metrics_file.MetricsFile(whole_run.directory), refusal:
        train(configure(resume=whole_run.directory))


def test_sizes_that_do_not_fit_leave_nothing_behind(tmp_path: Path):
    config = configure(directory=tmp_path / "run")

    def update(state):
        raise ValueError("minibatches is 7;\n expected a divisor of 15")

    training = tiny.make_training(config)._replace(update=update)
    with pytest.raises(UsageError, match="minibatches is 7; expected a divisor of 15"):
        run(training, config, tiny.PROGRAM.address)
    training = tiny.make_training(config)._replace(score=Score("apples"))
    with pytest.raises(
        UsageError,
        match="no number 'apples' to score: choose one of bits, length, loss, return, right",
    ):
        run(training, config, tiny.PROGRAM.address)

    def nested_update(state):
        state, metrics = tiny.make_training(config).update(state)
        return state, metrics._replace(agent={"losses": metrics.agent})

    training = tiny.make_training(config)._replace(update=nested_update)
    with pytest.raises(UsageError, match="the metric 'losses' that update returns is a dict; exp"):
        run(training, config, tiny.PROGRAM.address)
    assert not (tmp_path / "run").exists()


def test_a_place_that_cannot_be_written_is_refused_before_all_work(tmp_path: Path, capsys):
    def work(*_):
        raise AssertionError("there was work before the refusal")

    (tmp_path / "file").touch()
    directory = tmp_path / "file" / "run"
    config = configure(directory=directory)
    training = tiny.make_training(config)._replace(init=work)
    with pytest.raises(UsageError, match=f"{directory} cannot be written, as .*file is no folder"):
        run(training, config, tiny.PROGRAM.address)
    program = tiny.PROGRAM._replace(complete=work)
    with pytest.raises(UsageError, match=f"{directory} cannot be written"):
        train_program(program, config, "slow")
    assert main(program, ["plain", "--run.directory", str(directory)]) == 2
    assert capsys.readouterr().err.startswith(f"{directory} cannot be written")


def test_enough_episodes_end_a_run(tmp_path: Path):
    result = train(configure(max_episodes=5, directory=tmp_path / "run"))
    rows = metrics_file.read_metrics(result.directory)
    assert rows[-2]["episodes"] < 5 <= rows[-1]["episodes"]
    assert checkpoint.steps(result.directory / "checkpoints")[-1] == rows[-1]["updates"] < UPDATES


def test_a_command_from_beginning_to_end(tmp_path: Path, capsys: pytest.CaptureFixture):
    """Train, evaluate; the summary is of the very games that the trained agent plays."""
    directory = tmp_path / "run"
    flags = ["--run.directory", str(directory), "--run.total_steps", "60", "--run.seed", "3"]
    assert main(tiny.PROGRAM, ["plain", *flags]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "compiled in" in out
    assert "60 environment steps in" in out
    assert "95 % interval" in out
    assert str(directory / "learning_curve.png") in out
    assert (directory / "learning_curve.png").is_file()

    content = json.loads((directory / "eval.json").read_text())
    config, preset = parse(tiny.PROGRAM, ["--resume", str(directory)])
    assert (preset, config.run.seed, config.run.evaluation_games) == ("plain", 3, 6)
    agent = tiny.make_agent(config.agent)
    like = jax.eval_shape(tiny.make_training(config).init, compiled.keys_of(0)[0])
    state = state_in(directory, like)
    key = compiled.keys_of(3)[1]
    games = jax.jit(lambda s, k: evaluate(tiny.Walk(), (), agent, s, k, 6, 1, 50))(state.agent, key)
    (row,) = content["seeds"]
    assert (content["score"], row["seed"], row["games"], row["incomplete"]) == ("right", 3, 6, 0)
    assert row["return"]["mean"] == pytest.approx(float(games.return_.mean()), rel=1e-5)
    assert row["return"]["max"] == pytest.approx(float(games.return_.max()), rel=1e-5)
    assert row["right"]["mean"] == pytest.approx(float(games.outcome["right"].mean()))
    assert row["right"]["low"] < row["right"]["mean"] or row["right"]["mean"] == 0
    assert row["steps"] == int(games.length.sum())


def test_commands_that_go_on_take_directories_with_spaces():
    message = after_training(Path("my run"))
    assert "saved in my run; --resume 'my run' goes on" in message
    assert "python -m train.evaluate 'my run' scores it" in message


def test_unforeseen_errors_say_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(checkpoint, "save", fail)
    with pytest.raises(OSError, match="no space left") as error:
        train(configure(updates=2, directory=tmp_path / "run"))
    assert f"--resume {tmp_path / 'run'} starts over: nothing is saved" in error.value.__notes__[0]
