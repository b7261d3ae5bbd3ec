"""The models that plans are made with.

Axes: d latent dimensions, m inputs, p parameters.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax


class PredictiveModel(NamedTuple):
    """What a policy needs of a model: predicted states, and how informative they would be."""

    step: Callable[[jax.Array, jax.Array], jax.Array]
    """`(z [d], u [m]) -> z [d]`, the expected next state."""
    design: Callable[[jax.Array], jax.Array]
    """`z [d] -> [p]` or `[d, p]`: derivative of the next state by the parameters; one row if each
    output has parameters of its own but the same regressors."""
    root: jax.Array
    """S `[p, p]`: S Sᵀ is the covariance of the parameters, in units of the next state's noise."""
    relative_noise: jax.Array
    """Variance with which a next state is observed, in the same units: 1 if exactly, since then
    only the noise of the step, their unit, hides where the field led."""
    observation_information: Callable[[jax.Array], jax.Array]
    """`z [d] -> [d, d]`: information of one observation, M = HᵀR⁻¹H, in those units."""
    predictive_variance: Callable[[jax.Array], jax.Array]
    """`z [d] ->` predictive variance of the field there, in any unit."""
    novelty: Callable[[jax.Array], jax.Array] | None = None
    """`z [d] ->` how new the state is; needed for the objective rnd."""
    place: Callable[[jax.Array], jax.Array] = lambda z: z
    """`z [d] -> [k]`: the coordinates in which a goal is given."""
    wrap: Callable[[jax.Array], jax.Array] = lambda difference: difference
    """`[..., k] -> [..., k]`: the way from a goal to a place the shorter way round, where
    coordinates are angles."""
    input_design: Callable[[jax.Array, jax.Array], jax.Array] | None = None
    """`(z [d], u [m]) ->` what an input adds to `design`, if its effect is uncertain, too."""
    remaining: Callable[[jax.Array], jax.Array] | None = None
    """`z [d] -> [d, d]`: I - K H, the share of a predicted state's error that its observation
    leaves; then `observation_information` is that of an innovation. None: all of it."""


def design_of(model: PredictiveModel, z: jax.Array, u: jax.Array) -> jax.Array:
    """Derivative of the next state after `z` `[d]` with the input `u` `[m]` by the parameters."""
    if model.input_design is None:
        return model.design(z)
    return model.design(z) + model.input_design(z, u)
