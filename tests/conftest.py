"""How every test runs: JAX's strict modes, no display, one cache of programs, little memory, long
files first."""

import ctypes
import gc
import os
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

# Before anything imports matplotlib or JAX; subprocesses inherit it.
os.environ["MPLBACKEND"] = "Agg"
if version("jaxlib").startswith("0.10."):  # later ones do not know it
    # Compiles in half the time what then runs a little slower, each worker on its own core.
    xla_flags = os.environ.get("XLA_FLAGS", "")
    fast_flags = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    if fast_flags not in xla_flags:  # workers inherit them, and what was compiled is found by them
        os.environ["XLA_FLAGS"] = f"{xla_flags} {fast_flags}"
os.environ.setdefault(  # what one worker or run has compiled, no other has to
    "JAX_COMPILATION_CACHE_DIR",
    str(Path(__file__).resolve().parent.parent / ".pytest_cache" / "jax"),
)
# Down to programs of a single operation: nearly all tests need the same ones.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")

# One thread of NumPy for each worker: where cores are busy, two of them wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Tests compile for longer than they compute; subprocesses, whose runs are compared bit by bit, too.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"

import jax
import pytest

if version("jax").startswith("0.10."):  # its names are not public
    from tests import lowering_context

    lowering_context.share()

jax.config.update("jax_numpy_rank_promotion", "raise")  # [N] - [N, 1] is RL's oldest bug
jax.config.update("jax_debug_key_reuse", True)
jax.config.update("jax_legacy_prng_key", "error")

# Traces are many small objects: by default Python looks for cycles among them after every 700.
gc.set_threshold(200_000, 50, 100)


@pytest.fixture
def key() -> jax.Array:
    """A key; split it where a test needs two."""
    return jax.random.key(0)


@pytest.fixture
def compiled_with_care() -> Iterator[None]:
    """Turns the compiler's optimisations on, for a test that computes longer than it compiles."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


def physical_bytes() -> int:
    """The memory of this machine; 0 where the system does not say."""
    if not hasattr(os, "sysconf"):
        return 0
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
MANY_BYTES = max(5 * 2**28, physical_bytes() // (4 * WORKERS))
"""Of one worker; a file may add half as much again as the lesser of these."""


@pytest.fixture(scope="module", autouse=True)
def _free_compiled_programs() -> Iterator[None]:
    """Forgets what the tests of a file have compiled once a worker holds much.

    What is freed goes back to the system, or the worker would seem to hold as much after every
    later file, and nothing that is compiled would be shared by two of them.
    """
    yield
    if resident_bytes() > MANY_BYTES:
        jax.clear_caches()
        gc.collect()
        trim_memory()


def trim_memory() -> None:
    """Gives back what is free, where the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def resident_bytes() -> int:
    """The memory that this process holds; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


START = time.monotonic()
MINUTES = os.environ.get("JAXRL_TEST_MINUTES")
"""How long a run may begin tests; the rest is skipped. `.ci/run` sets it for slow tests."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves to the nightly check what a run has no time for."""
    del item
    if MINUTES and time.monotonic() - START > 60 * float(MINUTES):
        pytest.skip(f"{MINUTES} minutes are over: the nightly check does this")


LONG_FILES = (
    "test_notebooks.py",
    "test_colab.py",
    "train/snake/test_snake.py",
    "train/allo/test_allo.py",
    "train/host/running/test_run.py",
    "train/durotaxis/",
    "train/vector_field/",
    "train/goals/test_goals.py",
    "train/test_programs.py",
    "jaxrl/agents/",
    "jaxrl/dynamics/learners/",
    "jaxrl/spectral/learning/",
    "envs/test_contract.py",
    "envs/test_checker.py",
)
"""Begun in this order, before all others, so that no worker is left with one of them at the end."""


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks cases, and sorts by file: a file goes to one worker, which makes its fixtures once."""

    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        positions = (i for i, name in enumerate(LONG_FILES) if f"/tests/{name}" in path)
        return next(positions, len(LONG_FILES))

    mark_further_cases(items)
    items.sort(key=place)


def mark_further_cases(items: list[pytest.Item]) -> None:
    """Marks as slow the cases of a test beyond the first `fast_cases(count)` that are not slow."""
    number = Counter()
    for item in items:
        mark = item.get_closest_marker("fast_cases")
        if mark is not None and item.get_closest_marker("slow") is None:
            name = item.nodeid.partition("[")[0]
            number[name] += 1
            if number[name] > mark.args[0]:
                item.add_marker(pytest.mark.slow)
