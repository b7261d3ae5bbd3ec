"""Fields are as uncertain as fits to simulated data sets are."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import linalg

from jaxrl.dynamics.bases import Polynomial
from jaxrl.dynamics.state_space import field_posterior as posteriors
from jaxrl.dynamics.state_space.field_posterior import Prior, field_posterior
from jaxrl.dynamics.state_space.filter import Record, filter_states
from jaxrl.dynamics.state_space.information import gather
from jaxrl.dynamics.state_space.model import Params, StateSpace, displacement
from jaxrl.dynamics.state_space.move import parameters, replace

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
