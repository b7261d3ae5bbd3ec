"""The posterior of a field: dense algebra, simulated data sets, and plans in plain NumPy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import linalg

from jaxrl.dynamics.bases import Grid, Polynomial
from jaxrl.dynamics.planning import icem, next_inputs, stimulation
from jaxrl.dynamics.state_space import channels
from jaxrl.dynamics.state_space import field_posterior as posteriors
from jaxrl.dynamics.state_space.field_posterior import FieldPosterior, Prior, field_posterior
from jaxrl.dynamics.state_space.filter import FARTHEST, Record, filter_states
from jaxrl.dynamics.state_space.forecasts import particles
from jaxrl.dynamics.state_space.information import Information, gather, zero_information
from jaxrl.dynamics.state_space.model import Params, StateSpace, displacement, step
from jaxrl.dynamics.state_space.move import parameters, replace
from tests.jaxrl.dynamics.state_space.models import random_model, simulate

PRIOR = Prior(weights=0.5, linear=1.5, effect=4.0, log_process=0.7, channels=100.0)
collect = jax.jit(gather, static_argnames="with_channels")
MIXED = (True, False, True, False)


def posterior_of(model: StateSpace, params: Params, total: Information) -> FieldPosterior:
    """In double precision, as NumPy's arrays."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, field_posterior(model, params, total, PRIOR))


def covariance_of(posterior: FieldPosterior) -> np.ndarray:
    root = np.asarray(posterior.root, float)
    return root @ root.T


def deviations(features: int, rows: int) -> np.ndarray:
    """The standard deviations of the prior in two dimensions with two inputs."""
    move = [*[0.5] * 2 * features, *[1.5] * 6, *[4.0] * 4]
    return np.array([*[100.0] * 3 * rows, 0.7, 0.7, *move])


@pytest.fixture(scope="module")
def record_and_fit() -> tuple[StateSpace, Params, Information]:
    """A model of mixed channels and the information of a short record, with C and b."""
    with jax.enable_x64(True):
        model, params = random_model(Polynomial(2, 2, 2.0), MIXED, scale=0.2)
        record = simulate(model, params, 60, 0.1)
        total = collect(model, params, record, with_channels=True)
        return model, *jax.tree.map(np.asarray, (params, total))


def test_the_covariance_is_what_dense_algebra_leaves(record_and_fit):
    """Channels are free within a basis of the C and b that do not change the state's read-out."""
    model, params, total = record_and_fit
    posterior = posterior_of(model, params, total)
    move_information = total._replace(matrix=total.matrix[12:, 12:])
    cheap = posterior_of(model, params, move_information)
    weight = np.asarray(total.weight) / float(total.count)
    unit = np.kron(weight**-0.5, np.ones(3))
    constraint = np.kron((np.asarray(params.matrix) * weight[:, None]).T * weight**-0.5, np.eye(3))
    free = linalg.null_space(constraint)  # in units of each channel's noise
    assert free.shape == (12, 6)
    basis = linalg.block_diag(unit[:, None] * free, np.eye(24))
    sd = np.r_[np.full(6, 100.0), deviations(6, 0)]
    precision = basis.T @ np.asarray(total.matrix) @ basis + np.diag(sd**-2.0)
    exact = np.linalg.inv(precision)[-22:, -22:]
    ours = covariance_of(posterior)
    np.testing.assert_allclose(ours, exact, rtol=1e-7, atol=1e-9 * exact.max())
    entropy = np.linalg.slogdet(exact)[1] / 2
    nats = np.log(sd[-22:]).sum() - entropy
    np.testing.assert_allclose(posterior.information, nats, rtol=1e-8)

    precision = np.asarray(move_information.matrix) + np.diag(deviations(6, 0) ** -2.0)
    exact = np.linalg.inv(precision)[2:, 2:]
    ours = covariance_of(cheap)
    np.testing.assert_allclose(ours, exact, rtol=1e-7, atol=1e-9 * exact.max())


def test_channels_know_nothing_of_affine_maps(record_and_fit):
    """No change of C and b that an affine map of the state makes is informed of, or has a part."""
    _, params, total = record_and_fit
    with jax.enable_x64(True):
        matrix = posteriors.remove_gauge(params, total.matrix, total.weight / total.count)
        matrix = np.asarray(matrix)
    weight = np.asarray(total.weight) / float(total.count)
    change = np.random.default_rng(0).normal(size=(2, 3))  # of the state, by state and constant
    moved = (np.asarray(params.matrix) @ change) * weight[:, None] ** 0.5
    along = np.asarray(matrix) @ np.r_[moved.ravel(), np.zeros(len(matrix) - 12)]
    np.testing.assert_allclose(along, 0, atol=1e-9 * np.abs(matrix).max())


@pytest.mark.slow
def test_complete_gaussian_channels_may_as_well_be_held():
    """On average over records C and b have no information in common with the move."""
    with jax.enable_x64(True):
        model, params = random_model()
        records = [simulate(model, params, 25, seed=seed) for seed in range(400)]
        shared = records[0]._replace(y=jnp.stack([r.y for r in records]))
        draws = shared._replace(u=jnp.stack([r.u for r in records]))
        gather_one = lambda y, u: gather(model, params, shared._replace(y=y, u=u), True)
        each = jax.jit(jax.vmap(gather_one))(draws.y, draws.u)
        params, total = jax.tree.map(np.asarray, (params, jax.tree.map(lambda x: x.mean(0), each)))
    whole = covariance_of(posterior_of(model, params, total))
    move_information = total._replace(matrix=total.matrix[15:, 15:])
    cheap = covariance_of(posterior_of(model, params, move_information))
    scale = np.sqrt(np.diagonal(cheap))
    np.testing.assert_allclose(
        whole / np.outer(scale, scale), cheap / np.outer(scale, scale), atol=0.05
    )
    free = total.matrix + np.diag(deviations(0, 5) ** -2.0)  # without a choice of coordinates
    unsure = np.linalg.inv(np.asarray(free))[-10:, -10:]
    assert np.trace(unsure) > 3 * np.trace(whole)


def test_states_that_are_seen_tell_all_there_is():
    with jax.enable_x64(True):
        model, params = random_model(Grid(3, 2, 2.0), scale=0.2)
        params = params._replace(log_noise=jnp.full(5, -9.0))
        record = simulate(model, params, 200)
        sharp = posterior_of(model, params, collect(model, params, record))
        blurred = params._replace(log_noise=jnp.full(5, 0.5))
        record = simulate(model, blurred, 200)
        less = posterior_of(model, blurred, collect(model, blurred, record))
    np.testing.assert_allclose(sharp.relative_noise, 1, rtol=0.02)
    assert less.relative_noise > 2
    assert less.information < sharp.information


def test_what_does_not_fit_together_is_refused(record_and_fit):
    model, params, total = record_and_fit
    other = model.replace(field=Polynomial(3, 2, 2.0))
    bigger = params._replace(weights=np.zeros((10, 2)))
    with pytest.raises(ValueError, match="information of 36 parameters, expected 32 or 44"):
        field_posterior(other, bigger, total, PRIOR)
    with pytest.raises(ValueError, match="linear"):
        field_posterior(model, params, total, Prior(linear=0.0))


@pytest.mark.parametrize("with_channels", [False, True])
def test_before_any_data_it_is_the_prior(with_channels):
    model, params = random_model(Grid(3, 2, 2.0), scale=0.2)
    before = zero_information(model, params, with_channels)
    posterior = jax.jit(field_posterior)(model, params, before, PRIOR)
    np.testing.assert_allclose(posterior.root, np.diag(deviations(9, 0)[2:]), rtol=1e-4)
    np.testing.assert_allclose(posterior.information, 0, atol=1e-3)
    assert posterior.relative_noise == 1


@pytest.mark.slow
def test_draws_and_variances_are_those_of_the_covariance(record_and_fit, key):
    model, params, total = record_and_fit
    with jax.enable_x64(True):
        posterior = field_posterior(model, params, total, PRIOR)
        places = jnp.array([[0.5, -0.4], [-1.0, 1.5]])
        draw = jax.vmap(partial(posteriors.draw, model, posterior))
        fields = jax.jit(draw)(jax.random.split(key, 20_000))
        displace_all = lambda p: jax.vmap(partial(displacement, model, p))(places)
        values = np.asarray(jax.jit(jax.vmap(displace_all))(fields))  # [draws, 2, d]
        expected = np.asarray(jax.vmap(partial(displacement, model, params))(places))
        for i, z in enumerate(places):
            covariance = posteriors.predictive_covariance(model, posterior, z)
            scale = np.sqrt(np.diagonal(covariance))
            ratio = np.cov(values[:, i].T) / np.outer(scale, scale)
            np.testing.assert_allclose(ratio, covariance / np.outer(scale, scale), atol=0.05)
            variance = posteriors.predictive_variance(model, posterior, z)
            np.testing.assert_allclose(variance, np.trace(covariance) / 2, rtol=1e-9)
    error = np.std(values, axis=0) / 20_000**0.5
    assert (np.abs(values.mean(0) - expected) < 4.5 * error).all()


PLACES = np.array([[-1.0], [-0.4], [0.3], [1.1]])
WEAK = Prior(weights=1.0, linear=1.0, effect=1.0)


def simulate_wells(
    matrix: tuple[float, ...], counts: bool, count: int, steps: int
) -> tuple[StateSpace, Params, Record]:
    """A state between two wells, seen by noisy channels or counts; records `[count, steps]`."""
    size = len(matrix)
    model = StateSpace(jnp.full(size, counts), 1, 1, Polynomial(3, 1, 1.5), scale=0.3)
    # z' = z + .25 z - .25 z³ + .2 u, written as A and one Legendre polynomial of x = z / 1.5:
    # √7 (5 x³ - 3 x) / 2 with the unit .3 / √4.
    weight = -0.25 * 1.5**3 / (7**0.5 * 2.5 * 0.15)
    numbers = {
        "transition": [[0.25 + weight * 0.15 * 7**0.5]],
        "drift": [0.0],
        "weights": [[0.0], [0.0], [0.0], [weight]],
        "effect": [[0.2]],
        "log_process": [np.log(0.2)],
        "matrix": np.array(matrix)[:, None],
        "offset": np.zeros(size),
        "log_noise": np.full(size, np.log(0.5)),
        "first_mean": [0.0],
        "first_log_deviation": [0.0],
    }
    params = Params(
        layer=(), effect_layers=(), **{k: jnp.asarray(x, float) for k, x in numbers.items()}
    )
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=count), np.zeros((count, steps, size))
    u = rng.choice([-1.0, 1.0], size=(count, steps, 1)).repeat(4, 1)[:, :steps]
    for t in range(steps):
        eta = z[:, None] * np.array(matrix)
        y[:, t] = rng.poisson(np.exp(eta)) if counts else rng.normal(eta, 0.5)
        z = z + 0.25 * z - 0.25 * z**3 + 0.2 * u[:, t, 0] + 0.2 * rng.normal(size=count)
    everything = jnp.ones(y.shape, bool)
    record = Record(jnp.asarray(y), jnp.asarray(u), everything, everything[..., 0])
    return model, params, record


def directions_of(truth: Params, counts: bool, with_channels: bool) -> np.ndarray:
    """What a fit may change: of C and b, what leaves the read-out of the true state as it is."""
    move_directions = np.eye(1 + 4 + 3)
    if not with_channels:
        return move_directions
    matrix = np.asarray(truth.matrix)[:, 0]
    weight = np.exp(matrix**2 / 2) if counts else np.ones(len(matrix))
    free = linalg.null_space(np.kron(matrix * weight, np.eye(2)))
    return np.asarray(linalg.block_diag(free, move_directions))


def fit_and_score(
    model: StateSpace, truth: Params, directions: jax.Array, with_channels: bool, record: Record
) -> tuple[jax.Array, jax.Array]:
    """z-scores of the field at the places after a fit, and its last slope, squared.

    By Fisher's scoring on the filter's likelihood. States are predicted by cubature: where a field
    is curved and states uncertain, the extended filter's mode is off by a deviation.
    """
    start, unravel = ravel_pytree(parameters(model, truth, with_channels))
    deviation = posteriors.prior_deviations(model, truth, WEAK, with_channels)
    centre = jnp.where(jnp.arange(len(start)) < len(start) - 7, start, 0.0)  # of the move: 0
    unpack = lambda flat: replace(model, truth, unravel(flat))
    inform = lambda flat: gather(model, unpack(flat), record, with_channels, "cubature")

    def log_density(flat: jax.Array) -> jax.Array:
        states = filter_states(model, unpack(flat), record, "cubature")
        return states.log_likelihood.sum() - jnp.sum(((flat - centre) / deviation) ** 2) / 2

    slope = lambda flat: directions.T @ jax.grad(log_density)(flat)

    def ascend(flat: jax.Array, _: None) -> tuple[jax.Array, None]:
        precision = inform(flat).matrix + jnp.diag(deviation**-2)
        change = jnp.linalg.solve(directions.T @ precision @ directions, slope(flat))
        return flat + directions @ change / jnp.maximum(1.0, 2 * jnp.abs(change).max()), None

    flat = jax.lax.scan(ascend, start, None, 12)[0]
    posterior = field_posterior(model, unpack(flat), inform(flat), WEAK)
    places = jnp.asarray(PLACES)
    variance = jax.vmap(partial(posteriors.predictive_variance, model, posterior))(places)
    field_of = lambda p: jax.vmap(partial(displacement, model, p))(places)[:, 0]
    scores = (field_of(unpack(flat)) - field_of(truth)) / jnp.sqrt(variance)
    return scores, jnp.sum(slope(flat) ** 2)


FOUR = (1.0, -0.7, 0.4, 0.9)
EIGHT = (*FOUR, -0.5, 0.8, -1.0, 0.6)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_with_care")
@pytest.mark.parametrize(
    ("matrix", "counts", "steps", "with_channels"),
    [
        (FOUR, False, 300, False),
        (EIGHT, False, 300, True),
        (EIGHT, True, 500, True),
    ],
)
def test_the_field_is_as_uncertain_as_fits_are(matrix, counts, steps, with_channels):
    """z-scores of the field at four places, in 96 data sets, have mean square 1 at each.

    The standard error is √(2/96) = .14; three of them are allowed. C and b are known, or fitted in
    the coordinates of the true ones.
    """
    count = 96
    with jax.enable_x64(True):
        model, truth, records = simulate_wells(matrix, counts, count, steps)
        directions = jnp.asarray(directions_of(truth, counts, with_channels))
        fit_one = partial(fit_and_score, model, truth, directions, with_channels)
        batches = jax.jit(lambda records: jax.lax.map(fit_one, records, batch_size=32))
        scores, slopes = jax.tree.map(np.asarray, batches(records))
    assert np.max(slopes) < 1e-3  # the fits have arrived
    squares = np.mean(scores**2, axis=0)
    np.testing.assert_allclose(squares, 1, atol=3 * (2 / count) ** 0.5)


@pytest.fixture(scope="module")
def question(record_and_fit) -> tuple:
    model, params, total = record_and_fit
    posterior = posterior_of(model, params, total)
    posterior, params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), (posterior, params))
    rng = np.random.default_rng(4)
    plan = jnp.asarray(rng.uniform(-1, 1, (6, 2)), jnp.float32)
    return model, params, posterior, plan, jnp.array([0.4, -0.3])


@jax.jit
def rows_of(model: StateSpace, params: Params, z: jax.Array, u: jax.Array) -> jax.Array:
    """Derivative `[d, p]` of the next state by the move, by differences: it is linear."""
    values = parameters(model, params)
    shape = values.move.shape
    changed = lambda e: values._replace(move=values.move + e.reshape(shape))
    next_state = lambda e: step(model, replace(model, params, changed(e)), z, u)
    changes = jnp.eye(values.move.size)
    return (jax.vmap(next_state)(changes) - jax.vmap(next_state)(-changes)).T / 2


@pytest.mark.slow
def test_plans_by_the_next_states_alone(question):
    model, params, posterior, plan, z = question
    planning_model = posteriors.predictive_model(model, posterior)
    # The expected path.
    path, advance = [z], jax.jit(step)
    for u in plan:
        path.append(advance(model, params, path[-1], u))
    states = jax.jit(partial(stimulation.path, planning_model))(z, plan)
    np.testing.assert_allclose(states, path, rtol=1e-4, atol=1e-5)
    noise = np.mean(np.exp(2 * np.asarray(params.log_process)))
    sigma = covariance_of(posterior) / noise

    # The nats of all transitions.
    rows = np.concatenate([rows_of(model, params, path[t], plan[t]) for t in range(6)])
    scaled = rows @ sigma @ rows.T / float(posterior.relative_noise)
    nats = np.linalg.slogdet(np.eye(12) + scaled)[1] / 2
    np.testing.assert_allclose(
        jax.jit(partial(next_inputs.nats, planning_model))(z, plan), nats, rtol=1e-3
    )

    # Both criteria at every other state, and the cost that is made of them.
    config = stimulation.Config(
        every=2, objective="d_optimal+a_optimal", planner=icem.Config(horizon=6)
    )
    inputs = [*plan, jnp.zeros(2)]
    rows = np.concatenate([rows_of(model, params, path[t], inputs[t]) for t in (2, 4, 6)])
    system = rows @ sigma @ rows.T + float(posterior.relative_noise) * np.eye(6)
    through = sigma @ rows.T
    values = {
        "d_optimal": np.linalg.slogdet(system / float(posterior.relative_noise))[1],
        "a_optimal": np.trace(through @ np.linalg.solve(system, through.T)),
    }
    for name, value in values.items():
        objective = jax.jit(partial(stimulation.objective, config, name, planning_model))
        np.testing.assert_allclose(objective(plan, states), value, rtol=2e-3)
    cost = jax.jit(partial(stimulation.plan_cost, config, planning_model))(z, plan[None])
    np.testing.assert_allclose(cost, [-sum(values.values())], rtol=2e-3)
    # A myopic input stays within the box.
    low = -jnp.ones(2)
    chosen = stimulation.myopic_input(
        stimulation.Config(kind="myopic"), planning_model, z, low, -low
    )
    assert jnp.abs(chosen).max() <= 1


@pytest.mark.slow
def test_plans_by_innovations(question):
    """`propagate`: the recursion of the filter, s' = F (I - K H) s + x, in NumPy."""
    model, params, posterior, plan, z = question
    planning_model = posteriors.predictive_model(model, posterior)
    config = stimulation.Config(propagate=True)
    states = stimulation.path(planning_model, z, plan)
    objective = jax.jit(partial(stimulation.objective, config, "d_optimal", planning_model))
    ours = objective(plan, states)
    p = np.asarray(posterior.covariance, float)
    c, b = np.asarray(params.matrix, float), np.asarray(params.offset, float)
    total, slope, after = 0.0, np.zeros((2, posterior.root.shape[0])), np.asarray(states, float)
    for t, u in enumerate(plan):
        inverse = lambda z: np.diag(
            np.where(MIXED, np.exp(-c @ z - b), np.exp(2 * np.asarray(params.log_noise)))
        )
        kalman = p @ c.T @ np.linalg.inv(c @ p @ c.T + inverse(after[t]))
        move = jax.jacfwd(partial(step, model, params))(states[t], u)
        slope = np.asarray(move) @ (np.eye(2) - kalman @ c) @ slope
        slope = slope + rows_of(model, params, states[t], u)
        omega = c.T @ np.linalg.inv(c @ p @ c.T + inverse(after[t + 1])) @ c
        total = total + slope.T @ omega @ slope
    root = np.asarray(posterior.root, float)
    exact = np.linalg.slogdet(np.eye(len(root)) + root.T @ total @ root)[1]
    np.testing.assert_allclose(ours, exact, rtol=2e-3)
    assert np.abs(states).max() < FARTHEST


@pytest.mark.slow
def test_plans_tell_as_much_as_they_promise():
    """The nats of `propagate` beside those gained from 40 simulated ends of a record, on average.

    The plan is of the mean path, from a state that it takes for known, so 30 % are allowed. If
    nothing were corrected by observations it would promise several times as much.
    """
    steps, ahead, count = 200, 20, 40
    with jax.enable_x64(True):
        model, params = random_model(Grid(5, 2, 3.0), (False,) * 8, scale=0.2)
        record = simulate(model, params, steps)
        inform = lambda record: field_posterior(model, params, gather(model, params, record), PRIOR)
        posterior = jax.jit(inform)(record)
        plan = jnp.tile(jnp.array([0.8, -0.5]), (ahead, 1))
        state = jax.tree.map(lambda x: x[-1], filter_states(model, params, record).belief)
        inputs = jnp.concatenate([record.u[:-1], plan, plan[:1]])

        def gain(key: jax.Array) -> jax.Array:
            path_key, draw_key = jax.random.split(key)
            path = particles(model, params, state, plan, 1, path_key)[1:, 0]
            y = channels.draw(model.is_count, params, path, draw_key)
            y = jnp.concatenate([record.y, y])
            everything = jnp.ones(y.shape, bool)
            longer = inform(Record(y, inputs, everything, everything[:, 0]))
            return longer.information - posterior.information

        gains = jax.jit(jax.vmap(gain))(jax.random.split(jax.random.key(0), count))
        planning_model = posteriors.predictive_model(model, posterior)
        config = stimulation.Config(propagate=True)

        @jax.jit
        def promise() -> list[jax.Array]:
            states = stimulation.path(planning_model, state.mean, plan)
            objective = partial(
                stimulation.objective, config, "d_optimal", actions=plan, states=states
            )
            return [
                objective(m) / 2 for m in (planning_model, planning_model._replace(remaining=None))
            ]

        expected, naive = (float(x) for x in promise())
        gains = np.asarray(gains)
    actual = gains.mean()
    assert gains.std() / count**0.5 < 0.1 * actual
    assert 0.7 * actual < expected < 1.3 * actual
    assert naive > 2 * actual
