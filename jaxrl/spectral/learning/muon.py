"""Muon (Jordan 2024, "Muon: an optimizer for hidden layers"), shaped for the device.

`optax.contrib.muon` orthogonalises one matrix after the other, each by three products an iteration.
On a CPU that is right; on a GPU such products are as long as their launch. So accelerators pad the
matrices to one size with zeros, which stay zeros, and orthogonalise all of them in the same ones.
"""

import jax
import jax.numpy as jnp
import optax
from optax import contrib

from jaxrl.types import PyTree

ITERATIONS = 2
"""Of Newton and Schulz. Five, as is usual, make most of a step and find eigenvectors no sooner."""


def muon() -> optax.GradientTransformation:
    """`optax.contrib.muon` with a step size of 1; on accelerators equal up to rounding."""
    one_by_one = contrib.muon(1.0, ns_steps=ITERATIONS)
    only_scale = contrib.muon(1.0, ns_steps=0)  # to the norms that the updates have in the end

    def update_together(gradient: PyTree, state: PyTree, params: PyTree) -> tuple[PyTree, PyTree]:
        updates, state = only_scale.update(gradient, state, params)
        leaves, structure = jax.tree.flatten(updates)
        matrices = orthogonalise([leaf for leaf in leaves if leaf.ndim == 2])
        leaves = [matrices.pop(0) if leaf.ndim == 2 else leaf for leaf in leaves]
        return jax.tree.unflatten(structure, leaves), state

    def update(
        updates: PyTree, state: PyTree, params: PyTree | None = None
    ) -> tuple[PyTree, PyTree]:
        return jax.lax.platform_dependent(
            updates, state, params, cpu=one_by_one.update, default=update_together
        )

    return optax.GradientTransformation(one_by_one.init, update)


def orthogonalise(matrices: list[jax.Array]) -> list[jax.Array]:
    """Matrices `[R, C]`, each of its own size, with all singular values near the Frobenius norm."""
    wide = [x.T if x.shape[0] > x.shape[1] else x for x in matrices]
    rows, cols = (max(x.shape[axis] for x in wide) for axis in (0, 1))
    stack = jnp.stack(
        [jnp.pad(x, ((0, rows - x.shape[0]), (0, cols - x.shape[1]))) for x in wide]
    )  # [matrices, rows, cols]

    # without momentum a step of it is the Newton-Schulz iteration alone
    axes = contrib.MuonDimensionNumbers(reduction_axis=1, output_axis=2)
    iteration = contrib.scale_by_muon(
        ns_steps=ITERATIONS, beta=0.0, nesterov=False, weight_dimension_numbers=axes
    )
    orthogonal, _ = iteration.update(stack, iteration.init(stack))
    scaled = jnp.linalg.norm(stack, axis=(1, 2), keepdims=True) * orthogonal
    unpadded = [x[: y.shape[0], : y.shape[1]] for x, y in zip(scaled, wide, strict=True)]
    is_tall = [x.shape[0] > x.shape[1] for x in matrices]
    return [x.T if tall else x for x, tall in zip(unpadded, is_tall, strict=True)]
