"""Compilation in a hurry, for tests that run for a second after ten of compilation."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def compiled_in_a_hurry() -> Iterator[None]:
    """XLA spends little on making programs fast. Import it into the `conftest.py` of a folder.

    The variable tells commands in a process of their own, whose runs are compared bit by bit.
    """
    jax.config.update("jax_disable_most_optimizations", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        yield
    jax.config.update("jax_disable_most_optimizations", False)
