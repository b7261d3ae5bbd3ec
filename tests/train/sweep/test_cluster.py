"""Batches of a sweep as jobs: the same files as without, from jobs that may be interrupted."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.train import tiny
from train.host.errors import REFUSED
from train.sweep import cluster, files
from train.sweep import jobs as batch_jobs
from train.sweep.__main__ import main
from train.sweep.plan import Group

ROOT = Path(__file__).resolve().parents[3]
NAME = tiny.PROGRAM.address
GRID = ["--vary", "agent.learning_rate=0.01,0.1", "--seeds", "2", "--confirm", "0"]


def sweep(directory: Path, *arguments: str, preset: str = "plain") -> int:
    return main([NAME, preset, "--directory", str(directory), *GRID, *arguments])


def scores(directory: Path, index: int, seconds: float = 200) -> list[dict]:
    """Waits until the job of a batch has written its scores, and returns them."""
    path, began = files.batch(directory, index), time.monotonic()
    while (rows := files.read_scores(path)) is None:
        if time.monotonic() - began > seconds:
            logs = "".join(x.read_text() for x in (directory / "jobs").glob("*.err"))
            raise TimeoutError(f"{path} has no scores: {logs}")
        time.sleep(0.05)
    return rows


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The jobs that are submitted, which come to their end."""
    submit, submissions = batch_jobs.submit, []
    monkeypatch.setattr(batch_jobs, "submit", lambda *args: submissions.extend(submit(*args)))
    monkeypatch.chdir(ROOT)
    yield submissions
    for job in submissions:
        job._process.wait()


@pytest.mark.slow
def test_a_job_for_every_batch(tmp_path, capsys, jobs):
    """Their scores, table and summary are those of the sweep that trains here."""
    shape = ["--cluster.members", "3"]
    assert sweep(tmp_path / "jobs", "--cluster", "local", *shape) == 0
    output = capsys.readouterr().out
    assert f"jobs for 2 of 2 batches: {', '.join(job.job_id for job in jobs)}" in output
    assert f"python -m train.sweep --resume {tmp_path / 'jobs'} summarises" in output
    assert not (tmp_path / "jobs" / files.SUMMARY).exists()
    assert sweep(tmp_path / "here") == 0
    whole = scores(tmp_path / "here", 0)
    batch_scores = [scores(tmp_path / "jobs", i) for i in range(2)]
    assert [[row["member"] for row in part] for part in batch_scores] == [[0, 1, 2], [3]]
    untouched = [x.stat().st_mtime_ns for x in (tmp_path / "jobs").glob("batches/*/scores.json")]
    for row, expected in zip([*batch_scores[0], *batch_scores[1]], whole, strict=True):
        assert row["score"] == pytest.approx(expected["score"])
        assert (row["member"], row["updates"]) == (expected["member"], expected["updates"])
    assert main(["--resume", str(tmp_path / "jobs")]) == 0
    after = [x.stat().st_mtime_ns for x in (tmp_path / "jobs").glob("batches/*/scores.json")]
    assert after == untouched
    for name in (files.SUMMARY, files.TABLE):
        assert (tmp_path / "jobs" / name).read_text() == (tmp_path / "here" / name).read_text()
    assert main(["--resume", str(tmp_path / "jobs"), "--cluster", "local"]) == REFUSED
    assert "all batches are trained" in capsys.readouterr().err


@pytest.mark.slow
def test_a_job_that_is_preempted_goes_on(tmp_path, jobs):
    """The cluster warns it with a signal; what is queued then ends as if it had not been."""
    flags = ["--run.total-steps", "1200", "--run.evaluation-games", "0"]
    assert sweep(tmp_path / "jobs", *flags, "--cluster", "local", preset="slow") == 0
    (job,) = jobs
    batch = files.batch(tmp_path / "jobs", 0)
    while len(list(batch.glob("checkpoints/0*"))) < 1:
        assert not job.done()
        time.sleep(0.02)
    (worker,) = Path(f"/proc/{job.job_id}/task/{job.job_id}/children").read_text().split()
    os.kill(int(worker), signal.SIGUSR2)
    assert sweep(tmp_path / "here", *flags, preset="slow") == 0
    assert scores(tmp_path / "jobs", 0) == scores(tmp_path / "here", 0)
    assert "Requeued job" in (tmp_path / "jobs" / "jobs" / f"{job.job_id}_0_log.out").read_text()


def test_what_is_queued_again_is_the_same():
    batch = batch_jobs.Batch("somewhere", 3)
    queued = batch.checkpoint()
    assert (queued.function, queued.args, queued.kwargs) == (batch, (), {})


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where the scripts arrive that are given to `sbatch`."""
    commands, arrived = tmp_path / "bin", tmp_path / "arrived"
    commands.mkdir()
    arrived.mkdir()
    sbatch_script = f'#!/bin/sh\ncp "$1" {arrived}/\necho Submitted batch job 77\n'
    for name, script in (("sbatch", sbatch_script), ("srun", "#!/bin/sh\n")):
        (commands / name).write_text(script)
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    return arrived


def test_slurm_is_asked_for_what_was_said(tmp_path, slurm, capsys):
    options = {
        "members": 2,
        "minutes": 90,
        "cpus": 3,
        "gpus": 1,
        "memory": 16,
        "partition": "long",
        "account": "lab",
        "parallel": 1,
    }
    flags = [x for name, value in options.items() for x in (f"--cluster.{name}", str(value))]
    assert sweep(tmp_path / "s", "--cluster", "slurm", *flags) == 0
    (script,) = [path.read_text() for path in slurm.iterdir()]
    for line in (
        "--array=0-1%1",
        "--time=90",
        "--cpus-per-task=3",
        "--gpus-per-node=1",
        "--mem=16GB",
        "--partition=long",
        "--account=lab",
        f"--job-name=sweep-{NAME}",
    ):
        assert f"#SBATCH {line}\n" in script
    assert "jobs for 2 of 2 batches: 77_0, 77_1" in capsys.readouterr().out
    assert "cluster" not in files.read_plan(tmp_path / "s")["options"]


def test_a_cluster_that_refuses(tmp_path, slurm, capsys):
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/sh\necho no such partition >&2\nexit 1\n")
    assert sweep(tmp_path / "s", "--cluster", "slurm") == REFUSED
    *their_lines, error = capsys.readouterr().err.splitlines()
    assert their_lines == ["no such partition"]  # as they said it
    assert "--cluster slurm: no such partition; " in error
    assert f"the sweep is in {tmp_path / 's'}, continue it with --resume" in error


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--cluster.members", "3"], "--cluster.members needs --cluster slurm or local"),
        (["--cluster.partition", "x"], "--cluster.partition needs --cluster slurm"),
        (["--cluster", "local", "--cluster.cpus", "2"], "--cluster.cpus needs --cluster slurm"),
        (["--cluster", "slurm"], "--cluster slurm needs sbatch and srun"),
        (["--cluster", "moon"], "invalid choice 'moon'"),
        (["--cluster", "local", "--cluster.members", "0"], "--cluster.members is 0"),
    ],
)
def test_bad_input_is_refused_in_one_line(flags, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sweep(tmp_path / "s", *flags) == REFUSED
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "s").exists()


def test_the_batches_of_a_sweep_stay(tmp_path, capsys):
    flags = ["--resume", str(tmp_path), "--cluster", "local", "--cluster.members", "2"]
    assert main(flags) == REFUSED
    assert "--cluster.members is for a new sweep" in capsys.readouterr().err


def test_without_the_package(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert sweep(tmp_path / "s", "--cluster", "local") == REFUSED
    error = capsys.readouterr().err
    assert "--cluster needs the package submitit" in error
    assert "pip install 'jaxrl[cluster]'" in error
    assert not (tmp_path / "s").exists()


def test_groups_are_shared_among_jobs():
    group = Group(None, (), list(range(7)))  # pyright: ignore[reportArgumentType]
    parts = cluster.split_groups([group, group], cluster.Cluster("local", members=3))
    assert [part.trials for part in parts] == [[0, 1, 2], [3, 4, 5], [6]] * 2
    assert list(cluster.split_groups([group], cluster.Cluster())) == [group]
