"""JAX's random bits in one kernel on CPUs, where JAX itself takes a loop.

On a CPU JAX compiles Threefry-2x32 (Salmon et al. 2011, doi:10.1145/2063384.2063405) as a loop of
five times four rounds, which reads and writes all of its arrays each time: half of the time of a
step of a simple environment. Here all twenty rounds are one kernel. The bits are the same.
"""

import jax
import numpy as np

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Bits by which the second word is rotated, in turns of four rounds."""
PARITY = np.uint32(0x1BD11BDA)
"""What the third word of the key is made with."""


def compile_in_one_kernel() -> None:
    """Makes JAX compile Threefry so on CPUs from now on; nothing where a JAX cannot be told to."""
    try:
        from jax.experimental.xla_metadata import set_xla_metadata
        from jax.extend.random import threefry2x32_p
        from jax.interpreters import mlir
    except ImportError:
        return
    compiled_rounds = jax.jit(threefry_2x32)

    def call(*words: jax.Array) -> tuple[jax.Array, jax.Array]:
        # inlined, keys split from split keys would all be computed anew for each of the last ones
        with set_xla_metadata(inlineable="false"):
            return compiled_rounds(*words)

    mlir.register_lowering(
        threefry2x32_p, mlir.lower_fun(call, multiple_results=True), platform="cpu"
    )


def threefry_2x32(
    key_0: jax.Array, key_1: jax.Array, x_0: jax.Array, x_1: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Twenty rounds of Threefry on pairs of words, uint32 arrays that broadcast."""
    keys = key_0, key_1, key_0 ^ key_1 ^ PARITY
    x_0, x_1 = x_0 + keys[0], x_1 + keys[1]
    for i in range(5):
        for bits in ROTATIONS[i % 2]:
            x_0 = x_0 + x_1
            x_1 = x_0 ^ rotate_left(x_1, bits)
        x_0 = x_0 + keys[(i + 1) % 3]
        x_1 = x_1 + keys[(i + 2) % 3] + np.uint32(i + 1)
    return x_0, x_1


def rotate_left(word: jax.Array, bits: int) -> jax.Array:
    """A uint32 array, each word rotated by so many bits."""
    return (word << np.uint32(bits)) | (word >> np.uint32(32 - bits))
