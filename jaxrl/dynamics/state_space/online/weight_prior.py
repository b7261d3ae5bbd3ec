"""How large the weights of a field are, learned from data: the evidence framework.

The standard deviation s of the prior W ~ N(0, s²) that makes the samples most likely is a fixed
point of s² = |W|² / γ, where γ = Σ (1 - Σ_ii / s²) is the number of weights that the samples
determine (MacKay 1992, Bayesian interpolation). Each fit goes one step towards it. Without it
fields of too wide a prior would seem too unlikely beside others.
"""

import jax
import jax.numpy as jnp

from jaxrl.dynamics.state_space.field_posterior import FieldPosterior

TYPICAL = 0.01
"""As if one more weight, of this size, had been determined: so s is finite, and never 0."""


def likelier_deviation(posterior: FieldPosterior, deviation: jax.Array) -> jax.Array:
    """One step of the fixed point from the prior `deviation` that the posterior was made with."""
    weights = posterior.params.weights  # the first parameters of the move
    if not weights.size:
        return deviation
    variance = jnp.sum(posterior.root[: weights.size] ** 2)
    num_determined = jnp.maximum(weights.size - variance / deviation**2, 0.0)
    return jnp.sqrt((jnp.sum(weights**2) + TYPICAL**2) / (num_determined + 1))
