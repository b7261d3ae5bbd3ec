"""The batches of a sweep as jobs of a cluster, through submitit.

Each job writes the files that the sweep itself would write for its batch. One that is preempted, or
runs out of time, is queued again and goes on from its newest checkpoint. `--resume` then finds the
scores of all batches, trains what is missing, and summarises.
"""

from pathlib import Path
from typing import Any

from train.host.compilation import compilation_cache
from train.host.errors import UsageError, in_one_line
from train.host.files.run_directory import resume_flag
from train.host.machine import jax_settings
from train.host.numbers import quantity
from train.sweep import build, files
from train.sweep.cluster import Cluster, package
from train.sweep.sweep import Sweep

TIMEOUTS = 1_000
"""How often a job that runs out of time is queued again."""


class Batch:
    """The work of a job: trains and scores a batch of the sweep in `directory`, or goes on."""

    def __init__(self, directory: str, index: int):
        self.directory, self.index = directory, index

    def __call__(self) -> None:
        compilation_cache.begin(())
        sweep, i = build.resume(Path(self.directory)), self.index
        title = f"{sweep.program.address} sweep {i + 1}/{len(sweep.planned.groups)}"
        with jax_settings.network_precision(sweep.config.run.precision):
            sweep.finish(sweep.planned.groups[i], files.batch(sweep.directory, i), title)

    def checkpoint(self) -> Any:
        """What is queued when the job must stop: the same, for its files tell how far it came."""
        return package().helpers.DelayedSubmission(self)


def run(sweep: Sweep, cluster: Cluster) -> None:
    """Runs a sweep here, or its batches as jobs."""
    if cluster.kind == "none":
        with jax_settings.network_precision(sweep.config.run.precision):
            sweep.run()
    else:
        submit(sweep, cluster)


def submit(sweep: Sweep, cluster: Cluster) -> list[Any]:
    """Submits a job for each batch that has no scores yet; returns those jobs, of submitit.

    Raises UsageError if the cluster refuses them; the sweep can then be resumed.
    """
    count = len(sweep.planned.groups)
    directories = (files.batch(sweep.directory, i) for i in range(count))
    missing = [i for i, path in enumerate(directories) if files.read_scores(path) is None]
    if not missing:
        raise UsageError(f"all batches are trained: {resume_command(sweep)}")
    try:
        with (executor := executor_of(sweep, cluster)).batch():
            jobs = [executor.submit(Batch(str(sweep.directory.resolve()), i)) for i in missing]
    except (RuntimeError, OSError) as error:
        advice = f"the sweep is in {sweep.directory}, continue it with --resume"
        raise UsageError(f"--cluster {cluster.kind}: {in_one_line(error)}; {advice}") from error
    names = ", ".join(job.job_id for job in jobs)
    sweep.console.print(
        f"jobs for {len(jobs)} of {quantity(count, 'batches')}: {names}", markup=False
    )
    sweep.console.print(f"when they have ended, {resume_command(sweep)} summarises", markup=False)
    return jobs


def resume_command(sweep: Sweep) -> str:
    """The command that goes on with a sweep."""
    return f"python -m train.sweep {resume_flag(sweep.directory)}"


def executor_of(sweep: Sweep, cluster: Cluster) -> Any:
    """What submits the jobs; their logs are in `jobs/`."""
    timeouts = {f"{cluster.kind}_max_num_timeout": TIMEOUTS}
    executor = package().AutoExecutor(sweep.directory / "jobs", cluster=cluster.kind, **timeouts)
    slurm = {
        "slurm_partition": cluster.partition or None,
        "slurm_account": cluster.account or None,
        "slurm_array_parallelism": cluster.parallel,
    }
    executor.update_parameters(
        name=f"sweep-{sweep.program.address}",
        timeout_min=cluster.minutes,
        cpus_per_task=cluster.cpus,
        gpus_per_node=cluster.gpus or None,
        mem_gb=cluster.memory or None,
        **(slurm if cluster.kind == "slurm" else {}),
    )
    return executor
