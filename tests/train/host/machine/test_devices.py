"""Runs on several devices: the numbers of one device, moved from one number of them to another."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.train.host.crashes import timeless_rows
from train.allo import config as allo
from train.host.errors import UsageError
from train.host.machine import devices
from train.host.running import preparation, saved_runs

ROOT = Path(__file__).resolve().parents[4]
ROUNDING = 1e-3
"""Sums over devices round otherwise; Adam makes 1e-7 larger (see tests/jaxrl/test_sharding.py)."""


@pytest.fixture(scope="module")
def finished_runs(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("devices")
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    command = [sys.executable, "-m", "tests.train.host.machine.device_runs", str(directory)]
    process = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert process.returncode == 0, process.stderr[-3000:]
    (directory / "said").write_text(process.stderr)
    (directory / "printed").write_text(process.stdout)
    return directory


def parameters(directory: Path) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(saved_runs.load(directory).state.agent.params)]


def assert_equal(one: Path, other: Path) -> None:
    for x, y in zip(parameters(one), parameters(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=ROUNDING, atol=ROUNDING)
    for x, y in zip(timeless_rows(one), timeless_rows(other), strict=True):
        assert x["episodes"] == y["episodes"]
        assert x["agent"] == pytest.approx(y["agent"], rel=ROUNDING, abs=ROUNDING)
        assert ("evaluated" in x) == ("evaluated" in y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("one", "four"),
        ("one", "moved"),
        ("seeds", "all"),
        ("seeds", "turns"),
        ("seeds", "auto"),
    ],
)
def test_the_numbers_do_not_depend_on_the_devices(finished_runs, one, other):
    assert_equal(finished_runs / one, finished_runs / other)


@pytest.mark.slow
def test_the_devices_are_used(finished_runs):
    printed = (finished_runs / "printed").read_text()
    assert [printed.count(f"for {n} devices") for n in (2, 4, 8)] == [2, 3, 1]


@pytest.mark.slow
def test_what_cannot_be_shared_is_refused_in_one_line(finished_runs):
    errors = (finished_runs / "said").read_text()
    assert "--devices 3 cannot share 1 seed of 4 blocks equally: give 2 devices" in errors
    assert "--devices 16: JAX has only 8 devices; give 8, or all" in errors
    assert errors.count("expected auto, all or a number from 1") == 2
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("count", "members", "blocks", "expected"),
    [
        (8, 1, 8, (1, 8)),
        (8, 8, 8, (8, 1)),  # seeds first: they exchange nothing
        (8, 4, 2, (4, 2)),
        (8, 3, 4, (3, 2)),
        (8, 5, 1, (5, 1)),
        (8, 1, 1, (1, 1)),
        (6, 4, 3, (2, 3)),
    ],
)
def test_devices_are_given_to_seeds_first(count, members, blocks, expected):
    assert devices.mesh_shape(count, members, blocks) == expected


def test_one_device_needs_no_mesh():
    assert devices.mesh_of("1", 4, 4) is None
    with pytest.raises(UsageError, match="--devices 64: JAX has only"):
        devices.mesh_of("64", 64, 1)


def test_one_device_is_said_to_be_one(monkeypatch):
    monkeypatch.setattr(jax, "devices", lambda: ["one"])
    with pytest.raises(UsageError, match="--devices 7: JAX has only 1 device; give 1, or all"):
        devices.refuse_missing(7)


def test_members_share_the_memory_of_a_device_or_of_the_machine(monkeypatch):
    monkeypatch.setattr(devices.jax, "devices", lambda: ["a", "b", "c", "d"])
    assert devices.members_of_one("all", 8, 1) == 8  # CPUs
    monkeypatch.setattr(devices.jax, "default_backend", lambda: "gpu")
    counts = [devices.members_of_one(request, 8, 1) for request in ("auto", "2", "all", "64")]
    assert counts == [8, 4, 2, 2]


def test_several_processes_use_all_their_devices(monkeypatch):
    """What they cannot share is refused without the advice to use fewer, as they cannot."""
    sampled = allo.PRESETS["sampled"].config
    assert preparation.flags_of_sizes(allo.PRESETS["allo"].config) == ["--run.num-seeds"]
    monkeypatch.setattr(devices.jax, "process_count", lambda: 2)
    monkeypatch.setattr(devices.jax, "devices", lambda: ["a", "b", "c", "d"])
    with pytest.raises(
        UsageError, match=r"4 devices of all .* 6 blocks.*: give another --agent\.blocks "
    ):
        devices.mesh_of("auto", 1, 6, preparation.flags_of_sizes(sampled))
    with pytest.raises(UsageError, match=r"--devices 2: .* use all 4 that they have: give"):
        devices.mesh_of("2", 1, 4)
