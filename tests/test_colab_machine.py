"""The first cell of the notebooks on a machine with the packages of Colab."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from notebooks import setup_colab as setup
from tests.colab_wheel import CELL, CUDA12, OLD_T4, wheel


def distribution(site: Path, name: str, version: str, *lines: str) -> None:
    """An installed distribution without files, as pip sees it."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    header = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    (folder / "METADATA").write_text("\n".join([*header, *lines, ""]))
    (folder / "INSTALLER").write_text("pip\n")
    (folder / "RECORD").write_text(f"{folder.name}/METADATA,,\n{folder.name}/RECORD,,\n")


NVIDIA = "cublas cuda-cupti cuda-nvcc cuda-runtime cufft cusolver cusparse nccl nvjitlink"
NVIDIA = [f"nvidia-{name}-cu12" for name in f"{NVIDIA} cuda-nvrtc nvshmem".split()]
OTHERS = {"numpy": "2.3.0", "scipy": "1.16.0", "ml-dtypes": "0.5.1", "opt-einsum": "3.4.0"}
OTHERS |= dict.fromkeys(NVIDIA, "12.9.99") | {"nvidia-nvshmem-cu12": "3.3.0"}
OTHERS |= {"nvidia-nccl-cu12": "2.27.3", "nvidia-cudnn-cu12": "9.20.0"}
OTHERS |= dict.fromkeys(set(setup.REQUIRED) - {"jax", "jaxlib", "numpy"}, "1.0")
"""What Colab has besides jax; in the tests without files, for they are gigabytes."""


UNFIT = "0.12.0" if sys.version_info >= (3, 12) else "0.7.2"
"""A jax that the project does not run on: newer where this Python has such a one, else older."""


class Machine:
    """A virtual environment with the jax of Colab, and a folder with the project's wheel."""

    def __init__(self, folder: Path):
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        self.python = folder / "venv/bin/python"
        self.content = folder / "content"
        (self.content / "train").mkdir(parents=True)  # somebody's data
        wheel(self.content)
        smi = self.content / "nvidia-smi"
        smi.write_text(f"#!/bin/sh\nprintf '{OLD_T4.strip()}\\n'\n")
        smi.chmod(0o755)
        site = next((folder / "venv/lib").glob("python*/site-packages"))
        for name, version in OTHERS.items():
            distribution(site, name, version)

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Python in that environment, in the folder of the notebook."""
        inherited_environ = {
            k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "JAX_PLATFORMS")
        }
        path = {"PATH": f"{self.content}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.run(
            [str(self.python), *arguments],
            cwd=self.content,
            env=inherited_environ | path | environ,
            capture_output=True,
            text=True,
        )


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    machine = Machine(tmp_path_factory.mktemp("colab"))
    unfit = [f"{name}=={UNFIT}" for name in ("jax", "jaxlib", *CUDA12)]
    run = machine.run("-m", "pip", "install", "-q", "--no-deps", *unfit)
    if run.returncode:
        pytest.skip(f"pip cannot install jax {UNFIT} here: {run.stderr[-300:]}")
    return machine


RUN_CELL = """
import json
from pathlib import Path
source, call = Path("cell.py").read_text().rsplit("\\n\\n\\n", 1)
exec(source)
check_devices = lambda kind: print("kind", kind)  # nothing is executed on a GPU
exec(call)
print(json.dumps([installed(), needs_of_jax(), str(project())]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the plugins are for Linux")
def test_the_tpu_set_fits_together(machine: Machine):
    """By a dry run: what pip would install for a TPU; before the next test changes the machine."""
    tpu_requirement = setup.requirement("tpu", setup.unpacked(wheel(machine.content)).as_uri())
    command = (
        "-m",
        "pip",
        "install",
        "-q",
        "--dry-run",
        "--report",
        "report.json",
        tpu_requirement,
    )
    run = machine.run(*command)
    assert run.returncode == 0, run.stderr
    report = json.loads((machine.content / "report.json").read_text())
    packages = {setup.normal(x["metadata"]["name"]): x["metadata"] for x in report["install"]}
    versions = OTHERS | {name: x["version"] for name, x in packages.items()}
    assert setup.problems("tpu", versions, packages["jax"]["requires_dist"]) == []
    assert setup.problems("tpu", versions | {"libtpu": "0.0.20"}, packages["jax"]["requires_dist"])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the plugins are for Linux")
def test_an_unfit_jax_and_its_plugin_become_a_set_that_fits(machine: Machine):
    (machine.content / "cell.py").write_text(CELL)
    run = machine.run("-c", RUN_CELL)
    assert run.returncode == 0, run.stdout + run.stderr
    *lines, last = run.stdout.splitlines()
    assert lines[-1] == "kind cuda12"
    versions, needs, folder = json.loads(last)
    names = ("jaxlib", *CUDA12)
    assert {versions[name] for name in names} == {versions["jax"]} != {UNFIT}
    assert f"{', '.join(['jax', *names])} {UNFIT} -> {versions['jax']}" in lines
    assert setup.problems("cuda12", versions, needs) == []
    assert folder.endswith("site-packages")

    second_run = machine.run("-c", RUN_CELL)
    assert second_run.stdout.splitlines()[0] == "kind cuda12"  # it had nothing to install
