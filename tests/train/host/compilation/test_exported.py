"""A program that one command has traced is not traced by the next, unless anything has changed."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.train.host.crashes import timeless_rows
from train.host.compilation import ahead_of_time, compilation_cache, exported
from train.host.compilation.exported import keep_programs_of

ROOT = Path(__file__).resolve().parents[4]
LARGE = np.ones(2**15, np.float32)


class Walk(NamedTuple):
    """A state with a key and another array."""

    key: jax.Array
    place: jax.Array


@dataclass(frozen=True)
class RunConfig:
    directory: str = "somewhere"
    seed: int = 0


@dataclass(frozen=True)
class Config:
    data: str = ""
    sizes: tuple[Any, ...] = (3, "a")
    run: RunConfig = field(default_factory=RunConfig)


@pytest.fixture
def command(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a command of this library, in which no module of these tests is loaded."""
    compilation_cache.begin([])
    monkeypatch.setattr(exported, "module_files", lambda: [np.__file__])
    return home


class Walker:
    """A function that counts how often it is traced."""

    def __init__(self, table: Any = 2.0):
        self.count, self.table = 0, table

    def __call__(self, walk: Walk, steps: Any) -> tuple[Walk, dict[str, jax.Array]]:
        self.count += 1
        key, draw = jax.random.split(walk.key)
        places = walk.place + jax.random.normal(draw, walk.place.shape) * jnp.sum(self.table)
        return Walk(key, places), {"far": jnp.max(places) + steps}


def walk_once(
    config: Config = Config(),
    program: str = "walk",
    name: str = "step",
    size: int = 4,
    table: Any = 2.0,
    **options: Any,
) -> tuple[int, np.ndarray, ahead_of_time.TracedFunction]:
    """What a command does: how often it traces the function, the places, and what it traced."""
    walker, start = Walker(table), Walk(jax.random.key(1), jnp.zeros(size))
    with keep_programs_of(program, config):
        traced = ahead_of_time.trace(
            walker, start, np.int32(2), name=name, donate_argnums=0, **options
        )
    walk, _ = traced.compile()(start, np.int32(2))
    assert start.place.is_deleted()
    return walker.count, np.asarray(walk.place), traced


def test_the_next_command_traces_nothing_and_computes_the_same(command):
    fast = {"xla_cpu_enable_fast_math": False}
    first, places, traced = walk_once(compiler_options=lambda jaxpr: fast)
    again, same, loaded = walk_once(compiler_options=lambda jaxpr: {})
    assert (first, again) == (1, 0)
    assert places.tobytes() == same.tobytes()
    assert loaded.compiler_options == traced.compiler_options == fast
    shapes = lambda x: jax.tree.map(lambda y: (y.shape, y.dtype), x.out_info)
    assert shapes(loaded) == shapes(traced)
    # and where the results go may depend on their shapes
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    count, same, _ = walk_once(layout=lambda out: jax.tree.map(lambda _: device, out))
    assert count == 0
    assert places.tobytes() == same.tobytes()


CHANGES = {
    "another configuration": {"config": Config(sizes=(3, "b"))},
    "another seed": {"config": Config(run=RunConfig(seed=1))},
    "another training": {"program": "run"},
    "another function of it": {"name": "jump"},
    "other shapes": {"size": 5},
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_program_follows_from_is_told_apart(change, command):
    assert walk_once()[0] == 1
    assert walk_once(config=Config(run=RunConfig(directory="elsewhere")))[0] == 0
    assert walk_once(**change)[0] == 1
    assert walk_once()[0] == 0


@pytest.mark.slow
def test_other_code_packages_and_settings_are_told_apart(command, monkeypatch, tmp_path):
    assert walk_once()[0] == 1
    jax.config.update("jax_threefry_partitionable", False)
    try:
        assert walk_once()[0] == 1
    finally:
        jax.config.update("jax_threefry_partitionable", True)
    assert walk_once()[0] == 0
    # a package is installed, then installed anew
    monkeypatch.setattr(exported, "package_folders", lambda: (f"{tmp_path}{os.sep}",))
    monkeypatch.setattr(exported, "module_files", list)
    record = tmp_path / "some-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("a.py")
    assert (walk_once()[0], walk_once()[0]) == (1, 0)
    record.write_text("a.py, b.py")
    assert (walk_once()[0], walk_once()[0]) == (1, 0)
    # a file of one whose functions are traced is edited
    (tmp_path / "traced").mkdir()
    source = tmp_path / "traced" / "__init__.py"
    source.write_text("x = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(exported, "PACKAGES", ("numpy", "traced"))
    assert (walk_once()[0], walk_once()[0]) == (1, 0)
    source.write_text("x = 12")
    assert (walk_once()[0], walk_once()[0]) == (1, 0)
    # a file of the library is edited
    monkeypatch.setattr(exported, "code_digest", lambda: "other code")
    assert (walk_once()[0], walk_once()[0]) == (1, 0)


def test_all_files_of_the_library_are_in_the_digest_of_its_code(monkeypatch, tmp_path):
    before = exported.code_digest()
    assert before == exported.code_digest()
    for name in ("envs", "train"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "module.py").write_text("x = 1\n")
    folders = tuple(f"{tmp_path / name}{os.sep}" for name in ("envs", "train"))
    monkeypatch.setattr(exported, "ROOT", tmp_path)
    monkeypatch.setattr(exported, "FOLDERS", folders)
    digests = {before, exported.code_digest()}
    (tmp_path / "train" / "deep" / "module.py").write_text("x = 2\n")  # of the same length
    digests.add(exported.code_digest())
    (tmp_path / "envs" / "deep" / "table.csv").write_text("1,2\n")
    digests.add(exported.code_digest())
    (tmp_path / "envs" / "deep" / "module.pyc").write_text("compiled")
    digests.add(exported.code_digest())
    assert len(digests) == 4


NOT_KEPT = {
    "without a name": {"name": ""},
    "of a program that is not ours": {"program": ""},
    "with large arrays": {"table": LARGE},
    "with data of the user": {"config": Config(data=__file__)},
    "with a file among others": {"config": Config(sizes=("a", f"half={__file__},0.5"))},
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("case", NOT_KEPT.values(), ids=NOT_KEPT)
def test_what_may_change_unseen_is_traced_each_time(case, command):
    assert walk_once(**case)[0] == 1
    assert walk_once(**case)[0] == 1


def test_a_command_with_modules_of_the_user_traces_each_time(command, monkeypatch):
    monkeypatch.setattr(exported, "module_files", lambda: [np.__file__, __file__])
    assert walk_once()[0] == 1
    assert walk_once()[0] == 1


def test_a_command_without_a_cache_traces_each_time(command):
    jax.config.update("jax_enable_compilation_cache", False)
    assert walk_once()[0] == 1
    assert walk_once()[0] == 1


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("content", [b"", b"{}\n", b'{"structure": 1}\nabc', b"no JSON\nabc"])
def test_an_entry_that_cannot_be_read_is_replaced(content, command):
    places = walk_once()[1]
    (entry,) = command.rglob("exported-*")
    compilation_cache.entries().put(entry.name, content)  # pyright: ignore[reportOptionalMemberAccess]
    count, same, _ = walk_once()
    assert count == 1
    assert places.tobytes() == same.tobytes()
    assert walk_once()[0] == 0


@pytest.mark.slow
def test_a_command_that_is_started_again_repeats_itself_without_tracing(tmp_path):
    """It has two seeds on two devices."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "JAX_NUM_CPU_DEVICES": "2"}
    del environment["JAX_COMPILATION_CACHE_DIR"]
    flags = "--run.num-seeds 2 --run.total-steps 4096 --loop.num-envs 16 --run.chunk-steps 1024"
    games = "--run.evaluate-every 2 --run.evaluate-games 8 --run.evaluation-games 8"

    def start(name: str, *more: str) -> Path:
        command = [sys.executable, "-m", "train.gymnax", *flags.split(), *games.split(), *more]
        command += ["--run.directory", str(tmp_path / name)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
        return tmp_path / name

    def entries(pattern: str = "*") -> dict[str, int]:
        paths = (tmp_path / "jaxrl").rglob(pattern)
        return {path.name: path.stat().st_ino for path in paths if path.is_file()}

    first = start("first")
    before = entries()
    # the initial state, a chunk, and start and pieces of two kinds of games
    assert len(entries("exported-*")) == 6
    again, without = start("again"), start("without", "--no-cache")
    assert entries() == before  # nothing was written anew, nor compiled
    for other in (again, without):
        assert timeless_rows(other) == timeless_rows(first)
