"""What a disk, a file system or a hand does to a run: told in one line, and nothing is lost."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.train import tiny
from tests.train.host.crashes import timeless_rows
from train.host.command_line import command
from train.host.errors import FAILED, REFUSED
from train.host.files.run_directory import CHECKPOINTS

ROOT = Path(__file__).resolve().parents[4]
NO_GAMES = "--run.evaluation-games=0"
LONGER = ("--run.total-steps=360", NO_GAMES)


def start(*arguments: object) -> int:
    return command.main(tiny.PROGRAM, list(map(str, arguments)))


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("faults") / "run"
    assert start("plain", NO_GAMES, f"--run.directory={directory}") == 0
    return directory


@pytest.fixture(scope="module")
def longer_run(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, taken further."""
    directory = tmp_path_factory.mktemp("longer") / "run"
    shutil.copytree(finished_run, directory)
    assert start("--resume", directory, *LONGER) == 0
    assert len(timeless_rows(directory)) == 12
    return directory


@pytest.fixture
def damaged_run(finished_run: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def lines_of(directory: Path) -> list[bytes]:
    return (directory / "metrics.jsonl").read_bytes().splitlines(keepends=True)


def test_rows_that_are_damaged_or_missing_are_named_and_the_others_kept(
    damaged_run: Path, longer_run: Path, caplog: pytest.LogCaptureFixture
):
    """One byte of the second row is another one, and the fifth to seventh were deleted."""
    lines = lines_of(damaged_run)
    lines[1] = lines[1].replace(b'"updates": 4', b'"updates": 5')
    (damaged_run / "metrics.jsonl").write_bytes(b"".join(lines[:4] + lines[7:]))
    with caplog.at_level(logging.WARNING):
        assert start("--resume", damaged_run, *LONGER) == 0
    assert "row 2, rows 5 to 7 damaged or missing; the other rows are used" in caplog.text
    lost, expected = (1, 4, 5, 6), timeless_rows(longer_run)
    assert timeless_rows(damaged_run) == [x for i, x in enumerate(expected) if i not in lost]


def test_a_record_that_was_deleted_is_missed(
    damaged_run: Path, longer_run: Path, caplog: pytest.LogCaptureFixture
):
    (damaged_run / "metrics.jsonl").unlink()
    with caplog.at_level(logging.WARNING):
        assert start("--resume", damaged_run, *LONGER) == 0
    assert "rows 1 to 10 damaged or missing" in caplog.text
    assert timeless_rows(damaged_run) == timeless_rows(longer_run)[10:]


def test_deleted_checkpoints_are_pointed_out_before_anything_starts_over(
    damaged_run: Path, capsys: pytest.CaptureFixture
):
    shutil.rmtree(damaged_run / CHECKPOINTS)
    before = lines_of(damaged_run)
    assert start("--resume", damaged_run) == REFUSED
    message = capsys.readouterr().err
    assert "10 rows in metrics.jsonl but no checkpoint" in message
    assert message.count("\n") == 1
    assert lines_of(damaged_run) == before
    (damaged_run / "metrics.jsonl").unlink()
    assert start("--resume", damaged_run, NO_GAMES) == 0


def test_a_run_with_a_score_had_a_checkpoint(damaged_run: Path, capsys: pytest.CaptureFixture):
    """However few its rows are: the games at the end are played once all is saved."""
    shutil.rmtree(damaged_run / CHECKPOINTS)
    (damaged_run / "metrics.jsonl").write_bytes(b"".join(lines_of(damaged_run)[:2]))
    (damaged_run / "eval.json").write_text('{"score": "right", "seeds": []}')
    before = lines_of(damaged_run)
    assert start("--resume", damaged_run, NO_GAMES) == REFUSED
    assert "has 2 rows in metrics.jsonl but no checkpoint" in capsys.readouterr().err
    assert lines_of(damaged_run) == before
    (damaged_run / "metrics.jsonl").unlink()
    assert start("--resume", damaged_run, NO_GAMES) == 0


def test_a_run_that_had_no_checkpoint_yet_starts_over(damaged_run: Path, finished_run: Path):
    shutil.rmtree(damaged_run / CHECKPOINTS)
    (damaged_run / "metrics.jsonl").write_bytes(b"".join(lines_of(damaged_run)[:2]))
    assert start("--resume", damaged_run, NO_GAMES) == 0
    assert timeless_rows(damaged_run) == timeless_rows(finished_run)


@pytest.mark.parametrize("edited", ["    checkpoint_every: 3e0\n", ""])
def test_a_run_without_a_checkpoint_may_have_been_edited(
    edited: str, damaged_run: Path, finished_run: Path
):
    """A number as people write it, which YAML takes for text; or a line that is missing."""
    config = damaged_run / "config.yaml"
    line = "    checkpoint_every: 3\n"
    assert line in config.read_text()
    config.write_text(config.read_text().replace(line, edited))
    shutil.rmtree(damaged_run / CHECKPOINTS)
    (damaged_run / "metrics.jsonl").write_bytes(b"".join(lines_of(damaged_run)[:2]))
    assert start("--resume", damaged_run, NO_GAMES) == 0
    assert timeless_rows(damaged_run) == timeless_rows(finished_run)


@pytest.mark.parametrize("path", ["file/run", "file"])
def test_a_file_in_the_way(path: str, tmp_path: Path, capsys: pytest.CaptureFixture):
    (tmp_path / "file").write_text("mine")
    assert start("plain", f"--run.directory={tmp_path / path}") in (FAILED, REFUSED)
    message = capsys.readouterr().err
    assert str(tmp_path / "file") in message
    assert message.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then writing fails, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), -1))
from tests.train import tiny
from train.host.command_line import command
sys.exit(command.main(tiny.PROGRAM, sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no such limits")
@pytest.mark.parametrize(
    ("size", "every", "file"),
    [(800, 3, "metrics.jsonl"), (1200, 1, "checkpoints/"), (2250, 1, "checkpoints/")],
)
def test_a_disk_that_is_full(size: int, every: int, file: str, finished_run: Path, tmp_path: Path):
    """In the middle of a row of the record, of the arrays of a checkpoint, or of its own record."""
    directory = tmp_path / "run"
    arguments = [str(size), "plain", NO_GAMES, f"--run.directory={directory}"]
    arguments += [f"--run.checkpoint-every={every}"]
    process = subprocess.run(
        [sys.executable, "-c", LIMITED, *arguments],
        cwd=ROOT,
        text=True,
        capture_output=True,
        env=os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "0"},  # it could not be written either
    )
    assert process.returncode == FAILED
    assert process.stderr.count("\n") == 1, process.stderr
    assert "File too large" in process.stderr
    assert f"{directory}/{file}" in process.stderr
    assert f"--resume {directory}" in process.stderr
    assert start("--resume", directory, NO_GAMES) == 0
    assert timeless_rows(directory) == timeless_rows(finished_run)
