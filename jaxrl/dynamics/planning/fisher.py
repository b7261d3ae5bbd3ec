"""Expected information of a planned path about the parameters of a vector field.

The model is z' = z + dt (f(z) + g(u)) + noise, with f linear in p parameters of covariance P, or
linearised in them: row t of J holds the features at state z_t. The information of a path of H
states depends on the covariance of the field between its points only, the kernel K = J P Jᵀ: by the
determinant lemma log det(I + A B) = log det(I + B A), no matrix `[p, p]` is factorised (Rasmussen &
Williams 2006, chapter 2; Chaloner & Verdinelli 1995 for the criteria).

Written for one path; `vmap` maps over candidates. The only expensive operation, features times the
square root of P, is then one matrix product for all of them.
Axes: H states of the path, d latent dimensions, p parameters.

Features are shared, `[H, p]`, where each output has parameters of its own and the same regressors
(the whole covariance is P for each output); else they are Jacobians `[H, d, p]`.
Each criterion is a gain, to be maximised; a cost is its negative.
"""

import jax
import jax.numpy as jnp

from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul, matmul_of_few_terms


def kernel(features: jax.Array, root: jax.Array) -> jax.Array:
    """K = J P Jᵀ: `[H, H]` from shared features `[H, p]`, `[H d, H d]` from `[H, d, p]`.

    `root` is S `[p, p]` with P = S Sᵀ, in any unit, which `precision` below must match.
    """
    rows = matmul_of_few_terms(features.reshape(-1, features.shape[-1]), root)
    return matmul_of_few_terms(rows, rows.T)


def squared_kernel(features: jax.Array, root: jax.Array) -> jax.Array:
    """J P² Jᵀ, shaped as `kernel`, for A-optimality.

    Beside `kernel` it costs one more product, since XLA computes their common J S once. Where P Jᵀ
    reaches 10¹⁹ it overflows, and what comes of it is nan.
    """
    rows = matmul_of_few_terms(features.reshape(-1, features.shape[-1]), root)
    weighted_rows = matmul_of_few_terms(rows, root.T)
    return matmul_of_few_terms(weighted_rows, weighted_rows.T)


def d_gain(gram: jax.Array, precision: float | jax.Array = 1.0, outputs: int = 1) -> jax.Array:
    """D-optimality: the decrease of log det P, log det(I + precision K), times the outputs.

    Twice the expected information gain in nats; never negative. In float32 eigenvalues of K below
    1e-6 k of the largest are lost to rounding and count as 0: where precision times the largest
    exceeds 10⁵, the information about such directions is left out.

    Args:
      gram: `[k, k]`, K from `kernel` or `observation_kernel`.
      precision: 1 / variance of the noise of an observed velocity. Where that is only the noise
        of a step, of variance q dt: dt²/(q dt) = dt / q; dt² if P is in units of that variance, 1
        if the features are multiplied by dt too. 1 after `observation_kernel`.
      outputs: d where features are shared, else 1; 1 after `observation_kernel`.
    """
    return outputs * linalg.log_determinant1p(jnp.sqrt(precision) * linalg.root(gram))


def a_gain(
    gram: jax.Array,
    squared: jax.Array,
    precision: float | jax.Array = 1.0,
    outputs: int = 1,
) -> jax.Array:
    """A-optimality: the decrease of the trace, tr P - tr P', in the unit of P; see `d_gain`.

    `squared` is from `squared_kernel`, and through `observation_kernel` if `gram` is. Where
    precision times the largest eigenvalue of K exceeds 10¹² and K is singular, rounding may exceed
    the gain.
    """
    lower = linalg.root1p(jnp.sqrt(precision) * linalg.root(gram))
    whitened_root = linalg.solve_lower(lower, linalg.root(squared))
    return outputs * precision * jnp.sum(whitened_root**2)


def propagation_matrix(transitions: jax.Array, dt: float | jax.Array) -> jax.Array:
    """Sensitivity of the later states to a change of the field at each state: L `[H d, H d]`.

    Sensitivities S_t = ∂z_t/∂parameters follow S_0 = 0, S_{t+1} = A_t S_t + dt J_t. So S_1 .. S_H,
    one above the other, are L J with L block lower triangular: the block of row t and column s is
    dt A_t ··· A_{s+1}.

    Args:
      transitions: A_t = I + dt ∂f/∂z at z_0 .. z_{H-1}, `[H, d, d]`; the first is never used.
      dt: time of a step.
    """
    horizon, dims = transitions.shape[:2]
    direct_effect = dt * jnp.eye(horizon)[:, None, :, None] * jnp.eye(dims)[None, :, None, :]

    def step(sensitivity, moves):  # [d, H, d]
        transition, direct = moves
        # No matmul: under `vmap` the sum written out is faster than products of small matrices.
        moved = jnp.sum(transition[:, :, None, None] * sensitivity[None], axis=1)
        return (moved + direct,) * 2

    _, rows = jax.lax.scan(step, jnp.zeros_like(direct_effect[0]), (transitions, direct_effect))
    return rows.reshape(horizon * dims, horizon * dims)


def observation_kernel(
    gram: jax.Array, propagation: jax.Array, information: jax.Array
) -> jax.Array:
    """The kernel of noisy observations of the states, `[H d, H d]`: √M L K Lᵀ √M.

    For states that are not known exactly: the observation after step t has Fisher information M_t
    about the state z_{t+1}, which depends on the parameters by S_{t+1} = (L J)_t. Use `d_gain` of
    it, or `a_gain` of the kernel and the squared kernel, each passed through this function.

    Args:
      gram: `[H, H]` (shared features) or `[H d, H d]`, from `kernel` or `squared_kernel`.
      propagation: L, from `propagation_matrix`.
      information: M_t = Hᵀ R⁻¹ H at z_1 .. z_H, `[H, d, d]`, with H the emission's Jacobian and R
        the variance of its noise. Models whose filter corrects the state pass what an innovation
        tells, (H P Hᵀ + R) in place of R with P the covariance of the predicted state, and
        transitions times I - K H. Singular ones may be given.

    Raises:
      ValueError: the shapes do not fit together.
    """
    horizon, dims = information.shape[:2]
    size = horizon * dims
    if propagation.shape != (size, size) or len(gram) not in (horizon, size):
        raise ValueError(
            f"gram and propagation have shapes {gram.shape} and {propagation.shape}, expected "
            f"{horizon} or {size} rows and {(size, size)}: use one path of {horizon} states"
        )
    roots = linalg.root(information)
    root_propagation = matmul(roots.mT, propagation.reshape(horizon, dims, size)).reshape(
        size, size
    )
    if len(gram) == size:
        weighted = matmul(root_propagation, gram)
    else:  # K of all outputs is its Kronecker product with I [d, d]
        split = root_propagation.reshape(size, horizon, dims)
        weighted = jnp.einsum("asi,st->ati", split, gram, precision="highest")
    return matmul(weighted.reshape(size, size), root_propagation.T)
