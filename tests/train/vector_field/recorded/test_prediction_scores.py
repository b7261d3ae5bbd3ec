"""Scores of forecasts on cases made by hand, and of the baselines with their uncertainty."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.linear_gaussian import Params
from tests.recordings import particle_filter
from tests.recordings.systems import record
from tests.train.vector_field.recorded.forecast_parts import forecaster_of
from train.vector_field.data import episodes, recordings
from train.vector_field.data.recordings import Data
from train.vector_field.experiment.held_out import SKIPPED
from train.vector_field.recorded import baseline_forecasts, baselines
from train.vector_field.recorded import prediction_scores as scoring
from train.vector_field.recorded.prediction_scores import Forecasts, Starts, score

AHEAD = 12
IS_COUNT = np.array([True, False, True])


def noisy_channels(seed: int, *lengths: int) -> Data:
    """A channel of counts, one of numbers and another of counts, a tenth of them missing."""
    rng, pairs = np.random.default_rng(seed), []
    for length in lengths:
        y = rng.poisson(2, (length, 3))
        y = np.where(IS_COUNT, y, rng.normal(1, 3, (length, 3)))
        y[rng.random(y.shape) < 0.1] = np.nan
        pairs.append((y, rng.normal(size=(length, 1))))
    return recordings.join_episodes(pairs)


def guesses(data: Data, seed: int) -> Forecasts:
    """Any forecasts from every step, `[E, T, ...]`."""
    rng, shape = np.random.default_rng(seed), data.y.shape
    below = rng.random((*shape[:2], 2, shape[2]))
    at_most = below + (1 - below) * rng.random(below.shape)
    mean = rng.normal(1, 2, (*shape[:2], AHEAD + 1, shape[2]))
    return Forecasts(mean, below, at_most, rng.normal(size=shape))


def scores_of(data: Data, whole: Forecasts, training: Data) -> scoring.Scores:
    return score(training, data, forecaster_of(whole), IS_COUNT, AHEAD)


@pytest.mark.parametrize("block", [50, 10**7])
def test_scores_are_sums_over_all_that_is_observed(block, monkeypatch):
    """Against loops, and R² against the rule of the library, in blocks of any size."""
    monkeypatch.setattr(scoring, "BLOCK_VALUES", block)
    training, data = noisy_channels(0, 90), noisy_channels(1, 60, 25, 45, 33)
    data.y[:, SKIPPED + 5 :, 2] = 7  # constant from 5 steps ahead on
    whole = guesses(data, 2)
    scores = scores_of(data, whole, training)
    np.testing.assert_allclose(scores.r2, episodes.r2(data, jnp.asarray(whole.mean)), atol=1e-5)

    inside, gain = [[], []], []
    mean = np.where(training.observed, training.y, np.nan)
    variance, mean = np.nanvar(mean, (0, 1)), np.nanmean(mean, (0, 1), dtype=float)
    for e, length in enumerate(data.lengths):
        for t in range(SKIPPED, length - AHEAD):
            for i in range(3):
                for j, k in enumerate((1, 10)):
                    low, high = whole.below[e, t, j, i], whole.at_most[e, t, j, i]
                    covered_share = max(min(high, 0.95) - max(low, 0.05), 0) / (high - low)
                    inside[j] += [covered_share] if data.observed[e, t + k, i] else []
                if data.observed[e, t + 1, i]:
                    y = data.y[e, t + 1, i]
                    mean_log_likelihood = constant_log_likelihood(
                        y, mean[i], variance[i], IS_COUNT[i], training, i
                    )
                    gain.append(whole.log_likelihood[e, t, i] - mean_log_likelihood)
    np.testing.assert_allclose(scores.coverage, [np.mean(x) for x in inside])
    np.testing.assert_allclose(scores.gain, np.mean(gain), rtol=1e-5)


def constant_log_likelihood(y, mean, variance, is_count, training, i) -> float:
    """Log-likelihood of y when only mean and variance are known; half a count is added."""
    if not is_count:
        return -0.5 * ((y - mean) ** 2 / variance + math.log(2 * math.pi * variance))
    number = training.observed[..., i].sum()
    shifted = mean + 0.5 / number
    variance += 0.25 / number**2
    if variance <= 1.001 * shifted:
        return y * math.log(shifted) - shifted - math.lgamma(y + 1)
    size = shifted**2 / (variance - shifted)
    chance = math.lgamma(y + size) - math.lgamma(size) - math.lgamma(y + 1)
    return (
        chance + size * math.log(size / (size + shifted)) + y * math.log(shifted / (size + shifted))
    )


def test_what_was_constant_in_the_training_data_has_no_unit():
    """A sensor that was plugged in later, and a unit that fires at last.

    Nats of numbers are those of the other channels; neither rules the score of several sessions.
    """
    training, data = noisy_channels(0, 90), noisy_channels(1, 60, 45)
    training.y[..., 1:] = 0
    whole = guesses(data, 2)
    scores = scores_of(data, whole, training)
    without_numbers, without_both = (
        scores_of(data._replace(observed=data.observed & recorded), whole, training)
        for recorded in (np.array([True, False, True]), np.array([True, False, False]))
    )
    assert scores.gain == pytest.approx(without_numbers.gain, rel=1e-12)
    assert scores.weights.values == without_numbers.weights.values
    for name in ("spread", "error"):
        expected = getattr(without_both.weights, name)
        np.testing.assert_allclose(getattr(scores.weights, name), expected, rtol=1e-12)
    assert without_both.weights.values < scores.weights.values  # a silent unit has a rate, near 0


def test_the_truth_scores_one():
    data = noisy_channels(3, 80, 50)
    later = np.minimum(np.arange(80)[:, None] + np.arange(AHEAD + 1), 79)
    perfect = guesses(data, 0)._replace(mean=data.y[:, later])
    np.testing.assert_allclose(scores_of(data, perfect, data).r2, 1, atol=1e-6)


def test_what_cannot_be_scored_is_refused():
    data = noisy_channels(0, SKIPPED + AHEAD, 10)
    with pytest.raises(ValueError, match="no held-out episode is longer than 32 steps"):
        scores_of(data, guesses(data, 0), data)
    data = noisy_channels(0, 60)
    whole = guesses(data, 0)
    with pytest.raises(
        ValueError, match=r"below of the forecasts has shape \(28, 1, 3\), expected"
    ):
        scores_of(data, whole._replace(below=whole.below[:, :, :1]), data)
    with pytest.raises(ValueError, match="no training episode is long enough for a forecast 12"):
        baseline_forecasts.forecasters(noisy_channels(0, 30), data, 1, IS_COUNT, AHEAD)


def test_blocks_hold_every_start_once():
    starts = Starts(np.arange(11), np.arange(11) + 20)
    parts = list(scoring.blocks(starts, scoring.BLOCK_VALUES // 4))
    assert [count for _, count in parts] == [4, 4, 3]
    assert all(len(block.step) == 4 for block, _ in parts)
    counted = np.concatenate([block.episode[:count] for block, count in parts])
    np.testing.assert_array_equal(counted, starts.episode)


def noisy_rotation(seed: int, *lengths: int) -> Data:
    """A damped rotation seen by five channels of numbers, of offsets and units of their own."""
    rng, pairs = np.random.default_rng(seed), []
    loadings = np.random.default_rng(7).normal(size=(5, 2))
    move = 0.97 * np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    for length in lengths:
        z, rows, u = rng.normal(size=2), [], rng.normal(size=(length, 1))
        for t in range(length):
            rows.append((loadings @ z + 1.5 * rng.normal(size=5)) * np.arange(1, 6) + 10)
            z = move @ z + 0.2 * rng.normal(size=2) + np.array([0.3, 0]) * u[t]
        pairs.append((np.array(rows), u))
    return recordings.join_episodes(pairs)


@pytest.mark.slow
def test_baselines_cover_what_they_should_of_linear_data():
    """Intervals of 90 %; the R² are those of `baselines.r2`; what is learned gains."""
    training, held_out = noisy_rotation(0, *[1000] * 6), noisy_rotation(1, *[1000] * 5, 420)
    is_count = np.zeros(5, bool)
    scores, order = baseline_forecasts.scores(training, held_out, 2, is_count, 30)
    r2 = baselines.r2(training, held_out, 2, 30)
    assert order == r2["arx_order"]
    for name in baselines.NAMES:
        np.testing.assert_allclose(scores[name].r2, r2[name], atol=1e-5)
        np.testing.assert_allclose(scores[name].coverage, 0.9, atol=0.02)
    assert scores["persistence"].gain < 0
    assert min(scores["arx"].gain, scores["linear_gaussian"].gain) > 0.1


@pytest.mark.slow
def test_baselines_cover_what_they_should_of_counts():
    recording = record("stuart_landau", 4, small=True)
    data = recordings.join_episodes(
        [
            (y[:n], u[:n])
            for y, u, n in zip(recording.y, recording.u, recording.lengths, strict=True)
        ]
    )
    training, held_out = episodes.split(data, 0.2, 60)
    scores, _ = baseline_forecasts.scores(training, held_out, 2, recording.is_count, 30)
    for name in ("arx", "linear_gaussian"):
        np.testing.assert_allclose(scores[name].coverage, 0.9, atol=0.03)
        assert scores[name].gain > 0
    assert np.isfinite(scores["persistence"].gain)


def test_inputs_count_from_their_mean_unless_it_is_0_but_for_chance():
    """So that none of the simple models has to learn it."""
    rng = np.random.default_rng(0)
    y, u = rng.normal(size=(400, 3)), np.repeat(rng.choice([-1.0, 1.0], (20, 2)), 20, axis=0)
    around = lambda mean: recordings.join_episodes([(y, u + mean), (y[:90], u[:90] + mean)])
    assert u.mean() != 0  # by chance
    scaled = baselines.standardise(around(0), around(0))
    deviation = np.concatenate([u, u[:90]]).std(0)
    np.testing.assert_allclose(scaled.u[0], u / deviation, rtol=1e-6)
    for mean in (3.0, -1e3):
        other = baselines.standardise(around(mean), around(mean))
        centred = u - np.concatenate([u, u[:90]]).mean(0)
        np.testing.assert_allclose(other.u[0], centred / deviation, atol=1e-4)


def test_linear_forecasts_are_those_of_a_kalman_filter():
    """One state, one channel, in plain arithmetic: mean, place and density k steps ahead."""
    a, b, q, c, d, r = 0.9, 0.4, 0.2, 1.5, 0.3, 0.8
    full = lambda x: jnp.full((1, 1), x)
    first = Belief(jnp.zeros(1), full(1.0))
    params = Params(full(a), full(b), full(q), full(c), jnp.array([d]), jnp.array([r]), first)
    data = recordings.join_episodes([tuple(np.random.default_rng(0).normal(2, 3, (2, 70, 1)))])
    scales = baselines.scales(data)
    target = baseline_forecasts.Target(data, scales, np.array([False]), 10)
    scaled = baselines.standardise(data, data)
    forecaster = baseline_forecasts.linear(params, scaled, target)
    forecasts = forecaster(Starts(np.zeros(5, int), np.arange(30, 35)))
    m, P = 0.0, 1.0
    unit, mean = scales.deviation[0], scales.mean[0]
    for t in range(35):
        gain = P * c / (c * c * P + r)
        m, P = m + gain * (scaled.y[0, t, 0] - c * m - d), P - gain * c * P
        z, spread = m, P
        for k in range(11):
            if t >= 30:
                expected = mean + unit * (c * z + d)
                np.testing.assert_allclose(forecasts.mean[t - 30, k, 0], expected, rtol=1e-4)
            if t >= 30 and k in (1, 10):
                deviation = unit * math.sqrt(c * c * spread + r)
                standard = (data.y[0, t + k, 0] - expected) / deviation
                place = 0.5 * math.erfc(-standard / math.sqrt(2))
                j = (1, 10).index(k)
                np.testing.assert_allclose(forecasts.below[t - 30, j, 0], place, atol=1e-4)
                if k == 1:
                    density = -0.5 * standard**2 - math.log(deviation * math.sqrt(2 * math.pi))
                    log_likelihood = forecasts.log_likelihood[t - 30, 0]
                    np.testing.assert_allclose(log_likelihood, density, atol=1e-4)
            z, spread = a * z + b * scaled.u[0, t + k, 0], a * a * spread + q
        m, P = a * m + b * scaled.u[0, t, 0], a * a * P + q


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stuart_landau", "linear", "mixed", "missing"])
def test_a_true_model_covers_90_percent_and_gains_most(name):
    """On a small recording, scored as any model; no baseline comes near in likelihood."""
    recording = record(name, 1, small=True)
    lengths = recording.lengths
    data = recordings.join_episodes(
        [(y[:n], u[:n]) for y, u, n in zip(recording.y, recording.u, lengths, strict=True)]
    )
    training, held_out = episodes.split(data, 0.4, 60)
    y = np.where(held_out.observed, held_out.y, np.nan)
    filtered_states = particle_filter.filter_episodes(recording.model, y, held_out.u, particles=300)

    def forecaster(starts: Starts) -> Forecasts:
        forecast = particle_filter.forecast(
            recording.model, filtered_states, y, held_out.u, *starts, particles=100
        )
        log_likelihood = scoring.rows_at(filtered_states.log_predictive, starts, 1)
        return Forecasts(forecast.mean, forecast.below, forecast.at_most, log_likelihood)

    scores = score(training, held_out, forecaster, recording.is_count, 30)
    assert np.all((scores.coverage > 0.88) & (scores.coverage < 0.92)), scores.coverage
    assert scores.r2[0] > scores.r2[1] > scores.r2[30] - 0.05
    simple, _ = baseline_forecasts.scores(training, held_out, 2, recording.is_count, 30)
    assert scores.gain > max(x.gain for x in simple.values()) > 0
