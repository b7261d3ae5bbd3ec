"""Runs of several processes on this machine: the numbers of one, stopped together, none left."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxrl import checkpoint
from tests.train import tiny
from tests.train.host.crashes import timeless_rows
from tests.train.host.machine.device_runs import FLAGS, STEPS
from tests.train.host.machine.test_devices import assert_equal
from train.host.command_line.command import main
from train.host.errors import FAILED, INTERRUPTED, REFUSED
from train.host.files import metrics_file
from train.host.files.locks import lock
from train.host.machine import distributed
from train.host.machine.start import begin
from train.host.running import saved_runs

ROOT = Path(__file__).resolve().parents[4]
BOUND = 90  # seconds until the others of a dead process have ended
LONG = 50_000_000
UPDATES = STEPS // 128


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


TINY = """
import sys
from train.host.machine import start
start.begin()
from tests.train import tiny
from train.host.command_line import command
sys.exit(command.main(tiny.PROGRAM))
"""
"""The tiny program as one of several processes."""


def start(
    count: int,
    *arguments: str,
    program: tuple[str, str] = ("-m", "train.gymnax"),
    last: tuple[str, ...] = (),
) -> list[subprocess.Popen[str]]:
    """So many processes of one run; a single one is not distributed.

    The last one is also given the arguments `last`.
    """
    environment = {k: x for k, x in os.environ.items() if "proxy" not in k.lower()}
    command, port = [sys.executable, *program, *arguments], free_port()
    join_flags = [["--distributed", f"127.0.0.1:{port},{i},{count}"] for i in range(count)]
    pipe = subprocess.PIPE
    return [
        subprocess.Popen(
            [*command, *(last if i == count - 1 else ()), *(flags if count > 1 else [])],
            cwd=ROOT,
            env=environment,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        for i, flags in enumerate(join_flags)
    ]


def exit_codes(processes: list[subprocess.Popen[str]], seconds: float = 240) -> list[int]:
    try:
        outputs = [process.communicate(timeout=seconds) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert not any("Traceback" in err for _, err in outputs), outputs
    return [process.returncode for process in processes]


def new_run_flags(directory: Path, steps: int = STEPS) -> list[str]:
    budget = "--no-anneal", "--run.total-steps", str(steps), "--run.directory", str(directory)
    return ["ppo", *budget, *FLAGS]


def wait_for_rows(directory: Path, count: int) -> None:
    start_time = time.monotonic()
    while metrics_file.count_rows(directory) < count:
        assert time.monotonic() - start_time < 120, "the run does not begin"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def single_process_run(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("alone") / "run"
    assert exit_codes(start(1, *new_run_flags(directory))) == [0]
    return directory


@pytest.mark.slow
def test_two_processes_give_the_numbers_of_one(single_process_run, tmp_path):
    assert exit_codes(start(2, *new_run_flags(tmp_path / "run"))) == [0, 0]
    assert_equal(single_process_run, tmp_path / "run")
    last = tmp_path / "run" / "checkpoints" / f"{UPDATES:010d}"
    assert {path.name for path in last.iterdir()} == {"record.json", "state.npz", "state-1.npz"}
    names = {path.name for path in single_process_run.iterdir()}
    assert {path.name for path in (tmp_path / "run").iterdir()} == names
    assert saved_runs.load(tmp_path / "run").updates == UPDATES
    (last / "state-1.npz").unlink()
    assert saved_runs.load(tmp_path / "run").updates < UPDATES  # one that is whole


@pytest.mark.slow
def test_four_processes_give_the_numbers_of_one(single_process_run, tmp_path):
    assert exit_codes(start(4, *new_run_flags(tmp_path / "run"))) == [0] * 4
    assert_equal(single_process_run, tmp_path / "run")


@pytest.mark.slow
def test_a_signal_to_one_stops_all_at_the_same_chunk(tmp_path):
    directory = tmp_path / "run"
    processes = start(2, *new_run_flags(directory, LONG))
    wait_for_rows(directory, 3)
    processes[1].send_signal(signal.SIGTERM)
    assert exit_codes(processes) == [INTERRUPTED] * 2
    saved = checkpoint.steps(directory / "checkpoints")[-1]
    rows = timeless_rows(directory)
    assert rows[-1]["updates"] == saved
    total_steps = str(rows[-1]["steps"] + STEPS)
    assert exit_codes(start(1, "--resume", str(directory), "--run.total-steps", total_steps)) == [0]
    assert timeless_rows(directory)[: len(rows)] == rows


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_the_others_end_when_one_is_killed(tmp_path, victim):
    directory = tmp_path / "run"
    processes = start(2, *new_run_flags(directory, LONG))
    wait_for_rows(directory, 8)
    processes[victim].kill()
    codes = exit_codes(processes, BOUND)
    assert codes[victim] == -signal.SIGKILL
    assert codes[1 - victim] == FAILED
    total_steps = str(timeless_rows(directory)[-1]["steps"] + STEPS)
    resumed_processes = start(2, "--resume", str(directory), "--run.total-steps", total_steps)
    assert exit_codes(resumed_processes) == [0, 0]
    updates = [row["updates"] for row in timeless_rows(directory)]
    assert updates == sorted(set(updates))


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["exists already", "is being written by another process"])
def test_what_only_the_first_is_refused_ends_all(tmp_path, reason):
    """It alone opens the files; the other one says so in one line, and does not wait for it."""
    directory = tmp_path / "run"
    directory.mkdir()
    metrics = directory / "metrics.jsonl"
    metrics.write_text("used\n" if reason == "exists already" else "")
    with metrics.open("a+b") as file:
        lock(file, directory)
        flags = ["plain", "--run.num-seeds=2", f"--run.directory={directory}"]
        processes = start(2, *flags, program=("-c", TINY))
        errors = [process.communicate(timeout=240)[1] for process in processes]
    assert [process.returncode for process in processes] == [REFUSED] * 2
    assert f"{directory} {reason}" in errors[0]
    assert errors[1].startswith("another process could not begin the run")
    assert [text.count("\n") for text in errors] == [1, 1]
    assert [path.name for path in directory.iterdir()] == ["metrics.jsonl"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ("--run.seed=9", "process 1 has other flags than process 0 (run.seed: 0 -> 9): start"),
        ("--bogus=9", "Unrecognized options: --bogus"),
        ("--resume=nowhere", "nowhere is not a run directory"),
    ],
)
def test_a_process_with_other_flags_ends_all(tmp_path, last, reason):
    flags = ["plain", "--run.num-seeds=2", f"--run.directory={tmp_path / 'run'}"]
    processes = start(2, *flags, program=("-c", TINY), last=(last,))
    errors = [process.communicate(timeout=240)[1] for process in processes]
    assert [process.returncode for process in processes] == [REFUSED] * 2
    assert errors[0].startswith("another process could not begin the run")
    assert errors[1].startswith(reason)
    assert [text.count("\n") for text in errors] == [1, 1]
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_games_that_a_signal_left_are_played_by_all(tmp_path):
    """One process was stopped while it played; on two the games have the scores of one again."""
    directory, copy = tmp_path / "run", tmp_path / "copy"
    new_run = ["plain", "--run.num-seeds=2", "--run.evaluate-every=2", "--run.evaluation-games=0"]
    assert main(tiny.PROGRAM, [*new_run, f"--run.directory={directory}"]) == 0
    with metrics_file.MetricsFile(directory) as record:
        rows = record.rows()
        unscored = [{k: x for k, x in row.items() if k != "evaluated"} for row in rows[-2:]]
        record.replace(len(rows) - 2, unscored)
    shutil.copytree(directory, copy)
    more = "--run.total-steps=330", "--devices=all"
    assert main(tiny.PROGRAM, ["--resume", str(copy), *more]) == 0
    scores = [row.get("evaluated") for row in timeless_rows(copy)]
    assert scores[: len(rows)] == [row.get("evaluated") for row in rows]
    resumed_processes = start(2, "--resume", str(directory), *more, program=("-c", TINY))
    assert exit_codes(resumed_processes) == [0, 0]
    assert [row.get("evaluated") for row in timeless_rows(directory)] == scores


@pytest.mark.parametrize("value", ["nowhere", "127.0.0.1:1", "127.0.0.1:1,2,2", "127.0.0.1:1,0"])
def test_a_value_without_meaning_is_refused_in_one_line(value, capsys):
    with pytest.raises(SystemExit) as stop:
        begin(["--distributed", value])
    assert stop.value.code == REFUSED
    message = capsys.readouterr().err
    assert "HOST:PORT,INDEX,COUNT" in message
    assert message.count("\n") == 1


def test_without_the_flag_nothing_is_joined():
    distributed.begin(["ppo", "--run.seed", "1"])
    assert not distributed.has_joined()
    assert distributed.is_alone()
    assert distributed.is_first()
    assert distributed.broadcast_text("x") == "x"
    assert [distributed.any_process(x) for x in (True, False)] == [True, False]
