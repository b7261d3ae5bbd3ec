"""A state comes back bit for bit, or the checkpoint is not used."""

import errno
import json
import logging
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl import checkpoint
from jaxrl.checkpoint import CheckpointError, read_meta, restore, restoring, save, saving, steps


class State(NamedTuple):
    params: Any
    keys: jax.Array
    key: jax.Array
    memory: Any
    nothing: None
    empty: jax.Array
    updates: jax.Array


def make_state(seed: int, size: int = 4) -> State:
    keys, normal = jax.random.split(jax.random.key(seed))
    weights = jax.random.normal(normal, (size, 3))
    return State(
        params={
            "a/b": {"kernel": weights, "half": weights.astype(jnp.bfloat16)},
            "list": [jnp.array([jnp.nan, -0.0, jnp.inf]), jnp.arange(3, dtype=jnp.uint8)],
        },
        keys=jax.random.split(keys, (2, 3)),
        key=jax.random.key(seed, impl="rbg"),
        memory=(),
        nothing=None,
        empty=jnp.zeros((4, 0), jnp.int8),
        updates=jnp.asarray(seed, jnp.int32),
    )


def bits(state: Any) -> list[tuple[str, tuple[int, ...], bytes]]:
    """Every leaf, as dtype, shape and bytes."""
    raw = [
        jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
        for x in jax.tree.leaves(state)
    ]
    dtypes = [str(x.dtype) for x in jax.tree.leaves(state)]
    return [(d, x.shape, np.asarray(x).tobytes()) for d, x in zip(dtypes, raw, strict=True)]


def damage(path: Path, how: str) -> None:
    """Does to a file what crashes and bad disks do."""
    content = bytearray(path.read_bytes())
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "garbage":
        path.write_bytes(np.random.default_rng(0).bytes(max(1, len(content))))
    else:
        content[len(content) // 2] ^= 4
        path.write_bytes(content)


@pytest.mark.parametrize("describe", [lambda make: make(), jax.eval_shape])
def test_a_state_comes_back_bit_for_bit(tmp_path: Path, describe):
    state, meta = make_state(1), {"updates": 2**40, "rate": float("inf"), "names": ["a", None]}
    save(tmp_path, 1, state, meta)
    loaded, loaded_meta, step = restore(tmp_path, describe(lambda: make_state(0)))
    assert jax.tree.structure(loaded) == jax.tree.structure(state)
    assert bits(loaded) == bits(state)
    assert (loaded_meta, step) == (meta, 1)
    assert read_meta(tmp_path) == meta
    assert float(jax.random.uniform(loaded.key)) == float(jax.random.uniform(state.key))


def test_what_is_loaded_can_be_donated(tmp_path: Path):
    save(tmp_path, 1, make_state(1), {})
    loaded, _, _ = restore(tmp_path, make_state(0))
    kernel = loaded.params["a/b"]["kernel"]
    jax.jit(lambda x: x + 1, donate_argnums=0)(kernel)
    assert kernel.is_deleted()


def test_the_newest_two_are_kept(tmp_path: Path):
    for step in (5, 10, 15):
        save(tmp_path, step, make_state(step), {"step": step})
    assert steps(tmp_path) == [10, 15]
    assert restore(tmp_path, make_state(0))[1:] == ({"step": 15}, 15)
    assert restore(tmp_path, make_state(0), step=10)[1:] == ({"step": 10}, 10)


def test_going_back_drops_what_came_later(tmp_path: Path):
    for step in (10, 20):
        save(tmp_path, step, make_state(step), {})
    save(tmp_path, 15, make_state(15), {})
    assert steps(tmp_path) == [10, 15]


def test_a_step_saved_again_replaces_the_former(tmp_path: Path):
    save(tmp_path, 10, make_state(1), {"which": 1})
    save(tmp_path, 10, make_state(2), {"which": 2})
    loaded, meta, _ = restore(tmp_path, make_state(0))
    assert (int(loaded.updates), meta) == (2, {"which": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["0000000010"]


@pytest.mark.parametrize("how", ["missing", "empty", "cut", "garbage", "one bit"])
@pytest.mark.parametrize("which", ["record.json", checkpoint.ARRAYS])
def test_a_damaged_checkpoint_is_passed_over(
    tmp_path: Path, how: str, which: str, caplog: pytest.LogCaptureFixture
):
    save(tmp_path, 1, make_state(1), {"step": 1})
    path = save(tmp_path, 2, make_state(2, size=500), {"step": 2})
    damage(path / which, how)
    with caplog.at_level(logging.WARNING):
        loaded, meta, step = restore(tmp_path, make_state(0))
    assert (meta, step) == ({"step": 1}, 1)
    assert bits(loaded) == bits(make_state(1))
    (record,) = caplog.records
    assert f"checkpoint {path} is skipped" in record.getMessage()
    assert read_meta(tmp_path) == {"step": 1}


@pytest.mark.parametrize("moment", ["read_record", "_load"])
def test_a_checkpoint_that_is_replaced_while_it_is_read_is_followed_by_the_next(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """A running run deletes older ones; here it does so three times in a row."""
    of_step = {step: make_state(step) for step in range(1, 5)}
    save(tmp_path, 1, of_step[1], {"n": 1}, keep=1)
    original = getattr(restoring, moment)

    def read_late(path: Path, *others: Any) -> Any:
        following = steps(tmp_path)[-1] + 1
        if following in of_step:
            save(tmp_path, following, of_step[following], {"n": following}, keep=1)
        return original(path, *others)

    monkeypatch.setattr(restoring, moment, read_late)
    state, meta, step = restore(tmp_path, of_step[1])
    assert (meta, step) == ({"n": 4}, 4)
    assert bits(state) == bits(of_step[4])
    assert not caplog.records
    if moment == "read_record":
        shutil.rmtree(tmp_path / f"{4:010d}")
        save(tmp_path, 1, of_step[1], {"n": 1}, keep=1)
        assert read_meta(tmp_path) == {"n": 4}


def test_a_save_cut_short_leaves_the_former(tmp_path: Path):
    """The save ends as if the process had died before the new checkpoint got its name."""
    save(tmp_path, 1, make_state(1), {})
    finished = save(tmp_path / "elsewhere", 2, make_state(2), {})
    shutil.copytree(finished, tmp_path / ".0000000002.partial")
    assert steps(tmp_path) == [1]
    assert restore(tmp_path, make_state(0))[2] == 1
    save(tmp_path, 3, make_state(3), {})
    assert not list(tmp_path.glob(".*"))


@pytest.mark.skipif(os.name != "posix", reason="asks for the mode of a descriptor")
@pytest.mark.parametrize("folder_error", [None, errno.EINVAL, errno.ENOTSUP])
def test_files_are_flushed_as_other_systems_can(folder_error, tmp_path: Path, monkeypatch):
    """Windows flushes what is open for writing; some network file systems flush no folder."""
    import fcntl

    def fsync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        may_write = fcntl.fcntl(descriptor, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR)
        if is_folder and folder_error:
            raise OSError(folder_error, os.strerror(folder_error))
        if not is_folder and not may_write:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(os, "fsync", fsync)
    save(tmp_path, 7, make_state(3), {})
    assert bits(restore(tmp_path, make_state(0))[0]) == bits(make_state(3))


def test_a_folder_that_fails_to_be_flushed_is_an_error(tmp_path: Path, monkeypatch):
    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        save(tmp_path, 7, make_state(3), {})


def test_nothing_usable_is_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        restore(tmp_path / "nowhere", make_state(0))
    path = save(tmp_path, 1, make_state(1), {})
    (path / "record.json").unlink()
    with pytest.raises(CheckpointError, match=r"can be read \(0000000001: record.json is missing"):
        restore(tmp_path, make_state(0))
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"empty": jnp.zeros((5, 0), jnp.int8)}, r"\.empty is int8\[4,0\], expected int8\[5,0\]"),
        ({"updates": jnp.zeros(())}, r"\.updates is int32\[\], expected float32\[\]"),
        ({"nothing": jnp.zeros(2)}, r"\.nothing is missing, expected float32\[2\]"),
        ({"key": jax.random.key(0)}, r"\.key is key<rbg>\[\], expected key<fry>\[\]"),
        ({"params": {}}, r"\.params\['a/b'\]\['half'\] is .*, expected none; .* and 1 more"),
    ],
)
def test_another_state_is_refused_with_the_difference(tmp_path: Path, change, complaint: str):
    save(tmp_path, 1, make_state(1), {})
    with pytest.raises(CheckpointError, match=complaint) as error:
        restore(tmp_path, make_state(0)._replace(**change))
    assert "\n" not in str(error.value)


def test_only_arrays_are_saved(tmp_path: Path):
    with pytest.raises(TypeError, match=r"arrays only; \['n'\] is a int"):
        save(tmp_path, 1, {"n": 3}, {})
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("keep", [0, -1])
def test_one_checkpoint_at_least_is_kept(tmp_path: Path, keep: int):
    save(tmp_path, 1, make_state(1), {})
    with pytest.raises(ValueError, match=f"keep is {keep}, expected 1 or more"):
        save(tmp_path, 2, make_state(2), {}, keep=keep)
    assert steps(tmp_path) == [1]


@pytest.mark.parametrize(
    ("step", "meta", "kind", "message"),
    [
        (-1, {}, ValueError, "step is -1, expected an integer from 0 on"),
        (2.0, {}, ValueError, "step is 2.0, expected an integer from 0 on"),
        (2, {"loss": np.float32(0.5)}, TypeError, "meta is no plain JSON: Object of type float32"),
    ],
)
def test_what_cannot_be_recorded_leaves_all_as_it_was(tmp_path: Path, step, meta, kind, message):
    save(tmp_path, 1, make_state(1), {})
    with pytest.raises(kind, match=message):
        save(tmp_path, step, make_state(2), meta)
    assert [path.name for path in tmp_path.iterdir()] == ["0000000001"]


def test_steps_may_be_integers_of_arrays(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"holds no checkpoint$"):
        restore(tmp_path, make_state(0), step=7)
    for step in (np.int64(3), jnp.int32(4)):
        save(tmp_path, step, make_state(3), {})
    assert restore(tmp_path, make_state(0), step=3)[2] == 3
    for read in (lambda: restore(tmp_path, make_state(0), step=7), lambda: read_meta(tmp_path, 7)):
        with pytest.raises(CheckpointError, match="no checkpoint of step 7, only of 3, 4"):
            read()


def test_a_later_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(saving, "FORMAT", 3)
    save(tmp_path, 1, make_state(1), {})
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="has format 3; this program reads 2"):
        restore(tmp_path, make_state(0))


def test_another_process_reads_it(tmp_path: Path):
    """A fresh interpreter, and not a word on stderr."""
    state = {"w": jax.random.normal(jax.random.key(0), (5,)), "key": jax.random.key(7)}
    save(tmp_path, 3, state, {})
    code = (
        "import sys, json, jax, jax.numpy as jnp; from jaxrl.checkpoint import restore\n"
        "like = {'w': jnp.zeros(5), 'key': jax.random.key(0)}\n"
        "state, _, step = restore(sys.argv[1], like)\n"
        "print(json.dumps([state['w'].tolist(), jax.random.key_data(state['key']).tolist(), step]))"
    )
    root = Path(__file__).resolve().parents[2]
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(tmp_path)],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [state["w"].tolist(), jax.random.key_data(state["key"]).tolist(), 3]
    assert json.loads(process.stdout) == expected
    assert process.stderr == ""


def test_twenty_megabytes_are_saved_in_a_second(tmp_path: Path):
    """0.1 s on an idle machine; the best of three, for the machine may be busy."""
    state = {"replay": jax.random.normal(jax.random.key(0), (5_000_000,))}
    seconds = []
    for step in range(3):
        start = time.perf_counter()
        save(tmp_path, step, state, {})
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 1


def test_keys_of_another_kind_are_told_from_other_differences(tmp_path):
    state = lambda impl, size: {"key": jax.random.key(0, impl=impl), "x": jnp.zeros(size)}
    checkpoint.save(tmp_path, 1, state("threefry2x32", 2), {})
    for other, advice in (
        (state("rbg", 2), ": set JAX_DEFAULT_PRNG_IMPL as it was then"),
        (state("threefry2x32", 3), ""),
    ):
        with pytest.raises(checkpoint.CheckpointError) as error:
            checkpoint.restore(tmp_path, other)
        assert re.search(
            f"holds another state: .*expected [a-z0-9<>]*\\[3?\\]{advice}$", str(error.value)
        )
