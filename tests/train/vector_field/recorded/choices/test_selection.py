"""What is chosen by forecasts: dimensions, kind, prior and steps, without fitting anything."""

from dataclasses import replace

import numpy as np
import pytest

from train.vector_field.config import Config, Dynamics
from train.vector_field.presets import PRESETS
from train.vector_field.recorded.choices import selection, trials
from train.vector_field.recorded.choices.trials import Trial

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=1000)


def trial(dims: int, error: float, field: str = "rbf", spread: float = 0.01, **numbers) -> Trial:
    """A trial whose errors differ from those of others by a constant and a little noise."""
    errors = error + 0.3 * NOISE + spread * RNG.normal(size=1000)
    settings = {"prior": 0.3, "steps": trials.STEPS} | numbers
    return Trial(Dynamics(dims=dims, field=field, **settings), errors)  # pyright: ignore


def problem(channels: int = 20, **settings) -> trials.Problem:
    nothing = np.zeros(0)
    is_count = np.ones(channels, bool)
    return trials.Problem(Dynamics(**settings), is_count, *[nothing] * 5, 400)  # pyright: ignore


class Forecasts:
    """Answers trials from a table of errors, and remembers what was tried."""

    def __init__(self, errors: dict):
        self.errors, self.tried = errors, []

    def __call__(self, candidates) -> list[Trial]:
        self.tried += [(x.dims, x.field) for x in candidates]
        return [
            trial(x.dims, self.errors[x.dims, x.field], x.field, prior=x.prior, steps=x.steps)
            for x in candidates
        ]


def test_the_fewest_dimensions_that_forecast_as_well_are_chosen_and_more_are_not_tried():
    errors = {(1, "rbf"): 0.99, (2, "rbf"): 0.87, (3, "rbf"): 0.8699, (4, "mlp"): 0.88}
    run = Forecasts(errors)
    assert selection.choose_dims(problem(), run).dynamics.dims == 2
    assert run.tried == [(1, "rbf"), (2, "rbf"), (3, "rbf"), (4, "mlp")]


def test_more_dimensions_are_tried_while_they_help_but_no_more_than_channels():
    errors = {(d, "rbf" if d < 4 else "mlp"): 1 - 0.05 * d for d in selection.DIMENSIONS}
    assert selection.choose_dims(problem(), Forecasts(errors)).dynamics.dims == 5
    run = Forecasts(errors)
    assert selection.choose_dims(problem(channels=3), run).dynamics.dims == 3
    assert len(run.tried) == 3


def test_what_is_asked_for_is_not_tried_against_others():
    run = Forecasts({(3, "mlp"): 0.9})
    fixed_problem = problem(dims=3, field="mlp")
    assert selection.choose_dims(fixed_problem, run).dynamics == Dynamics(
        3, "mlp", prior=0.3, steps=200
    )
    chosen = trial(3, 0.9, "mlp")
    assert selection.choose_kind(fixed_problem, chosen, run) is chosen
    assert run.tried == [(3, "mlp")]


@pytest.mark.parametrize(("cubic", "kind"), [(0.8, "polynomial"), (0.89999, "linear")])
def test_a_linear_field_is_taken_if_no_other_one_is_better(cubic, kind):
    errors = {(2, "linear"): 0.9, (2, "polynomial"): cubic, (2, "mlp"): 0.95}
    chosen = selection.choose_kind(problem(), trial(2, 0.91), Forecasts(errors))
    assert chosen.dynamics.field == kind


def test_another_kind_may_need_fewer_dimensions():
    run = Forecasts({(d, "linear"): 0.9 if d > 1 else 0.95 for d in range(1, 6)})
    usual = trial(5, 0.9, "linear")
    assert selection.choose_fewer_dims(problem(), usual, run).dynamics.dims == 2
    assert run.tried == [(d, "linear") for d in (4, 3, 2, 1)]
    assert selection.choose_fewer_dims(problem(dims=5), usual, run) is usual


@pytest.mark.parametrize(
    ("early", "prior", "steps"), [(0.7, selection.NARROW_PRIOR, 140), (0.9, 0.3, 400)]
)
def test_a_fit_that_overfits_has_a_narrow_prior_and_ends_early(early, prior, steps):
    run = Forecasts({(2, "rbf"): early})
    chosen = selection.choose_strength(problem(), trial(2, 0.8), run)
    assert (chosen.prior, chosen.steps) == (prior, steps)


def test_errors_of_candidates_are_in_units_of_the_variance_whatever_the_offset():
    """In single precision a sum of 1,500 numbers near 1e6 is off by more than their spread."""
    rng = np.random.default_rng(0)
    y = (1_000_050 + 10 * rng.normal(size=(1500, 4, 3))).astype(np.float32)
    expected = (y + 5 * rng.normal(size=y.shape)).astype(np.float32)
    observed = rng.random(y.shape) < 0.9
    observed[..., 2] &= np.array([True, True, False, False])
    y[..., 0, 1] = 3  # what does not vary has no unit
    sums, counts = np.zeros(1500), np.zeros(1500)
    for a in range(4):
        for i in range(3):
            rows = observed[:, a, i]
            values = y[rows, a, i].astype(float)
            if len(values) and values.max() > values.min():
                sums[rows] += (values - expected[rows, a, i]) ** 2 / values.var()
                counts[rows] += 1
    errors = trials.relative_errors(y, observed, expected)
    np.testing.assert_allclose(errors, sums / np.maximum(counts, 1), rtol=1e-9)


def test_forecasts_that_run_away_are_never_as_good():
    y = np.random.default_rng(3).normal(size=(1000, 4, 3)).astype(np.float32)
    expected = np.zeros(y.shape)
    mean_errors = trials.relative_errors(y, y == y, expected)
    expected[::50, 3] = np.inf
    errors = trials.relative_errors(y, y == y, expected)
    assert errors[::50].tolist() == [np.inf] * 20
    assert not selection.is_as_good(errors, mean_errors)


def test_a_difference_counts_only_beyond_its_error():
    """It is one standard error of means of stretches, since neighbours in time are alike."""
    slow = np.repeat(RNG.normal(size=20), 50)
    assert selection.is_as_good(0.9 + 0.1 * slow - 0.1 * slow.mean(), np.full(1000, 0.9))
    assert not selection.is_as_good(0.95 + 0.1 * NOISE, np.full(1000, 0.9))
    assert not selection.is_as_good(np.full(1000, np.inf), np.full(1000, 0.9))
    assert selection.is_as_good(np.full(1000, np.inf), np.full(1000, np.inf))


def test_nothing_is_open_once_all_is_chosen():
    config = replace(PRESETS["recordings"].config, data=("FILE.npz",))
    assert selection.is_open(config)
    chosen = Dynamics(2, "rbf", prior=0.3, steps=400)
    assert not selection.is_open(replace(config, state_space=chosen))
    assert not selection.is_open(replace(Config(), data=("FILE.npz",)))


def test_the_table_tells_the_gradient_steps_that_were_taken():
    """A trial takes at most so many, however many the fit itself is to take."""
    tried = [trial(1, 0.5, steps=steps) for steps in (70, trials.STEPS, 1_000)]
    column = selection.table(tried, tried[0].dynamics).columns[3]
    assert list(column.cells) == ["70", str(trials.STEPS), str(trials.STEPS)]
