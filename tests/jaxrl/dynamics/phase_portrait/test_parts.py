"""Parts of a portrait: kinds of fixed points, distances from data, closed loops, influence."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.phase_portrait import attractors, cycles, fixed_points, loops, rhythm
from jaxrl.dynamics.phase_portrait.influence import influences
from jaxrl.dynamics.phase_portrait.kinds import kind_of
from jaxrl.dynamics.phase_portrait.orbits import orthogonalise
from jaxrl.dynamics.phase_portrait.portrait import MOST, Portrait, portrait_of
from jaxrl.dynamics.phase_portrait.region import region_of
from jaxrl.dynamics.phase_portrait.summary import count, number, percentage, summary, words
from jaxrl.numerics.linalg import matmul
from tests.jaxrl.dynamics.phase_portrait.systems import LITTLE, disc, stuart_landau


def complex_pair(growth: float, angle: float) -> list[complex]:
    """A pair of eigenvalues."""
    return [growth * np.exp(1j * angle), growth * np.exp(-1j * angle)]


@pytest.mark.parametrize(
    ("eigenvalues", "kind"),
    [
        ([0.5], "stable point"),
        ([-0.5], "stable point"),
        ([1.1], "unstable point"),
        ([1.0], "neutral point"),
        ([0.0, 0.5], "stable node"),
        ([0.9, 0.9], "stable node"),
        (complex_pair(0.9, 1e-6), "stable node"),
        (complex_pair(0.9, 0.3), "stable spiral"),
        ([*complex_pair(0.9, 0.3), 0.2], "stable spiral"),
        ([1.2, 1.1], "unstable node"),
        (complex_pair(1.1, 0.3), "unstable spiral"),
        ([1.2, 0.8], "saddle"),
        ([-1.2, 0.8], "saddle"),
        ([*complex_pair(1.01, 0.3), 0.8], "saddle-focus"),
        ([*complex_pair(0.9, 0.3), 1.2], "saddle-focus"),
        (complex_pair(1.0, 0.3), "centre"),
        ([*complex_pair(1.0, 0.3), 0.8], "centre"),
        ([1.0, 0.8], "neutral point"),
    ],
)
def test_kinds(eigenvalues, kind):
    assert kind_of(np.array(eigenvalues, complex)) == kind


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_linear_maps(d):
    """z' = m + S diag(λ) S⁻¹ (z - m) + B u has its fixed point at m + (I - A)⁻¹ B u."""
    rng = np.random.default_rng(d)
    eigenvalues = np.array([0.5, 1.3, 0.9, 0.7, 0.8])[:d]
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0] + 0.2 * rng.normal(size=(d, d))
    matrix = basis @ np.diag(eigenvalues) @ np.linalg.inv(basis)
    effect, middle, u = rng.normal(size=(d, 2)), rng.normal(size=d), np.array([0.02, -0.01])
    a, b, m = (jnp.asarray(x, jnp.float32) for x in (matrix, effect, middle))
    step = lambda z, u: m + matmul(a, z - m) + matmul(b, u)
    portrait = portrait_of(step, middle + rng.normal(size=(60, d)), u, LITTLE)
    (point,) = portrait.fixed_points
    moves = np.linalg.solve(np.eye(d) - matrix, effect)
    np.testing.assert_allclose(point.state, middle + moves @ u, atol=1e-4)
    np.testing.assert_allclose(point.sensitivity, moves, rtol=1e-3, atol=1e-4)
    ordered = np.sort(eigenvalues)[::-1]
    np.testing.assert_allclose(point.eigenvalues, ordered, atol=1e-5)
    np.testing.assert_allclose(point.time_constants, -1 / np.log(ordered), rtol=1e-3)
    assert np.isnan(point.rotation_periods).all()
    assert point.kind == ("stable point" if d == 1 else "saddle")


def test_sensitivity_at_a_bifurcation_is_undefined():
    assert np.isnan(fixed_points.sensitivity(np.eye(2), np.ones((2, 1)))).all()


def test_distance_from_the_data():
    """The hull of a square is known; one standard deviation is its half side / √3."""
    side = np.linspace(-1, 1, 41)
    square = 5 + 2 * np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    region = region_of(square)
    unit = square[:, 0].std()
    states = np.array([[5, 5], [7, 7], [9, 5], [5, 2], [9, 9]])
    away = np.array([0, 0, 2, 1, 8**0.5]) / unit
    places = region.to_coordinates(states)
    np.testing.assert_allclose(region.to_states(places), states)
    np.testing.assert_allclose(region.distance_outside(places), away, atol=2e-3)
    np.testing.assert_allclose(region.nearest_distance(places), away, atol=1e-9)


def test_fixed_points_far_from_the_data_are_left_out():
    step = lambda z, u: z + 0.05 * (z - z**3)
    portrait = portrait_of(step, np.linspace(0.7, 1.2, 40)[:, None], effort=LITTLE)
    assert [round(float(point.state[0]), 3) for point in portrait.fixed_points] == [1]


def test_a_third_order_polynomial_is_interpolated_exactly():
    times = np.arange(12.0)
    path = np.stack([times**3 - 2 * times, times**2], -1)
    at = np.array([0.3, 4.7, 10.9])
    exact = np.stack([at**3 - 2 * at, at**2], -1)
    np.testing.assert_allclose(loops.interpolate(path, at, 4), exact)
    np.testing.assert_allclose(loops.interpolate(path, at), exact)


@pytest.mark.parametrize("period", [10.3, 57.7, 203.1])
def test_loops_that_go_round_twice(period):
    """A closed curve that crosses itself near the section, too."""
    phase = 2 * np.pi * np.arange(1500) / period
    path = np.stack([np.cos(phase) + 0.6 * np.cos(phase / 2), np.sin(phase)], -1)
    loop = loops.loop_of(path)
    assert loop is not None
    assert loop.period == pytest.approx(2 * period, rel=2e-3)


@pytest.mark.parametrize("period", [4.7123, 6.8284])
def test_curves_of_few_steps_a_lap(period):
    """The second harmonic is stronger than the first."""
    curve = lambda t: np.stack([0.3 * np.cos(t) + np.sin(2 * t), np.cos(2 * t)], -1)
    closed = rhythm.closed_curve(curve(2 * np.pi * np.arange(2000) / period), 61)
    assert closed is not None
    assert closed[0] == pytest.approx(period, rel=1e-4)
    away = np.linalg.norm(closed[1][:, None] - curve(np.linspace(0, 2 * np.pi, 5000)), axis=-1)
    assert away.min(1).max() < 0.02
    np.testing.assert_allclose(closed[1][0], closed[1][-1], atol=1e-9)


def test_what_is_no_loop():
    phase = 0.1 * np.arange(1500)
    round_ = np.stack([np.cos(phase), np.sin(phase)], -1)
    torus = np.stack([np.cos(phase), np.sin(phase), np.cos(phase / 2**0.5)], -1)
    assert loops.loop_of(round_) is not None
    assert loops.loop_of(torus) is None
    assert loops.loop_of(torus[::20]) is None
    assert loops.loop_of(round_ * np.exp(-phase / 300)[:, None]) is None
    assert loops.loop_of(np.zeros((1500, 2))) is None
    assert loops.loop_of(np.random.default_rng(0).normal(size=(1500, 2))) is None


def test_orthogonal_columns():
    matrix = np.random.default_rng(0).normal(size=(4, 4))
    lengths, columns = (np.asarray(x) for x in orthogonalise(jnp.asarray(matrix, jnp.float32)))
    np.testing.assert_allclose(columns.T @ columns, np.eye(4), atol=1e-6)
    np.testing.assert_allclose(lengths.prod(), abs(np.linalg.det(matrix)), rtol=1e-5)


def normal_form(z, u):
    """A Hopf bifurcation at u[0] = 0; u[1] does nothing, u[2] moves nothing in this record."""
    growth = u[0] - jnp.sum(z**2)
    return z + 0.1 * jnp.stack([growth * z[0] - z[1], z[0] + growth * z[1]]) + 0.0 * jnp.sum(u)


@pytest.fixture(scope="module")
def report():
    record = np.stack([np.linspace(-0.5, 0.6, 20), np.linspace(-1, 1, 20), np.ones(20)], -1)
    states = disc(60, 1.0)
    base = portrait_of(normal_form, states, [-0.4, 0.0, 1.0], LITTLE)
    return base, influences(normal_form, states, record, base, LITTLE)


@pytest.mark.slow
def test_a_bifurcation_is_reported_between_the_inputs_where_it_is(report):
    _, (first, second) = report
    assert [influence.component for influence in (first, second)] == [0, 1]
    assert [portrait.inputs[0] for portrait in first.portraits] == [-0.5, -0.4, 0.6]
    (change,) = first.changes
    # |1 + 0.1 (u ± i)| = 1; the interval from -0.4 to 0.6 was halved four times
    assert change.low[0] < 10 * (0.99**0.5 - 1) < change.high[0]
    assert change.high[0] - change.low[0] == pytest.approx(1 / 16)
    np.testing.assert_array_equal(change.low[1:], [0, 1])
    assert (change.before.stable_points, change.before.cycles) == (1, 0)
    assert (change.after.stable_points, change.after.cycles) == (0, 1)
    assert second.changes == ()


def test_summary_is_plain_and_says_times_twice(report):
    base, several = report
    content = json.loads(json.dumps(summary(base, several, 0.05), allow_nan=False))
    assert content["words"] == words(base) == "one stable spiral"
    (point,) = content["fixed_points"]
    assert point["rotation_period_time"] == pytest.approx(0.05 * point["rotation_period"])
    assert content["aperiodic"] is None
    (bifurcation,) = content["influences"][0]["bifurcations"]
    assert bifurcation["before"] == "one stable point"
    assert bifurcation["after"] == "one limit cycle"
    (cycle,) = content["influences"][0]["high"]["cycles"]
    assert cycle["period_time"] == pytest.approx(0.05 * cycle["period"])
    assert "period_time" not in summary(several[0].portraits[-1])["cycles"][0]


@pytest.mark.slow
def test_words():
    cycle = portrait_of(stuart_landau, disc(60, 1.3), [0.05, 16.6], LITTLE)
    assert words(cycle) == "one limit cycle, period 16.6 steps; one unstable spiral"
    assert words(cycle, lambda steps: f"{0.05 * steps:.2f} s").startswith(
        "one limit cycle, period 0.83 s"
    )
    empty = cycle._replace(cycles=(), fixed_points=())
    assert words(empty) == "no fixed point in the region that data visited"
    assert words(empty._replace(escaping=0.25)) == "25 % of visited states leave the region"
    assert [count(2, x) for x in ("saddle-focus", "centre")] == ["two saddle-foci", "two centres"]
    assert [number(x) for x in (0.8333, 16.64, 1342.0)] == ["0.833", "16.6", "1,340"]


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (np.zeros((5, 2)), r"expected finite numbers \[T, 3\]"),
        (np.full((5, 3), np.nan), "expected finite numbers"),
        (np.zeros((0, 3)), "is empty"),
    ],
)
def test_records_that_do_not_fit_are_refused(report, record, problem):
    with pytest.raises(ValueError, match=problem):
        influences(normal_form, disc(60, 1.0), record, report[0])


def circle_path(period: float, start: float, radius: np.ndarray | float = 1.0, steps: int = 1024):
    """`[T, 2]` round a circle, from an angle, a lap in so many steps."""
    angle = start + 2 * np.pi * np.arange(steps) / period
    return np.asarray(radius).reshape(-1, 1) * np.stack([np.cos(angle), np.sin(angle)], -1)


def cycles_of_paths(paths: list[np.ndarray], exponents: list[float]):
    """Cycles and the neutral share of orbits with these records and Lyapunov exponents."""
    path = np.stack(paths, axis=1)
    ends = attractors._classify(path, np.zeros(len(paths), bool), 1)
    region = region_of(path.reshape(-1, path.shape[2]))
    region = region._replace(mean=np.zeros(2), basis=np.eye(2), inverse=np.eye(2))
    return cycles.cycles_of(region, ends, np.tile(exponents, (len(paths), 1)))


RANDOM_ANGLES = np.random.default_rng(0).uniform(0, 2 * np.pi, 32)


@pytest.mark.parametrize("period", [7.5, 8.0, 3.0, 2.5])
def test_a_lap_of_a_rational_number_of_steps_is_one_cycle(period):
    """Each orbit repeats 15, 8, 3 or 5 points of its own of the circle that attracts them all."""
    paths = [circle_path(period, x, steps=128) for x in RANDOM_ANGLES]
    (cycle,), neutral = cycles_of_paths(paths, [0.0, -0.1])
    assert neutral == 0
    assert cycle.share == 1
    assert cycle.period == pytest.approx(period)
    assert cycle.multiplier == pytest.approx(np.exp(-0.1 * period))
    np.testing.assert_allclose(np.linalg.norm(cycle.loop, axis=1), 1, atol=2e-3)
    np.testing.assert_allclose(cycle.extent, 2, atol=0.03)


def test_circles_of_points_within_each_other_are_two_cycles_or_a_centre():
    paths = [circle_path(7.5, x, r, steps=128) for x in RANDOM_ANGLES[:16] for r in (1.0, 1.7)]
    both, neutral = cycles_of_paths(paths, [0.0, -0.1])
    np.testing.assert_allclose(sorted(x.extent.max() for x in both), [2, 3.4], atol=0.03)
    assert neutral == 0
    assert cycles_of_paths(paths, [0.0, 0.0]) == ((), pytest.approx(1))


def test_points_side_by_side_on_a_line_are_no_cycle():
    """z' = (-z₀, z₁ / 2): each orbit jumps between two points, neutral and without a curve."""
    signs = (-1.0) ** np.arange(128)
    places = np.random.default_rng(0).uniform(-1, 1, 24)
    paths = [np.stack([x * signs, 0 * signs], -1) for x in places]
    assert cycles_of_paths(paths, [0.0, -0.7]) == ((), pytest.approx(1))


@pytest.mark.parametrize("period", [2.005, 2.0202, 3.3, 8.5, 40.0, 40.3, 131.7])
def test_laps_that_still_come_nearer_to_a_cycle_drift(period):
    """r' = g r (1 - r²) in closed form, before and after it has come to the circle."""
    times, growth = np.arange(4096), 3e-4
    for start, drifts in ((0.6, True), (1.6, True), (0.99, False), (1.01, False), (1.0, False)):
        radius = (1 + (1 / start**2 - 1) * np.exp(-2 * growth * times)) ** -0.5
        path = circle_path(period, 0.3, radius, 4096)
        still = abs(radius[-1] - 1) / 2**1.5  # of the deviation, relative to the extent, 2
        assert drifts == (still > attractors.SETTLED)
        assert attractors.is_drifting(path, period) == drifts
    assert not attractors.is_drifting(circle_path(period, 0.3, 0.7), period)  # as round a centre


def test_a_percentage_is_written_plainly():
    texts = {0.005: "0.5 %", 0.2083: "21 %", 0.997: "99.7 %", 0.9999: "99.99 %", 1.0: "100 %"}
    assert {x: percentage(x) for x in texts} == texts
    assert percentage(0.0) == "0 %"
    assert percentage(0.3333, 3) == "33.3 %"
    assert percentage(0.00001234) == "0.0012 %"


def test_a_line_of_fixed_points_has_as_many_as_are_described_or_more():
    point = fixed_points.FixedPoint(
        *(np.zeros(2), "neutral point", np.array([1.0, 0.9]), np.zeros(2), np.zeros(2)),
        *(np.zeros((2, 0)), 0.0, 0.0, 0.0),
    )
    of = lambda number: Portrait(np.zeros(0), (point,) * number, (), None, 0.0, 0.0, 0.0)
    assert words(of(MOST)) == f"{MOST} or more neutral points"
    assert words(of(MOST - 1)) == f"{MOST - 1} neutral points"
    saddle = of(MOST)._replace(fixed_points=(point._replace(kind="saddle"), *of(MOST - 1)[1]))
    assert words(saddle) == f"one or more saddles; {MOST - 1} or more neutral points"
