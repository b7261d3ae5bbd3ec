"""The files of a run directory, and configurations as plain data."""

import dataclasses
import enum
import errno
import io
import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from rich.console import Console

from jaxrl.evaluate import Episodes
from tests.train import tiny
from train.host.errors import UsageError
from train.host.files import metrics_file, provenance, run_directory, whole_files
from train.host.files.rows import rounded_rate
from train.host.files.run_directory import RunDirectory
from train.host.files.whole_files import write_whole
from train.host.machine.progress import Display, clock, rate_text
from train.host.plain_config import differences, plain, rebuild
from train.host.scoring.games import GameResults, evaluation_content
from train.host.scoring.scores import evaluation_table, read_evaluation, write_evaluation
from train.host.training import Evaluation


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@struct.dataclass
class Inner:
    rate: Any
    sizes: tuple[int, ...] = struct.field(pytree_node=False, default=(64, 64))


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner = dataclasses.field(default_factory=lambda: Inner(1e-3))
    colour: Colour = Colour.RED
    limit: int | None = None
    anneal: float = float("inf")
    name: str = "snake"

    def __post_init__(self):
        if self.limit is not None and self.limit < 0:
            raise ValueError(f"limit must be positive; got {self.limit}")


OTHER = Outer(Inner(2.5e-5, (8,)), Colour.BLUE, 7, 3.0, "a: b #")


@pytest.mark.parametrize("config", [Outer(), OTHER, Outer(Inner(jnp.float32(0.5), ()))])
def test_a_configuration_survives_its_file(tmp_path: Path, config: Outer):
    RunDirectory(tmp_path).write_config("snake", "ppo", config)
    saved = RunDirectory.open(tmp_path).config()
    assert (saved["name"], saved["preset"]) == ("snake", "ppo")
    assert rebuild(Outer(), saved["config"]) == config
    assert json.loads(json.dumps(saved["config"])) == plain(config)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_an_editor_may_have_written_the_configuration(tmp_path: Path, encoding: str):
    """Windows' own write a mark at the start, PowerShell UTF-16."""
    path = tmp_path / "config.yaml"
    text = "name: snake\npreset: ppo\nconfig:\n  text: größer → kleiner\n"
    path.write_text(text.replace("\n", "\r\n"), encoding=encoding, newline="")
    assert run_directory.read_config_file(path) == {
        "name": "snake",
        "preset": "ppo",
        "config": {"text": "größer → kleiner"},
    }


def test_only_plain_things_are_configuration():
    with pytest.raises(TypeError, match="numbers, strings and dataclasses"):
        plain({"f": len})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda c: c["inner"].pop("rate"), "another version: see inner.rate"),
        (lambda c: c.update(speed=3, size=1), "another version: see size, speed"),
        (lambda c: c.update(inner=3), "another version: see inner.'3', inner.rate"),
        (lambda c: c.update({"a\nb": 1}), r"another version: see 'a\\nb'$"),
        (lambda c: c.update(limit=-1), "cannot be used: limit must be positive; got -1"),
    ],
)
def test_a_configuration_of_another_version_is_refused(change, complaint: str):
    saved = plain(Outer())
    change(saved)
    with pytest.raises(UsageError, match=complaint):
        rebuild(Outer(), saved)


def test_a_field_that_was_added_since_has_its_default():
    """The class sets it and does what was done before; the default of a preset does not count."""
    saved = plain(OTHER)
    del saved["limit"], saved["inner"]["sizes"]
    expected = dataclasses.replace(OTHER, limit=None, inner=Inner(2.5e-5))
    assert rebuild(dataclasses.replace(OTHER, limit=9), saved) == expected


def test_differences_are_told_field_by_field():
    changes = differences(plain(Outer()), plain(OTHER), {"name", "anneal"})
    assert changes == [
        "colour: RED -> BLUE",
        "inner.rate: 0.001 -> 2.5e-05",
        "inner.sizes: [64, 64] -> [8]",
        "limit: None -> 7",
    ]
    assert differences({"a": None}, {}) == ["a: None -> absent"]
    assert differences(plain(OTHER), json.loads(json.dumps(plain(OTHER)))) == []


@pytest.mark.parametrize("holds_more", [False, True])
def test_the_commit_of_a_repository_around_the_library_is_not_its_own(tmp_path, holds_more):
    library = tmp_path / "site-packages" if holds_more else tmp_path
    library.mkdir(exist_ok=True)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "begun"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert provenance.commit(library) == (None if holds_more else head.strip())


def test_a_changed_library_is_told_with_its_commit_and_nothing_of_git_is_written(tmp_path):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    file = tmp_path / "module.py"
    file.write_text("a = 1\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "begun"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    os.utime(file, (1, 1))  # git would note that the file is the same for all that
    index = (tmp_path / ".git" / "index").read_bytes()
    assert provenance.commit(tmp_path) == head.strip()
    (tmp_path / "notes").write_text("not of the library")
    assert provenance.commit(tmp_path) == head.strip()
    file.write_text("a = 2\n")
    assert provenance.commit(tmp_path) == f"{head.strip()}-dirty"
    assert (tmp_path / ".git" / "index").read_bytes() == index


def test_runs_of_one_second_get_directories_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.strftime", lambda _: "20260101-120000")
    names = [RunDirectory.create("", "snake").path.as_posix() for _ in range(3)]
    first = "runs/snake-20260101-120000"
    assert names == [first, f"{first}-2", f"{first}-3"]


def test_where_the_files_of_a_run_lie(tmp_path: Path):
    directory = RunDirectory(tmp_path)
    assert not directory.has_config
    with pytest.raises(UsageError, match="is not a run directory"):
        RunDirectory.open(tmp_path)
    for name in ("config.yaml", "b.png", "a.png", "a.gif"):
        (tmp_path / name).touch()
    assert RunDirectory.open(str(tmp_path)) == directory
    assert [path.name for path in directory.pictures()] == ["a.png", "b.png"]
    files = (directory.metrics, directory.evaluation)
    folders = (directory.checkpoints, directory.best, directory.snapshots, directory.samples)
    assert {path.parent for path in (*files, *folders)} == {tmp_path}
    assert [path.name for path in files] == ["metrics.jsonl", "eval.json"]
    assert [path.name for path in folders] == ["checkpoints", "best", "snapshots", "samples"]


def test_a_directory_in_use_is_refused(tmp_path: Path):
    assert RunDirectory.create(str(tmp_path / "a" / "b"), "snake").path.is_dir()
    assert RunDirectory.create(str(tmp_path / "a" / "b"), "snake").path.is_dir()  # still empty
    with pytest.raises(UsageError, match="exists already"):
        RunDirectory.create(str(tmp_path / "a"), "snake")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file: name a directory that is new or empty"):
        RunDirectory.create(str(tmp_path / "file"), "snake")


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch):
    whole_files.refuse_unwritable(tmp_path / "a" / "b", "copy it")
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        path = tmp_path / name
        with pytest.raises(UsageError, match=f"a cannot be written, as {path} is no folder: copy"):
            whole_files.refuse_unwritable(path / "a", "copy it")
    calls = []
    monkeypatch.setattr(os, "access", lambda path, mode: calls.append((path, mode)))
    with pytest.raises(UsageError, match="cannot be written: copy it"):
        whole_files.refuse_unwritable(tmp_path / "a" / "b", "copy it")
    with pytest.raises(UsageError, match="cannot be written: name a file in a folder that can"):
        whole_files.refuse_no_file(tmp_path / "scores.json")
    assert calls == [(tmp_path, os.W_OK)] * 2


def test_a_file_system_that_cannot_be_written_names_the_file_that_was_asked_for(
    tmp_path: Path, monkeypatch
):
    """Which refuses to delete what is not there, too."""

    def refuse(path: Path, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only") as caught:
        whole_files.write_whole(tmp_path / "page.html", "text")
    assert caught.value.filename == str(tmp_path / "page.html")


def test_no_run_without_a_name_begins_where_runs_is_a_file(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RunDirectory.refuse_unusable("")
    assert not list(tmp_path.iterdir())
    (tmp_path / "runs").touch()
    with pytest.raises(UsageError, match="runs is a file: name a directory that is new or empty"):
        RunDirectory.refuse_unusable("")


@pytest.mark.parametrize("directory", ["runs/a", "my runs/größer", "it's"])
def test_a_shell_reads_the_directory_to_resume(directory: str):
    assert shlex.split(run_directory.resume_flag(directory)) == ["--resume", directory]


@pytest.mark.parametrize("text", ["", "a: [", "3", "name: x\npreset: y\n", "\x00"])
def test_not_a_configuration(tmp_path: Path, text: str):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(UsageError, match="is not the configuration of a run") as error:
        RunDirectory.open(tmp_path).config()
    assert "\n" not in str(error.value)


def rows(*updates: int) -> list[dict[str, Any]]:
    return [{"seed": seed, "updates": u, "loss": 0.5} for u in updates for seed in (0, 1)]


@pytest.mark.parametrize("tail", [b"", b'{"seed": 0, "updates": 5', b"\xff\xfe\n", b"[]\n"])
def test_the_record_is_cut_to_the_checkpoint(tmp_path: Path, tail: bytes):
    with metrics_file.MetricsFile(tmp_path) as record:
        record.append(rows(1, 2, 3, 4))
        record.sync()
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(tail)
    assert metrics_file.read_metrics(tmp_path) == rows(1, 2, 3, 4)
    with metrics_file.MetricsFile(tmp_path) as record:
        assert record.cut(8) == 0
        assert metrics_file.read_metrics(tmp_path) == rows(1, 2, 3, 4)
        assert record.cut(4) == 4
        assert metrics_file.read_metrics(tmp_path) == rows(1, 2)
        record.append(rows(3))
    assert metrics_file.read_metrics(tmp_path) == rows(1, 2, 3)


def test_rows_are_replaced_in_one_step_or_not_at_all(tmp_path: Path, monkeypatch):
    def fail(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with metrics_file.MetricsFile(tmp_path) as record:
        record.append(rows(1, 2))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(OSError, match=r"metrics\.jsonl"):
                record.replace(2, rows(7))
        assert metrics_file.read_metrics(tmp_path) == rows(1, 2)
        record.replace(2, rows(3))
        record.append(rows(4))
        assert metrics_file.read_metrics(tmp_path) == rows(1, 3, 4)
        with pytest.raises(UsageError, match="is being written by another process"):
            metrics_file.MetricsFile(tmp_path)


def test_a_folder_that_takes_no_file_is_told_with_the_name_that_was_asked_for(tmp_path: Path):
    path = tmp_path / "missing" / "curve.png"
    with pytest.raises(FileNotFoundError) as refusal:
        write_whole(path, "text")
    assert refusal.value.filename == str(path)


def test_the_record_is_json_whatever_the_numbers(tmp_path: Path):
    with metrics_file.MetricsFile(tmp_path) as record:
        record.append([{"updates": 1, "agent": {"loss": float("nan"), "q": [1.0, float("inf")]}}])
    line = (tmp_path / "metrics.jsonl").read_text()
    assert json.loads(line, parse_constant=pytest.fail)["agent"] == {"loss": None, "q": [1.0, None]}


def test_no_record(tmp_path: Path):
    with pytest.raises(UsageError, match=r"holds no metrics\.jsonl: give the directory of a run"):
        metrics_file.read_metrics(tmp_path)
    RunDirectory(tmp_path).write_config("tests.train.tiny", "plain", tiny.Config())
    with pytest.raises(UsageError, match=r"metrics\.jsonl: put it back, or an empty file"):
        metrics_file.read_metrics(tmp_path)
    RunDirectory(tmp_path).metrics.touch()
    assert metrics_file.read_metrics(tmp_path) == []


def test_an_evaluation_is_summarised(tmp_path: Path):
    """Ten games, one of which was not finished, worked out by hand."""
    score = np.arange(10).reshape(5, 2)
    complete = np.ones((5, 2), bool)
    complete[4, 1] = False  # score 9
    games = Episodes(
        return_=jnp.asarray(score / 2),
        length=jnp.full((5, 2), 3),
        terminated=jnp.asarray(score < 6),
        truncated=jnp.asarray(score >= 6),
        outcome={"score": jnp.asarray(score)},
        complete=jnp.asarray(complete),
    )
    played = GameResults([games, games], compile_seconds=1.5, seconds=0.5)
    content = evaluation_content([3, 4], played, "score")
    table = evaluation_table(content)
    write_evaluation(tmp_path, Evaluation(content, table, played), greedy=True)
    written = json.loads((tmp_path / "eval.json").read_text())
    assert read_evaluation(tmp_path) == written == {**content, "greedy": True}
    assert list(written) == ["score", "compile_seconds", "seconds", "greedy", "seeds"]
    assert (content["compile_seconds"], content["seconds"]) == (1.5, 0.5)
    first, second = content["seeds"]
    assert (first["seed"], second["seed"]) == (3, 4)
    assert (first["games"], first["incomplete"], first["steps"]) == (9, 1, 27)
    assert [first["score"][name] for name in ("mean", "median", "max")] == [4, 4, 8]
    assert 2 < first["score"]["low"] < 4 < first["score"]["high"] < 6
    assert first["terminated"]["mean"] == pytest.approx(2 / 3)
    assert first["terminated"]["low"] == pytest.approx(0.354, abs=1e-3)  # Wilson, 6 of 9
    assert first["terminated"]["high"] == pytest.approx(0.879, abs=1e-3)
    text = io.StringIO()
    Console(file=text, width=100).print(table)
    assert "score at the end of complete games" in text.getvalue()
    assert text.getvalue().count(" to ") == 2


@pytest.mark.parametrize(("count", "expected"), [(0, None), (1, 2.0)])
def test_too_few_games_have_no_interval(count: int, expected: float | None):
    complete = jnp.arange(3)[:, None] < count
    flags, numbers = jnp.zeros((3, 1), bool), jnp.full((3, 1), 2.0)
    games = Episodes(numbers, numbers, flags, flags, {}, complete)
    content = evaluation_content([0], GameResults([games], 0.0, 0.0), "return")
    assert content["seeds"][0]["return"]["mean"] == expected
    Console(file=io.StringIO()).print(evaluation_table(content))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0s"), (9.94, "9.9s"), (59.6, "1m00s"), (187, "3m07s"), (3725, "1h02m")],
)
def test_the_clock(seconds: float, text: str):
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(351_000.4, "351,000"), (9.96, "10"), (2.04, "2"), (0.213, "0.21"), (0.0042, "0.0042")],
)
def test_a_slow_rate_is_not_rounded_to_zero(rate: float, text: str):
    assert rate_text(rate) == text


def test_a_log_file_gets_lines_and_a_terminal_a_bar(monkeypatch: pytest.MonkeyPatch):
    current_time = 0.0
    monkeypatch.setattr("train.host.machine.progress.time.monotonic", lambda: current_time)
    text = io.StringIO()
    with Display("tiny", Console(file=text, width=100)) as display:
        display.begin(0.0, "steps")
        for fraction in (0.25, 0.5, 0.75):
            current_time += 6.0
            display.update(fraction, int(fraction * 1e6), 1234.5, ("score", 2.0))
    assert text.getvalue() == "tiny   50%  500,000 steps  1,234/s  score 2  12s left\n"
    text = io.StringIO()
    console = Console(file=text, width=100, force_terminal=True)
    with Display("tiny", console) as display:
        display.begin(0.5, "checkpoints")
        current_time += 5.0
        display.update(0.75, 30, 0.05, ("score", None))
    assert "75%" in text.getvalue()
    assert "30 checkpoints  0.05/s  5.0s left" in text.getvalue()


@pytest.mark.parametrize(
    ("rate", "expected"), [(0.4321, 0.432), (7.0, 7), (99.94, 99.9), (123.6, 124)]
)
def test_a_slow_update_has_a_rate_above_0(rate, expected):
    assert rounded_rate(rate) == expected
