"""The check of a change runs all tests that there are, those beside the benchmarks too."""

import runpy
import tomllib
from pathlib import Path

import pytest

import bench.conftest
import tests.conftest

ROOT = Path(__file__).resolve().parent.parent


def test_every_test_file_is_in_a_folder_that_pytest_looks_into():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "pytest"
    ]
    folders = settings["ini_options"]["testpaths"]
    packages = (path.parent for path in ROOT.glob("*/*.py"))
    tests = {x.relative_to(ROOT) for folder in packages for x in folder.rglob("test_*.py")}
    assert {path.parts[0] for path in tests} == set(folders)


def test_those_beside_the_benchmarks_run_as_the_others_do():
    """Alone, too, as the slow tests of a change do: in strict modes, until the minutes are over."""
    for hook in ("pytest_runtest_setup", "pytest_collection_modifyitems"):
        of_benchmarks, of_all = (getattr(x, hook) for x in (bench.conftest, tests.conftest))
        assert of_benchmarks.__code__ == of_all.__code__


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("bench/recordings_peers/ipsid.py", ["bench/test_recordings.py"]),
        ("bench/recordings.py", ["bench/test_recordings.py"]),
        ("bench/accelerators/model.py", ["bench/test_accelerators.py"]),
        ("bench/test_traffic.py", ["bench/test_traffic.py"]),
        ("bench/play.py", []),
        ("jaxrl/replay/uniform.py", ["tests/jaxrl/replay/test_uniform.py"]),
    ],
)
def test_the_slow_tests_of_a_changed_benchmark_are_those_beside_it(changed, tests, monkeypatch):
    monkeypatch.chdir(ROOT)
    tests_of = runpy.run_path(".ci/changed_tests")["tests_of"]
    assert [str(path) for path in tests_of(Path(changed))] == tests
