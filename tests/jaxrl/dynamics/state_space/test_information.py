"""Fisher information against exact scores, dense innovations, regression and differences."""

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from jaxrl.dynamics.bases import Fourier, Grid, Polynomial
from jaxrl.dynamics.state_space import filter, information
from jaxrl.dynamics.state_space.filter import Record, filter_states
from jaxrl.dynamics.state_space.information import gather, gather_all, zero_information
from jaxrl.dynamics.state_space.model import HIDDEN, Network, Params, StateSpace, step
from jaxrl.dynamics.state_space.move import parameters, regressors, replace
from tests.jaxrl.dynamics.state_space.models import move, random_model, simulate

collect = jax.jit(gather, static_argnames=("with_channels", "prediction"))
MIXED = (True, False, True, False)


def flat_of(model: StateSpace, params: Params, with_channels: bool) -> np.ndarray:
    return np.asarray(ravel_pytree(parameters(model, params, with_channels))[0])


def innovations(
    params: Params, flat: np.ndarray, y: np.ndarray, u: np.ndarray, observed: np.ndarray
) -> tuple[list, list, np.ndarray]:
    """Errors `[T][D, k]` and covariances `[T][k, k]` of predicted observations, and likelihood.

    A Kalman filter of D records `[D, T, n]` at once, with the inputs and gaps of all of them;
    without conjugates, so that `flat` may be complex: channels, log q and the move in one row.
    """
    p = jax.tree.map(np.asarray, params)
    n, d, m = *p.matrix.shape, u.shape[1]
    flat = np.asarray(flat)
    channels, process, matrix = np.split(flat, [len(flat) - d - d * (d + 1 + m), -d * (d + 1 + m)])
    rows = channels.reshape(n, d + 1) if len(channels) else np.c_[p.matrix, p.offset]
    transition, drift, effect = np.split(matrix.reshape(-1, d), [d, d + 1])
    onward = np.eye(d) + transition.T
    mean = np.tile(p.first_mean, (len(y), 1)).astype(flat.dtype)
    covariance = np.diag(np.exp(2 * p.first_log_deviation)).astype(flat.dtype)
    errors, covariances, total = [], [], np.zeros(len(y), flat.dtype)
    for t in range(len(u)):
        is_observed = observed[t]
        h = rows[is_observed, :-1]
        error = y[:, t, is_observed] - mean @ h.T - rows[is_observed, -1]
        y_covariance = h @ covariance @ h.T + np.diag(np.exp(2 * p.log_noise[is_observed]))
        inverse = np.linalg.inv(y_covariance)
        total = total - 0.5 * np.sum(error @ inverse * error, axis=1)
        total = total - 0.5 * np.log(np.linalg.det(2 * np.pi * y_covariance))
        errors.append(error)
        covariances.append(y_covariance)
        gain = covariance @ h.T @ inverse
        mean = (mean + error @ gain.T) @ onward.T + drift[0] + u[t] @ effect
        covariance = onward @ (covariance - gain @ h @ covariance) @ onward.T
        covariance = covariance + np.diag(np.exp(2 * process))
    return errors, covariances, total


def derivatives(function, flat: np.ndarray) -> list:
    """Differentiates `function` by each of `flat`: one step along the imaginary axis."""
    steps = 1e-20j * np.eye(len(flat))
    return [jax.tree.map(lambda x: np.imag(x) / 1e-20, function(flat + step)) for step in steps]


def dense_information(params: Params, flat: np.ndarray, record: Record, numbers: int) -> np.ndarray:
    """The sum of Jᵀ S⁻¹ J, and of tr(S⁻¹ ∂S S⁻¹ ∂S) / 2 of all but the first `numbers`."""
    r = jax.tree.map(np.asarray, record)
    run_filter = lambda flat: innovations(params, flat, r.y[None], r.u, r.observed)[:2]
    covariances = run_filter(flat)[1]
    slopes = derivatives(run_filter, flat)
    total = np.zeros((len(flat), len(flat)))
    for t, y_covariance in enumerate(covariances):
        means = np.stack([errors[t][0] for errors, _ in slopes])
        spreads = np.stack([np.linalg.solve(y_covariance, matrices[t]) for _, matrices in slopes])
        spreads[:numbers] = 0
        total += means @ np.linalg.solve(y_covariance, means.T)
        total += 0.5 * np.einsum("iab,jba->ij", spreads, spreads)
    return total


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("with_channels", [False, True])
def test_it_is_that_of_dense_innovations(with_channels, monkeypatch):
    monkeypatch.setattr(information, "BLOCK", 8)  # with padding in the last block
    with jax.enable_x64(True):
        model, params = random_model()
        record = simulate(model, params, 30, missing=0.3)
        ours = jax.jit(partial(gather, with_channels=with_channels))(model, params, record)
        flat = flat_of(model, params, with_channels)
    exact = dense_information(params, flat, record, 15 if with_channels else 0)
    assert exact.shape == ((27, 27) if with_channels else (12, 12))
    np.testing.assert_allclose(ours.matrix, exact, rtol=1e-8, atol=1e-8 * np.abs(exact).max())
    weight = np.asarray(record.observed).sum(0) * np.exp(-2 * np.asarray(params.log_noise))
    np.testing.assert_allclose(ours.weight, weight, rtol=1e-6)


@pytest.mark.slow
def test_it_is_the_covariance_of_exact_scores():
    """Over records of one model; each number within 4.5 standard errors of their mean."""
    count, steps = 8_000, 12
    with jax.enable_x64(True):
        model, params = random_model(counts=(False,) * 3)
        first = simulate(model, params, steps, missing=0.2)
        p, r = jax.tree.map(np.asarray, (params, first))
        rng = np.random.default_rng(5)
        z = p.first_mean + np.exp(p.first_log_deviation) * rng.normal(size=(count, 2))
        y = np.zeros((count, steps, 3))
        for t in range(steps):
            y[:, t] = z @ p.matrix.T + p.offset + np.exp(p.log_noise) * rng.normal(size=(count, 3))
            z = move(model, p, z, np.tile(r.u[t], (count, 1)))
            z = z + np.exp(p.log_process) * rng.normal(size=z.shape)
        information_of = lambda y: gather(model, params, first._replace(y=y)).matrix
        ours = np.asarray(jax.jit(jax.vmap(information_of))(jnp.asarray(y)))
        flat = flat_of(model, params, False)
    likelihood = lambda flat: innovations(params, flat, y, r.u, r.observed)[2]
    scores = np.stack(derivatives(likelihood, flat), axis=-1)  # [D, p]
    products = scores[:, :, None] * scores[:, None]
    error = np.std(products - ours, axis=0) / count**0.5
    assert (np.diagonal(error) < 0.06 * np.diagonal(ours.mean(0))).all()
    assert (np.abs(products.mean(0) - ours.mean(0)) < 4.5 * error).all()


@pytest.mark.slow
def test_it_is_that_of_a_regression_where_states_are_seen():
    with jax.enable_x64(True):
        model, params = random_model(Grid(4, 2, 2.0), scale=0.2)
        params = params._replace(log_noise=jnp.full(5, -9.0))
        record = simulate(model, params, 40)
        ours = collect(model, params, record)
        states = filter_states(model, params, record).belief.mean
        x = np.asarray(jax.vmap(partial(regressors, model, params))(states, record.u))
    gram = x[:-1].T @ x[:-1]  # nobody sees the last move
    exact = np.kron(gram, np.diag(np.exp(-2 * np.asarray(params.log_process))))
    np.testing.assert_allclose(ours.matrix[2:, 2:], exact, atol=1e-4 * exact.max())
    np.testing.assert_allclose(ours.design, x.T @ x, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("prediction", ["extended", "cubature"])
@pytest.mark.parametrize(
    ("field", "effect"), [(Polynomial(2, 2, 2.0), "state_mlp"), (Network(4, 2), "linear")]
)
def test_it_follows_the_filter_where_nothing_is_linear(field, effect, prediction, monkeypatch):
    monkeypatch.setattr(filter, "NEWTON_STEPS", 14)  # modes are differentiated where they are exact
    with jax.enable_x64(True):
        model, params = random_model(field, MIXED, effect=effect)
        record = simulate(random_model(None, MIXED)[0], params, 7, 0.2)
        ours = collect(model, params, record, True, prediction).matrix
        flat, unravel = ravel_pytree(parameters(model, params, True))
        run = lambda flat: filter_states(
            model, replace(model, params, unravel(flat)), record, prediction
        )
        states, beliefs = run(flat), jax.jit(lambda x: run(x).before)
        small = 1e-6 * np.eye(len(flat))
        pairs = [(beliefs(flat + step), beliefs(flat - step)) for step in small]
        means = np.stack([(a.mean - b.mean) / 2e-6 for a, b in pairs], -1)  # [T, d, p]
        spreads = np.stack([(a.covariance - b.covariance) / 2e-6 for a, b in pairs], -1)
    p, r, s = jax.tree.map(np.asarray, (params, record, states))
    total, numbers = np.zeros((len(flat), len(flat))), 12
    spreads[..., :numbers] = 0
    for t in range(7):
        rate = np.exp(p.matrix @ s.belief.mean[t] + p.offset)
        weight = np.where(MIXED, rate, np.exp(-2 * p.log_noise)) * r.observed[t]
        is_observed = weight > 0
        h = p.matrix[is_observed]
        y_precision = np.linalg.inv(
            h @ s.before.covariance[t] @ h.T + np.diag(1 / weight[is_observed])
        )
        direct = np.kron(np.eye(4), np.append(s.before.mean[t], 1))[is_observed]
        slope = h @ means[t]
        slope[:, :numbers] += direct
        total += slope.T @ y_precision @ slope
        omega = h.T @ y_precision @ h
        through = np.einsum("ab,bci->aci", omega, spreads[t])
        total += 0.5 * np.einsum("aci,caj->ij", through, through)
    np.testing.assert_allclose(ours, total, rtol=1e-5, atol=1e-6 * np.abs(total).max())


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("field", [None, Grid(4, 2, 2.0), Fourier(6, 2, 2.0), Network(5, 2)])
@pytest.mark.parametrize("effect", ["linear", "mlp", "state_mlp"])
def test_the_move_is_linear_in_its_parameters(field, effect):
    with jax.enable_x64(True):
        model, params = random_model(field, effect=effect)
        values = parameters(model, params, True)
        values = jax.tree.map(
            lambda x: x + 0.1 * jnp.cos(jnp.arange(x.size).reshape(x.shape)), values
        )
        params = replace(model, params, values)
        jax.tree.map(np.testing.assert_array_equal, parameters(model, params, True), values)
        replaced_params = replace(model, params, parameters(model, params))
        jax.tree.map(np.testing.assert_array_equal, replaced_params, params)
        z, u = jnp.array([0.3, -0.7]), jnp.array([0.5, 1.1])
        x = regressors(model, params, z, u)
        size = 0 if field is None else field.num_features
        assert len(x) == size + 5 + (0 if effect == "linear" else HIDDEN)
        after = np.asarray(z) + np.asarray(x) @ np.asarray(values.move)
        np.testing.assert_allclose(step(model, params, z, u), after, rtol=1e-12)


@pytest.mark.slow
def test_records_add_up_and_what_is_missing_adds_nothing():
    with jax.enable_x64(True):
        model, params = random_model(Grid(3, 2, 2.0), (True,) * 6)
        records = [simulate(model, params, 24, 0.2, seed) for seed in range(3)]
        each = [collect(model, params, r, True) for r in records]
        all_of_them = jax.tree.map(lambda *x: jnp.stack(x), *records)
        total = jax.jit(gather_all, static_argnums=3)(model, params, all_of_them, True)
        close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
        jax.tree.map(lambda of_all, *x: close(of_all, sum(x)), total, *each)

        first, is_early = records[0], jnp.arange(24) < 15
        early = jax.tree.map(lambda x: x[:15], first)
        exact = jax.jit(partial(gather, with_channels=True))(model, params, early)
        for part in ({"valid": is_early}, {"observed": first.observed & is_early[:, None]}):
            jax.tree.map(close, collect(model, params, first._replace(**part), True), exact)
        blind = collect(model, params, first._replace(observed=first.observed & False), True)
        jax.tree.map(np.testing.assert_array_equal, blind, zero_information(model, params, True))


@pytest.mark.slow
def test_more_data_are_never_less_information():
    with jax.enable_x64(True):
        model, params = random_model(Polynomial(2, 2, 3.0), MIXED)
        record = simulate(model, params, 40)
        record_until = lambda end: record._replace(valid=jnp.arange(40) < end)
        matrices = [collect(model, params, record_until(end)).matrix for end in (10, 11, 25, 40)]
    for less, more in pairwise(matrices):
        values = np.linalg.eigvalsh(more - less)
        assert values.min() > -1e-10 * np.abs(values).max()
        assert values.max() > 0


def test_a_record_of_another_model_is_refused():
    model, params = random_model()
    record = simulate(*random_model(counts=(False,) * 3), 4)
    with pytest.raises(ValueError, match="3 channels and 2 inputs, expected 5 and 2"):
        gather(model, params, record)


def test_a_model_without_inputs_has_an_information():
    model, params = random_model()
    model = StateSpace(model.is_count, model.dims, 0, None)
    params = params._replace(effect=params.effect[:, :0])
    record = simulate(*random_model(), 4)
    shapes = jax.eval_shape(gather, model, params, record._replace(u=record.u[:, :0]))
    assert shapes.matrix.shape == (8, 8)  # q, A and c


@pytest.mark.slow
def test_single_precision_is_enough():
    with jax.enable_x64(True):
        model, params = random_model(Grid(5, 2, 2.0), (True,) * 6)
        record = simulate(model, params, 300)
        exact = np.asarray(collect(model, params, record, True).matrix)
    single = lambda x: x if x.dtype == bool else np.asarray(x, np.float32)
    params, record = jax.tree.map(single, (params, record))
    with jax.numpy_dtype_promotion("strict"):
        ours = jax.jit(partial(gather, with_channels=True))(model, params, record)
    scale = np.sqrt(np.diagonal(exact))
    difference = (np.asarray(ours.matrix) - exact) / np.outer(scale, scale)
    assert np.abs(difference).max() < 1e-4
