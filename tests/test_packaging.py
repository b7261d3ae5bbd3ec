"""What `pip install .` brings is what the requirements files say."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]


def requirements(name: str) -> set[str]:
    """The requirements a file names itself: no comments, and not what `-r` includes."""
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    return {line for line in lines if line and not line.startswith("-r")}


def test_dependencies_match_the_requirements_files():
    project = PROJECT["project"]
    assert set(project["dependencies"]) == requirements("requirements.txt")
    assert set(project["optional-dependencies"]["dev"]) == requirements("requirements-dev.txt")


@pytest.mark.parametrize("package", WHEEL["packages"])
def test_packages_are_typed(package: str):
    assert (ROOT / package / "py.typed").is_file()
