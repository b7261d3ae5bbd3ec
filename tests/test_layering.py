"""The layers of ARCHITECTURE.md as a table, and the imports of every module held against it."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("jaxrl", "envs", "train")
MOST_MODULES = 14
FOLDED = {"jaxrl.checkpoint", "jaxrl.networks.graph", "jaxrl.numerics.linalg"}
"""Folders that are imported from as one module: they export the names of their own modules."""
LAYERS = (  # of `jaxrl`, from the ground up: what stands in a row may be imported by all above it
    ("types", "blocks", "checks", "dependent_fields", "outcomes", "shards"),
    ("numerics", "acting", "checkpoint", "replay"),
    ("losses", "loop", "cycle_skipping", "agent_checker"),
    ("networks", "evaluate"),
    ("agents", "spectral", "dynamics", "wrappers"),
    ("sharding",),
)
FLOORS = (  # of `train`: the host knows no program, programs know the host, commands know all
    ("host",),
    ("snake", "two_snake", "allo", "gymnax", "durotaxis", "vector_field"),
    ("goals",),
    ("policies", "sweep"),
    ("report", "evaluate", "render", "__main__"),
    ("play",),
)
APART = "jaxrl.agents"
"""The only folder whose modules may not import each other."""
GOALS = "train.goals"
"""The only program that builds on another one, train.allo."""
PROGRAMS = {f"train.{name}" for name in (*FLOORS[1], *FLOORS[2])}
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

RUN_DIRECTORY = "train.host.files.run_directory"
"""The only module that knows what the files of a run are called."""
RUN_FILES = ("config.yaml", "metrics.jsonl", "checkpoints", "best", "eval.json", "snapshots")
RUN_FILES += ("samples",)
OTHER_WORDS = {  # that are spelled like a file of a run, and what they are
    ("train.goals.training", "checkpoints"): "the unit of its budget",
    ("train.goals.scene", "best"): "the best action in each cell, of a frame",
    ("train.vector_field.training", "samples"): "the unit of its budget",
    ("train.vector_field.pictures.curves", "samples"): "the unit of an axis",
    ("train.vector_field.pictures.film", "samples"): "the unit of a caption",
    ("train.vector_field.experiment.run_record", "samples"): "the heading of a column",
    ("train.vector_field.advice", "best"): "a number of its JSON file",
    ("train.vector_field.stream.command", "samples"): "the unit of what it prints",
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


def place(name: str) -> tuple[str, int] | None:
    """The room or loose module that a dotted name falls under, and its row from the ground up."""
    top, _, rest = name.partition(".")
    here = rest.partition(".")[0]
    rows = {"jaxrl": LAYERS, "train": FLOORS}[top]
    of_room = (row for row, rooms in enumerate(rows) if here in rooms)
    row = next(of_room, len(rows) if not here else None)  # a package itself stands above all
    return None if row is None else (f"{top}.{here}".rstrip("."), row)


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
    """Strictly down the rows, or within a room; agents import neither agents nor the loop."""
    here, there = place(module), place(name)
    if here is None or there is None:
        return False
    if here[0] == APART and there[0] in (APART, "jaxrl.loop"):
        return False
    return here[0] == there[0] or there[1] < here[1]


def stays_in_its_room(module: str, name: str) -> bool:
    """Programs import the host and their own files, commands everything below them."""
    here, there = place(module), place(name)
    if here is None or there is None:
        return False
    if here[0] in PROGRAMS and there[0] in PROGRAMS and here[0] != there[0]:
        return (here[0], there[0]) == (GOALS, "train.allo")
    return here[0] == there[0] or there[1] < here[1]


def test_imports_point_downwards():
    errors = {module: violations(module, path.read_text()) for module, path in sources()}
    assert {module: lines for module, lines in errors.items() if lines} == {}


def test_an_environment_is_imported_when_it_is_asked_for():
    """So that none costs those who play another."""
    (source,) = (path.read_text() for module, path in sources() if module == "envs")
    assert {name for name in imports(source) if name.startswith("envs.")} == {
        "envs.arguments.check_name",
        "envs.base.Environment",
        "envs.gymnax_import",
        "envs.threefry",
    }


def test_every_module_has_a_row():
    names = [module for module, _ in sources() if module.split(".")[0] in ("jaxrl", "train")]
    assert [name for name in names if place(name) is None] == []


def test_the_reference_tells_the_rows():
    """The first page of `docs/api`, of packages of `jaxrl` that have a row of their own."""
    page = (ROOT / "docs/api/index.md").read_text()
    lines = re.findall(r"\| `(jaxrl\.[\w.]+)` \|.*\| (\S+) \|$", page, re.MULTILINE)
    assert len(lines) == 6
    assert [row for _, row in lines] == [str(place(name)[1]) for name, _ in lines]  # pyright: ignore


def test_no_hall():
    """No folder has more modules than a reader takes in at once."""
    counts = Counter(path.parent for _, path in sources())
    assert {str(x.relative_to(ROOT)): n for x, n in counts.items() if n > MOST_MODULES} == {}


def run_files(source: str) -> set[str]:
    """The files of a run that strings of a source name, alone or as a part of a path."""
    name = re.compile(rf"(?:^|/)({'|'.join(map(re.escape, RUN_FILES))})(?:/|$)")
    tree = ast.parse(source)
    docstrings = {id(x.value) for x in ast.walk(tree) if isinstance(x, ast.Expr)}
    return {
        match[1]
        for x in ast.walk(tree)
        if isinstance(x, ast.Constant) and isinstance(x.value, str) and id(x) not in docstrings
        for match in name.finditer(x.value)
    }


def test_one_module_knows_the_files_of_a_run():
    named = {
        (module, file)
        for module, path in sources()
        if module.startswith("train.") and module != RUN_DIRECTORY
        for file in run_files(path.read_text())
    }
    assert named == OTHER_WORDS.keys()
    home = dict(sources())[RUN_DIRECTORY].read_text()
    assert run_files(home) == set(RUN_FILES)


def test_files_of_a_run_are_noticed():
    assert run_files('x / "best"') == run_files('Path(f"{x}/best/y")') == {"best"}
    assert run_files('"""best"""\nx = "the best", "eval-1.json", "config_yaml"') == set()


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("jaxrl.types", "import jaxrl.losses.returns"),
        ("jaxrl.replay.uniform", "from jaxrl.losses import returns"),
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
        ("train.host.running.run", "from train.snake.program import PROGRAM"),
        ("train.snake.program", "from train.two_snake import tournament"),
        ("train.snake.program", "from train.policies import export"),
    ],
)
def test_a_wrong_import_is_seen(module: str, source: str):
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "jaxrl.agents.ppo",
            "from jaxrl.losses import returns\nfrom jaxrl.networks.mlp import MLP",
        ),
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
    """Their `__init__` is a docstring: one name has one home. Two are front doors.

    `jaxrl.train` and `train.load` import what they need when they are called. The folders in
    `FOLDED` are exempt.
    """
    doors = {"jaxrl": ["train"], "train": ["load"]}
    for module, path in sources():
        if path.name == "__init__.py" and not module.startswith("envs"):
            docstring, *code = ast.parse(path.read_text()).body
            assert isinstance(docstring, ast.Expr), f"{module} has no docstring"
            if module in FOLDED:
                *exports, names = code
                assert isinstance(names, ast.Assign), module
                assert all(isinstance(x, ast.ImportFrom) for x in exports), module
                assert all(name.startswith(f"{module}.") for name in imports(path.read_text()))
                continue
            names = [getattr(x, "name", "") for x in code if isinstance(x, ast.FunctionDef)]
            assert names == doors.get(module, []), module
            assert module in doors or not code, module


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
