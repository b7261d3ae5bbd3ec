"""Where the numbers of a run come from: libraries, device, settings, commit, files it is told."""

import subprocess
import zlib
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

from jaxrl import checkpoint
from train.host.entrance import ROOT
from train.host.files.run_directory import CHECKPOINTS, RunDirectory
from train.host.machine import jax_settings
from train.host.machine.jax_settings import PRECISION
from train.host.plain_config import differences, flatten, plain

BLOCK = 1 << 20
"""Bytes of a file that are read at once."""


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


def files_of(config: Any) -> dict[str, str]:
    """The files and runs that a configuration names, by dotted field, with their checksums.

    Learning is from what they hold, which may change while a run is stopped. Those below `run` are
    left out: they shape no update, or the first one alone.
    """
    checksums: dict[str, str] = {}
    for name, value in flatten(plain(config)).items():
        texts = [x for x in (value if isinstance(value, list) else [value]) if isinstance(x, str)]
        entries = [text for x in texts if x and (text := _with_checksum(Path(x)))]
        if entries and not name.startswith("run."):
            checksums[name] = ", ".join(entries)
    return checksums


def changed_files(checkpoints: Path, files: dict[str, str]) -> str:
    """`; NAME: saved -> current since …` of what `files_of` tells otherwise than the newest
    checkpoint in a folder does; empty: nothing. For messages on states that do not fit any more."""
    try:
        saved = checkpoint.read_meta(checkpoints).get("files", files)
    except checkpoint.CheckpointError:
        return ""
    changes = differences(saved, files)
    lost = saved.keys() - files.keys()
    is_elsewhere = any(not Path(saved[name]).is_absolute() for name in lost)
    folder = "go to the folder in which the run began, where its paths begin, or " * is_elsewhere
    advice = f"{folder}put back what it learned from, or begin a run of its own"
    return f"; {'; '.join(changes)} since the run was saved: {advice}" if changes else ""


def _with_checksum(path: Path) -> str:
    """The path of a file, or of a run by its newest checkpoint, with a CRC-32; empty: neither."""
    try:
        if RunDirectory(path).has_config and (saved := checkpoint.steps(path / CHECKPOINTS)):
            record = path / CHECKPOINTS / f"{saved[-1]:010d}" / checkpoint.RECORD
            return f"{path}, update {saved[-1]} ({_checksum(record)})"
        return f"{path} ({_checksum(path)})" if path.is_file() else ""
    except (OSError, ValueError):  # such as a text that no path can be
        return ""


def _checksum(path: Path) -> str:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
    return f"crc32 {checksum:08x}"


def commit(folder: Path = ROOT) -> str | None:
    """The commit of the library, with "-dirty" if files differ from it; None if it is not known.

    A repository that the library only lies in, as in its virtual environment, has commits of
    something else.
    """
    top = git_answer(folder, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != folder.resolve():
        return None
    # `describe --dirty` would write the index, and leave its lock where it is stopped.
    changes = git_answer(
        folder, "--no-optional-locks", "status", "--porcelain", "--untracked-files=no"
    )
    head = git_answer(folder, "rev-parse", "HEAD")
    return f"{head}-dirty" if head and changes else head


def git_answer(folder: Path, *arguments: str) -> str | None:
    """What git prints in a folder; None if it prints nothing, or there is no git."""
    try:
        answer = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.decode(errors="replace").strip() or None
