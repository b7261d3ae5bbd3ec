"""Moments and losses against sums in plain NumPy, and what a tabular learner converges to."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dependent_fields import idle_fields
from jaxrl.spectral import laplacian
from jaxrl.spectral.learning import allo, allo_state, objectives
from jaxrl.spectral.learning.objectives import Multipliers

S, D = 6, 4
close = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)


def random_pairs(seed: int = 0) -> np.ndarray:
    """A law of pairs without symmetry, `[S, S]`."""
    weights = np.random.default_rng(seed).random((S, S)) ** 3
    return weights / weights.sum()


def random_features(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(S, D))


def path(num_states: int = S) -> np.ndarray:
    """The law of neighbours in a random walk on a path; each end stays with probability ½."""
    steps = (np.eye(num_states, k=1) + np.eye(num_states, k=-1)) / 2
    steps[0, 0] = steps[-1, -1] = 0.5
    return steps / num_states


def float32(x) -> jax.Array:
    return jnp.asarray(x, jnp.float32)


def graph_of(M: np.ndarray) -> tuple[jax.Array, jax.Array]:
    return objectives.graph_of(float32(M))


# The same in float64, term by term.


def double_sum_spread(u: np.ndarray, M: np.ndarray) -> np.ndarray:
    total = np.zeros(u.shape[1])
    for s, t in np.ndindex(S, S):
        total += M[s, t] * (u[s] - u[t]) ** 2
    return total


def double_sum_error(u: np.ndarray, M: np.ndarray) -> np.ndarray:
    weight = M.sum(axis=1)
    return sum(weight[s] * np.outer(u[s], u[s]) for s in range(S)) - np.eye(u.shape[1])


def laplacian_of(M: np.ndarray) -> np.ndarray:
    """L, self-adjoint in L2(ρ): ρ L is half of what each pair adds."""
    weight = M.sum(axis=1)
    return (np.diag(weight + M.sum(axis=0)) - M - M.T) / 2 / weight[:, None]


def drawing_value(u: np.ndarray, M: np.ndarray, b: float, c: np.ndarray, w: float) -> float:
    """The loss of Wang et al. (2021), the second sum scaled to a mean weight of 1."""
    error, total, weights = double_sum_error(u, M), 0.0, 0.0
    for j in range(D):
        for k in range(D):
            total += min(c[j], c[k]) * error[j, k] ** 2
            weights += min(c[j], c[k])
    return w * np.sum(c * double_sum_spread(u, M)) + b * total / (weights / D**2)


# Moments.


@pytest.mark.parametrize("ordered", [True, False])
def test_exact_moments_are_double_sums(ordered):
    u, M = random_features(), random_pairs()
    moments = objectives.exact_moments(float32(u), *graph_of(M), ordered)
    close(moments.spread, double_sum_spread(u, M))
    close(moments.error, double_sum_error(u, M))
    close(moments.other_error, double_sum_error(u, M))


@pytest.mark.parametrize("ordered", [True, False])
def test_sampled_moments_are_means_over_rows(ordered):
    """Rows drawn as often as the law says have its moments; the two errors keep apart."""
    M = np.round(1000 * random_pairs())
    first, second = (np.repeat(x.ravel(), M.ravel().astype(int)) for x in np.indices((S, S)))
    u, M = random_features(), M / M.sum()
    rows = float32(u[first])
    moments = objectives.sampled_moments(rows, float32(u[second]), rows, 2 * rows, ordered)
    close(moments.spread, double_sum_spread(u, M))
    close(moments.error, double_sum_error(u, M))
    close(moments.other_error, 4 * double_sum_error(u, M) + 3 * np.eye(D))


# Losses.


def multipliers_of(seed: int, b: float = 1.3) -> tuple[Multipliers, np.ndarray]:
    """Duals with an upper triangle too, which no loss may read."""
    duals = np.random.default_rng(seed).normal(size=(D, D))
    return Multipliers(float32(duals), float32(b), jnp.zeros((D, D))), np.tril(duals)


@pytest.mark.parametrize("graph_weight", [1.0, 0.5])
@pytest.mark.parametrize("mask", [[1, 1, 1, 1], [1, 1, 0, 0]])
def test_each_feature_descends_its_own_rows_alone(graph_weight, mask):
    """c L u_i + Σ_{k<=i} (β_ik + 2 b E_ik) u_k in L2(ρ), c = 4 w: nothing of later features."""
    u, M, b = random_features(), random_pairs(), 1.3
    multipliers, beta = multipliers_of(2, b)
    graph, weight = graph_of(M)

    def value(u):
        moments = objectives.exact_moments(u, graph, weight, ordered=True)
        return objectives.allo_loss(moments, multipliers, float32(mask), graph_weight)

    gradient = jax.grad(value)(float32(u)) / weight[:, None]
    error, L = double_sum_error(u, M), laplacian_of(M)
    for i in range(D):
        expected = 4 * graph_weight * L @ u[:, i]
        for k in range(i + 1):
            expected += (beta[i, k] + 2 * b * error[i, k]) * u[:, k]
        close(gradient[:, i], mask[i] * expected, atol=1e-4)


def test_the_loss_is_the_lagrangian():
    u, M = random_features(), random_pairs()
    multipliers, beta = multipliers_of(3)
    moments = objectives.exact_moments(float32(u), *graph_of(M), ordered=True)
    error, mask = np.tril(double_sum_error(u, M)), np.array([1, 1, 1, 0])
    per_row = double_sum_spread(u, M) + (beta * error + 1.3 * error**2).sum(axis=1)
    close(objectives.allo_loss(moments, multipliers, float32(mask), 1.0), per_row[:3].sum())


@pytest.mark.parametrize(("method", "c"), [("ggdo", [4, 3, 2, 1]), ("gdo", [1, 1, 1, 1])])
def test_graph_drawing_and_its_slope(method, c):
    """Central differences of the float64 sums: both factors of the errors move."""
    u, M, b, w, h = random_features(), random_pairs(), 0.7, 0.5, 1e-5
    graph, weight = graph_of(M)
    weights = objectives.drawing_weights(method, D)

    def value(u):
        moments = objectives.exact_moments(u, graph, weight, ordered=False)
        return objectives.graph_drawing_loss(moments, float32(b), weights, w)

    loss, slope = jax.value_and_grad(value)(float32(u))
    close(loss, drawing_value(u, M, b, c, w))
    expected = np.zeros_like(u)
    for cell in np.ndindex(u.shape):
        step = np.zeros_like(u)
        step[cell] = h
        rise = drawing_value(u + step, M, b, c, w) - drawing_value(u - step, M, b, c, w)
        expected[cell] = rise / (2 * h)
    close(slope, expected, rtol=1e-3, atol=1e-4)


def test_a_row_learns_once_those_before_it_are_good():
    error = np.full((4, 4), 0.05)
    mask = lambda error: objectives.previous_rows_mask(float32(error), 0.1)
    np.testing.assert_array_equal(mask(error), [1, 1, 1, 1])
    error[0, 2] = 9.0  # above the diagonal: no constraint
    np.testing.assert_array_equal(mask(error), [1, 1, 1, 1])
    error[3, 0] = 9.0  # the last: nobody waits for it
    np.testing.assert_array_equal(mask(error), [1, 1, 1, 1])
    error[1, 0] = -0.2  # its size counts
    np.testing.assert_array_equal(mask(error), [1, 1, 0, 0])
    error[0, 0] = 0.2
    np.testing.assert_array_equal(mask(error), [1, 0, 0, 0])
    np.testing.assert_array_equal(objectives.previous_rows_mask(float32(error), None), [1, 1, 1, 1])
    slope = jax.grad(lambda error: mask(error).sum())(float32(error))
    np.testing.assert_array_equal(slope, 0)


def test_multipliers_ascend():
    """Two steps of the rules in float64: masked, clipped duals, smoothed growth of b."""
    config = allo.Config(dual_step=0.1, dual_limit=0.5, barrier_step=3.0, barrier_limit=2.2)
    random = np.random.default_rng(4)
    beta, b, penalty = np.tril(random.normal(size=(3, 3))) / 4, 2.0, np.zeros((3, 3))
    multipliers = Multipliers(float32(beta), float32(b), float32(penalty))
    mask = np.array([1, 1, 0])
    barriers = []
    for scale in (0.5, 1.0):
        error, other = scale * random.normal(size=(2, 3, 3))
        moments = objectives.Moments(jnp.zeros(3), float32(error), float32(other))
        multipliers = allo.dual_update(config, multipliers, moments, float32(mask))
        change = 0.1 * mask[:, None] * np.tril(error + other) / 2
        beta = np.clip(beta + change, -0.5, 0.5)
        penalty = 0.9 * penalty + 0.1 * np.tril(error * other)
        b = min(b + 3.0 * np.sum(np.maximum(penalty[:2], 0)) / 9, 2.2)
        barriers.append(b)
        close(multipliers.duals, beta)
        close(multipliers.penalty, penalty)
        close(multipliers.barrier, b)
    assert 2 < barriers[0] < 2.2  # it grew, and not only to its limit


@pytest.mark.parametrize("method", ["no_duals", "ggdo", "gdo"])
def test_duals_of_other_methods_tell_quotients_and_teach_nothing(method):
    """The λ of features that stay as they are, ½ Σ M (u - u')² / Σ ρ u² in float64.

    Numbers of the duals that ALLO learns by have no effect on them.
    """
    M = path()
    config = allo.Config(
        method=method, graph_weight=0.5, dual_step=0.1, dual_start=-7e5, dual_limit=0.1
    )
    u, weight = np.random.default_rng(5).normal(size=(len(M), 3)), M.sum(axis=1)
    u[:, 2] = 0
    moments = objectives.exact_moments(float32(u), *graph_of(M), ordered=method == "no_duals")
    update = lambda m, _: (allo.dual_update(config, m, moments, jnp.ones(3)), None)
    first = allo_state.first_multipliers(config, 3)
    multipliers = jax.jit(lambda m: jax.lax.scan(update, m, length=600)[0])(first)
    difference = u[:, None, :2] - u[None, :, :2]
    energy = np.sum(M[..., None] * difference**2, axis=(0, 1)) / 2
    expected = [*(energy / (weight @ u[:, :2] ** 2)), 0]
    assert min(expected[:2]) > 0.1
    close(-jnp.diag(multipliers.duals) / (4 * 0.5), expected)
    same_barrier = multipliers._replace(barrier=first.barrier)
    loss_of = lambda x: allo.loss(config, moments, x)[0]
    np.testing.assert_array_equal(loss_of(same_barrier), loss_of(first))


@pytest.mark.parametrize("method", ["allo", "no_duals", "ggdo", "gdo"])
def test_a_step_of_the_duals_is_without_effect_where_the_settings_say_so(method):
    u, M = np.random.default_rng(6).normal(size=(12, 3)), path()
    moments = objectives.exact_moments(float32(u[: len(M)]), *graph_of(M), ordered=True)
    configs = [allo.Config(method=method, dual_step=step) for step in (0.1, 0.2)]
    first = allo_state.first_multipliers(configs[0], 3)
    one, other = (allo.dual_update(x, first, moments, jnp.ones(3)).duals for x in configs)
    assert jnp.array_equal(one, other) == ("dual_step" in idle_fields(configs[0]))


# A learner whose parameters are the features themselves.


def descend(M: np.ndarray, config: allo.Config, u, duals, steps: int, rate: float):
    """`(u [steps, S, d], duals [steps, d])` of plain gradient descent in L2(ρ)."""
    graph, weight = graph_of(M)
    ordered = config.method == "allo"

    def step(carry, _):
        u, multipliers = carry

        def value(u):
            moments = objectives.exact_moments(u, graph, weight, ordered)
            value, mask = allo.loss(config, moments, multipliers)
            return value, (moments, mask)

        slope, (moments, mask) = jax.grad(value, has_aux=True)(u)
        after = allo.dual_update(config, multipliers, moments, mask)
        u = u - rate * slope / weight[:, None]
        return (u, after), (u, jnp.diag(after.duals))

    first = allo_state.first_multipliers(config, u.shape[1])._replace(duals=float32(duals))
    run = jax.jit(lambda *carry: jax.lax.scan(step, carry, length=steps)[1])
    return jax.device_get(run(float32(u), first))


def cosines(u: np.ndarray, truth: laplacian.Eigensystem) -> np.ndarray:
    """|cos| between all features and all true vectors, `[d, S]`."""
    inner = u.T @ (truth.weight[:, None] * truth.vectors)
    return np.abs(inner) / np.sqrt((u**2 * truth.weight[:, None]).sum(axis=0))[:, None]


@pytest.mark.parametrize("graph_weight", [1.0, 0.5])
def test_tabular_descent_sorts_eigenvectors_and_duals_tell_the_eigenvalues(graph_weight):
    """It starts at true eigenvectors in the wrong order, a fixed point, but for a little noise."""
    M = path()
    truth = laplacian.eigensystem(M)
    u = truth.vectors[:, [2, 0, 3, 1]] + 1e-3 * random_features()
    config = allo.Config(graph_weight=graph_weight, dual_step=0.05, barrier_start=3.0)
    features, duals = descend(M, config, u, np.zeros((D, D)), 6000, 0.02)
    np.testing.assert_array_less(0.999, np.diag(cosines(features[-1], truth)))
    length = (features[-1] ** 2 * truth.weight[:, None]).sum(axis=0)
    close(length, np.ones(D), atol=1e-3)
    close(duals[-1], -4 * graph_weight * truth.values[:D], atol=5e-3)


@pytest.mark.parametrize(("share", "stays"), [(0.9, False), (1.1, True)])
def test_sorted_order_is_stable_with_a_barrier_above_its_bound(share, stays):
    """The bound is twice the graph weight times the largest eigenvalue that is learned."""
    M = path()
    truth = laplacian.eigensystem(M)
    b = share * 2 * truth.values[-1]
    config = allo.Config(dual_step=0.05, barrier_start=b, barrier_step=0.0, barrier_limit=b)
    noise = 1e-3 * np.random.default_rng(7).normal(size=(S, S))
    duals = np.diag(-4 * truth.values)
    features, _ = descend(M, config, truth.vectors + noise, duals, 1500, 0.02)
    assert (np.abs(features[-1] - truth.vectors).max() < 0.01) == stays


def test_duals_lag_by_two_barriers_over_their_step():
    """1 - exp(-t / τ) of the way after t steps, τ = 2 b / dual_step, where features are fast."""
    M = path()
    truth = laplacian.eigensystem(M)
    config = allo.Config(dual_step=0.02, barrier_start=5.0, barrier_step=0.0, barrier_limit=5.0)
    lag = 2 * 5.0 / 0.02
    start = np.sqrt(1 - 4 * truth.values[:D] / (2 * 5.0))  # no slope yet
    _, duals = descend(M, config, truth.vectors[:, :D] * start, np.zeros((D, D)), 1000, 0.02)
    time = np.arange(1, 1001)[[99, 249, 499, 999]]
    share = duals[time - 1, 1:] / (-4 * truth.values[1:D])
    expected = np.broadcast_to(1 - np.exp(-time / lag)[:, None], share.shape)
    np.testing.assert_allclose(share, expected, rtol=0.05)


def test_graph_drawing_without_weights_ends_in_a_rotation():
    """The span is right and the Gram matrix has eigenvalues 1 - w λ / b, the order is chance."""
    M, b = path(), 5.0
    truth = laplacian.eigensystem(M)
    config = allo.Config(method="gdo", barrier_start=b, barrier_step=0.0, barrier_limit=10.0)
    features, _ = descend(M, config, random_features(5), np.zeros((D, D)), 4000, 0.02)
    u = features[-1]
    gram = u.T @ (truth.weight[:, None] * u)
    close(np.sort(np.linalg.eigvalsh(gram)), 1 - truth.values[:D][::-1] / b, atol=2e-3)
    all_cosines = cosines(u, truth)
    close((all_cosines[:, :D] ** 2).sum(axis=1), np.ones(D), atol=2e-3)
    assert np.diag(all_cosines).min() < 0.9


def test_weights_end_the_rotation_where_no_feature_collapses():
    """E[u_i²] = 1 - w λ_i m / b, m the mean of all min(c_j, c_k), and 0 where that is negative."""
    M, c = path(), np.arange(D, 0, -1)
    truth = laplacian.eigensystem(M)
    mean = np.minimum(c[:, None], c[None, :]).mean()
    b = mean * truth.values[2] * 1.2  # the last of the four collapses
    assert truth.values[3] * mean > b
    config = allo.Config(method="ggdo", barrier_start=b, barrier_step=0.0)
    features, _ = descend(M, config, random_features(5), np.zeros((D, D)), 4000, 0.02)
    size = (features[-1] ** 2 * truth.weight[:, None]).sum(axis=0)
    close(size, np.maximum(1 - truth.values[:D] * mean / b, 0), atol=0.01)
    np.testing.assert_array_less(0.99, np.diag(cosines(features[-1], truth))[:3])


# Turns.


def moments_of_turn(u: np.ndarray, M: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """<u_j, L u_k> and <u_j, u_k>."""
    weight = M.sum(axis=1)[:, None]
    return float32(u.T @ (weight * (laplacian_of(M) @ u))), float32(u.T @ (weight * u))


def test_a_turn_gives_mixed_eigenvectors_back():
    M = random_pairs() + random_pairs().T
    truth = laplacian.eigensystem(M / 2)
    mix = np.random.default_rng(6).normal(size=(D, D)) + 2 * np.eye(D)
    u = truth.vectors[:, :D] @ mix
    assert np.linalg.eigvalsh(mix.T @ mix).min() > objectives.FLOOR
    turn, values = jax.jit(objectives.rayleigh_ritz)(*moments_of_turn(u, M / 2))
    turned = u @ np.asarray(turn)
    close(values, truth.values[:D], atol=1e-5)
    np.testing.assert_allclose(
        np.abs(turned.T @ (truth.weight[:, None] * truth.vectors[:, :D])), np.eye(D), atol=1e-4
    )


def test_a_turn_of_what_is_sorted_changes_nothing():
    truth = laplacian.eigensystem(path())
    u = truth.vectors[:, :D] * np.array([1, -1, 1, -1])  # signs stay, too
    turn, _ = objectives.rayleigh_ritz(*moments_of_turn(u, path()))
    close(turn, np.eye(D), atol=1e-4)


def test_a_turn_keeps_the_eigenspace_of_a_tie():
    """Two paths side by side: each eigenvalue is there twice."""
    M = np.kron(np.eye(2), path(3)) / 2
    truth = laplacian.eigensystem(M)
    close(truth.values[::2], truth.values[1::2])
    rotation = np.linalg.qr(np.random.default_rng(7).normal(size=(D, D)))[0]
    u = truth.vectors[:, :D] @ rotation
    turn, values = objectives.rayleigh_ritz(*moments_of_turn(u, M))
    close(values, truth.values[:D])
    squared_cosines = cosines(u @ np.asarray(turn), truth) ** 2
    close(squared_cosines[:2, :2].sum(axis=1), [1, 1], atol=1e-3)
    close(squared_cosines[2:, 2:4].sum(axis=1), [1, 1], atol=1e-3)


@pytest.mark.parametrize("lost", ["zero", "twin", "all"])
def test_a_turn_does_not_blow_up_what_is_hardly_spanned(lost):
    u = random_features()
    u[:, 3] = 1e-4 * u[:, 3] if lost == "zero" else u[:, 2]
    u = 0 * u if lost == "all" else u
    turn, values = objectives.rayleigh_ritz(*moments_of_turn(u, path()))
    assert np.isfinite(values).all()
    assert np.linalg.norm(turn, ord=2) <= 1 / np.sqrt(objectives.FLOOR) * (1 + 1e-4)


@pytest.mark.parametrize("size", [1e-3, 1e-2])
def test_errors_of_ritz_vectors_are_bounded_by_what_they_miss(size):
    """Eigenvectors with some of what lies beyond mixed in: the angle to the true ones."""
    M = random_pairs() + random_pairs().T
    truth = laplacian.eigensystem(M / 2)
    stray = np.random.default_rng(8).normal(size=(S - D, D))
    u = truth.vectors[:, :D] + size * truth.vectors[:, D:] @ stray
    turn, values = objectives.rayleigh_ritz(*moments_of_turn(u, M / 2))
    u = u @ np.asarray(turn, float)
    root = np.sqrt(truth.weight)[:, None]
    lengths = np.linalg.norm(root * u, axis=0)
    miss = laplacian_of(M / 2) @ u - u * np.asarray(values, float)
    residual = np.linalg.norm(root * miss, axis=0) / lengths
    bound = np.asarray(objectives.eigenvector_errors(float32(residual), values))
    cosine = np.abs(np.sum(truth.weight[:, None] * u * truth.vectors[:, :D], axis=0)) / lengths
    angle = np.arccos(np.minimum(cosine, 1))
    assert (angle[:-2] <= 1.05 * bound[:-2] + 1e-4).all()  # the last have no gap above them
    assert (bound[: D // 2] < 30 * size * np.sqrt(S)).all()


def test_errors_of_vectors_that_miss_nothing_are_zero_even_in_a_tie():
    values = float32([0.0, 0.1, 0.1, 0.5])
    close(objectives.eigenvector_errors(jnp.zeros(4), values), np.zeros(4))
    tie = objectives.eigenvector_errors(float32([0, 1e-3, 1e-3, 0]), values)
    assert tie[1] > 1  # they may be any two of their plane
    apart = objectives.eigenvector_errors(float32([0, 1e-3, 0, 0]), values)
    close(apart, [0, 1e-3 / 0.4, 0, 0], atol=1e-6)
    beyond_two = float32([0.0, 1.0, 9.0])  # of a state in which many pairs end and few begin
    whole = objectives.eigenvector_errors(float32([0, 0, 1e-4]), beyond_two, is_whole=True)
    close(whole, [0, 0, 1e-4 / 9], atol=1e-6)
