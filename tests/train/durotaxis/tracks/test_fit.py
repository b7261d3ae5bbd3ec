"""`python -m train.durotaxis fit`: known laws are recovered, and what does not fit is said."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from envs.durotaxis.tracks import events, spawning
from envs.durotaxis.tracks.spawning import Displacements
from envs.durotaxis.units import PIXELS, physical
from jaxrl.numerics.max_likelihood import DROP, Estimate, Profile
from train.durotaxis.tracks import (
    check,
    command,
    fitting,
    goodness,
    ground,
    pictures,
    recording,
    tables,
)
from train.durotaxis.tracks.fitting import Fit
from train.durotaxis.tracks.ground import law_ground
from train.durotaxis.tracks.recording import FRAMES, TRUTH
from train.durotaxis.tracks.report.cautions import colonies_lines, left_out_line, open_line
from train.durotaxis.tracks.report.numbers import Number, event_numbers, hill_band, spawning_numbers

GROUND = law_ground(**recording.EXAMPLE_GROUND)


def simulate(seed: int, **changes: float):
    """A recording, with other numbers of the law of spawning."""
    laws = TRUTH._replace(spawning=TRUTH.spawning._replace(**changes))
    register = recording.simulate_founded(jax.random.key(seed), laws, GROUND)
    return recording.tracks_of(register, FRAMES, 0.4, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def fit():
    """Tables and spawning fits of a few recordings; one compilation serves them all."""
    fits = [tables.tabulate(simulate(seed), GROUND) for seed in range(8)]
    compiled: Any = fitting._fit_spawning
    compiled.clear_cache()
    estimates = [fitting.fit_spawning(table.displacements, "directed") for table in fits]
    assert compiled._cache_size() <= 2  # fewer and more than 128 births
    return fits, estimates


@pytest.mark.slow
def test_the_law_of_spawning_is_recovered(fit):
    truth = np.array(
        [fitting.internal(name, x, "directed") for name, x in TRUTH.spawning._asdict().items()]
    )
    inside = [(e.low <= truth) & (truth <= e.high) for e in fit[1]]
    assert np.mean(inside) >= 0.85  # of 56 at 95 %: less in 1 of 700, were they independent
    assert np.sum(inside, axis=0).min() >= 5


@pytest.mark.slow
def test_estimate_and_intervals_are_those_of_scipy(fit):
    """In double precision, with another search and numbers of its own for every other parameter."""
    table, estimate = fit[0][0], fit[1][0]
    data = table.displacements

    def terms(theta: np.ndarray) -> float:
        gamma, alpha, kappa, error = np.exp(theta[[0, 1, 4, 5]])
        radius = gamma / (1 + (alpha / data.stiffness.astype(float)) ** 2) + theta[2]
        s2 = error**2 * data.variance.astype(float) + max(theta[6], 0.0)
        d = data.distance.astype(float) * np.exp(1j * data.angle)
        pull = np.abs(d * radius / s2 + kappa * np.exp(1j * theta[3]))
        log_i0 = lambda z: np.log(spawning_i0e(z)) + z
        rows = -(np.abs(d) ** 2 + radius**2) / (2 * s2) - np.log(2 * np.pi * s2)
        rows += log_i0(pull) - log_i0(kappa)
        error_term = -data.freedom * np.log(error) - data.squares / (2 * error**2)
        return float(rows.sum() + error_term)

    from scipy.special import i0e as spawning_i0e

    best = terms(estimate.theta.astype(float))
    assert best == pytest.approx(float(estimate.log_likelihood), abs=0.05)
    climb = optimize.minimize(lambda x: -terms(x), estimate.theta, method="Nelder-Mead")
    assert -climb.fun < best + 0.02
    for name in ("gamma", "kappa", "scatter"):
        which = spawning.NAMES.index(name)
        for end in (estimate.low[which], estimate.high[which]):
            others = np.delete(estimate.theta.astype(float), which)
            fall = lambda x, which=which, end=end: best - terms(np.insert(x, which, end))
            nearest = optimize.minimize(
                fall, others, method="Nelder-Mead", options={"maxiter": 4000}
            )
            assert nearest.fun == pytest.approx(DROP, abs=0.15)


@pytest.mark.parametrize("num_tests", [4, 15, 20])
def test_a_recording_unlike_all_of_so_many_colonies_is_not_explained(num_tests):
    passed = [goodness.Test("other", 1.0, "")] * (num_tests - 4)
    recorded = check.Curves(*np.full((4, 6), 99.0))
    fewest = goodness.fewest_colonies(num_tests)
    for colonies, num_failures, num_lines in ((fewest, 4, 0), (fewest - 1, 0, 1)):
        simulated = check.Curves(*np.random.default_rng(0).normal(size=(4, colonies, 6)))
        tests = check.envelope_tests(recorded, simulated)
        assert len(goodness.failures([*passed, *tests])) == num_failures
        assert len(colonies_lines(colonies, num_tests)) == num_lines
    assert not colonies_lines(command.Options().simulations, num_tests)


@pytest.mark.slow
def test_more_colonies_take_no_more_memory_at_a_time():
    def memory(colonies: int) -> int:
        keys, room = jax.random.split(jax.random.key(0), colonies), jnp.zeros(256)
        start = (TRUTH, GROUND, room, room, np.int32(12), FRAMES, "directed")
        analysis: Any = check._simulate.lower(keys, *start).compile().memory_analysis()
        return analysis.temp_size_in_bytes

    assert memory(3 * check.AT_ONCE) < 1.1 * memory(check.AT_ONCE)


@pytest.mark.slow
def test_a_fit_of_the_example_explains_it(tmp_path, capsys):
    arguments = ["example", "--out", str(tmp_path / "fit"), "--simulations", "50"]
    assert command.main(arguments) == 0
    content = json.loads((tmp_path / "fit" / "fit.json").read_text())
    assert content["not_explained"] == []
    assert content["counts"]["births"] == 181
    rows = content["spawning"]
    for name, number in rows.items():
        assert number["low"] <= number["value"] <= number["high"]
        assert number["low"] <= getattr(TRUTH.spawning, name) * (
            180 / np.pi if name == "theta" else 1
        )
    for name in ("spawning.png", "profiles.png", "events.png", "check.png"):
        assert (tmp_path / "fit" / name).stat().st_size > 20_000
    assert "nothing speaks against the model" in capsys.readouterr().out
    assert command.main(arguments) == 2  # nothing is overwritten
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(("law", "by_noise"), [("directed", 10.0), ("isotropic", 0.0)])
def test_the_band_of_distances_is_as_wide_as_the_curvature_says(law, by_noise):
    """Where profiles of the parameters hardly change the distance, as along the ridge of three."""
    size, count = len(spawning.NAMES), 3
    theta = np.zeros(size, np.float32)
    theta[:3] = np.log(9.0), np.log(3.0), 1.0
    zeros, paths = np.zeros((size, count)), np.tile(theta, (size, count, 1))
    profile = Profile(zeros, zeros, paths)
    information = np.diag(np.array([100.0, 25.0, 400.0, *np.ones(size - 3)]))
    nothing = np.zeros(size)
    estimate = Estimate(theta, theta, theta, information, 0.0, nothing, profile)
    laws = Fit(law, estimate, estimate, estimate, (), (), True)
    births = np.full(4, 10.0, np.float32)
    data = Displacements(births, births, births, births, births, 1.0, 8.0)
    value, low, high = hill_band(laws, data, np.array([3.0]))  # where α is half of γ
    deviation = np.sqrt(4.5**2 / 100 + 4.5**2 / 25 + by_noise**2 / 400)
    np.testing.assert_allclose(value, 5.5 if law == "directed" else 4.5, rtol=1e-6)
    np.testing.assert_allclose(high - value, 1.96 * deviation, rtol=1e-4)
    np.testing.assert_allclose(value - low, 1.96 * deviation, rtol=1e-4)


@pytest.mark.slow
def test_even_ground_leaves_the_curve_open():
    ground = law_ground(False, 0.0, 3.0, 300, 200)
    register = recording.simulate_founded(jax.random.key(3), TRUTH, ground)
    tracks = recording.tracks_of(register, FRAMES, 0.4, np.random.default_rng(3))
    estimate = fitting.fit_spawning(tables.tabulate(tracks, ground).displacements, "directed")
    ends = {name: (low, high) for name, low, high in zip(
        spawning.NAMES, estimate.low, estimate.high, strict=True)}  # fmt: skip
    assert np.isinf(ends["gamma"][1])
    assert np.isinf(ends["alpha"]).all()
    assert ends["noise"][0] <= 0
    assert np.isfinite([*ends["theta"], *ends["kappa"], *ends["error"]]).all()


@pytest.mark.slow
def test_what_is_not_explained_is_said():
    """Cells that drift, and distances that grow with time."""
    tracks = simulate(0)
    rng = np.random.default_rng(0)
    assert goodness.rest_tests(tracks, rng)[0].p > 0.01
    age = tracks.frame - tracks.first[tracks.cell]
    drifting = tracks._replace(x=tracks.x + 0.1 * age)
    assert goodness.rest_tests(drifting, rng)[0].p < 0.01
    table = tables.tabulate(tracks, GROUND)
    late = tracks.first[table.child] > 20
    data = table.displacements
    data = data._replace(distance=np.where(late, 1.5, 1.0).astype(np.float32) * data.distance)
    table = table._replace(displacements=data)
    fit = fitting.fit(table, "directed", ("rear",), ())
    tests = goodness.displacement_tests(tracks, table, fit, GROUND, rng)
    failed = {test.name for test in goodness.failures(tests)}
    assert "distance and time" in failed
    named = {test.name: test.p for test in goodness.cause_tests(table, fit)}
    assert set(named) == {
        *(f"deaths and {x}" for x in ("age", "crowding", "stiffness")),
        *(f"births and {x}" for x in ("rear", "age", "crowding", "stiffness")),
    }


def test_an_envelope_ranks_a_curve_among_those_simulated():
    rng = np.random.default_rng(0)
    curves = rng.normal(size=(199, 30)).cumsum(axis=1)
    bundle = lambda x: check.Curves(*[x] * 4)
    usual = check.envelope_tests(bundle(curves[0]), bundle(curves[1:]))
    assert [test.p > 0.05 for test in usual] == [True] * 4
    far = check.envelope_tests(bundle(curves[0] + 40), bundle(curves[1:]))
    assert far[0].p == pytest.approx(1 / 199)


def flat_fit(law: str) -> Fit:
    """A fit of numbers that are 1, and log-odds of 0 that depend on stiffness."""
    size = len(spawning.NAMES)
    zeros = np.zeros(size)
    profile = Profile(np.zeros((size, 1)), np.zeros((size, 1)), np.zeros((size, 1, size)))
    estimate = Estimate(zeros, zeros, zeros, np.eye(size), 0.0, zeros, profile)
    odds = estimate._replace(**dict.fromkeys(("theta", "low", "high"), np.zeros(5)))
    return Fit(law, estimate, odds, odds, ("stiffness",), ("stiffness",), True)


def test_the_numbers_of_isotropic_colonies_are_no_distances():
    """On very stiff ground, without noise, children lie within 1 px + 2 γ on each axis."""
    law = spawning.Spawning(gamma=6.0, alpha=2.0, noise=0.0)
    middle, stiff = jnp.full(20_000, 500.0), jnp.full(20_000, 1e6)
    x, y = spawning.land(jax.random.key(0), law, "isotropic", middle, middle, stiff, 1000, 1000)
    np.testing.assert_allclose([np.std(x), np.std(y)], 1 + 2 * 6.0, rtol=0.02)
    meanings = {
        law: spawning_numbers(flat_fit(law), PIXELS)["gamma"].meaning
        for law in ("directed", "isotropic")
    }
    assert meanings["directed"] == "distance of children on very stiff ground"
    assert "children lie within 1 px + 2 R, one deviation" in meanings["isotropic"]


def test_events_are_told_and_drawn_in_units(tmp_path, monkeypatch):
    """A stiffness of 2 or 8 units of 4 kPa; the constant is of one unit, 4 kPa."""
    figures = []
    monkeypatch.setattr(pictures, "save", lambda figure, path: figures.append(figure))
    units, fit = physical(0.5, 4.0), flat_fit("directed")
    covariates = np.zeros((64, 5), np.float32)
    covariates[:, 0], covariates[:, 4] = 1, np.log2(np.where(np.arange(64) < 32, 2.0, 8.0))
    data = events.Events(covariates, np.arange(64) % 2, np.ones(64))
    none = np.zeros(0)
    nothing = Displacements(none, none, none, none, none, 0.0, 0.0)
    table = tables.Table(nothing, np.zeros(0, int), data, data, 0, 0, 0)
    pictures.draw_events(tmp_path, table, fit, units)
    panels = [axes for axes in figures[0].axes if "kPa" in axes.get_xlabel()]
    assert [axes.get_xlabel() for axes in panels] == ["stiffness (kPa) under the cell"] * 2
    for axes in panels:
        np.testing.assert_allclose(axes.lines[-1].get_xdata(), [8.0] * 4 + [32.0] * 4, rtol=1e-6)
    pictures.draw_events(tmp_path, table, fit._replace(death_causes=()), units)  # of no cause
    words = [text.get_text() for text in figures[1].legends[0].get_texts()]
    assert words == ["95 % interval", "estimate", "fitted law", "share seen, 90 % interval"]
    constant = event_numbers(fit.deaths, fit.death_causes, units)["constant"]
    assert constant.meaning.endswith("in the middle of 32, on ground of stiffness 4 kPa")
    own = event_numbers(fit.deaths, fit.death_causes, PIXELS)["constant"]
    assert own.meaning.endswith("in the middle of 32, on ground of stiffness 1")


def test_a_single_birth_is_one():
    line = left_out_line(1, "near an edge,")
    assert line == "1 birth near an edge, is left out of the law of spawning"
    assert left_out_line(2, "near an edge,").startswith("2 births near an edge, are left")


def test_the_legend_of_simulated_colonies_names_all_curves_and_fits(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(pictures, "save", lambda figure, path: figures.append(figure))
    recorded, simulated = (check.Curves(*[np.ones(shape)] * 4) for shape in (3, (5, 3)))
    pictures.draw_check(tmp_path, check.Check(recorded, simulated, 0.0, []), PIXELS)
    (legend,) = figures[0].legends
    labels = [text.get_text() for text in legend.get_texts()]
    drawn = sum(len(axes.lines) + len(axes.collections) for axes in figures[0].axes)
    assert len(labels) == drawn == 12
    assert labels.count("median of simulated") == 4
    assert legend.get_window_extent().width <= figures[0].bbox.width


def test_flags_of_the_ground_are_checked_once(monkeypatch):
    checked = []
    for module in (command, ground):
        monkeypatch.setattr(module, "refuse_flags", checked.append)
    monkeypatch.setitem(recording.EXAMPLE_GROUND, "width", 50)
    with pytest.raises(ValueError, match="give its size with --width"):
        command.analyse(command.Options(tracks="example"))
    assert len(checked) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "give TRACKS.csv, or example"),
        ("none.csv --slope 1 --base 1", "there is no file none.csv"),
        ("none.csv", "the stiffness of the ground is not known: give --slope and --base"),
        ("example --slope 1", "the example has a ground of its own"),
        ("none.csv --field-file f.npy --slope 1", "have no effect with --field-file"),
        ("none.csv --slope 1 --base 1 --field-range 1 2", "no effect without --field-file"),
        ("none.csv --slope 1 --base 1 --deaths hunger", "invalid choice 'hunger'"),
        (
            "none.csv --slope 1 --base 1 --stiffness-unit 2",
            "--stiffness-unit has no effect without --pixel-size",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(line, message, capsys):
    assert command.main(line.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "low", "high", "line"),
    [
        ("theta", -np.inf, np.inf, "theta is not known at all: the data allow all directions"),
        ("theta", -40.0, 0.0, ""),
        ("alpha", 0.0, np.inf, "alpha is not known at all: the data allow all between 0 and ∞"),
        ("gamma", 8.5, np.inf, "gamma has no upper end: the data allow any value above 8.5"),
        ("noise", 0.0, 2.0, "noise has no lower end above 0: it may be 0, and 2 at most"),
        ("kappa", 1.0, 2.0, ""),
    ],
)
def test_an_interval_without_an_end_is_told_as_what_it_is(name, low, high, line):
    """A direction has all of them or an interval; it has no upper end that others may lack."""
    assert open_line(name, Number(1.0, low, high, "", "")) == line
    in_unit = open_line(name, Number(1.0, low, high, "µm", ""))
    assert in_unit == line.replace("8.5", "8.5 µm").replace("and 2", "and 2 µm")
