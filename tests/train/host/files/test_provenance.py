"""What files held that a training was told of: recorded with its state, and compared later."""

import logging
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from jaxrl import checkpoint
from tests.train import tiny
from train.host.command_line import command
from train.host.errors import UsageError
from train.host.files.provenance import changed_files, files_of
from train.host.program import Preset
from train.host.running import saved_runs


@dataclass(frozen=True)
class Config(tiny.Config):
    """The tiny program, which is told of files."""

    run_of_teacher: str = ""
    """The directory of a run."""
    data: tuple[str, ...] = ()
    """Files."""


PROGRAM = tiny.PROGRAM._replace(presets={"plain": Preset(Config())})


def start(*arguments: object) -> int:
    return command.main(PROGRAM, ["--run.evaluation-games=0", *map(str, arguments)])


def crc32(path: Path) -> str:
    return f"crc32 {zlib.crc32(path.read_bytes()):08x}"


@pytest.mark.slow
def test_a_run_that_goes_on_says_which_file_was_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Also which run has learned since; a folder, and a word that is no path, have no content."""
    teacher, run, file = tmp_path / "teacher", tmp_path / "run", tmp_path / "data.npy"
    file.write_bytes(b"as it was")
    assert start(f"--run.directory={teacher}") == 0
    (record,) = (teacher / "checkpoints").glob("*20/record.json")
    flags = ["--run-of-teacher", teacher, "--data", file, tmp_path, "right", "\0"]
    assert start(f"--run.directory={run}", *flags) == 0
    saved = checkpoint.read_meta(run / "checkpoints")["files"]
    expected = {
        "run_of_teacher": f"{teacher}, update 20 ({crc32(record)})",
        "data": f"{file} ({crc32(file)})",
    }
    assert saved == expected == files_of(Config(run_of_teacher=str(teacher), data=(str(file),)))

    longer = ("--resume", run, "--run.total-steps=330")
    assert start(*longer) == 0
    assert not [x for x in caplog.records if x.levelno == logging.WARNING]
    file.write_bytes(b"as it is now")
    assert start("--resume", teacher, "--run.total-steps=330") == 0
    caplog.clear()
    assert start("--resume", run, "--run.total-steps=360") == 0
    warnings = [x.getMessage() for x in caplog.records if x.levelno == logging.WARNING]
    assert [x.partition(" -> ")[0] for x in warnings] == [
        f"files.{name}: {expected[name]}" for name in ("data", "run_of_teacher")
    ]
    assert all(
        x.endswith("since the run was saved: it may not continue bit for bit") for x in warnings
    )
    assert checkpoint.read_meta(run / "checkpoints")["files"] != saved


def test_a_run_that_is_loaded_says_which_file_was_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """Its scores would be of something else than it learned from."""
    run, file = tmp_path / "run", tmp_path / "data.npy"
    file.write_bytes(b"as it was")
    assert start(f"--run.directory={run}", "--data", file) == 0
    monkeypatch.setattr(saved_runs, "find", lambda name, where: PROGRAM)
    before = files_of(Config(data=(str(file),)))["data"]
    saved_runs.load(run)
    assert not caplog.records
    file.write_bytes(b"as it is now")
    after = files_of(Config(data=(str(file),)))["data"]
    saved_runs.load(run)
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert warning.getMessage().startswith(f"data: {before} -> {after} since {run} was saved")


@pytest.mark.parametrize(("path", "is_told"), [("data.npz", True), ("/data.npz", False)])
def test_files_that_are_lost_by_another_folder_are_told(path, is_told, monkeypatch):
    saved = {"files": {"data": f"{path} (crc32 00000000)", "other": "x (crc32 00000000)"}}
    monkeypatch.setattr(checkpoint, "read_meta", lambda checkpoints: saved)
    change = changed_files(Path(), {"other": "x (crc32 00000001)"})
    assert f"data: {path} (crc32 00000000) -> absent" in change
    assert ("go to the folder in which the run began" in change) == is_told
    assert "go to" not in changed_files(Path(), {**saved["files"], "other": "y"})


@pytest.mark.slow
def test_a_state_that_does_not_fit_a_changed_file_is_refused_with_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """A program whose state has the size of a file: a run goes on with it, or is loaded."""

    def make_training(config: Config):
        size = len(Path(config.data[0]).read_bytes())
        return tiny.PROGRAM.training(replace(config, agent=replace(config.agent, replay=size)))

    program = PROGRAM._replace(training=make_training)
    file, run = tmp_path / "data.npy", tmp_path / "run"
    file.write_bytes(b"six...")
    flags = ["--run.evaluation-games=0", "--data", str(file), f"--run.directory={run}"]
    assert command.main(program, flags) == 0
    before = f"data: {file} ({crc32(file)})"
    file.write_bytes(b"seven..")
    change = f"; {before} -> {file} ({crc32(file)}) since the run was saved: put back what"
    capsys.readouterr()
    assert command.main(program, ["--resume", str(run), "--run.total-steps=330"]) == 2
    (line,) = [x for x in capsys.readouterr().err.splitlines() if "another state" in x]
    assert change in line
    monkeypatch.setattr(saved_runs, "find", lambda name, where: program)
    with pytest.raises(UsageError) as error:
        saved_runs.load(run)
    assert change in str(error.value)
