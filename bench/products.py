"""What a machine makes of matrix products alone: the limit that learning is held against."""

import time

import jax
import jax.numpy as jnp


def product_seconds(rows: int, inner: int, columns: int, repeats: int, times: int = 2_000) -> float:
    """One product `[rows, inner]` by `[inner, columns]` within a loop of so many, best of some."""
    a, b = jnp.full((rows, inner), 1e-3), jnp.full((inner, columns), 1e-3)

    @jax.jit
    def repeat_products(a: jax.Array, b: jax.Array) -> jax.Array:
        def multiply(_, carry):
            a, total = carry
            out = a @ b
            return a + out[0, 0] * 1e-9, total + out[0, 0]

        return jax.lax.fori_loop(0, times, multiply, (a, jnp.zeros(())))[1]

    jax.block_until_ready(repeat_products(a, b))
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        jax.block_until_ready(repeat_products(a, b))
        seconds.append((time.perf_counter() - started) / times)
    return min(seconds)
