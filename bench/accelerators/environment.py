"""An environment with the compilers of all chips, made once: jax's plugins for CUDA and libtpu.

They are none of the project's requirements: a CPU machine needs them only to compile for chips that
it does not have.
"""

import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

from train.host.compilation.compilation_cache import cache_home

ROOT = Path(__file__).parents[2]
FOLDER = "jaxrl-accelerators"  # not below `jaxrl`, whose files make room for compiled programs
DONE = "complete"  # a file: the environment has all it needs


def environment_folder() -> Path:
    """Where the environment lies or will lie: one for each version of jax and Python."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return cache_home() / FOLDER / f"jax{metadata.version('jax')}-python{version}"


def is_made() -> bool:
    """Whether the environment is there, with all it needs."""
    return (environment_folder() / DONE).exists()


def python_with_compilers() -> Path:
    """The Python of the environment, which is made first where it is not there.

    It lies in the user's cache. Raises RuntimeError if it cannot be made.
    """
    version, folder = metadata.version("jax"), environment_folder()
    python = folder / "bin" / "python"
    if is_made():
        return python
    print(f"making {folder}: some 2 GB, some minutes", file=sys.stderr, flush=True)
    venv.create(folder, with_pip=True, clear=True)
    plugins = ("jax-cuda12-plugin", "jax-cuda12-pjrt")
    packages = [f"jax[tpu]=={version}", *(f"{plugin}=={version}" for plugin in plugins)]
    command = [str(python), "-m", "pip", "install", "-q", "-r", "requirements.txt", *packages]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    if answer.returncode:
        raise RuntimeError(f"{folder} cannot be made: {answer.stderr.strip()[-500:]}")
    (folder / DONE).touch()
    return python
