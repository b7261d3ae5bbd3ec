"""The files of a run directory, each written whole or not at all.

`config.yaml` holds the name and preset of the run and every field of its configuration. For
`metrics.jsonl` see `train.host.files.metrics_file`, for `checkpoints/` `jaxrl.checkpoint`.
"""

import math
import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import jax
import numpy as np
import yaml

from train.host.entrance import ROOT
from train.host.errors import UsageError, in_one_line, os_errors_with_path
from train.host.machine import jax_settings
from train.host.plain_config import plain

CHECKPOINTS = "checkpoints"
PRECISION = "jax_default_matmul_precision"
ADVICE = "give a directory that a run of train has written, such as runs/NAME-DATE"


def create(directory: str, name: str) -> Path:
    """A fresh run directory, `runs/NAME-YYYYmmdd-HHMMSS` unless given."""
    if directory:
        path = Path(directory)
        if path.exists() and not (path.is_dir() and _has_nothing(path)):
            raise UsageError(f"{path} exists already: name another, or continue it with --resume")
        path.mkdir(parents=True, exist_ok=True)
        return path
    return create_dated(Path("runs"), name)


def _has_nothing(directory: Path) -> bool:
    """Whether a directory is empty, or a run was killed before it had written its configuration."""
    early_files = {"metrics.jsonl", ".config.yaml.partial"}
    return all(
        path.name in early_files and (path.name.startswith(".") or path.stat().st_size == 0)
        for path in directory.iterdir()
    )


def create_dated(parent: Path, name: str) -> Path:
    """A new folder `NAME-YYYYmmdd-HHMMSS` in `parent`, with `-2`, `-3`, ... if that exists."""
    base = parent / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for attempt in range(1, 1000):
        path = base if attempt == 1 else base.with_name(f"{base.name}-{attempt}")
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:  # made by another process in the same second
            continue
    raise UsageError(f"{base} and 998 more exist already: remove some")


def resume_flag(directory: str | Path) -> str:
    """How a run in a directory goes on, as a shell takes it."""
    return f"--resume {shlex.quote(str(directory))}"


def refuse_no_file(path: Path) -> None:
    """Raises UsageError for an `--out` that is a folder, or lies in none."""
    if path.is_dir():
        raise UsageError(f"--out {path} is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--out {path} lies in no folder; create that first")


def write_config(directory: Path, name: str, preset: str, config: Any) -> None:
    """Writes `config.yaml`."""
    content = {"name": name, "preset": preset, "config": plain(config)}
    write_whole(directory / "config.yaml", yaml.safe_dump(content, sort_keys=False))


def read_config(directory: str | Path) -> dict[str, Any]:
    """`{"name", "preset", "config"}` of a run directory, the last as plain data."""
    path = Path(directory) / "config.yaml"
    if not path.is_file():
        raise UsageError(f"{directory} is not a run directory (no config.yaml in it): {ADVICE}")
    return read_config_file(path)


def read_config_file(path: str | Path) -> dict[str, Any]:
    """The same of a file like `config.yaml`, or of the one in a run directory."""
    path = Path(path)
    if path.is_dir():
        return read_config(path)
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}: give the config.yaml of a run, or its directory"
        )
    try:
        content = yaml.safe_load(path.read_bytes())
        entries = {key: content[key] for key in ("name", "preset", "config")}
        words = (entries["name"], entries["preset"])
        if not all(isinstance(x, str) and x.split() == [x][: len(x)] for x in words):
            raise TypeError("name and preset must be words")
        return entries
    except (yaml.YAMLError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = in_one_line(error)
        raise UsageError(f"{path} is not the configuration of a run ({reason}): {ADVICE}") from None


@contextmanager
def replacement_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a temporary file for writing that replaces `path` in one step, once it is on the disk.

    No reader and no crash ever sees half of it; after an error the old file is still there.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    with os_errors_with_path(path):
        try:
            with partial.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Replaces an npz file in one step."""
    with replacement_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def write_whole(path: str | Path, text: str) -> None:
    """Replaces a text file in one step."""
    with replacement_file(path) as file:
        file.write(text.encode())


def finite_or_null(value: Any) -> Any:
    """`value` with null for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite_or_null(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite_or_null(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def provenance() -> dict[str, Any]:
    """What else the exact numbers depend on: library versions, device, settings of JAX and, if
    known, the commit."""
    packages = ("jax", "jaxlib", "flax", "optax", "numpy")
    return {
        "versions": {package: metadata.version(package) for package in packages},
        "device": jax.local_devices()[0].device_kind,
        "settings": jax_settings.draw_settings() | {PRECISION: getattr(jax.config, PRECISION)},
        "git": commit(),
    }


def commit(folder: Path = ROOT) -> str | None:
    """The commit of the library, with "-dirty" if files differ from it; None if it is not known.

    A repository that the library only lies in, as in its virtual environment, has commits of
    something else.
    """
    top = git_answer(folder, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != folder.resolve():
        return None
    return git_answer(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def git_answer(folder: Path, *arguments: str) -> str | None:
    """What git prints in a folder; None if it prints nothing, or there is no git."""
    try:
        answer = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.decode(errors="replace").strip() or None
