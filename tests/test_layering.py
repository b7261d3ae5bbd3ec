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
    "jaxrl.blocks": 0,
    "jaxrl.linalg": 0,
    "jaxrl.outcomes": 0,
    "jaxrl.checks": 0,
    "jaxrl.due": 1,
    "jaxrl.returns": 1,
    "jaxrl.replay": 1,
    "jaxrl.distributions": 1,
    "jaxrl.action_values": 1,
    "jaxrl.exploration": 2,
    "jaxrl.minibatches": 1,
    "jaxrl.schedules": 1,
    "jaxrl.statistics": 1,
    "jaxrl.planning": 1,
    "jaxrl.acting": 1,
    "jaxrl.shards": 0,
    "jaxrl.precision": 1,
    "jaxrl.nonfinite": 1,
    "jaxrl.checkpoint": 1,
    "jaxrl.loop": 2,
    "jaxrl.evaluate": 3,
    "jaxrl.recurrence": 2,
    "jaxrl.agent_checker": 2,
    "jaxrl.comparison": 2,
    "jaxrl.prioritised": 2,
    "jaxrl.n_step_replay": 2,
    "jaxrl.spectral": 2,
    "jaxrl.dynamics": 2,
    "jaxrl.networks": 3,
    "jaxrl.q_losses": 3,
    "jaxrl.policy_gradient": 3,
    "jaxrl.self_play": 4,
    "jaxrl.normalisation": 4,
    "jaxrl.cropping": 4,
    "jaxrl.agents": 4,
    "jaxrl.sharding": 5,
}
FLOORS = {  # of `train`: host knows no program, programs know the host, commands know all
    "train": 7,
    "train.host": 1,
    "train.snake": 2,
    "train.two_snake": 2,
    "train.allo": 2,
    "train.goals": 3,
    "train.gymnax": 2,
    "train.durotaxis": 2,
    "train.vector_field": 2,
    "train.policies": 4,
    "train.sweep": 4,
    "train.report": 5,
    "train.play": 6,
    "train.snake_players": 5,
    "train.__main__": 5,
    "train.evaluate": 5,
    "train.render": 5,
}
TOGETHER = {"jaxrl.networks", "jaxrl.spectral", "jaxrl.dynamics"}
"""Folders whose modules may import each other, as those of a folder of `train` may."""
GOALS = "train.goals"
"""The only program that builds on another one, train.allo."""
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
    """The entry of the tables that a dotted name falls under, the longest one."""
    fits = [entry for entry in LAYERS | FLOORS if f"{name}.".startswith(f"{entry}.")]
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
        elif top == home == "jaxrl" and not points_down(module, name):
            wrong.append(f"{module} imports {name}: imports point downwards")
        elif top == home == "train" and not stays_in_its_room(module, name):
            wrong.append(f"{module} imports {name}: programs import the host and their own files")
    return wrong


def points_down(module: str, name: str) -> bool:
    """Strictly down the table, or within a folder; agents import neither agents nor the loop."""
    here, there = place(module), place(name)
    if here is None or there is None:
        return False
    if here == "jaxrl.agents" and there == "jaxrl.loop":
        return False
    return LAYERS[there] < LAYERS[here] or (here == there and here in TOGETHER)


def stays_in_its_room(module: str, name: str) -> bool:
    """Programs import the host and their own files, commands everything below them."""
    here, there = place(module), place(name)
    if here is None or there is None:
        return False
    if FLOORS[there] >= 2 and here.count(".") and FLOORS[here] in (2, 3) and here != there:
        return (here, there) == (GOALS, "train.allo")
    return here == there or FLOORS[there] < FLOORS[here]


@pytest.mark.parametrize(("module", "path"), [pytest.param(*s, id=s[0]) for s in sources()])
def test_imports_point_downwards(module: str, path: Path):
    assert violations(module, path.read_text()) == []


def test_every_module_has_a_layer():
    names = [module for module, _ in sources() if module.split(".")[0] in ("jaxrl", "train")]
    assert [name for name in names if "." in name and "." not in str(place(name))] == []


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
        ("jaxrl.checkpoint", "import pickle"),
        ("envs.snake.game", "from jaxrl.types import PyTree"),
        ("envs.snake.game", "import train.snake"),
        ("train.snake.training", "import torch"),
        ("train.host.run", "from train.snake.program import PROGRAM"),
        ("train.snake.program", "from train.two_snake import tournament"),
        ("train.snake.program", "from train.policies import export"),
    ],
)
def test_a_wrong_import_is_seen(module: str, source: str):
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("jaxrl.agents.ppo", "from jaxrl import returns\nfrom jaxrl.networks.mlp import MLP"),
        ("jaxrl.networks.dueling", "from jaxrl.networks.mlp import MLP"),
        ("envs.base", "import gymnax"),
        ("train.snake.config", "from envs import snake\nfrom jaxrl.agents import dqn, ppo"),
        ("train.goals.program", "from train.allo.training import make_problem"),
        ("train.evaluate", "from train.policies import export"),
    ],
)
def test_a_right_import_passes(module: str, source: str):
    assert violations(module, source) == []


def test_packages_of_the_library_export_nothing():
    """Their `__init__` is a docstring: one name has one home. That of `train` is the entrance.

    It has `load`, which imports what it needs when it is called.
    """
    for module, path in sources():
        if path.name == "__init__.py" and not module.startswith("envs"):
            docstring, *code = ast.parse(path.read_text()).body
            assert isinstance(docstring, ast.Expr), f"{module} has no docstring"
            names = [getattr(x, "name", "") for x in code if isinstance(x, ast.FunctionDef)]
            assert names == (["load"] if module == "train" else []), module
            assert module == "train" or not code, module


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
