"""How the tests of commands run: compiled in a hurry."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def compiled_in_a_hurry() -> Iterator[None]:
    """XLA spends little on making programs fast: most of these run for a second after ten of
    compilation. What they compute is compiled as for users in the tests of `jaxrl` and `envs`.

    The variable tells commands in a process of their own, whose runs are compared bit by bit.
    """
    jax.config.update("jax_disable_most_optimizations", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        yield
    jax.config.update("jax_disable_most_optimizations", False)
