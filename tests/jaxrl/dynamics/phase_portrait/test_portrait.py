"""Portraits of systems whose fixed points, cycles, periods and exponents are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from jaxrl.dynamics.phase_portrait.attractors import Effort
from jaxrl.dynamics.phase_portrait.portrait import portrait_of
from jaxrl.numerics.linalg import matmul
from tests.jaxrl.dynamics.phase_portrait.systems import (
    LITTLE,
    Map,
    disc,
    fitzhugh_nagumo,
    lorenz,
    runge_kutta,
    stuart_landau,
    van_der_pol,
)

VAN_DER_POL = runge_kutta(van_der_pol, 0.1)
logistic = lambda z, u: u * z * (1 - z)
pytestmark = pytest.mark.usefixtures("compiled_with_care")


def test_van_der_pol():
    """Period 6.6633; extent and multiplier by an integrator of another order."""

    def velocity(_: float, z: np.ndarray) -> list[float]:
        return [z[1], (1 - z[0] ** 2) * z[1] - z[0], 1 - z[0] ** 2]

    settled = integrate.solve_ivp(velocity, (0, 100), [2, 0, 0], rtol=1e-9, atol=1e-9).y[:2, -1]
    times = np.linspace(0, 6.663287, 4000)
    lap = integrate.solve_ivp(velocity, (0, 6.663287), [*settled, 0], t_eval=times, rtol=1e-9).y
    portrait = portrait_of(VAN_DER_POL, disc(200, 2.5), effort=LITTLE)
    (cycle,), (point,) = portrait.cycles, portrait.fixed_points
    assert cycle.period * 0.1 == pytest.approx(6.663287, rel=1e-3)
    np.testing.assert_allclose(cycle.extent, np.ptp(lap[:2], axis=1), rtol=5e-3)
    assert cycle.multiplier == pytest.approx(np.exp(lap[2, -1]), rel=0.15)
    assert cycle.share == 1
    assert portrait.aperiodic is None
    assert point.kind == "unstable spiral"
    # λ = exp(dt (1 ± i √3) / 2) at the origin
    assert point.rotation_periods[0] * 0.1 == pytest.approx(4 * np.pi / 3**0.5, rel=1e-3)
    assert point.time_constants[0] * 0.1 == pytest.approx(-2, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("period", [2.3171, 2.5, 5.3319, 7.5, 16.0, 16.6, 131.7])
def test_a_cycle_whose_period_is_no_whole_number(period):
    portrait = portrait_of(stuart_landau, disc(100, 1.4), [0.02, period], LITTLE)
    (cycle,) = portrait.cycles
    assert cycle.period == pytest.approx(period, rel=1e-4)
    np.testing.assert_allclose(np.linalg.norm(cycle.loop, axis=1), 1, atol=1e-2)  # chords, if few
    np.testing.assert_allclose(cycle.mean, 0, atol=5e-3)
    assert cycle.multiplier == pytest.approx(np.exp(-0.04 * period), rel=0.02)
    assert [point.kind for point in portrait.fixed_points] == ["unstable spiral"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("growth", "period", "effort"),
    [(3e-4, 40.3, Effort()), (1e-3, 40.0, Effort(orbits=24, window=1024, settling=1024))],
)
def test_a_cycle_that_attracts_weakly_is_one(growth, period, effort):
    portrait = portrait_of(stuart_landau, disc(100, 1.4), [growth, period], effort)
    (cycle,) = portrait.cycles
    assert cycle.share == 1
    assert cycle.period == pytest.approx(period, rel=1e-3)
    np.testing.assert_allclose(cycle.extent, 2, rtol=0.03)
    assert cycle.multiplier == pytest.approx(np.exp(-2 * growth * period), abs=5e-3)


@pytest.mark.slow
def test_a_cycle_slower_than_the_record():
    portrait = portrait_of(stuart_landau, disc(100, 1.4), [0.02, 1500.5], LITTLE)
    (cycle,) = portrait.cycles
    assert cycle.period == pytest.approx(1500.5, rel=1e-3)


@pytest.mark.slow
def test_shares_of_basins():
    """A stable spiral within a circle of radius 1 that repels, within a cycle of radius 2."""

    def step(z: jax.Array, u: jax.Array) -> jax.Array:
        square = jnp.sum(z**2)
        turned = jnp.stack([0.96 * z[0] - 0.28 * z[1], 0.28 * z[0] + 0.96 * z[1]])
        return turned * (1 + 0.02 * (1 - square) * (square - 4))

    states = disc(48, 1.6)
    within = np.mean(np.linalg.norm(states, axis=1) < 1)
    assert 0.1 < within < 0.9
    portrait = portrait_of(step, states, effort=LITTLE)
    (cycle,), (point,) = portrait.cycles, portrait.fixed_points
    assert point.kind == "stable spiral"
    assert point.share == pytest.approx(within)
    assert cycle.share == pytest.approx(1 - within)
    assert cycle.period == pytest.approx(2 * np.pi / np.arctan2(0.28, 0.96), rel=1e-4)
    np.testing.assert_allclose(np.linalg.norm(cycle.loop, axis=1), 2, rtol=5e-3)


def test_a_double_well():
    states = np.linspace(-1.5, 1.45, 48)[:, None]
    step = lambda z, u: z + 0.05 * (z - z**3 + u)
    portrait = portrait_of(step, states, [0.0], LITTLE)
    points = {round(float(p.state[0]), 4): p for p in portrait.fixed_points}
    assert sorted(points) == [-1, 0, 1]
    assert [points[x].kind for x in (-1, 0, 1)] == [
        "stable point",
        "unstable point",
        "stable point",
    ]
    assert points[-1].share == np.mean(states < 0)
    assert points[1].share == np.mean(states > 0)
    assert points[1].eigenvalues[0] == pytest.approx(0.9, abs=1e-5)
    assert points[1].time_constants[0] == pytest.approx(-1 / np.log(0.9), rel=1e-4)
    # z - z³ + u = 0: dz/du = 1 / (3 z² - 1)
    assert points[1].sensitivity[0, 0] == pytest.approx(0.5, rel=1e-4)
    assert points[0].sensitivity[0, 0] == pytest.approx(-1, rel=1e-4)


@pytest.mark.slow
def test_lorenz():
    step = runge_kutta(lorenz, 0.02)
    move = lambda z, _: (step(z, jnp.zeros(0)), z)
    states = np.asarray(jax.lax.scan(move, jnp.asarray([1.0, 1.0, 20.0]), None, 30_000)[1])
    effort = Effort(orbits=64, window=1024, settling=512, rounds=2)
    portrait = portrait_of(step, np.concatenate([states, [[0, 0, 0.5]]]), effort=effort)
    places = np.array([point.state for point in portrait.fixed_points])
    side = 72**0.5
    for place in ([0, 0, 0], [side, side, 27], [-side, -side, 27]):
        assert np.linalg.norm(places - place, axis=1).min() < 5e-3
    kinds = [point.kind for point in portrait.fixed_points]
    assert sorted(kinds) == ["saddle", "saddle-focus", "saddle-focus"]
    assert portrait.cycles == ()
    assert portrait.aperiodic is not None
    assert portrait.aperiodic.share == 1
    exponents = portrait.aperiodic.exponents / 0.02
    assert exponents[0] == pytest.approx(0.906, rel=0.1)
    assert exponents[1] == pytest.approx(0, abs=0.05)
    assert exponents.sum() == pytest.approx(-(10 + 1 + 8 / 3), rel=2e-3)


@pytest.mark.slow
def test_two_rhythms_are_aperiodic_without_chaos():
    step = lambda z, u: jnp.concatenate([stuart_landau(z[:2], u[:2]), stuart_landau(z[2:], u[2:])])
    states = np.concatenate([disc(100, 1.3), disc(100, 1.3, seed=1)], axis=1)
    portrait = portrait_of(step, states, [0.05, 16.6, 0.05, 16.6 * 2**0.5], LITTLE)
    assert portrait.cycles == ()
    assert portrait.aperiodic is not None
    assert portrait.aperiodic.share == 1
    np.testing.assert_allclose(portrait.aperiodic.exponents, [0, 0, -0.1, -0.1], atol=2e-3)


@pytest.mark.slow
def test_a_centre_has_no_limit_cycle():
    portrait = portrait_of(stuart_landau, disc(100, 1.0), [0.0, 30.5], LITTLE)
    assert portrait.cycles == ()
    assert portrait.neutral == 1
    assert [point.kind for point in portrait.fixed_points] == ["centre"]


@pytest.mark.parametrize(
    ("rate", "period", "exponent"), [(3.2, 2, None), (3.5, 4, None), (4.0, None, np.log(2))]
)
def test_the_logistic_map(rate, period, exponent):
    states = np.random.default_rng(0).uniform(0.05, 0.95, (100, 1))
    portrait = portrait_of(logistic, states, [rate], LITTLE)
    if period:
        (cycle,) = portrait.cycles
        assert cycle.period == period
        points = cycle.loop[:, 0]
        np.testing.assert_allclose(
            np.sort(rate * points * (1 - points)), np.sort(points), atol=1e-5
        )
        slope = np.prod(rate * (1 - 2 * points))
        assert cycle.multiplier == pytest.approx(abs(slope), rel=0.01)
    else:
        assert portrait.cycles == ()
        assert portrait.aperiodic is not None
        assert portrait.aperiodic.exponents[0] == pytest.approx(exponent, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.1, 10.0])
def test_coordinates_that_do_not_act_on_each_other(width):
    """Beside the logistic map a coordinate that halves or stays, spread less or more than it."""
    states = np.stack(np.meshgrid(np.linspace(0.1, 0.9, 7), width * np.linspace(-1, 1, 7)), -1)
    beside = lambda factor: lambda z, u: jnp.stack([logistic(z[0], u[0]), factor * z[1]])
    effort = Effort(orbits=16, window=512, settling=128, rounds=1, starts=32)
    halving = portrait_of(beside(0.5), states.reshape(-1, 2), [4.0], effort)
    assert halving.aperiodic is not None
    expected_exponents = [np.log(2), np.log(0.5)]
    np.testing.assert_allclose(halving.aperiodic.exponents, expected_exponents, rtol=0.05)
    staying = portrait_of(beside(1.0), states.reshape(-1, 2), [3.2], effort)
    assert (staying.cycles, staying.neutral) == ((), 1)


@pytest.mark.slow
def test_henon():
    """Fixed points by a quadratic; the exponents add up to log 0.3, the determinant's."""
    step = lambda z, u: jnp.stack([1 - 1.4 * z[0] ** 2 + z[1], 0.3 * z[0]])
    states = np.random.default_rng(0).uniform([-1, -0.25], [1, 0.25], (100, 2))
    portrait = portrait_of(step, states, effort=LITTLE)
    inside = np.max(np.roots([1.4, 0.7, -1]))
    assert portrait.fixed_points[0].state == pytest.approx([inside, 0.3 * inside], abs=1e-4)
    assert portrait.fixed_points[0].kind == "saddle"
    assert portrait.cycles == ()
    assert portrait.aperiodic is not None
    assert portrait.aperiodic.exponents[0] == pytest.approx(0.419, rel=0.03)
    assert portrait.aperiodic.exponents.sum() == pytest.approx(np.log(0.3), rel=1e-3)


@pytest.mark.slow
def test_rest_and_cycle_of_fitzhugh_nagumo():
    """Stable by the trace and determinant of the flow at the root of a cubic."""
    step = runge_kutta(fitzhugh_nagumo, 0.5)
    states = np.random.default_rng(0).uniform([-2, -0.8], [2, 1.6], (100, 2))
    for u in (0.0, 0.25, 0.5, 1.0):
        roots = np.roots([-1 / 3, 0, 1 - 1 / 0.8, u - 0.7 / 0.8])
        v = roots[np.abs(roots.imag) < 1e-9].real.item()
        is_stable = 1 - v**2 - 0.08 * 0.8 < 0
        portrait = portrait_of(step, states, [u], LITTLE)
        (point,) = portrait.fixed_points
        assert point.state[0] == pytest.approx(v, abs=1e-3)
        assert point.is_attracting == is_stable
        assert point.share == float(is_stable)
        assert sum(cycle.share for cycle in portrait.cycles) == 1 - is_stable


def test_orbits_that_leave_are_counted():
    portrait = portrait_of(lambda z, u: 1.1 * z, disc(40, 1.0), effort=LITTLE)
    assert portrait.escaping == 1
    assert [point.kind for point in portrait.fixed_points] == ["unstable node"]


def in_coordinates(step: Map, matrix: np.ndarray, offset: np.ndarray) -> Map:
    """The same map in coordinates matrix z + offset."""
    there, back = (jnp.asarray(x, jnp.float32) for x in (matrix, np.linalg.inv(matrix)))
    shift = jnp.asarray(offset, jnp.float32)
    return lambda z, u: matmul(there, step(matmul(back, z - shift), u)) + shift


@pytest.mark.slow
def test_coordinates_do_not_matter():
    matrix, offset = np.array([[3.0, 1.0], [-20.0, 40.0]]), np.array([7.0, -100.0])
    plain = portrait_of(VAN_DER_POL, disc(100, 2.5), effort=LITTLE)
    with jax.numpy_dtype_promotion("strict"):
        step = in_coordinates(VAN_DER_POL, matrix, offset)
        other = portrait_of(step, disc(100, 2.5) @ matrix.T + offset, effort=LITTLE)
    assert other.cycles[0].period == pytest.approx(plain.cycles[0].period, rel=1e-3)
    np.testing.assert_allclose(other.fixed_points[0].state, offset, atol=1e-2)
    np.testing.assert_allclose(
        other.fixed_points[0].eigenvalues, plain.fixed_points[0].eigenvalues, atol=1e-4
    )


@pytest.mark.parametrize(
    ("step", "states", "u", "problem"),
    [
        (lambda z, u: z, np.zeros((5, 2)), (), "all the same"),
        (lambda z, u: z, np.zeros(5), (), r"expected \[N, d\]"),
        (lambda z, u: z, np.full((5, 2), np.nan), (), "5 of 5 visited states are not finite"),
        (lambda z, u: z[:1], disc(5, 1.0), (), "expected the next state"),
        (lambda z, u: z / 0, disc(5, 1.0), (), "is not finite"),
        (lambda z, u: z, disc(5, 1.0), [np.inf], "expected finite numbers"),
        (lambda z, u: z, disc(5, 1.0), [[0.0]], r"expected finite numbers \[m\]"),
    ],
)
def test_refusals(step, states, u, problem):
    with pytest.raises(ValueError, match=problem):
        portrait_of(step, states, u)


def test_an_effort_of_nothing_is_refused():
    with pytest.raises(ValueError, match="a window of 64 or more"):
        portrait_of(lambda z, u: z, disc(5, 1.0), effort=Effort(window=10))
