"""The layers of ARCHITECTURE.md as a table, and the imports of every module held against it."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("jaxrl", "envs", "train")
LAYERS = {
    "jaxrl": 0,
    "jaxrl.types": 0,
    "jaxrl.linalg": 0,
    "jaxrl.checks": 0,
    "jaxrl.due": 1,
    "jaxrl.returns": 1,
    "jaxrl.replay": 1,
    "jaxrl.distributions": 1,
    "jaxrl.action_values": 1,
    "jaxrl.minibatches": 1,
    "jaxrl.pairs": 1,
    "jaxrl.laplacian": 1,
    "jaxrl.subspace": 1,
    "jaxrl.spectral": 1,
    "jaxrl.options": 1,
    "jaxrl.potentials": 1,
    "jaxrl.rbf": 1,
    "jaxrl.posterior": 1,
    "jaxrl.kalman": 1,
    "jaxrl.fisher": 1,
    "jaxrl.planning": 1,
    "jaxrl.sequence_elbo": 1,
    "jaxrl.latent_scores": 1,
    "jaxrl.loop": 1,
    "jaxrl.evaluate": 1,
    "jaxrl.checkpoint": 1,
    "jaxrl.prioritised": 2,
    "jaxrl.pair_replay": 2,
    "jaxrl.stimulation": 2,
    "jaxrl.networks": 2,
    "jaxrl.self_play": 3,
    "jaxrl.agents": 3,
}
NEVER = {  # the first part of a module's name -> what it may not import
    "jaxrl": {"envs", "gymnax", "train", "tests"},
    "envs": {"jaxrl", "train", "tests"},
    "train": {"tests"},
}
UNWANTED = {
    "cloudpickle",
    "distrax",
    "hydra",
    "pandas",
    "pickle",
    "tensorflow_probability",
    "torch",
}
ONLY_IN = {"orbax": "jaxrl.checkpoint", "gymnasium": "envs.gymnasium_adapter"}


def sources() -> Iterator[tuple[str, Path]]:
    """Every module of ours, as `(dotted name, file)`."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(source: str) -> Iterator[str]:
    """The dotted names a source imports, at any depth; a relative import starts with a dot."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            prefix = "." * node.level + (node.module or "")
            yield from (f"{prefix}.{alias.name}" for alias in node.names)


def place(name: str) -> str | None:
    """The entry of the table that a dotted name falls under, the longest one."""
    fits = [entry for entry in LAYERS if f"{name}.".startswith(f"{entry}.")]
    return max(fits, key=len, default=None)


def violations(module: str, source: str) -> list[str]:
    """What is wrong with the imports of one module, a line each."""
    home, wrong = module.split(".")[0], []
    for name in imports(source):
        top = name.split(".")[0]
        if not top:
            wrong.append(f"{module} imports {name}: write the absolute name")
        elif top in NEVER[home] | UNWANTED:
            wrong.append(f"{module} imports {name}: {home} never does")
        elif top in ONLY_IN and not f"{module}.".startswith(f"{ONLY_IN[top]}."):
            wrong.append(f"{module} imports {name}: only {ONLY_IN[top]} does")
        elif top == home == "jaxrl" and not points_down(module, name):
            wrong.append(f"{module} imports {name}: imports point downwards")
    return wrong


def points_down(module: str, name: str) -> bool:
    """Strictly down the table; networks may share networks, agents neither agents nor the loop."""
    here, there = place(module), place(name)
    if here is None or there is None:
        return False
    if here == "jaxrl.agents" and there == "jaxrl.loop":
        return False
    return LAYERS[there] < LAYERS[here] or here == there == "jaxrl.networks"


@pytest.mark.parametrize(("module", "path"), [pytest.param(*s, id=s[0]) for s in sources()])
def test_imports_point_downwards(module: str, path: Path):
    assert violations(module, path.read_text()) == []


def test_every_module_has_a_layer():
    names = [module for module, _ in sources() if module.startswith("jaxrl.")]
    assert [name for name in names if place(name) == "jaxrl"] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("jaxrl.types", "import jaxrl.returns"),
        ("jaxrl.returns", "from jaxrl import replay"),
        ("jaxrl.loop", "from jaxrl.agents import ppo"),
        ("jaxrl.loop", "def f():\n    import gymnax"),
        ("jaxrl.networks.mlp", "from jaxrl.agents.ppo import Config"),
        ("jaxrl.agents.ppo", "from jaxrl.agents import dqn"),
        ("jaxrl.agents.ppo", "from jaxrl.loop import TrainState"),
        ("jaxrl.agents.ppo", "from . import dqn"),
        ("jaxrl.evaluate", "from envs.snake import Snake"),
        ("jaxrl.replay", "import orbax.checkpoint"),
        ("jaxrl.checkpoint", "import pickle"),
        ("envs.snake.game", "from jaxrl.types import PyTree"),
        ("envs.snake.game", "import train.snake"),
        ("train.snake", "import torch"),
    ],
)
def test_a_wrong_import_is_seen(module: str, source: str):
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("jaxrl.agents.ppo", "from jaxrl import returns\nfrom jaxrl.networks.mlp import MLP"),
        ("jaxrl.networks.dueling", "from jaxrl.networks.mlp import MLP"),
        ("jaxrl.checkpoint", "import orbax.checkpoint as ocp"),
        ("envs.base", "import gymnax"),
        ("train.snake", "from envs import snake\nfrom jaxrl.agents import dqn, ppo"),
    ],
)
def test_a_right_import_passes(module: str, source: str):
    assert violations(module, source) == []


def test_packages_of_the_library_export_nothing():
    """Their `__init__` is a docstring: one name has one home."""
    for module, path in sources():
        if path.name == "__init__.py" and not module.startswith("envs"):
            (docstring,) = ast.parse(path.read_text()).body
            assert isinstance(docstring, ast.Expr), f"{module} holds more than a docstring"


def test_no_room_for_leftovers():
    for module, _ in sources():
        assert not {"utils", "util", "helpers", "old", "misc"} & set(module.split(".")), module


def test_the_library_loads_without_environments():
    modules = [module for module, _ in sources() if module.split(".")[0] == "jaxrl"]
    code = f"import sys, {', '.join(modules)}\nprint(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert not {"gymnax", "envs", "train"} & loaded
