"""What control groups of Linux leave this process: those of containers, SLURM jobs, systemd scopes.

The limits of a group hold for all groups below it, so every group is asked from that of this
process, which `/proc/self/cgroup` names, up to the root that is mounted. Version 2 has one tree,
version 1 one for each controller. In a container the path may be that outside of it; the root that
is mounted is then the container's own group.
"""

from collections.abc import Iterator
from pathlib import Path

MEMORY = (  # limit, use, and which line of memory.stat counts files that can be dropped
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
CORES = (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
"""The files that hold quota and period, both in microseconds."""
ROOT = Path("/")


def free_memory(root: Path = ROOT) -> int | None:
    """Bytes that are left below the tightest limit; None: there is no limit.

    Files that the kernel keeps in memory and can drop at once count as free. Where there is no
    limit, version 1 has a number that no machine reaches.
    """
    free = (_free_memory_in(folder) for folder in _groups("memory", root))
    return min((x for x in free if x is not None), default=None)


def cores(root: Path = ROOT) -> int | None:
    """Cores that the tightest quota pays for, rounded up; None: there is no quota."""
    quotas = (_cores_in(folder) for folder in _groups("cpu", root))
    return min((x for x in quotas if x is not None), default=None)


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """The folders of the groups of this process, whether or not they exist."""
    mount = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines() or ["0::/"]:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for name in (controllers, controller) if controllers else ("", "unified"):
            tree = mount / name
            own = tree / path.lstrip("/")
            yield from (x for x in (own, *own.parents) if x.is_relative_to(tree))


def _free_memory_in(folder: Path) -> int | None:
    statistics = _text(folder / "memory.stat").split()
    counts = dict(zip(statistics[::2], statistics[1::2], strict=False))
    for limit, usage, droppable in MEMORY:
        limit_text, usage_text = (_text(folder / name).strip() for name in (limit, usage))
        if limit_text.isdigit() and usage_text.isdigit():
            return int(limit_text) - max(int(usage_text) - int(counts.get(droppable, 0)), 0)
    return None


def _cores_in(folder: Path) -> int | None:
    for files in CORES:
        match " ".join(_text(folder / name) for name in files).split():
            case [quota, period] if quota.isdigit() and period.isdigit() and int(period):
                return max(-(-int(quota) // int(period)), 1)
    return None


def _text(path: Path) -> str:
    """The text of a file of the kernel; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
