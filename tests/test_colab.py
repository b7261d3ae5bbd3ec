"""The first cell of the notebooks, which installs the project; Colab is not needed.

`python -m tests.test_colab` copies notebooks/setup_colab.py into that cell of every notebook.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from email.message import Message
from importlib.machinery import PathFinder
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from notebooks import setup_colab as setup

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CALL = '\n\n\nADDRESS = ""  # @param {type: "string"}\nprepare(ADDRESS)'
CELL = (ROOT / "notebooks/setup_colab.py").read_text().rstrip("\n") + CALL
METADATA = {"cellView": "form", "jupyter": {"source_hidden": True}}
SOUND = dict.fromkeys(setup.REQUIRED, "1.0") | {"jax": "0.10.2", "jaxlib": "0.10.2"}
CUDA12 = {"jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.10.2"}
OLD_CUDA12 = dict.fromkeys(CUDA12, "0.7.2")
T4, OLD_T4, V100 = "580.82.07, 7.5\n", "550.54.15, 7.5\n", "580.82.07, 7.0\n"


def write() -> None:
    """Copies the source into the first code cell of every notebook."""
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        cell = first_cell(notebook)
        cell.source, cell.metadata = CELL, nbformat.from_dict(METADATA)
        path.write_text(nbformat.writes(notebook) + "\n")


def first_cell(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return next(cell for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_begins_with_the_source(path: Path):
    cell = first_cell(nbformat.read(path, as_version=4))
    assert cell.source == CELL, "run `python -m tests.test_colab`"
    assert cell.metadata == METADATA


def test_the_constants_are_those_of_the_project():
    names = [re.split(r"[<>=]", line)[0] for line in PROJECT["dependencies"]]
    assert sorted(map(setup.normal, names)) == sorted(setup.REQUIRED)
    assert f"jax{setup.bounds()}" in PROJECT["dependencies"]
    assert f"jaxlib{setup.bounds()}" in PROJECT["dependencies"]
    for kind in ("cuda12", "cuda13", "tpu"):
        assert PROJECT["optional-dependencies"][kind] == [setup.requirement(kind, "")]


@pytest.mark.parametrize(
    ("environ", "smi", "versions", "kind"),
    [
        ({}, "", {}, "cpu"),
        ({}, "NVIDIA-SMI has failed", {}, "cpu"),
        ({}, T4, {}, "cuda13"),
        ({}, OLD_T4, {}, "cuda12"),
        ({}, V100, {}, "cuda12"),
        ({}, T4 + V100, {}, "cuda12"),
        ({}, T4, OLD_CUDA12, "cuda12"),
        ({"CUDA_VISIBLE_DEVICES": ""}, T4, {}, "cpu"),
        ({"JAX_PLATFORMS": "cpu"}, T4, {}, "cpu"),
        ({"TPU_ACCELERATOR_TYPE": "v5e-1", "COLAB_TPU_1VM": "1"}, "", {}, "tpu"),
        ({"COLAB_TPU_1VM": ""}, "", {}, "cpu"),  # Colab sets it on every machine
    ],
)
def test_the_accelerator(environ: dict, smi: str, versions: dict, kind: str):
    assert setup.accelerator(environ, smi, versions) == kind


def test_without_nvidia_smi_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert setup.nvidia_smi() == ""


def test_requirements():
    assert setup.requirement("cpu", "") == "jax>=0.10,<0.12"
    assert setup.requirement("tpu", "") == "jax[tpu]>=0.10,<0.12"
    assert setup.requirement("cpu", "file:///a.whl") == "jaxrl @ file:///a.whl"
    assert setup.requirement("cuda12", "git+https://b") == "jaxrl[cuda12] @ git+https://b"


NEEDS = ["numpy>=2.0", 'libtpu==0.0.42.*; extra == "tpu"']


@pytest.mark.parametrize(
    ("kind", "versions", "word"),
    [
        ("cpu", SOUND, ""),
        ("cpu", SOUND | CUDA12, ""),
        ("cpu", SOUND | OLD_CUDA12, "jax-cuda12-plugin 0.7.2 does not fit"),
        ("cpu", {}, "jax, jaxlib, flax"),
        ("cpu", SOUND | {"jax": "0.7.2", "jaxlib": "0.7.2"}, "are not >=0.10,<0.12"),
        ("cpu", SOUND | {"jax": "0.12.0", "jaxlib": "0.12.0"}, "are not >=0.10,<0.12"),
        ("cpu", SOUND | {"jax": "0.11.0", "jaxlib": "0.10.2"}, ""),  # jax decides
        ("cpu", SOUND | {"jaxlib": "0.11.0"}, "are not"),
        ("cuda12", SOUND, "jax-cuda12-plugin is None"),
        ("cuda12", SOUND | OLD_CUDA12, "jax-cuda12-plugin is 0.7.2, jaxlib 0.10.2"),
        ("cuda12", SOUND | CUDA12, ""),
        ("cuda12", SOUND | CUDA12 | {"jax-cuda13-pjrt": "0.10.2"}, "jax-cuda13-pjrt"),
        ("cuda12", SOUND | CUDA12 | {"jax": "0.10.3"}, "differ"),
        ("tpu", SOUND, "libtpu None"),
        ("tpu", SOUND | {"libtpu": "0.0.421"}, "libtpu 0.0.421 does not fit"),
        ("tpu", SOUND | {"libtpu": "0.0.42.1"}, ""),
        ("tpu", SOUND | {"libtpu": "0.0.42"}, ""),
    ],
)
def test_what_does_not_fit_together(kind: str, versions: dict, word: str):
    complaint = "; ".join(setup.problems(kind, versions, NEEDS))
    assert word in complaint
    assert bool(word) == bool(complaint)


def test_plugins_of_another_accelerator_are_removed():
    versions = SOUND | OLD_CUDA12
    assert setup.leftovers("cuda12", versions) == []
    assert setup.leftovers("cuda13", SOUND | CUDA12) == list(CUDA12)
    assert setup.leftovers("cpu", versions) == list(CUDA12)
    assert setup.leftovers("tpu", SOUND | CUDA12) == []


@pytest.mark.slow
def test_loaded_modules_that_changed():
    assert setup.stale({"numpy": "2.0", "rich": "14.0"}, {"numpy": "2.0", "rich": "14.0"}) == []
    assert setup.stale({"numpy": "2.0", "rich": "14.0"}, {"numpy": "2.1"}) == ["numpy", "rich"]
    versions = setup.installed()
    loaded = setup.imported(versions | {"pytest": "0.1", "jax": "0.1"})
    assert loaded["pytest"] == "0.1"
    assert loaded["jax"] == versions["jax"]  # jax itself knows better
    assert setup.stale(setup.imported(versions), versions) == []


def test_a_kernel_that_cannot_restart_itself_says_so():
    with pytest.raises(SystemExit, match="numpy changed: restart the kernel"):
        setup.restart(["numpy"])


def test_a_kernel_on_colab_is_killed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    kill_calls = []
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace())
    monkeypatch.setattr(setup.os, "kill", lambda *arguments: kill_calls.append(arguments))
    monkeypatch.setattr(setup.time, "sleep", lambda seconds: None)
    setup.restart(["numpy", "rich"])
    assert kill_calls == [(os.getpid(), 9)]
    assert capsys.readouterr().out.startswith("numpy, rich changed: the kernel restarts")


@pytest.fixture
def foreign_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is no checkout, in a process that cannot import the project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(setup, "project", lambda: None)
    monkeypatch.setattr(setup, "published", lambda: "")
    return tmp_path


def write_zip(path: Path, *names: str, text: str = '[project]\nname = "jaxrl"\n') -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, text)
    return path


def test_the_project_is_found_where_it_can_be_imported():
    assert setup.project() == ROOT


def test_a_folder_called_train_is_not_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in setup.PACKAGES:
        (tmp_path / name).mkdir()
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [PathFinder])  # no finder of an editable project
    assert setup.project() is None
    for name in setup.PACKAGES:
        (tmp_path / name / "__init__.py").touch()
    setup.importlib.invalidate_caches()
    assert setup.project() == tmp_path.resolve()


def test_a_checkout_around_a_folder_or_in_it(tmp_path: Path):
    assert setup.find_project(ROOT / "notebooks") == ROOT
    (tmp_path / "train").mkdir()
    (tmp_path / "train/pyproject.toml").write_text('[project]\nname = "other"\n')
    assert setup.find_project(tmp_path) is None
    (tmp_path / "cloned").mkdir()
    (tmp_path / "cloned/pyproject.toml").write_text('[project]\nname = "jaxrl"\n')
    assert setup.find_project(tmp_path) == tmp_path / "cloned"


def test_a_wheel_or_a_zip_beside_the_notebook(foreign_folder: Path):
    write_zip(
        foreign_folder / "data.zip", "train/pyproject.toml", text='[project]\nname = "other"\n'
    )
    (foreign_folder / "broken.zip").write_text("not a zip")
    assert setup.find_project(foreign_folder) is None
    wheel = foreign_folder / "jaxrl-0.1.0-py3-none-any (1).whl"
    wheel.write_text("wheel")
    os.utime(wheel, (0, 0))
    assert setup.find_project(foreign_folder) == wheel
    assert re.fullmatch(r"file:///.*/jaxrl-0\.1\.0-py3-none-any\.whl", setup.locate(""))
    newer = write_zip(foreign_folder / "main.zip", "__MACOSX/x", "jaxrl-main/pyproject.toml")
    assert setup.find_project(foreign_folder) == newer
    assert setup.unpacked(newer).joinpath("pyproject.toml").is_file()
    assert setup.locate("").endswith("/jaxrl-main")


def test_the_address_that_the_form_or_the_metadata_names(
    foreign_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    assert setup.locate("https://host/owner/jaxrl.git ") == "git+https://host/owner/jaxrl.git"
    assert setup.locate("host/owner/jaxrl") == "git+https://host/owner/jaxrl"
    assert setup.locate("git+ssh://git@host/jaxrl") == "git+ssh://git@host/jaxrl"
    assert setup.locate("https://host/jaxrl-0.1.0.whl") == "https://host/jaxrl-0.1.0.whl"
    (foreign_folder / "deep").mkdir()
    write_zip(foreign_folder / "deep/mine.zip", "pyproject.toml")
    assert setup.locate(str(foreign_folder / "deep/mine.zip")).startswith("file:///")
    monkeypatch.setattr(setup, "published", lambda: "https://host/published")
    assert setup.locate("") == "git+https://host/published"
    assert setup.locate("host/form") == "git+https://host/form"


def test_the_repository_of_installed_metadata(monkeypatch: pytest.MonkeyPatch):
    metadata = Message()
    monkeypatch.setattr(setup.importlib.metadata, "metadata", lambda name: metadata)
    assert setup.published() == ""
    metadata["Project-URL"] = "Documentation, https://host/docs"
    metadata["Project-URL"] = "Repository, https://host/owner/jaxrl"
    assert setup.published() == "https://host/owner/jaxrl"


def test_nowhere_to_be_found_is_one_line_that_says_what_to_do(foreign_folder: Path):
    (foreign_folder / "train").mkdir()
    with pytest.raises(SystemExit, match=r"put its wheel.* beside this notebook.* ADDRESS") as why:
        setup.locate("")
    assert "\n" not in str(why.value)


def test_colab_offers_an_upload(foreign_folder: Path, monkeypatch: pytest.MonkeyPatch):
    upload = lambda: (foreign_folder / "jaxrl-0.1.0-py3-none-any.whl").write_text("wheel")
    colab = SimpleNamespace(files=SimpleNamespace(upload=upload))
    monkeypatch.setitem(sys.modules, "google.colab", colab)
    assert setup.locate("").endswith("/jaxrl-0.1.0-py3-none-any.whl")


def test_an_installed_project_needs_no_source(
    foreign_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(setup, "project", lambda: foreign_folder)
    assert setup.locate("") == ""


def test_a_sound_checkout_installs_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(setup, "nvidia_smi", lambda: "")
    monkeypatch.setattr(setup, "run_pip", lambda *arguments: pytest.fail(str(arguments)))
    monkeypatch.setattr(setup, "check_devices", lambda kind: None)
    setup.prepare()


@pytest.mark.slow
def test_a_failing_pip_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with pytest.raises(SystemExit, match=r"install .*nothing\.whl failed"):
        setup.run_pip("install", "--no-index", str(tmp_path / "nothing.whl"))


def test_jax_must_compute_on_what_the_machine_offers(monkeypatch: pytest.MonkeyPatch):
    import jax

    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(platform="gpu")])
    setup.check_devices("cuda12")
    setup.check_devices("cuda13")
    with pytest.raises(AssertionError, match="offers tpu, but JAX computes on gpu"):
        setup.check_devices("tpu")


def distribution(site: Path, name: str, version: str, *lines: str) -> None:
    """An installed distribution without files, as pip sees it."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    header = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    (folder / "METADATA").write_text("\n".join([*header, *lines, ""]))
    (folder / "INSTALLER").write_text("pip\n")
    (folder / "RECORD").write_text(f"{folder.name}/METADATA,,\n{folder.name}/RECORD,,\n")


def wheel(folder: Path) -> Path:
    """The project with empty packages, and of its requirements those on jax."""
    path = folder / "jaxrl-0.1.0-py3-none-any.whl"
    info = "jaxrl-0.1.0.dist-info"
    lines = ["Metadata-Version: 2.1", "Name: jaxrl", "Version: 0.1.0"]
    lines += [f"Requires-Dist: {x}" for x in PROJECT["dependencies"] if x.startswith("jax")]
    for extra in ("cuda12", "cuda13", "tpu"):
        (needed,) = PROJECT["optional-dependencies"][extra]
        lines += [f"Provides-Extra: {extra}", f'Requires-Dist: {needed}; extra == "{extra}"']
    files = {f"{name}/__init__.py": "" for name in setup.PACKAGES} | {
        f"{info}/METADATA": "\n".join([*lines, ""]),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as file:
        for name, text in (files | {f"{info}/RECORD": record}).items():
            file.writestr(name, text)
    return path


NVIDIA = "cublas cuda-cupti cuda-nvcc cuda-runtime cufft cusolver cusparse nccl nvjitlink"
NVIDIA = [f"nvidia-{name}-cu12" for name in f"{NVIDIA} cuda-nvrtc nvshmem".split()]
OTHERS = {"numpy": "2.3.0", "scipy": "1.16.0", "ml-dtypes": "0.5.1", "opt-einsum": "3.4.0"}
OTHERS |= dict.fromkeys(NVIDIA, "12.9.99") | {"nvidia-nvshmem-cu12": "3.3.0"}
OTHERS |= {"nvidia-nccl-cu12": "2.27.3", "nvidia-cudnn-cu12": "9.10.0"}
OTHERS |= dict.fromkeys(set(setup.REQUIRED) - {"jax", "jaxlib", "numpy"}, "1.0")
"""What Colab has besides jax; in the tests without files, for they are gigabytes."""


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
    old = [f"{name}==0.7.2" for name in ("jax", "jaxlib", *CUDA12)]
    run = machine.run("-m", "pip", "install", "-q", "--no-deps", *old)
    if run.returncode:
        pytest.skip(f"pip cannot install an older jax here: {run.stderr[-300:]}")
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
def test_an_older_jax_and_its_plugin_become_a_set_that_fits(machine: Machine):
    (machine.content / "cell.py").write_text(CELL)
    run = machine.run("-c", RUN_CELL)
    assert run.returncode == 0, run.stdout + run.stderr
    *lines, last = run.stdout.splitlines()
    assert lines[-1] == "kind cuda12"
    versions, needs, folder = json.loads(last)
    names = ("jaxlib", *CUDA12)
    assert {versions[name] for name in names} == {versions["jax"]} != {"0.7.2"}
    assert setup.problems("cuda12", versions, needs) == []
    assert folder.endswith("site-packages")

    second_run = machine.run("-c", RUN_CELL)
    assert second_run.stdout.splitlines()[0] == "kind cuda12"  # it had nothing to install


if __name__ == "__main__":
    write()
