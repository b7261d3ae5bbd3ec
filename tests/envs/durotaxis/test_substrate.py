"""The ground against float64 arithmetic, its random laws, and the ground that is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from envs.durotaxis import substrate
from envs.durotaxis.substrate import Law, Ranges

SIZE = (600.0, 400.0)
NO_FIELD = np.zeros((0, 0), np.float32)
READ = jax.jit(lambda *a: (substrate.intensity(*a), substrate.log_intensity(*a)))


def law(exponential: bool, slope: float, base: float) -> Law:
    return Law(jnp.bool_(exponential), jnp.float32(slope), jnp.float32(base))


def points(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Places on the ground, off it, and on the borders of cells."""
    x = np.concatenate([random.uniform(-50, 650, 300), [-1, -0.5, 0, 0.99, 1, 598.9, 599, 600]])
    y = np.concatenate([random.uniform(-50, 450, 300), [-9, 399, 399.99, 400, 1e9, 0, -1e9, 3]])
    return x.astype(np.float32), y.astype(np.float32)


@pytest.mark.parametrize("slope", [0.01, 0.1, -0.001])
def test_linear_ground(slope: float):
    x, y = points(np.random.default_rng(0))
    column = np.clip(np.trunc(x.astype(np.float64)), 0, 599)
    expected = np.float64(np.float32(slope)) * column + 0.5
    value, logarithm = READ(law(False, slope, 0.5), NO_FIELD, x, y, *SIZE)
    np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6)
    floored = np.log(np.maximum(expected, 1e-6))
    np.testing.assert_allclose(logarithm, floored, atol=1e-3 if slope < 0 else 1e-5)


@pytest.mark.parametrize("slope", [0.01, 0.05, 0.145, -0.05])
def test_exponential_ground(slope: float):
    """Also where the last column is just within float32."""
    x, y = points(np.random.default_rng(1))
    column = np.clip(np.trunc(x.astype(np.float64)), 0, 599)
    exponent = np.float64(np.float32(slope)) * column
    steep = law(True, slope, 1.5)
    value, logarithm = READ(steep, NO_FIELD, x, y, *SIZE)
    assert np.isfinite(value).all()
    np.testing.assert_allclose(value, 1.5 * np.exp(exponent), rtol=2e-5)
    np.testing.assert_allclose(logarithm, np.log(1.5) + exponent, rtol=1e-6, atol=1e-6)
    substrate.check(steep, *SIZE, NO_FIELD)


def test_logarithms_do_not_overflow():
    x = jnp.array([0.0, 599.0])
    value, logarithm = READ(law(True, 1.0, 2.0), NO_FIELD, x, x, *SIZE)
    assert np.isinf(value[1])
    np.testing.assert_allclose(logarithm, np.log(2.0) + np.array([0, 599]), rtol=1e-6)


def test_softer_than_the_least():
    x = jnp.array([0.0, 10.0])
    _, logarithm = READ(law(False, -1.0, 5.0), NO_FIELD, x, x, *SIZE)
    np.testing.assert_allclose(logarithm, np.log([5.0, 1e-6]), rtol=1e-6)
    _, logarithm = READ(law(False, 0, 0), -np.ones((400, 600), np.float32), x, x, *SIZE)
    np.testing.assert_allclose(logarithm, np.log(1e-6), rtol=1e-6)


def test_measured_ground():
    random = np.random.default_rng(2)
    x, y = points(random)
    field = random.uniform(0.1, 5, (400, 600)).astype(np.float32)
    row = np.clip(np.trunc(y), 0, 399).astype(int)
    column = np.clip(np.trunc(x), 0, 599).astype(int)
    value, logarithm = READ(law(False, 9, 9), field, x, y, *SIZE)
    np.testing.assert_array_equal(value, field[row, column])
    np.testing.assert_allclose(logarithm, np.log(field[row, column]), rtol=1e-5, atol=1e-6)
    substrate.check(law(False, 9, 9), *SIZE, field)


@pytest.mark.parametrize("exponential", [False, True])
@pytest.mark.parametrize("read", [substrate.intensity, substrate.log_intensity])
def test_gradients_are_finite(read, exponential: bool):
    """The law that was not chosen would overflow."""
    x = jnp.array([0.0, 599.0])

    def total(slope: jax.Array) -> jax.Array:
        steep = Law(jnp.bool_(exponential), slope, jnp.float32(1))
        return jnp.sum(read(steep, NO_FIELD, x, x, *SIZE))

    assert np.isfinite(jax.jit(jax.grad(total))(jnp.float32(0.1 if exponential else 10)))


def test_random_laws():
    keys = jax.random.split(jax.random.key(4), 8000)
    laws = jax.jit(jax.vmap(substrate.random_law, (0, None)))(keys, Ranges())
    kinds = np.asarray(laws.exponential)
    assert stats.binomtest(int(kinds.sum()), kinds.size).pvalue > 1e-3
    for kind, slopes, bases in [
        (False, (0.01, 0.1), (0.5, 2.0)),
        (True, (0.01, 0.05), (0.5, 1.5)),
    ]:
        slope, base = np.asarray(laws.slope)[kinds == kind], np.asarray(laws.base)[kinds == kind]
        for values, (low, high) in ((slope, slopes), (base, bases)):
            share = (values - low) / (high - low)
            assert stats.kstest(share, "uniform", method="asymp").pvalue > 1e-3
        assert abs(np.corrcoef(slope, base)[0, 1]) < 0.06


def test_random_laws_of_other_ranges():
    """They are numbers, so that they can be swept."""
    fixed_ranges = Ranges((0.02, 0.02), (1.0, 1.0), (0.03, 0.03), (2.0, 2.0))
    random_law = jax.jit(substrate.random_law)(jax.random.key(0), fixed_ranges)
    expected = (0.03, 2.0) if random_law.exponential else (0.02, 1.0)
    np.testing.assert_allclose([random_law.slope, random_law.base], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("ground", "size", "field", "message"),
    [
        (law(False, np.nan, 1), SIZE, NO_FIELD, "slope of the ground is nan; expected"),
        (law(False, 1, np.inf), SIZE, NO_FIELD, "base of the ground is inf; expected"),
        (law(True, 0.01, 0), SIZE, NO_FIELD, "base is 0.0; expected a positive number"),
        (law(True, 0.147, 1.5), SIZE, NO_FIELD, r"reaches e\^88.6 over 600 px.*lower the slope"),
        (law(False, 0, 1), (np.nan, 400.0), NO_FIELD, "width is nan; expected a whole number"),
        (law(False, 0, 1), (600.0, 4.0), NO_FIELD, "height is 4.0; expected a whole number"),
        (law(False, 0, 1), (600.5, 40.0), NO_FIELD, "width is 600.5; expected a whole number"),
        (law(False, 0, 1), SIZE, np.ones((600, 400)), r"\(600, 400\); expected \(400, 600\)"),
        (law(False, 0, 1), SIZE, np.full((400, 600), np.nan), "field has values that are not"),
    ],
)
def test_ground_that_is_refused(
    ground: Law, size: tuple[float, float], field: np.ndarray, message: str
):
    with pytest.raises(ValueError, match=message) as error:
        substrate.check(ground, *size, field)
    assert "\n" not in str(error.value)
