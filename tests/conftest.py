"""How every test runs: JAX's strict modes, no display, one cache of programs, long files first."""

import os
from pathlib import Path

# Before anything imports matplotlib or JAX; subprocesses inherit it.
os.environ["MPLBACKEND"] = "Agg"
os.environ.setdefault(  # what one worker or run has compiled, no other has to
    "JAX_COMPILATION_CACHE_DIR",
    str(Path(__file__).resolve().parent.parent / ".pytest_cache" / "jax"),
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")  # [N] - [N, 1] is RL's oldest bug
jax.config.update("jax_debug_key_reuse", True)
jax.config.update("jax_legacy_prng_key", "error")


@pytest.fixture
def key() -> jax.Array:
    """A key; split it where a test needs two."""
    return jax.random.key(0)


LONG_FILES = (
    "test_notebooks.py",
    "train/test_snake.py",
    "train/test_allo.py",
    "train/test_run.py",
    "train/test_durotaxis.py",
    "train/test_vector_field.py",
    "agents/",
    "envs/test_contract.py",
)
"""Begun in this order, before all others, so that no worker is left with one of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts by file; each goes to one worker as a whole, which makes its fixtures but once."""

    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        found = (i for i, name in enumerate(LONG_FILES) if f"/tests/{name}" in path)
        return next(found, len(LONG_FILES))

    items.sort(key=place)
