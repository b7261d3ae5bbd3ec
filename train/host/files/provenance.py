"""Where the numbers of a run come from: libraries, device, settings, commit."""

import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

from train.host.entrance import ROOT
from train.host.machine import jax_settings
from train.host.machine.jax_settings import PRECISION


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
