"""The batches of a sweep as jobs of a cluster, through submitit.

Each job writes the files that the sweep itself would write for its batch. One that is preempted, or
runs out of time, is queued again and goes on from its newest checkpoint. `--resume` then finds the
scores of all batches, trains what is missing, and summarises.
"""

import importlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from jaxrl.checks import Count, CountOrZero
from train.host import compilation_cache
from train.host.config import flag
from train.host.errors import UsageError, in_one_line
from train.host.numbers import quantity
from train.host.records import resume_flag
from train.sweep import files
from train.sweep.plan import Group
from train.sweep.sweep import Sweep

OF_SLURM = ("cpus", "memory", "partition", "account", "parallel")
"""Fields that have no effect with jobs of this machine."""
TIMEOUTS = 1_000
"""How often a job that runs out of time is queued again."""


@dataclass(frozen=True)
class Cluster:
    """Trains each batch as a job, and summarises later, with --resume."""

    kind: Annotated[
        Literal["none", "slurm", "local"],
        tyro.conf.arg(name="cluster", prefix_name=False),
    ] = "none"
    """Where: jobs of Slurm or, to try it out, of this machine, all at the same time."""
    members: Annotated[Count | None, tyro.conf.arg(metavar="INT")] = None
    """Members of a job, at most; None: as many as fit into the memory of this machine."""
    minutes: Count = 24 * 60
    """Time of a job. One that needs more is queued again and goes on."""
    cpus: Count = 4
    """Of Slurm: processor cores of a job."""
    gpus: CountOrZero = 0
    """GPUs of a job; a batch uses one."""
    memory: CountOrZero = 0
    """Of Slurm: gigabytes of memory of a job; 0: its default."""
    partition: str = ""
    """Of Slurm; empty: its default."""
    account: str = ""
    """Of Slurm; empty: yours."""
    parallel: Count = 256
    """Jobs of Slurm that run at the same time, at most."""


class Batch:
    """The work of a job: trains and scores a batch of the sweep in `directory`, or goes on."""

    def __init__(self, directory: str, index: int):
        self.directory, self.index = directory, index

    def __call__(self) -> None:
        from train.sweep.__main__ import again  # it imports this module

        compilation_cache.begin(())
        sweep, i = again(Path(self.directory)), self.index
        title = f"{sweep.program.address} sweep {i + 1}/{len(sweep.planned.groups)}"
        sweep.finish(sweep.planned.groups[i], files.batch(sweep.directory, i), title)

    def checkpoint(self) -> Any:
        """What is queued when the job must stop: the same, for its files tell how far it came."""
        return package().helpers.DelayedSubmission(self)


def refuse(options: Any) -> None:
    """Raises UsageError, before anything is written, for options of a sweep that do not fit."""
    asked: Cluster = options.cluster
    given = [x.name for x in fields(Cluster) if getattr(asked, x.name) != x.default]
    if asked.kind != "slurm" and (idle := [x for x in OF_SLURM if x in given]):
        raise UsageError(f"{flag(f'cluster.{idle[0]}')} needs --cluster slurm")
    if asked.kind == "none":
        if given:
            raise UsageError(f"{flag(f'cluster.{given[0]}')} needs --cluster slurm or local")
        return
    if options.resume and asked.members:
        raise UsageError("--cluster.members is for a new sweep: this one has its batches")
    if options.search:
        raise UsageError("--search needs all members in one process: leave out --cluster")
    if asked.kind == "slurm" and not all(map(shutil.which, ("sbatch", "srun"))):
        raise UsageError("--cluster slurm needs sbatch and srun: start where jobs are submitted")
    package()


def package() -> Any:
    """submitit, imported without its configuration of this process's logging.

    Raises UsageError if it is not installed.
    """
    name, said = "SUBMITIT_LOG_LEVEL", os.environ.get("SUBMITIT_LOG_LEVEL")
    os.environ[name] = "NOCONFIG"
    try:
        return importlib.import_module("submitit")
    except ImportError as error:
        raise UsageError(
            f"--cluster needs the package submitit ({in_one_line(error)}): "
            "pip install 'jaxrl[cluster]'"
        ) from None
    finally:
        del os.environ[name]
        if said is not None:  # jobs have logs of their own
            os.environ[name] = said


def shared(groups: Iterable[Group], asked: Cluster) -> Iterator[Group]:
    """The groups in parts of at most `members` members."""
    for group in groups:
        size = asked.members or len(group.trials)
        for first in range(0, len(group.trials), size):
            yield group._replace(trials=group.trials[first : first + size])


def run(sweep: Sweep, asked: Cluster) -> None:
    """Runs a sweep here, or its batches as jobs."""
    if asked.kind == "none":
        sweep.run()
    else:
        submit(sweep, asked)


def submit(sweep: Sweep, asked: Cluster) -> list[Any]:
    """Submits a job for each batch that has no scores yet; returns those jobs, of submitit.

    Raises UsageError if the cluster refuses them; the sweep can then be resumed.
    """
    count = len(sweep.planned.groups)
    kept = (files.batch(sweep.directory, i) for i in range(count))
    missing = [i for i, path in enumerate(kept) if files.read_scores(path) is None]
    if not missing:
        raise UsageError(f"all batches are trained: {resumption(sweep)}")
    try:
        with (executor := executor_of(sweep, asked)).batch():
            jobs = [executor.submit(Batch(str(sweep.directory.resolve()), i)) for i in missing]
    except (RuntimeError, OSError) as error:
        advice = f"the sweep is in {sweep.directory}, continue it with --resume"
        raise UsageError(f"--cluster {asked.kind}: {in_one_line(error)}; {advice}") from error
    names = ", ".join(job.job_id for job in jobs)
    sweep.console.print(
        f"jobs for {len(jobs)} of {quantity(count, 'batches')}: {names}", markup=False
    )
    sweep.console.print(f"when they have ended, {resumption(sweep)} summarises", markup=False)
    return jobs


def resumption(sweep: Sweep) -> str:
    """The command that goes on with a sweep."""
    return f"python -m train.sweep {resume_flag(sweep.directory)}"


def executor_of(sweep: Sweep, asked: Cluster) -> Any:
    """What submits the jobs; their logs are in `jobs/`."""
    timeouts = {f"{asked.kind}_max_num_timeout": TIMEOUTS}
    executor = package().AutoExecutor(sweep.directory / "jobs", cluster=asked.kind, **timeouts)
    slurm = {
        "slurm_partition": asked.partition or None,
        "slurm_account": asked.account or None,
        "slurm_array_parallelism": asked.parallel,
    }
    executor.update_parameters(
        name=f"sweep-{sweep.program.address}",
        timeout_min=asked.minutes,
        cpus_per_task=asked.cpus,
        gpus_per_node=asked.gpus or None,
        mem_gb=asked.memory or None,
        **(slurm if asked.kind == "slurm" else {}),
    )
    return executor
