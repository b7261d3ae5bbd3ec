"""Fisher information of a state-space model's parameters, by its filter.

What an observation tells is what its innovation tells. Given the past it is N(H s, H P Hᵀ + R), s
and P being the predicted mean and covariance of the state, so that its expected information is

    (∂s)ᵀ Ω ∂s + tr(Ω ∂P Ω ∂P) / 2,      Ω = Hᵀ (H P Hᵀ + R)⁻¹ H = (M⁻¹ + P)⁻¹,  M = Hᵀ R⁻¹ H

(Cavanaugh & Shumway 1996 for the linear case). The derivatives ∂s and ∂P by the parameters are
carried along with the filter, by its own Jacobian: states are as uncertain in this as the filter
says. Exact where the model is linear and Gaussian; counts weigh by their rates at the mode.

Letters: T steps, n channels, d dimensions of the state, m inputs, R regressors, p parameters.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import solve_triangular

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.state_space import channels
from jaxrl.dynamics.state_space.filter import Prediction, Record, correct, first_belief, predict
from jaxrl.dynamics.state_space.model import Params, StateSpace
from jaxrl.dynamics.state_space.move import parameters, regressors, replace
from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul

BLOCK = 128
"""Steps whose derivatives are in memory at once."""


class Information(NamedTuple):
    """Sums over the steps of records: that of two records is the sum of both."""

    matrix: jax.Array  # [p, p] of `Parameters`
    design: jax.Array  # [R, R] Σ x xᵀ at the filtered means after which something was observed
    weight: jax.Array  # [n] Σ of the information of each channel about C z + b
    covariance: jax.Array  # [d, d] Σ of the covariances of predicted states that were observed
    count: jax.Array  # of these


class _Step(NamedTuple):
    """What one observation adds."""

    rows: jax.Array  # [d + d², p] of which the sum of squares is information
    score: jax.Array  # [d, p] G = Hᵀ R⁻¹ D, D the derivative of C s + b by C and b; [0, p]
    response: jax.Array  # [d, p] Y, with Gᵀ Y + Yᵀ G + Dᵀ R⁻¹ D the rest of it; [0, p]
    regressor: jax.Array  # [R] x
    place: jax.Array  # [d + 1] s and 1
    weight: jax.Array  # [n] the diagonal of R⁻¹
    covariance: jax.Array  # [d, d] P
    counts: jax.Array  # 1 if something was observed, else 0


def zero_information(model: StateSpace, params: Params, with_channels: bool = False) -> Information:
    """The information of no record."""
    values = parameters(model, params, with_channels)
    size, rows = sum(x.size for x in values), len(values.move)
    count, dims = params.matrix.shape
    shapes = ((size, size), (rows, rows), (count,), (dims, dims), ())
    return Information(*(jnp.zeros(shape, values.move.dtype) for shape in shapes))


def gather(
    model: StateSpace,
    params: Params,
    record: Record,
    with_channels: bool = False,
    prediction: Prediction = "extended",
) -> Information:
    """The information of one record `[T]` about the parameters, at `params`.

    C and b are among them if `with_channels`; the dependence of covariances on these is left out.
    Held at the mode are the noise r of channels, the layers of networks but the last, and what is
    known of the state before the record. Takes O(T d² p²) time and O(p²) memory.

    Raises ValueError for a record of other channels or inputs.
    """
    sizes, expected = (record.y.shape[1], record.u.shape[1]), (len(params.offset), model.num_inputs)
    if sizes != expected:
        raise ValueError(
            f"the record has {sizes[0]} channels and {sizes[1]} inputs, expected {expected[0]} and "
            f"{expected[1]}: give a record of this model"
        )
    values, unravel = ravel_pytree(parameters(model, params, with_channels))
    d = model.dims
    pack = lambda belief: jnp.concatenate([belief.mean, belief.covariance.ravel()])
    unpack = lambda x: Belief(x[:d], x[d:].reshape(d, d))

    def advance(carry: tuple, now: Record) -> tuple[tuple, _Step]:
        state, slopes = carry  # [d + d²] and their derivatives [d + d², p]
        now = now._replace(observed=now.observed & now.valid)

        def filter_step(state: jax.Array, values: jax.Array) -> tuple:
            new_params = replace(model, params, unravel(values))
            belief, _ = correct(model, new_params, unpack(state), now.y, now.observed)
            after = pack(predict(model, new_params, belief, now.u, prediction)[0])
            return after, (after, belief)

        slopes_of = jax.jacrev(filter_step, (0, 1), has_aux=True)
        (by_state, by_values), (after, belief) = slopes_of(state, values)
        step = _innovation(model, params, unpack(state), belief, slopes, now, with_channels)
        new_carry = (after, matmul(by_state, slopes) + by_values)
        return jax.tree.map(lambda new, old: jnp.where(now.valid, new, old), new_carry, carry), step

    def advance_block(carry: tuple, block: Record) -> tuple[tuple, None]:
        inside, total = carry
        inside, steps = jax.lax.scan(advance, inside, block)
        return (inside, jax.tree.map(jnp.add, total, _sum(steps, with_channels))), None

    start = pack(first_belief(params))
    inside = (start, jnp.zeros((len(start), len(values)), values.dtype))
    total = zero_information(model, params, with_channels)
    (_, total), _ = jax.lax.scan(advance_block, (inside, total), _blocks(record))
    return total


def gather_all(
    model: StateSpace,
    params: Params,
    records: Record,
    with_channels: bool = False,
    prediction: Prediction = "extended",
) -> Information:
    """Adds up the information of records `[E, T]`, one by one; arguments as of `gather`."""

    def add(total: Information, record: Record) -> tuple[Information, None]:
        record_information = gather(model, params, record, with_channels, prediction)
        return jax.tree.map(jnp.add, total, record_information), None

    return jax.lax.scan(add, zero_information(model, params, with_channels), records)[0]


def innovation_root(information: jax.Array, covariance: jax.Array) -> jax.Array:
    """A root `[d, d]` of Ω = (M⁻¹ + P)⁻¹ for M = `information`, which may be singular, and P."""
    root = linalg.root(information)
    within = matmul(matmul(root.T, covariance), root)
    lower = jnp.linalg.cholesky(within + jnp.eye(len(root), dtype=root.dtype))
    return solve_triangular(lower, root.T, lower=True).T


def _blocks(record: Record) -> Record:
    """The record in blocks `[blocks, BLOCK]`, the last one with padding."""
    steps = len(record.y)
    size = min(BLOCK, steps)
    count = -(-steps // size)  # written out, as there may be no inputs

    def cut(x: jax.Array) -> jax.Array:
        padded = jnp.pad(x, [(0, count * size - steps), *[(0, 0)] * (x.ndim - 1)])
        return padded.reshape(count, size, *x.shape[1:])

    return jax.tree.map(cut, record)


def _innovation(
    model: StateSpace,
    params: Params,
    before: Belief,
    belief: Belief,
    slopes: jax.Array,
    now: Record,
    with_channels: bool,
) -> _Step:
    """What the observation tells that moves the state from `before` to `belief`.

    By S⁻¹ = R⁻¹ - R⁻¹ H V Hᵀ R⁻¹, V the covariance after it, the information of its mean is
    sᵀ Ω s + Gᵀ Y + Yᵀ G + Dᵀ R⁻¹ D with s short for ∂s and Y = (I - V M) s - V G / 2.
    """
    d, size = model.dims, slopes.shape[1]
    weight = channels.response(model.is_count, params, belief.mean, now.y, now.observed).curvature
    weighted = weight[:, None] * params.matrix  # [n, d], R⁻¹ H
    state_information = matmul(params.matrix.T, weighted)  # M
    half = innovation_root(state_information, before.covariance).T
    means, covariances = slopes[:d], slopes[d:].reshape(d, d, size)
    place = jnp.concatenate([before.mean, jnp.ones_like(before.mean[:1])])
    score = response = means[:0]
    if with_channels:
        score = jnp.multiply.outer(weighted.T, place).reshape(d, -1)
        covariances = covariances.at[..., : score.shape[1]].set(0.0)
        score = jnp.pad(score, [(0, 0), (0, size - score.shape[1])])
        corrected_means = means - matmul(belief.covariance, matmul(state_information, means))
        response = corrected_means - matmul(belief.covariance, score) / 2
    spread = matmul(matmul(half[None], covariances.transpose(2, 0, 1)), half.T[None]) / 2**0.5
    return _Step(
        rows=jnp.concatenate([matmul(half, means), spread.reshape(size, d * d).T]),
        score=score,
        response=response,
        regressor=regressors(model, params, belief.mean, now.u),
        place=place,
        weight=weight,
        covariance=before.covariance,
        counts=jnp.any(now.observed).astype(weight.dtype),
    )


def _sum(steps: _Step, with_channels: bool) -> Information:
    """The sum over the steps `[T, ...]`."""
    stack = lambda x: x.reshape(-1, x.shape[-1])
    rows, counts = stack(steps.rows), steps.counts[:, None]
    matrix = matmul(rows.T, rows)
    if with_channels:
        product = matmul(stack(steps.score).T, stack(steps.response))
        matrix = matrix + product + product.T
        squares = jax.vmap(jnp.multiply.outer)(steps.place, steps.place)  # [T, d + 1, d + 1]
        squares = matmul(steps.weight.T, squares.reshape(len(squares), -1))
        size, channels = steps.place.shape[1], steps.weight.shape[1]
        squares = squares.reshape(channels, size, 1, size)
        channel_blocks = (squares * jnp.eye(channels)[:, None, :, None]).reshape(
            channels * size, -1
        )
        matrix = matrix.at[: channels * size, : channels * size].add(channel_blocks)
    return Information(
        matrix,
        matmul(steps.regressor.T, counts * steps.regressor),
        jnp.sum(steps.weight, axis=0),
        jnp.sum(counts[:, :, None] * steps.covariance, axis=0),
        jnp.sum(steps.counts),
    )
