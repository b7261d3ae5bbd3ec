"""A random field: slow drifts in all directions, with many attractors between them."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

VARIANCE = 0.5  # of each component, before vectors are brought to one length
FLOOR = 1e-4  # least eigenvalue of the kernel, as published
TINY = 1e-12  # squared radius below which the gradient of |z| is 0


def draw(
    key: jax.Array,
    *,
    per_axis: int = 40,
    half_width: float = 2.0,
    length_scale: float = 0.5,
    speed: float = 0.25,
) -> jax.Array:
    """Directions from a Gaussian process, all of length `speed`: `[per_axis, per_axis, 2]`.

    Entry [i, j] is the velocity at (x_i, y_j), on a grid over ±`half_width` with its ends.
    `key` alone decides the draw. All but the key shape the compiled program.
    """
    vectors = gaussian_process(key, per_axis, half_width, length_scale)
    length = jnp.linalg.norm(vectors, axis=-1, keepdims=True)
    return speed * vectors / length


def gaussian_process(
    key: jax.Array, per_axis: int, half_width: float, length_scale: float
) -> jax.Array:
    """Two independent components, `[per_axis, per_axis, 2]`, mean 0.

    Covariance: ½ exp(-|Δ|²/(2ℓ²)), its eigenvalues kept above `FLOOR`. The kernel is a product
    over axes, so its eigenvectors are products of those of one axis.
    """
    vectors, amplitude = _eigen(per_axis, half_width, length_scale)
    white = jax.random.normal(key, (per_axis, per_axis, 2))
    # the symmetric root V a Vᵀ, which does not depend on the signs of the eigenvectors
    modes = jnp.einsum("ia,jb,ijk->abk", vectors, vectors, white, precision="highest")
    scaled_modes = amplitude[:, :, None] * modes
    return jnp.einsum("ia,jb,abk->ijk", vectors, vectors, scaled_modes, precision="highest")


def multi_attractor(
    z: jax.Array, landscape: jax.Array, *, pull: float = 0.1, half_width: float = 2.0
) -> jax.Array:
    """The drawn field at `z` `[..., 2]`, minus `pull` z|z|, which keeps the state near the middle.

    Between the points of the grid `landscape` is interpolated bilinearly. Beyond ±`half_width` it
    continues with its value at the nearest point of the border, while the pull keeps growing.
    """
    return interpolate(landscape, z, half_width) - pull * z * radius_of(z)[..., None]


def interpolate(landscape: jax.Array, z: jax.Array, half_width: float) -> jax.Array:
    """`landscape` `[X, Y, 2]` at `z` `[..., 2]`, bilinear, at the nearest point of its box."""
    sizes = landscape.shape[:2]
    corners = []
    for axis, size in enumerate(sizes):
        inside = jnp.clip(z[..., axis], -half_width, half_width)
        place = (inside + half_width) * ((size - 1) / (2 * half_width))  # in cells
        cell = jnp.clip(jnp.floor(place), 0, size - 2)
        share = (place - cell)[..., None]
        cell = cell.astype(jnp.int32)
        corners.append([(cell, 1 - share), (cell + 1, share)])
    total = jnp.zeros_like(z)
    for i, share_x in corners[0]:
        for j, share_y in corners[1]:
            total = total + share_x * share_y * landscape[i, j]
    return total


def radius_of(z: jax.Array) -> jax.Array:
    """|z| `[...]` of `z` `[..., 2]`, with a finite gradient at 0, where a state may be."""
    return jnp.sqrt(jnp.maximum(jnp.sum(z**2, axis=-1), TINY))


@lru_cache
def _eigen(per_axis: int, half_width: float, length_scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors of one axis `[n, n]`, and roots of the kernel's eigenvalues `[n, n]`."""
    axis = np.linspace(-half_width, half_width, per_axis)
    kernel = np.exp(-((axis[:, None] - axis[None]) ** 2) / (2 * length_scale**2))
    values, vectors = np.linalg.eigh(kernel)
    amplitude = np.sqrt(np.maximum(VARIANCE * np.outer(values, values), FLOOR))
    return vectors.astype(np.float32), amplitude.astype(np.float32)
