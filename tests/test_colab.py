"""The first cell of the notebooks, which installs the project; Colab is not needed.

`python -m tests.test_colab` copies notebooks/setup_colab.py into that cell of every notebook.
"""

import os
import re
import sys
import zipfile
from email.message import Message
from importlib.machinery import PathFinder
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from notebooks import setup_colab as setup
from tests.colab_wheel import CELL, CUDA12, OLD_T4, PROJECT, ROOT, T4, V100

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
METADATA = {"cellView": "form", "jupyter": {"source_hidden": True}}
SOUND = dict.fromkeys(setup.REQUIRED, "1.0") | {"jax": "0.10.2", "jaxlib": "0.10.2"}
OLD_CUDA12 = dict.fromkeys(CUDA12, "0.7.2")


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
        ("cuda12", SOUND, "jax-cuda12-plugin is missing"),
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
    (foreign_folder / "jaxrl (1)").mkdir()
    assert setup.locate(str(foreign_folder / "jaxrl (1)")).endswith("/jaxrl%20%281%29")
    with pytest.raises(SystemExit, match=r"^there is no ~/gone\.whl: write another path"):
        setup.locate("~/gone.whl")
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
def test_a_failing_pip_is_quoted(tmp_path: Path):
    with pytest.raises(SystemExit, match=r"install .*nothing\.whl failed"):
        setup.run_pip("install", "--no-index", str(tmp_path / "nothing.whl"))


def test_jax_must_compute_on_what_the_machine_offers(monkeypatch: pytest.MonkeyPatch):
    import jax

    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(platform="gpu")])
    setup.check_devices("cuda12")
    setup.check_devices("cuda13")
    with pytest.raises(AssertionError, match="offers tpu, but JAX computes on gpu"):
        setup.check_devices("tpu")


if __name__ == "__main__":
    write()
