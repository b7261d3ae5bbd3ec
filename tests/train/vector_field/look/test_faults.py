"""What a first look sees: numbers against loops, and each fault against a clean record."""

import re

import numpy as np
import pytest

from train.vector_field.data import recordings
from train.vector_field.data.step_time import StepTime
from train.vector_field.look import facts
from train.vector_field.look.channel_faults import broken_counts
from train.vector_field.look.faults import faults

STEPS, CHANNELS = 3000, 6
RNG = np.random.default_rng(0)
PHASE = 2 * np.pi * np.arange(STEPS) / 25
CLEAN = np.cos(PHASE[:, None] + np.arange(CHANNELS)) + 0.5 * RNG.normal(size=(STEPS, CHANNELS))
COUNTS = RNG.poisson(0.5, (STEPS, CHANNELS)).astype(float)
INPUTS = np.repeat(RNG.normal(size=(STEPS // 20, 2)), 20, axis=0)
TIME = StepTime(0.002, "s")


def table_of(y, u=INPUTS, episodes: int = 1) -> facts.Table:
    pairs = list(zip(np.split(y, episodes), np.split(u, episodes), strict=True))
    data = recordings.join_episodes(pairs)
    values = np.where(data.observed, data.y, 0)
    is_count = np.all((values >= 0) & (values == np.round(values)), axis=(0, 1))
    return facts.table_of(data, is_count)


def lines_of(y, u=INPUTS, episodes: int = 1, time: StepTime = TIME) -> list[str]:
    table = table_of(np.array(y, float), np.array(u, float), episodes)
    channels = facts.channels_of(table)
    standard = facts.standardise(table, channels)
    return faults(table, channels, standard, facts.spectrum_of(table, standard), time)


def change(which, values, y=CLEAN) -> np.ndarray:
    y = y.copy()
    y[which] = values
    return y


def test_nothing_is_broken_in_clean_data():
    assert lines_of(CLEAN) == lines_of(COUNTS) == lines_of(COUNTS, 0 * INPUTS, episodes=3) == []
    gap = change((slice(900, 990),), np.nan)
    assert lines_of(gap) == []
    tails = np.random.default_rng(1).standard_t(2, CLEAN.shape)
    bursts = COUNTS + np.where(
        RNG.uniform(size=COUNTS.shape) < 0.005, RNG.poisson(25, COUNTS.shape), 0
    )
    for y in (RNG.normal(size=CLEAN.shape), np.round(tails, 1), np.clip(tails, -20, 20), bursts):
        assert not [line for line in lines_of(y) if "of just" in line]
    rare_pairs = change(column(2), 2.0 * (np.arange(STEPS) % 200 == 0), COUNTS)
    assert not [line for line in lines_of(rare_pairs) if "multiples" in line]
    counts_as_numbers = table_of(COUNTS)._replace(is_count=np.zeros(CHANNELS, bool))
    assert list(broken_counts(counts_as_numbers)) == []
    far_from_0 = 1e4 + np.round(CLEAN, 1)  # less than 100 values, all near the least one
    assert lines_of(far_from_0) == []
    whole = np.round(10 * CLEAN)  # of a converter, which rounds and also gives negative numbers
    assert lines_of(whole) == []


column = lambda k: (slice(None), k)
FAULTS = {
    "dead": (change(column(2), 3.0), "1 channel constant, dead or switched off (2)"),
    "dead, no whole number": (change(column(2), 3.5), "1 channel constant, dead or switched"),
    "empty": (change(column(1), np.nan), "1 channel without any value (1)"),
    "rare": (change(column(4), np.arange(STEPS) % 500 == 0, COUNTS), "fewer than 20 events"),
    "twin": (
        change(column(3), -2 * CLEAN[:, 5]),
        "the same signal in 1 pair of channels (3 and 5)",
    ),
    "twin unit": (change(column(3), COUNTS[:, 0], COUNTS), "in 1 pair of channels (0 and 3)"),
    "clipped": (np.minimum(CLEAN, [9, 9, 1, 9, 9, 9]), "1 channel clipped (2)"),
    "drift": (
        CLEAN + np.outer(np.linspace(0, 3, STEPS), [1, 0, 0, 0, 0, 1]),
        "drift in 2 channels (0, 5), most in",
    ),
    "outliers": (change(([5, 700], [1, 1]), 90.0), "2 outliers in 1 channel (1)"),
    "sentinel": (
        change((np.arange(7, 7 + 13 * 15, 15), 4), -999.0),
        "13 values of just -999 in 1 channel (4), far from all others",
    ),
    "filled": (
        change((slice(100, 105), 2), 0.0, CLEAN + 50),
        "5 values of just 0 in 1 channel (2), far from all others",
    ),
    "filled counts": (
        change((slice(100, 119), 2), -1e4, COUNTS + RNG.poisson(2.0, COUNTS.shape).astype(float)),
        "19 values of just -10000 in 1 channel (2)",
    ),
    "corrected": (
        change((slice(0, 90), 2), COUNTS[:90, 2] + 0.3, COUNTS),
        "almost counts in 1 channel (2)",
    ),
    "rates": (
        COUNTS * 12.5,
        "multiples of one number in 6 channels (0, 1, 2, 3, 4, 5), such as 12.5",
    ),
    "whole rates": (
        COUNTS * 50,
        "multiples of one number in 6 channels (0, 1, 2, 3, 4, 5), such as 50",
    ),
    "rate beside counts": (
        change(column(3), COUNTS[:, 3] * 20, COUNTS),
        "multiples of one number in 1 channel (3), such as 20",
    ),
    "artefact": (change(([5, 70],), 90.0), "most channels jump together at 2 steps (5, 70)"),
    "hum": (
        change(column(1), CLEAN[:, 1] + 2 * np.sin(2 * np.pi * 50 * 0.002 * np.arange(STEPS))),
        "hum of 50 Hz in 1 channel (1)",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_the_only_one_seen(name):
    y, message = FAULTS[name]
    (line,) = lines_of(y)
    assert message in line


def test_counts_in_units_of_their_deviation_are_told_and_are_not_clipped():
    rates = np.random.default_rng(2).poisson(0.7, COUNTS.shape)
    z_scores = ((rates - rates.mean(0)) / rates.std(0)).astype(np.float32)
    (line,) = lines_of(z_scores)
    step = f"{1 / rates[:, 0].std():.4g}"
    assert f"whole steps apart in 6 channels (0, 1, 2, 3, 4, 5), such as {step}, but" in line


def test_what_a_coarse_converter_gives_are_no_counts():
    assert lines_of(0.25 * np.round(4 * CLEAN)) == []


def test_an_outlier_of_a_short_record_is_seen():
    y = CLEAN[:400].copy()
    y[7, 0] = 1e6
    assert [x for x in lines_of(y, INPUTS[:400]) if "1 outlier in 1 channel (0)" in x]


def test_a_channel_of_few_events_is_a_rate_beside_others():
    y = change(column(2), 3.0 * (np.arange(STEPS) % 500 == 0), COUNTS)
    table = table_of(50 * y)
    assert not table.is_count.any()
    assert table.factors.tolist() == [50, 50, 150, 50, 50, 50]


def test_episodes_and_inputs_that_are_odd():
    busy = change((slice(2000, 3000),), 4 * COUNTS[2000:], COUNTS)
    (line,) = [x for x in lines_of(busy, episodes=3) if "episode" in x]
    assert "1 episode of other rates (2)" in line
    assert re.search(r"has (3\.\d|4) times its usual rate in episode 2", line)
    (line,) = lines_of(CLEAN, INPUTS * [1, 0] + [0, 2])
    assert "1 input constant but not 0 (1)" in line
    (line,) = lines_of(CLEAN, INPUTS[:, [0, 0]])
    assert "inputs go together (0 and 1)" in line
    unknown_time = lines_of(FAULTS["hum"][0], time=StepTime())
    assert unknown_time == []  # which frequency is the mains is not known then


def test_numbers_are_those_of_loops():
    y = change((slice(100, 130),), np.nan)
    y[1495:1505] = np.nan  # two gaps, as an episode ends within
    y[7, 2] = np.nan
    table = table_of(y, episodes=2)
    channels = facts.channels_of(table)
    for k in range(CHANNELS):
        values = [x for x in y[:, k] if not np.isnan(x)]
        expected = np.mean(values), np.std(values), min(values), max(values)
        np.testing.assert_allclose([x[k] for x in channels[:4]], expected, rtol=1e-5)
        assert channels.missing[k] == pytest.approx(1 - len(values) / STEPS)
    gaps = facts.gaps_of(table)
    assert gaps[:2] == (3, 30)
    assert gaps.share == pytest.approx(40 / STEPS)
    inputs = facts.inputs_of(table)
    np.testing.assert_allclose(inputs.hold, 20)
    step = np.ones((STEPS, 2))  # one change, and none
    step[:600, 0] = 0
    np.testing.assert_allclose(facts.inputs_of(table_of(y, step)).hold, [STEPS - 600, np.inf])
    np.testing.assert_allclose(facts.inputs_of(table_of(y, step, 5)).hold, [STEPS / 5, np.inf])
    pulses = np.zeros((STEPS, 2))  # of 10 steps, 1 of 10; and the same as a stair, never 0
    pulses[:, 0] = np.arange(STEPS) % 100 < 10
    pulses[:, 1] = 1 + np.arange(STEPS) // 10
    np.testing.assert_allclose(facts.inputs_of(table_of(y, pulses)).hold, [10, 10])
    standard = facts.standardise(table, channels)
    spectrum = facts.spectrum_of(table, standard)
    assert spectrum is not None
    peaks = spectrum.frequency[spectrum.power.argmax(0)]
    np.testing.assert_allclose(peaks, 1 / 25, atol=1 / 512)
    white = RNG.normal(size=(STEPS, 2))
    noise = facts.spectrum_of(table_of(white), white)
    assert noise is not None
    assert noise.power.mean() == pytest.approx(1, abs=0.1)  # white noise of variance 1


def test_a_channel_that_was_not_recorded_for_a_while_does_not_drift():
    rng = np.random.default_rng(0)
    y = 5 + rng.normal(size=(1000, 4))
    y[:400, 1] = np.nan
    assert not [line for line in lines_of(y, INPUTS[:1000]) if "drift" in line]
    y[:, 1] += np.linspace(0, 4, 1000)  # and is seen to drift where it was
    (line,) = [line for line in lines_of(y, INPUTS[:1000]) if "drift" in line]
    first, last = y[400:550, 1].mean(), y[850:, 1].mean()  # quarters of 12 stretches of 50 steps
    assert f"drift in 1 channel (1), most in 1, from {first:.3g} to {last:.3g}:" in line


def test_the_ends_of_a_drift_differ_in_print():
    """A voltage with a large offset drifted "from 1e+04 to 1e+04"."""
    y = 1e4 + np.random.default_rng(0).normal(size=(1000, 4))
    y[:, 2] += np.linspace(0, 4, 1000)
    (line,) = [line for line in lines_of(y, INPUTS[:1000]) if "drift" in line]
    first, last = y[:250, 2].mean(), y[750:, 2].mean()  # quarters of 20 stretches of 50 steps
    assert f"most in 2, from {first:.1f} to {last:.1f}:" in line


def test_an_episode_that_lacks_channels_has_its_usual_rate():
    counts = np.random.default_rng(1).poisson(2.0, (900, 4)).astype(float)
    counts[300:600, 1:] = np.nan
    assert not [x for x in lines_of(counts, INPUTS[:900], episodes=3) if "usual rate" in x]
    counts[300:600, 0] *= 4  # and another one, by what it has
    (line,) = [x for x in lines_of(counts, INPUTS[:900], episodes=3) if "usual rate" in x]
    rate = counts[300:600, 0].mean() / np.median(counts.reshape(3, 300, 4)[:, :, 0].mean(1))
    assert f"has {rate:.2g} times its usual rate in episode 1" in line
