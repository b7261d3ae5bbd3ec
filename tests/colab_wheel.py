"""A wheel of the project as the first cell of the notebooks expects it, and its GPU."""

import tomllib
import zipfile
from pathlib import Path

from notebooks import setup_colab as setup

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CALL = '\n\n\nADDRESS = ""  # @param {type: "string"}\nprepare(ADDRESS)'
CELL = (ROOT / "notebooks/setup_colab.py").read_text().rstrip("\n") + CALL
CUDA12 = {"jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.10.2"}
T4, OLD_T4, V100 = "580.82.07, 7.5\n", "550.54.15, 7.5\n", "580.82.07, 7.0\n"


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
