"""Windows and scores of recorded episodes, and what simple models make of them."""

from typing import Any

import jax
import numpy as np
import pytest

from train.vector_field.data import episodes, recordings
from train.vector_field.data.recordings import Data
from train.vector_field.experiment.held_out import SKIPPED
from train.vector_field.recorded import baselines


def counting_episodes(*lengths: int) -> Data:
    """y counts on through all episodes, u is half a step later."""
    ends = np.cumsum(lengths)
    rows = [
        np.arange(end - n, end, dtype=float)[:, None] for end, n in zip(ends, lengths, strict=True)
    ]
    return recordings.join_episodes([(row, row + 0.5) for row in rows])


@pytest.mark.parametrize("lengths", [(100,), (100,) * 5, (30, 70, 100, 40, 90)])
def test_the_last_part_is_kept_apart(lengths):
    data = counting_episodes(*lengths)
    training, held_out = episodes.split(data, 0.2, 10)
    both = [part.y[part.observed] for part in (training, held_out)]
    np.testing.assert_array_equal(np.concatenate(both), np.arange(sum(lengths)))
    assert len(both[1]) == (20 if len(lengths) == 1 else lengths[-1])


def test_what_is_too_short_or_empty_is_refused():
    message = "only 20 steps in a row in the held-out data, 1 of 1 episode; .* or choose another --"
    with pytest.raises(ValueError, match=message):
        episodes.split(counting_episodes(100), 0.2, 21)
    with pytest.raises(ValueError, match="only 0 steps in a row in the training data, 0 of 2"):
        episodes.split(counting_episodes(100, 100), 0.9, 21)
    data = counting_episodes(100)
    data.observed[:, 80:] = False
    with pytest.raises(ValueError, match="no values in the held-out data"):
        episodes.split(data, 0.2, 10)
    data = counting_episodes(100)
    data.y[:, :80] = 3
    with pytest.raises(ValueError, match="constant in every channel of the training data"):
        episodes.split(data, 0.2, 10)


def test_forecasts_are_scored_where_y_changes():
    """At all numbers of steps ahead; otherwise R² would be NaN, and end the training."""
    data, ahead = counting_episodes(70), 40
    episodes.refuse_unscored(data, ahead)
    data.y[:, 60:] = 0  # where steps are 40 ahead; steps 9 ahead reach from 29 to 69
    episodes.refuse_unscored(data, 9)
    with pytest.raises(ValueError, match="no values in the held-out data that differ, after"):
        episodes.refuse_unscored(data, ahead)


def draw_windows(data: Data, length: int, count: int):
    draw = jax.jit(lambda key: episodes.sample(data, length, count, key))
    return jax.device_get(draw(jax.random.key(0)))


def test_windows_are_stretches_with_the_input_before_each_observation():
    """Before y there must be the u of one step less; an episode of 4 is one window."""
    windows = draw_windows(counting_episodes(30, 4, 20), 6, 2_000)
    assert windows.observed is None
    begins = windows.y[:, 0, 0]
    assert set(begins) == {*range(25), 30, *range(34, 34 + 15)}  # every start, and no other
    share = np.mean(begins == 30)
    assert abs(share - 1 / 41) < 0.015
    for y, before, valid in zip(
        windows.y[..., 0], windows.before[..., 0], windows.valid, strict=True
    ):
        assert valid.sum() == (4 if y[0] == 30 else 6)
        np.testing.assert_array_equal(np.diff(y[valid]), 1)
        starts = np.isin(y, [0, 30, 34])
        np.testing.assert_array_equal(before[valid & starts], 0)
        np.testing.assert_array_equal(before[valid & ~starts], y[valid & ~starts] - 0.5)


def test_windows_say_what_is_missing():
    data = counting_episodes(30, 20)
    data.observed[0, 7] = False
    windows = draw_windows(data, 6, 500)
    np.testing.assert_array_equal(windows.observed, windows.y != 7)


def noisy_oscillation(seed: int, *lengths: int) -> Data:
    """An oscillation of which three mixtures are recorded, pushed by an input."""
    rng = np.random.default_rng(seed)
    turn, pairs = 0.97 * np.array([[0.98, -0.2], [0.2, 0.98]]), []
    mix = np.random.default_rng(5).normal(size=(2, 3))
    for length in lengths:
        z, rows = rng.normal(size=2), []
        u = np.repeat(rng.choice([-1.0, 1.0], (length // 8 + 1, 1)), 8, 0)[:length]
        for push in u:
            rows.append(z @ mix + 3)
            z = turn @ z + 0.3 * push + 0.02 * rng.normal(size=2)
        pairs.append((np.array(rows) + 0.02 * rng.normal(size=(length, 3)), u))
    return recordings.join_episodes(pairs)


def r2_by_loops(data: Data, expected: np.ndarray) -> np.ndarray:
    ahead, scores = expected.shape[2] - 1, []
    for k in range(ahead + 1):
        channel_r2 = []
        for n in range(data.y.shape[2]):
            pairs = [
                (data.y[e, t + k, n], expected[e, t, k, n])
                for e, length in enumerate(data.lengths)
                for t in range(SKIPPED, length - ahead)
                if data.observed[e, t + k, n]
            ]
            y, guess = np.array(pairs).T
            channel_r2.append(1 - np.sum((y - guess) ** 2) / np.sum((y - y.mean()) ** 2))
        scores.append(np.mean(channel_r2))
    return np.array(scores)


@pytest.mark.slow
def test_r2_of_unequal_episodes_with_gaps():
    data = noisy_oscillation(0, 60, 45, 80)
    data.observed[0, 30:34] = data.observed[2, 25:60, 1] = False
    expected: Any = np.random.default_rng(1).normal(size=(3, 80, 6, 3)).astype(np.float32) + 3
    r2 = episodes.r2(data, expected)
    np.testing.assert_allclose(r2, r2_by_loops(data, expected), rtol=1e-3)
    y, u, observed = (np.pad(x, ((0, 0), (0, 9), (0, 0))) for x in data[:3])
    longer = Data(y, u, observed, data.lengths)
    padded: Any = np.pad(expected, ((0, 0), (0, 9), (0, 0), (0, 0)), constant_values=1e3)
    np.testing.assert_allclose(episodes.r2(longer, padded), r2, rtol=1e-5)


def test_channels_that_are_constant_where_they_are_scored_do_not_count():
    """Neither for nor against a forecast; their R² divides by 0."""
    data = noisy_oscillation(0, 60, 45, 80)
    data.y[..., 1] = 0.1
    expected: Any = np.random.default_rng(1).normal(size=(3, 80, 6, 3)).astype(np.float32) + 3
    varying_channels = data._replace(y=data.y[..., ::2], observed=data.observed[..., ::2])
    scores = episodes.r2(data, expected)
    np.testing.assert_allclose(scores, r2_by_loops(varying_channels, expected[..., ::2]), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("short", [1, 3, 5])
def test_an_aborted_trial_leaves_simple_models_as_they_are(short):
    """In the training data and the held-out data, where it has no forecast to be scored."""
    data, held_out, order = noisy_oscillation(0, 90, short, 70), noisy_oscillation(1, 80, short), 8
    both = noisy_oscillation(0, 90, short, 70).episodes(slice(0, 3, 2))
    for a, b in zip(
        baselines.regression(data, order), baselines.regression(both, order), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    scores = baselines.r2(data, held_out, 2, 12)
    assert scores["arx_order"] in baselines.ORDERS
    test = baselines.standardise(held_out.episodes(slice(1)), data)
    weights, p = baselines.fit_arx(baselines.standardise(data, data))
    expected = {
        "persistence": baselines.persistence(test, 12),
        "arx": baselines.arx(weights, p, test, 12),
    }
    for name, x in expected.items():
        np.testing.assert_allclose(scores[name][1:], r2_by_loops(test, x)[1:], rtol=1e-3)


def test_many_short_trials_do_not_favour_a_long_past():
    """White noise, whose best order is 1; the longer the past, the fewer the errors to add up."""
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=(9, 2)), np.zeros((9, 1))) for _ in range(600)]
    errors = {}
    for p in baselines.ORDERS:
        x, y, _ = baselines.regression(recordings.join_episodes(pairs), p)
        cut = len(x) - len(x) // 5
        weights = np.linalg.lstsq(x[:cut], y[:cut], rcond=None)[0]
        errors[p] = np.mean((y[cut:] - x[cut:] @ weights) ** 2)
    _, order = baselines.fit_arx(recordings.join_episodes(pairs))
    assert order == min(errors, key=lambda p: errors[p])


@pytest.mark.slow
def test_simple_models_where_the_truth_is_linear():
    """The linear-Gaussian model is the truth; persistence cannot be right for long."""
    r2 = baselines.r2(noisy_oscillation(0, 400, 300), noisy_oscillation(1, 200), 2, 12)
    assert r2["linear_gaussian"][10] > 0.9
    assert r2["arx"][1] > 0.9
    assert r2["arx"][10] > 0.7 > 0.3 > r2["persistence"][10]
    assert r2["arx_order"] in baselines.ORDERS
    assert np.isnan(r2["persistence"][0])
    assert np.isnan(r2["arx"][0])


def test_arx_is_least_squares_and_forecasts_step_by_step():
    data, order, ahead = noisy_oscillation(0, 90, 70), 2, 4
    weights = baselines.least_squares(*baselines.regression(data, order))
    rows, targets = [], []
    for e, length in enumerate(data.lengths):
        for t in range(order, length):
            past = [x for i in (1, 2) for x in (*data.y[e, t - i], *data.u[e, t - i])]
            rows.append([*past, 1.0])
            targets.append(data.y[e, t])
    best = np.linalg.lstsq(np.array(rows), np.array(targets), rcond=None)[0]
    np.testing.assert_allclose(np.array(rows) @ weights, np.array(rows) @ best, atol=1e-3)
    forecasts = baselines.arx(weights, order, data, ahead)
    for t in (5, 68, 88):
        y, u = [*data.y[0, : t + 1]], [*data.u[0, : t + 1]]
        for k in range(1, ahead + 1):
            guess = np.concatenate([y[-1], u[-1], y[-2], u[-2], [1.0]]) @ weights
            np.testing.assert_allclose(forecasts[0, t, k], guess, rtol=1e-5)
            y.append(guess)
            u.append(data.u[0, t + k] if t + k < 90 else np.zeros(1))


def test_persistence_holds_the_last_observation():
    data = noisy_oscillation(0, 40)
    data.observed[0, 10:13, 1] = data.observed[0, :2] = False
    expected = baselines.persistence(data, 2)
    np.testing.assert_array_equal(expected[0, :2], 0)
    np.testing.assert_array_equal(expected[0, 10:13, :, 1], data.y[0, 9, 1])
    np.testing.assert_array_equal(expected[0, 13:, 2], data.y[0, 13:])


@pytest.mark.slow
def test_missing_samples_take_little_from_simple_models():
    whole, held_out = noisy_oscillation(0, 400, 300), noisy_oscillation(1, 200)
    rng = np.random.default_rng(3)
    holes = whole._replace(observed=whole.observed & (rng.uniform(size=whole.y.shape) > 0.1))
    holes = holes._replace(y=np.where(holes.observed, holes.y, 0))
    r2 = baselines.r2(holes, held_out, 2, 12)
    assert r2["linear_gaussian"][10] > 0.85
    assert r2["arx"][1] > 0.85


def test_the_newest_steps():
    data = counting_episodes(30, 40, 20)
    for most, first in ((90, 0), (89, 30), (60, 30), (59, 70), (20, 70), (5, 85)):
        newest = baselines.newest(data, most)
        np.testing.assert_array_equal(newest.y[newest.observed], np.arange(first, 90))
        assert newest.lengths.sum() == 90 - first
