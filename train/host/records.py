"""The files of a run directory: `config.yaml` and `metrics.jsonl`.

`config.yaml` holds the name and preset of the run and every field of its configuration.
`metrics.jsonl` is the record of the training, a row per seed and chunk of updates:

    seed, updates, steps, episodes   the seed, and counts since its start; `settings.Training.unit`
                                     says what a step is, such as an environment or gradient step
    seconds                          training time so far, without compilation and saving
    steps_per_second                 steps of all seeds per second in this chunk, a whole number
    finished                         means over the episodes that ended in this chunk: return,
                                     length and the environment's outcome; null if none ended, and
                                     empty where no episodes are played
    agent                            means over this chunk's updates of the agent's measures, which
                                     are numbers or lists of numbers
    skipped, restores                updates undone and returns to a checkpoint, so far
"""

import json
import math
import os
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

from train.host.config import plain
from train.host.errors import UsageError

CHECKPOINTS = "checkpoints"


def create(directory: str, name: str) -> Path:
    """A fresh run directory, `runs/NAME-YYYYmmdd-HHMMSS` unless given."""
    if directory:
        path = Path(directory)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(f"{path} exists already: name another, or continue it with --resume")
        path.mkdir(parents=True, exist_ok=True)
        return path
    return create_dated(Path("runs"), name)


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


def write_config(directory: Path, name: str, preset: str, config: Any) -> None:
    """Writes `config.yaml`."""
    content = {"name": name, "preset": preset, "config": plain(config)}
    write_whole(directory / "config.yaml", yaml.safe_dump(content, sort_keys=False))


def read_config(directory: str | Path) -> dict[str, Any]:
    """`{"name", "preset", "config"}` of a run directory, the last as plain data."""
    path = Path(directory) / "config.yaml"
    advice = "give a directory that a run of train has written, such as runs/NAME-DATE"
    if not path.is_file():
        raise UsageError(f"{directory} is not a run directory (no config.yaml in it): {advice}")
    try:
        content = yaml.safe_load(path.read_text())
        return {key: content[key] for key in ("name", "preset", "config")}
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{path} is not the configuration of a run ({reason}): {advice}") from None


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a temporary file for writing that replaces `path` in one step, once it is on the disk.

    No reader and no crash ever sees half of it; after an error the old file is still there.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
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
    with replacing(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def write_whole(path: str | Path, text: str) -> None:
    """Replaces a text file in one step."""
    with replacing(path) as file:
        file.write(text.encode())


class MetricsFile:
    """`metrics.jsonl`, open for appending by this process alone."""

    def __init__(self, directory: Path):
        self.path = directory / "metrics.jsonl"
        self._file = self.path.open("a+b")
        _lock(self._file, directory)

    def __enter__(self) -> "MetricsFile":
        return self

    def __exit__(self, *_) -> None:
        self._file.close()

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Writes rows and flushes them, so that other processes can read them."""
        for row in rows:
            self._file.write(json.dumps(finite_or_null(row)).encode() + b"\n")
        self._file.flush()

    def sync(self) -> None:
        """Returns when all rows would survive a power cut."""
        os.fsync(self._file.fileno())

    def cut(self, updates: int) -> None:
        """Drops the rows after `updates`, and a last row that a crash left incomplete."""
        self._file.seek(0)
        end = 0
        for line in self._file:
            row = _parse(line)
            if row is None or row["updates"] > updates:
                break
            end += len(line)
        self._file.truncate(end)
        self._file.seek(end)


def read_metrics(directory: str | Path) -> list[dict[str, Any]]:
    """The rows of `metrics.jsonl`, also while the run is being written."""
    path = Path(directory) / "metrics.jsonl"
    if not path.is_file():
        raise UsageError(f"{directory} holds no metrics.jsonl: give the directory of a run")
    with path.open("rb") as file:
        rows = [_parse(line) for line in file]
    return [row for row in rows if row is not None]


def _parse(line: bytes) -> dict[str, Any] | None:
    """One row; None if the line is incomplete or no row."""
    try:
        row = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return row if isinstance(row, dict) and "updates" in row else None


def finite_or_null(value: Any) -> Any:
    """`value` with null for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite_or_null(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite_or_null(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _lock(file: IO[bytes], directory: Path) -> None:
    """Refuses a directory that another process writes; the lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(
            f"{directory} is being written by another process: stop it first"
        ) from None
    except OSError:  # a file system without locks
        return


def provenance() -> dict[str, Any]:
    """What else the exact numbers depend on: library versions, device and, if known, the commit."""
    packages = ("jax", "jaxlib", "flax", "optax", "numpy", "orbax-checkpoint")
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        git = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=5
        )
        commit = git.stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        commit = None
    return {
        "versions": {package: metadata.version(package) for package in packages},
        "device": jax.devices()[0].device_kind,
        "git": commit,
    }
