"""Every notebook runs from a clean state, on a tiny budget, and is committed without output."""

import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import IPython.display
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from train.host import device_presets
from train.host.program import find
from train.vector_field import fitted
from train.vector_field.data import reading
from train.vector_field.data.recordings import join_episodes

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


RECORDINGS = ROOT / "notebooks/06_recordings.ipynb"


def cell_with(path: Path, text: str) -> str:
    (cell,) = [cell for cell in code_cells(path) if text in cell]
    return cell


def record_displays(monkeypatch) -> list[str]:
    """The names of the files that cells display from now on."""
    names: list[str] = []
    monkeypatch.setattr(IPython.display, "Image", lambda filename: Path(filename).name)
    monkeypatch.setattr(IPython.display, "display", names.append)
    return names


class NoiseFree:
    """A generator that draws no noise and no pulses, and whose counts are their own rates."""

    def __init__(self, seed):
        self.rng, self.draws = np.random.Generator(np.random.PCG64(seed)), 0

    def normal(self, size):
        self.draws += 1
        return self.rng.normal(size=size) if self.draws <= 3 else np.zeros(size)

    def uniform(self, low, high, size):
        return self.rng.uniform(low, high, size)

    def random(self, size):
        return np.ones(size)

    def poisson(self, rates):
        return rates


def test_the_simulated_neurons_have_the_rhythm_that_the_text_tells(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(np.random, "default_rng", NoiseFree)
    exec(cell_with(RECORDINGS, "def simulate"), {})
    log_rates = np.log(np.load("recording.npz")["y"][0, 300:])
    plane = np.linalg.svd(log_rates - log_rates.mean(axis=0), full_matrices=False)[0][:, :2]
    signal = plane[:, 0] - plane[:, 0].mean()
    (rises,) = np.nonzero((signal[:-1] < 0) & (signal[1:] >= 0))
    crossings = rises + signal[rises] / (signal[rises] - signal[rises + 1])
    text = "\n".join(cell.source for cell in nbformat.read(RECORDINGS, as_version=4).cells)
    periods = [float(x) for x in re.findall(r"(?:rhythm of|cycle of about) ([\d.]+)\sbins", text)]
    assert len(periods) == 2
    np.testing.assert_allclose(np.diff(crossings).mean(), periods, atol=0.05)


def test_a_file_that_cannot_be_read_is_not_shown_as_the_one_before(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "look").mkdir()
    (tmp_path / "look/look.png").touch()  # of the file before
    names = record_displays(monkeypatch)
    exec(cell_with(RECORDINGS, "look.main"), {"FILE": "missing.npz"})
    assert not names


@pytest.mark.parametrize("steps", [55, 100, 400])
def test_what_is_foreseen_of_short_records_and_of_dead_channels(steps, monkeypatch, tmp_path):
    """All points are those of the record, of the channel with the largest mean that has values."""
    monkeypatch.chdir(tmp_path)
    y = np.random.default_rng(0).normal([0, 5, 1], 1, (steps, 3)).astype(np.float32)
    y[:, 0] = np.nan
    recording = join_episodes([(y + 1, np.zeros((steps, 1))), (y, np.zeros((steps, 1)))])
    quantiles = lambda y, u, ahead: np.zeros((len(y), ahead + 1, 3, 3))
    monkeypatch.setattr(fitted, "load", lambda directory: SimpleNamespace(quantiles=quantiles))
    monkeypatch.setattr(reading, "read_data", lambda config: recording)
    monkeypatch.setattr(plt, "close", lambda figure: None)
    record_displays(monkeypatch)
    names = {"result": SimpleNamespace(directory=tmp_path), "config": None, "np": np}
    exec(cell_with(RECORDINGS, "fitted.load"), names | {"Image": lambda filename: None})
    points = plt.gcf().axes[0].lines[0]
    at = np.asarray(points.get_xdata())
    assert at[0] >= 0
    assert steps // 2 in at
    np.testing.assert_array_equal(points.get_ydata(), y[at, 1])


def test_a_law_that_is_not_finite_somewhere_is_named_with_the_place():
    outwards = SimpleNamespace(velocity=lambda z, _: z / jnp.linalg.norm(z, axis=-1, keepdims=True))
    names = {"env": outwards, "params": None, "BOX": 2.0, "jax": jax, "jnp": jnp}
    cell = cell_with(ROOT / "notebooks/04_active_dynamics.ipynb", "def draw_field")
    with pytest.raises(AssertionError, match=r"not finite at \[0\. 0\.\]"):
        exec(cell, names)
