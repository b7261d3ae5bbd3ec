"""The log holds every number of the record once, whatever happened to the run."""

import dataclasses
import json
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wandb
from tensorboardX.proto import event_pb2
from wandb.proto import wandb_internal_pb2

from tests.train import tiny
from train.host.command_line.command import main
from train.host.files import log, metrics_file
from train.host.files.log import numbers_of
from train.host.files.metrics_file import read_metrics
from train.host.running import preparation
from train.host.running.run import run

ROOT = Path(__file__).resolve().parents[4]
Point = tuple[str, int]  # name and steps
OURS = ("seed", "steps")


def events(path: Path) -> Iterator[Any]:
    """The events of a file of TensorBoard: length, its checksum, content, its checksum."""
    content, at = path.read_bytes(), 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        event: Any = event_pb2
        yield event.Event.FromString(content[at + 12 : at + 12 + length])
        at += length + 16


def in_tensorboard(folder: Path) -> list[tuple[Point, float]]:
    """What is in the one file of a folder."""
    (path,) = folder.glob("events.out.tfevents.*")
    first, start, *others = events(path)
    assert first.file_version == "brain.Event:2"
    assert (start.session_log.status, start.step) == (1, 0)  # readers forget all before
    return [((x.tag, event.step), x.simple_value) for event in others for x in event.summary.value]


def records(path: Path) -> Iterator[Any]:
    """The records of an offline file of Weights & Biases.

    A log as LevelDB writes it: blocks of 32 KiB of fragments with checksum, length and kind, where
    1 is a whole record, and 2, 3 and 4 are its first part, others and the last.
    """
    content, at, parts = path.read_bytes(), 7, b""
    assert content[:4] == b":W&B"
    while at + 7 <= len(content):
        room = 32768 - at % 32768
        if room < 7:
            at += room
            continue
        _, length, kind = struct.unpack_from("<IHB", content, at)
        parts += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            internal: Any = wandb_internal_pb2
            yield internal.Record.FromString(parts)
            parts = b""


def in_wandb(folder: Path, seed: int | None = None) -> list[tuple[Point, float]]:
    """What is in the one offline run of a seed."""
    wandb.teardown()  # only then all is written
    ending = "" if seed is None else f"-{seed}"
    (path,) = folder.glob(f"offline-run-*{ending}/*.wandb")
    points = []
    for record in records(path):
        for item in record.history.item:
            name = item.key or "/".join(item.nested_key)
            if not name.startswith("_"):
                points.append(((name, record.history.step.num), json.loads(item.value_json)))
    return points


def in_log(directory: Path, kind: str, seed: int) -> dict[Point, float]:
    """The log of one of several seeds; no point is there twice."""
    if kind == "wandb":
        points = in_wandb(directory / "wandb", seed)
    else:
        points = in_tensorboard(directory / "tensorboard" / f"seed_{seed}")
    assert len(dict(points)) == len(points)
    return dict(points)


def in_record(directory: Path, seed: int) -> dict[Point, float]:
    """The same of the record."""
    points = {}
    for row in read_metrics(directory):
        if row["seed"] != seed:
            continue
        for name, x in row.items():
            if name in ("finished", "agent", "evaluated"):
                points |= {(f"{name}/{key}", row["steps"]): value for key, value in x.items()}
            elif name not in OURS:
                points[name, row["steps"]] = x
    return {point: x for point, x in points.items() if x is not None}


def assert_equal(directory: Path, kind: str, seeds: list[int]) -> None:
    for seed in seeds:
        points, expected = in_log(directory, kind, seed), in_record(directory, seed)
        assert points.keys() == expected.keys()
        for point, x in expected.items():
            rounded = np.float32(x) if kind == "tensorboard" else x
            assert points[point] == pytest.approx(rounded, rel=1e-12), point


def configure(kind: str, agent: dict[str, Any] | None = None, **changes: Any) -> tiny.Config:
    config = tiny.PRESETS["plain"].config
    changes = {"log": kind, "evaluation_games": 0, "num_seeds": 2, **changes}
    return dataclasses.replace(
        config,
        agent=dataclasses.replace(config.agent, **(agent or {})),
        run=dataclasses.replace(config.run, **changes),
    )


def train(config: tiny.Config) -> Path:
    return run(tiny.make_training(config), config, tiny.PROGRAM.address, "plain").directory


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_MODE", "WANDB_PROJECT", "WANDB_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Also no thread and no process of theirs."""
    yield
    wandb.teardown()
    assert not [x.name for x in threading.enumerate() if x.name.startswith(("wandb", "Otel"))]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tensorboard", "wandb"])
def test_a_run_that_crashed_and_was_resumed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """At the crash the record has a row more than the log, and both more than the checkpoint."""
    directory, append = tmp_path / "run", metrics_file.MetricsFile.append
    games: dict[str, Any] = {"evaluate_every": 2, "evaluate_games": 4}

    def crash(self: metrics_file.MetricsFile, rows: list[dict[str, Any]]) -> None:
        append(self, rows)
        if rows[0]["updates"] == 10:
            raise RuntimeError("a crash")

    with monkeypatch.context() as patch:
        patch.setattr(metrics_file.MetricsFile, "append", crash)
        with pytest.raises(RuntimeError, match="a crash"):
            train(configure(kind, directory=str(directory), **games))
    assert max(steps for _, steps in in_log(directory, kind, 0)) == 8 * tiny.PER_UPDATE
    assert len(read_metrics(directory)) == 10
    train(configure(kind, resume=str(directory), **games))
    assert len(read_metrics(directory)) == 20
    assert_equal(directory, kind, [0, 1])
    assert ("evaluated/mean", 20 * tiny.PER_UPDATE) in in_log(directory, kind, 1)


@pytest.mark.slow
def test_a_return_to_a_checkpoint(tmp_path: Path):
    """The rows that it takes back are taken out of the log. A log may begin with a resumption."""
    each: dict[str, Any] = {"chunk_steps": tiny.PER_UPDATE, "total_steps": 8 * tiny.PER_UPDATE}
    healthy = train(configure("none", directory=str(tmp_path / "healthy"), **each))
    assert not (healthy / "tensorboard").exists()
    fatal = read_metrics(healthy)[10]  # of update 6 and seed 0; checkpoints are every third update
    fields = {**each, "directory": str(tmp_path / "run"), "on_nonfinite": "restore"}
    poison = {"poison": fatal["agent"]["bits"]}
    assert (fatal["updates"], fatal["seed"]) == (6, 0)
    directory = train(configure("tensorboard", poison, **fields))
    assert read_metrics(directory)[-1]["restores"] == 1
    assert_equal(directory, "tensorboard", [0, 1])
    train(configure("tensorboard", resume=str(healthy), **each))
    assert_equal(healthy, "tensorboard", [0, 1])


def test_names_of_numbers():
    """By their place in the row; one of its own for every entry of a list."""
    row = {
        "member": 7,
        "seed": 3,
        "updates": 2,
        "steps": 30,
        "finished": {"return": None, "length": 4.5},
        "agent": {"loss": float("nan"), "duals": [[0.5, None], [2.0, 3.0]]},
        "evaluated": {"games": 8, "mean": 1.5},
    }
    assert numbers_of(row) == {
        "updates": 2,
        "finished/length": 4.5,
        "agent/duals/0/0": 0.5,
        "agent/duals/1/0": 2.0,
        "agent/duals/1/1": 3.0,
        "evaluated/games": 8,
        "evaluated/mean": 1.5,
    }


@pytest.mark.parametrize("kind", ["tensorboard", "wandb"])
def test_a_single_seed_has_no_number(kind: str, tmp_path: Path):
    rows = [{"seed": 5, "steps": 10 * i, "agent": {"loss": 0.25 * i}} for i in (1, 2)]
    with log.open_log(kind, tmp_path, [5], {"agent": {"clip": 0.1}}) as run_log:
        run_log.begin(lambda: rows[:1])
        run_log.append(rows[1:])
    read = in_wandb if kind == "wandb" else in_tensorboard
    assert read(tmp_path / kind) == [(("agent/loss", 10), 0.25), (("agent/loss", 20), 0.5)]


def test_a_run_keeps_its_identity_and_configuration(tmp_path: Path):
    names = []
    for _ in range(2):
        with log.open_log("wandb", tmp_path, [5], {"agent": {"clip": 0.1}}) as run_log:
            run_log.begin(lambda: [])
        wandb.teardown()
        (path,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
        (started,) = [x.run for x in records(path) if x.WhichOneof("record_type") == "run"]
        settings = {x.key: json.loads(x.value_json) for x in started.config.update}
        assert settings["agent"] == {"clip": 0.1}
        names.append((started.run_id, started.display_name, started.project))
    assert names[0] == names[1]
    assert names[0][1:] == (tmp_path.name, "jaxrl")


@pytest.mark.parametrize(("kind", "package"), [("tensorboard", "tensorboardX"), ("wandb", "wandb")])
def test_a_package_that_is_missing(
    kind: str,
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
):
    """One line, before anything is traced or written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delattr(preparation, "trace")
    assert main(tiny.PROGRAM, ["--run.log", kind]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"--run.log {kind} needs the package {package}" in err
    assert "pip install 'jaxrl[log]'" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_wandb_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    """A mode that there is not; only it knows them."""
    monkeypatch.setenv("WANDB_MODE", "sideways")
    flags = ["--run.log", "wandb", "--run.directory", str(tmp_path / "run")]
    assert main(tiny.PROGRAM, flags) == 2
    err = capsys.readouterr().err
    assert err.startswith("--run.log wandb: ")
    assert err.count("\n") == 1


QUIET = """
import atexit, json, os, subprocess, sys
from pathlib import Path
lookups = []
sys.addaudithook(lambda event, _: lookups.append(event) if event == "socket.getaddrinfo" else None)
from train.host.files import log
with log.open_log("wandb", Path(sys.argv[1]), [0], {}) as run_log:
    run_log.begin(lambda: [{"seed": 0, "steps": 1, "updates": 1}])
ps = ["ps", "--ppid", str(os.getpid()), "-o", "pid=,comm="]
children = subprocess.run(ps, text=True, capture_output=True).stdout.splitlines()
atexit._run_exitfuncs()
print(json.dumps(lookups))
print(json.dumps([line.split()[0] for line in children if "wandb" in line]))
"""


@pytest.mark.slow
def test_offline_it_asks_nobody_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No host is looked up, not even when Python ends; then its process ends, too."""
    monkeypatch.delenv("WANDB_ERROR_REPORTING")
    monkeypatch.delenv("WANDB_SERVICE", raising=False)  # the process that serves this one
    command = [sys.executable, "-W", "error", "-c", QUIET, str(tmp_path)]
    process_result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (process_result.returncode, process_result.stderr) == (0, "")
    lookups, (process,) = map(json.loads, process_result.stdout.splitlines())
    assert lookups == []
    path = Path(f"/proc/{process}/comm")
    for _ in range(1000):
        if not path.exists() or "wandb" not in path.read_text():
            return
        time.sleep(0.01)
    raise AssertionError("wandb-core goes on")
