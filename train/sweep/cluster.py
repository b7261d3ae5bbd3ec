"""Where the batches of a sweep are trained: here, or as jobs of a cluster, and of which size."""

import importlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import tyro

from jaxrl.checks import Count, CountOrZero
from train.host.errors import UsageError, in_one_line
from train.host.plain_config import flag
from train.sweep.plan import Group

OF_SLURM = ("cpus", "memory", "partition", "account", "parallel")
"""Fields that have no effect with jobs of this machine."""


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
    """Processor cores of a job of Slurm."""
    gpus: CountOrZero = 0
    """GPUs of a job; a batch uses one."""
    memory: CountOrZero = 0
    """Gigabytes of memory of a job of Slurm; 0: its default."""
    partition: str = ""
    """Partition of Slurm; empty: its default."""
    account: str = ""
    """Account of Slurm; empty: yours."""
    parallel: Count = 256
    """Jobs of Slurm that run at the same time, at most."""


def refuse(options: Any) -> None:
    """Raises UsageError, before anything is written, for options of a sweep that do not fit."""
    cluster: Cluster = options.cluster
    changed = [x.name for x in fields(Cluster) if getattr(cluster, x.name) != x.default]
    if cluster.kind != "slurm" and (idle := [x for x in OF_SLURM if x in changed]):
        raise UsageError(f"{flag(f'cluster.{idle[0]}')} needs --cluster slurm")
    if cluster.kind == "none":
        if changed:
            raise UsageError(f"{flag(f'cluster.{changed[0]}')} needs --cluster slurm or local")
        return
    if options.resume and cluster.members:
        raise UsageError("--cluster.members is for a new sweep: this one has its batches")
    if cluster.kind == "slurm" and not all(map(shutil.which, ("sbatch", "srun"))):
        raise UsageError("--cluster slurm needs sbatch and srun: start where jobs are submitted")
    package()


def package() -> Any:
    """submitit, imported without its configuration of this process's logging.

    Raises UsageError if it is not installed.
    """
    name, previous_level = "SUBMITIT_LOG_LEVEL", os.environ.get("SUBMITIT_LOG_LEVEL")
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
        if previous_level is not None:  # jobs have logs of their own
            os.environ[name] = previous_level


def split_groups(groups: Iterable[Group], cluster: Cluster) -> Iterator[Group]:
    """The groups in parts of at most `members` members."""
    for group in groups:
        size = cluster.members or len(group.trials)
        for first in range(0, len(group.trials), size):
            yield group._replace(trials=group.trials[first : first + size])
