"""Every notebook runs from a clean state, on a tiny budget, and is committed without output."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

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
