"""How every test runs: JAX's strict modes, and no display."""

import os

os.environ["MPLBACKEND"] = "Agg"  # before anything imports matplotlib; subprocesses inherit it

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")  # [N] - [N, 1] is RL's oldest bug
jax.config.update("jax_debug_key_reuse", True)
jax.config.update("jax_legacy_prng_key", "error")


@pytest.fixture
def key() -> jax.Array:
    """A key; split it where a test needs two."""
    return jax.random.key(0)
