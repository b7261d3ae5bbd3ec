"""Every notebook runs from a clean state, on a tiny budget, and is committed without output."""

import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbclient import NotebookClient

from train.host import device_presets
from train.host.program import find

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SHOWN = {
    "00_quickstart": {"image/png", "image/gif", "text/html"},
    "01_snake": {"image/png", "image/gif"},
    "02_durotaxis": {"image/png", "image/gif"},
}
"""What a notebook shows; every other one shows a PNG."""
STEPS = {"00_quickstart": 40_000, "02_durotaxis": 20_000, "03_allo": 40_000}
"""The budget of a notebook; every other one has 70,000."""


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_from_a_clean_state(path, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXRL_NOTEBOOK_STEPS", str(STEPS.get(path.stem, 70_000)))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")  # or the first cell would look for an accelerator
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # little is computed here
    search_path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(search_path))
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    output_kinds = {
        kind
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        for kind in output.get("data", ())
    }
    assert output_kinds >= SHOWN.get(path.stem, {"image/png"})


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_committed_without_output(path):
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code")


def code_cells(path: Path) -> Iterator[str]:
    """Its code, but for the first cell, which installs."""
    notebook = nbformat.read(path, as_version=4)
    yield from [cell.source for cell in notebook.cells if cell.cell_type == "code"][1:]


PROGRAM_IMPORT = re.compile(r"from train\.(\w+) import program(?: as (\w+))?$", re.M)


def named_presets(code: str) -> Iterator[tuple[str, str]]:
    """`(program, preset)` of every preset that code takes by its name."""
    programs = {m[2] or "program": m[1] for m in PROGRAM_IMPORT.finditer(code)}
    for alias, name in re.findall(r'\b(\w+)\.PRESETS\["(\w+)"\]', code):
        yield programs[alias], name


def test_the_presets_that_code_names():
    code = 'from train.snake import program as game\ngame.PRESETS["ppo"].config'
    assert list(named_presets(code)) == [("snake", "ppo")]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_names_no_preset_that_has_a_twin_for_accelerators(path):
    for program, name in named_presets("\n".join(code_cells(path))):
        twin = find(program, "a test").presets[name].wide
        assert not twin, f"take {name} by preset_for_device, so that GPUs and TPUs get {twin}"


TRAINERS = [
    ("00_quickstart", "snake", {"near"}),
    ("01_snake", "snake", {"ppo", "pqn", "dqn"}),
    ("01_snake", "two_snake", {"curriculum"}),
]


@pytest.mark.parametrize("on_accelerator", [False, True])
@pytest.mark.parametrize(("stem", "name", "presets"), TRAINERS)
def test_trains_the_presets_for_the_device(stem, name, presets, on_accelerator, monkeypatch):
    """The cells that train, up to the training itself, with the budget that a user has."""
    module, trained = import_module(f"train.{name}.program"), {}

    def train(config, preset):
        steps_per_update = module.PROGRAM.training(config).steps_per_update
        trained[preset] = config.run.total_steps // steps_per_update
        return SimpleNamespace(directory=Path())

    monkeypatch.setattr(module, "train", train)
    monkeypatch.setattr(device_presets, "on_accelerator", lambda: on_accelerator)
    monkeypatch.delenv("JAXRL_NOTEBOOK_STEPS", raising=False)
    cells = list(code_cells(ROOT / f"notebooks/{stem}.ipynb"))
    imports = [
        line
        for cell in cells
        for line in cell.splitlines()
        if line.startswith(("import ", "from "))
    ]
    (cell,) = [x for x in cells if f"from train.{name} import program" in x]
    budget = {"budget": 3_000_000, "games": 1_000}  # of the cells before
    exec("\n".join([*imports, cell]), budget)
    of_device = {x: module.PRESETS[x].wide or x for x in presets}
    assert set(trained) == {of_device[x] if on_accelerator else x for x in presets}
    assert min(trained.values()) >= 20  # updates, for a curve


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_says_what_to_expect_before_a_long_cell(path):
    cells = nbformat.read(path, as_version=4).cells
    (says, *_) = [i for i, x in enumerate(cells) if "prediction" in x.source]
    assert cells[says].cell_type == "markdown"
    assert cells[says + 1].cell_type == "code"
    assert {"CPU", "GPU"} <= set(re.findall("[A-Z]+", cells[says].source))
    link = re.search(r"\]\(\.\./docs/accelerators\.md#([\w-]+)\)", cells[says].source)
    assert link, "a prediction names its model"
    headings = re.findall(r"^## (.+)$", (ROOT / "docs/accelerators.md").read_text(), re.M)
    assert link[1] in [re.sub(r"[^\w ]", "", x.lower()).replace(" ", "-") for x in headings]
