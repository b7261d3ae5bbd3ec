"""Compiled programs are kept for later commands: whole, private, bounded, and only if wanted."""

import os
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import compilation_cache as cache_of_jax

from train.host.command_line.command import command
from train.host.compilation import compilation_cache
from train.host.compilation.compilation_cache import (
    FOLDER,
    SETTINGS,
    SWITCH,
    Entries,
    kind_of_machine,
    private_root,
)


@pytest.fixture
def hits() -> Iterator[list[str]]:
    """What JAX tells of its cache."""
    events: list[str] = []

    def listen(event: str, **_) -> None:
        if event.startswith("/jax/compilation_cache/cache_"):
            events.append(event.rpartition("_")[2])

    jax.monitoring.register_event_listener(listen)
    yield events
    jax.monitoring.unregister_event_listener(listen)


def compute() -> np.ndarray:
    """A program that no other test has, compiled whenever JAX has forgotten it."""
    jax.clear_caches()
    x = np.linspace(0.1, 1.0, 64, dtype=np.float32)
    chunk = jax.jit(lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c) * 1.37, c.sum()), x, None, 9))
    return np.concatenate([np.ravel(y) for y in chunk(x)])


def files(home: Path) -> list[Path]:
    return sorted(path for path in home.rglob("*") if path.is_file())


@pytest.mark.slow
def test_what_one_command_compiled_no_other_has_to(home, hits, monkeypatch, capsys):
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    results: list[np.ndarray] = []
    for _ in range(2):
        cache_of_jax.reset_cache()
        jax.config.update(FOLDER, None)
        assert command(lambda _: results.append(compute())) == 0
    assert hits == ["misses", "hits"]
    assert results[0].tobytes() == results[1].tobytes()
    assert [x.stat().st_mode & 0o777 for x in (home / "jaxrl", *(home / "jaxrl").iterdir())] == [
        0o700,
        0o700,
    ]
    text = f"compiled programs are kept in {home / 'jaxrl'}, 2 GB at most (--no-cache does without)"
    assert capsys.readouterr().err == f"{text}\n"
    # half an entry, as of a disk that was full, is not used and makes room for a whole one
    (entry,) = files(home)
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-100])
    assert compute().tobytes() == results[0].tobytes()
    assert hits == ["misses", "hits", "misses"]
    assert compute().tobytes() == results[0].tobytes()
    assert hits[-1] == "hits"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("flag", ["--no-cache", "--no_cache"])
def test_a_command_can_do_without(flag, home, hits):
    assert compilation_cache.begin(["a", flag, "--b"]) == ["a", "--b"]
    compute()
    assert hits == []
    assert files(home) == []
    assert os.environ["JAX_ENABLE_COMPILATION_CACHE"] == "0"  # of the commands that it starts


@pytest.mark.parametrize(
    "variable",
    [
        "JAX_COMPILATION_CACHE_DIR=",
        "JAX_COMPILATION_CACHE_DIR=mine",
        "JAX_ENABLE_COMPILATION_CACHE=0",
    ],
)
def test_what_the_user_told_jax_stays(variable, home, monkeypatch):
    name, _, value = variable.partition("=")
    monkeypatch.setenv(name, value)
    if name == SWITCH.upper():
        jax.config.update(SWITCH, False)
    before = {x: getattr(jax.config, x) for x in (FOLDER, SWITCH, *SETTINGS)}
    compilation_cache.begin([])
    assert {x: getattr(jax.config, x) for x in before} == before


def test_processes_that_have_joined_do_without(home, monkeypatch):
    monkeypatch.setattr(compilation_cache.distributed, "has_joined", lambda: True)
    compilation_cache.begin([])
    assert jax.config.jax_compilation_cache_dir is None  # pyright: ignore


def test_a_folder_that_others_can_write_is_not_used(home):
    (home / "jaxrl").mkdir(mode=0o700)
    assert private_root() == home / "jaxrl"
    (home / "jaxrl").chmod(0o770)
    assert private_root() is None


@pytest.mark.skipif(not hasattr(os, "chown") or os.getuid() != 0, reason="needs another user")
def test_nor_is_that_of_another_user(home):
    os.chown(home, 1234, -1)  # as the superuser with the home of a user
    assert private_root() is None
    os.chown(home, 0, -1)
    (home / "jaxrl").mkdir(mode=0o700)
    os.chown(home / "jaxrl", 1234, -1)
    assert private_root() is None


def test_without_a_home_there_is_no_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which means nothing
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    assert private_root() == tmp_path / "missing" / ".cache" / "jaxrl"

    def fail() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", fail)
    assert private_root() is None


def test_the_longest_unused_entries_make_room(home):
    jax.config.update("jax_compilation_cache_max_size", 1_000)
    entries = Entries(home / "jaxrl", home / "jaxrl" / "new")
    older = Entries(home / "jaxrl", home / "jaxrl" / "old")  # of versions that are gone
    for at, (store, key) in enumerate([(older, "a"), (entries, "b"), (entries, "c")]):
        store.put(key, bytes(200))
        os.utime(store._path / key, (at + 1, at + 1))
    assert entries.get("b") == bytes(200)  # used now
    entries.put("d", bytes(400))
    assert [older.get("a"), entries.get("b"), entries.get("c")] == [None, bytes(200), bytes(200)]
    assert entries.get("d") == bytes(400)
    entries.put("e", bytes(2_000))  # fits nowhere, and nothing has to go for it
    assert len(files(home)) == 3


def test_a_disk_that_refuses_is_no_error(home):
    (home / "jaxrl").write_text("a file in the place of the folder")
    entries = Entries(home / "jaxrl", home / "jaxrl" / "new")
    entries.put("a", b"x")
    assert entries.get("a") is None


def test_other_versions_and_processors_have_folders_of_their_own(monkeypatch):
    processors = ["flags : sse avx\nbogomips : 1", "flags : sse avx\nbogomips : 2", "flags : sse"]
    names = []
    for text in processors:
        monkeypatch.setattr(Path, "read_text", lambda *_, text=text, **__: text)
        names.append(kind_of_machine())
    assert names[0] == names[1] != names[2]
    monkeypatch.setattr(jax, "__version__", "0.10.999")
    assert kind_of_machine() not in names
