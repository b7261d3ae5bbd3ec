"""Limits of containers and jobs, read from folders such as Linux has them."""

from pathlib import Path

import pytest

from train.host.machine import control_groups, devices

GB = 10**9
NO_LIMIT = 9223372036854771712
"""What version 1 writes where there is no limit."""


def system(root: Path, own: str, files: dict[str, str]) -> Path:
    """A file system whose process is in the groups `own`."""
    contents = {"proc/self/cgroup": own} | {
        f"sys/fs/cgroup/{name}": text for name, text in files.items()
    }
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n".lstrip(), encoding="utf-8")
    return root


def in_memory(limit: int | str, used: int, inactive: int, folder: str = "") -> dict[str, str]:
    """The files of a group of version 2."""
    return {
        f"{folder}memory.max": str(limit),
        f"{folder}memory.current": str(used),
        f"{folder}memory.stat": f"anon 1\nfile 2\ninactive_file {inactive}\nactive_file 7",
    }


def in_memory_1(limit: int, used: int, inactive: int, folder: str) -> dict[str, str]:
    """The same of version 1, which counts those of a group alone, too."""
    return {
        f"{folder}memory.limit_in_bytes": str(limit),
        f"{folder}memory.usage_in_bytes": str(used),
        f"{folder}memory.stat": f"inactive_file 5\ntotal_inactive_file {inactive}",
    }


@pytest.mark.parametrize(
    ("own", "files", "free"),
    [
        pytest.param("0::/", in_memory(8 * GB, int(7.5 * GB), 7 * GB), 7.5 * GB, id="warm cache"),
        pytest.param("0::/", in_memory(8 * GB, 3 * GB, 0), 5 * GB, id="no cache"),
        pytest.param("0::/", in_memory(8 * GB, GB, 2 * GB), 8 * GB, id="counted later"),
        pytest.param("0::/", in_memory("max", 3 * GB, 0), None, id="no limit"),
        pytest.param(
            "0::/job/step",
            in_memory("max", GB, 0, "job/step/") | in_memory(4 * GB, 3 * GB, GB, "job/"),
            2 * GB,
            id="limit of the job",
        ),
        pytest.param(
            "0::/job/step",
            in_memory(2 * GB, GB, 0, "job/step/") | in_memory(9 * GB, 3 * GB, 0, "job/"),
            GB,
            id="limit of the step",
        ),
        pytest.param(
            "3:cpu,cpuacct:/a\n2:memory:/a\n0::/",
            in_memory_1(8 * GB, 7 * GB, 6 * GB, "memory/a/")
            | in_memory_1(NO_LIMIT, 20 * GB, GB, "memory/"),
            7 * GB,
            id="version 1",
        ),
        pytest.param(
            "2:memory:/docker/0123",
            in_memory_1(4 * GB, GB, 0, "memory/"),
            3 * GB,
            id="version 1 seen from inside",
        ),
        pytest.param(
            "1:name=systemd:/\n0::/user.slice",
            in_memory(3 * GB, GB, 0, "unified/user.slice/"),
            2 * GB,
            id="both versions",
        ),
        pytest.param("0::/../other", in_memory(2 * GB, GB, 0), GB, id="outside of the namespace"),
        pytest.param("", {}, None, id="no groups"),
    ],
)
def test_memory_that_can_be_dropped_is_free(tmp_path: Path, own, files, free):
    assert control_groups.free_memory(system(tmp_path, own, files)) == free


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/", {"cpu.max": "200000 100000"}, 2),
        ("0::/", {"cpu.max": "150000 100000"}, 2),
        ("0::/", {"cpu.max": "25000 100000"}, 1),
        ("0::/", {"cpu.max": "max 100000"}, None),
        (
            "0::/a/b",
            {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"},
            3,
        ),
        (
            "4:cpu,cpuacct:/a",
            {
                "cpu,cpuacct/a/cpu.cfs_quota_us": "250000",
                "cpu,cpuacct/a/cpu.cfs_period_us": "50000",
            },
            5,
        ),
        (
            "4:cpuacct,cpu:/a",  # mounted under the name of the controller
            {
                "cpu/cpu.cfs_quota_us": "100000",
                "cpu/cpu.cfs_period_us": "100000",
            },
            1,
        ),
        ("1:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "9"}, None),
        ("", {}, None),
    ],
)
def test_a_quota_is_rounded_up_to_cores(tmp_path: Path, own, files, cores):
    assert control_groups.cores(system(tmp_path, own, files)) == cores


def test_there_are_no_more_devices_than_the_quota_pays_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(devices.os, "sched_getaffinity", lambda _: range(64), raising=False)
    monkeypatch.setattr(control_groups, "cores", lambda: None)
    assert devices.core_count() == 64
    monkeypatch.setattr(control_groups, "cores", lambda: 2)
    assert devices.core_count() == 2
    monkeypatch.setattr(devices.os, "sched_getaffinity", lambda _: range(1), raising=False)
    assert devices.core_count() == 1
