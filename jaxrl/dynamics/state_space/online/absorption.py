"""What one more observation tells of a field, between two fits to all of them.

An observation moves the predicted mean s of the state to the mode z. As s = z₀ + Xᵀ x depends on X
by D = xᵀ ⊗ I, where the states before are taken as they were filtered, the innovation is a datum of
a linear regression for X, as in the recursive prediction error method (Ljung & Söderström 1983)
with the newest derivative alone:

    Σ⁻¹ += Dᵀ Ω D,      X += Σ Dᵀ P⁻¹ (z - s),      Ω = (M⁻¹ + P)⁻¹

M being the information of the observation and P the covariance of s. Exact for a state that is seen
exactly. Letters: n channels, d dimensions of the state, R regressors, p = R d.
"""

import jax
import jax.numpy as jnp

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.state_space import channels, move
from jaxrl.dynamics.state_space.field_posterior import FieldPosterior
from jaxrl.dynamics.state_space.information import innovation_root
from jaxrl.dynamics.state_space.model import StateSpace
from jaxrl.dynamics.state_space.small_matrices import inverse
from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul


def absorb(
    model: StateSpace,
    posterior: FieldPosterior,
    regressors: jax.Array,
    before: Belief,
    belief: Belief,
    observed: jax.Array,
) -> FieldPosterior:
    """The posterior after an observation that moved the state from `before` to `belief`.

    `regressors` `[R]` are x of the state before and its input; 0 of a first state, of which nothing
    is learned. `observed` is bool `[n]`. The average covariance and the relative noise stay.
    """
    params, root = posterior.params, posterior.root
    z = belief.mean
    y = jnp.zeros(observed.shape, z.dtype)  # of which a curvature does not depend
    weight = channels.response(model.is_count, params, z, y, observed).curvature
    information = matmul(params.matrix.T, weight[:, None] * params.matrix)
    half = innovation_root(information, before.covariance)  # Ω is half halfᵀ
    by_output = matmul(regressors, root.reshape(len(regressors), -1))  # D S, [d, p] in a row
    design = by_output.reshape(model.dims, -1)
    rows = matmul(half.T, design)  # V, [d, p]: the information is Vᵀ V in the basis of S
    lower = linalg.root1p(rows)  # L Lᵀ = I + V Vᵀ
    narrow = linalg.solve_lower(lower, rows)  # (I + Vᵀ V)⁻¹ is I - Nᵀ N
    pull = matmul(inverse(before.covariance)[0], z - before.mean)  # P⁻¹ (z - s)
    score = matmul(design.T, pull)
    change = matmul(root, score - matmul(narrow.T, matmul(narrow, score)))
    # The root becomes S (I - Nᵀ (L + I)⁻¹ V), of which the square is right (Andrews 1968).
    right = linalg.solve_lower(lower + jnp.eye(model.dims), rows)
    root = root - matmul(matmul(root, narrow.T), right)
    old_parameters = move.parameters(model, params)
    new_parameters = old_parameters._replace(
        move=old_parameters.move + change.reshape(old_parameters.move.shape)
    )
    return posterior._replace(
        params=move.replace(model, params, new_parameters),
        root=root,
        information=posterior.information + jnp.sum(jnp.log(jnp.diagonal(lower))),
    )
