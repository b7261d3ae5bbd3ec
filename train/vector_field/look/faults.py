"""What looks broken in recorded data, a line each: what was seen, and what to do about it.

Each check is a rule of thumb: the reader decides. Axes: N steps of all episodes in a row, n
channels, m inputs, E episodes, F frequencies.
"""

import warnings
from collections.abc import Iterator

import numpy as np

from train.host.numbers import quantity
from train.vector_field.data.step_time import StepTime
from train.vector_field.look.channel_faults import (
    TWIN,
    artefacts,
    broken_counts,
    clipped_channels,
    drifts,
    jumps,
    list_of,
    mean_of_known,
    outliers,
    silent_channels,
    twins,
)
from train.vector_field.look.facts import Channels, Spectrum, Table
from train.vector_field.look.sentinels import find_sentinels, sentinels

LINES_HZ = (50.0, 60.0)
LINE = 20.0
"""Power at the frequency of the mains over that beside it."""
RATES = 2.0
"""Ratio of two episodes' rates, in the median channel."""
SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3}


def faults(
    table: Table,
    channels: Channels,
    standard: np.ndarray,
    spectrum: Spectrum | None,
    time: StepTime,
) -> list[str]:
    """All lines; `standard` `[N, n]` are the channels with mean 0 and variance 1."""
    is_sentinel = find_sentinels(table, jumps(standard))
    others = table._replace(y=np.where(is_sentinel, np.nan, table.y))
    lines = [
        *silent_channels(table, channels),
        *twins(table, standard),
        *sentinels(table, is_sentinel),
        *clipped_channels(others),
        *drifts(table, channels),
        *outliers(others, standard),
        *broken_counts(table),
        *artefacts(standard),
        *line_noise(table, spectrum, time),
        *unequal_episodes(table),
    ]
    return [*lines, *input_faults(table)]


def line_noise(table: Table, spectrum: Spectrum | None, time: StepTime) -> Iterator[str]:
    """Narrow peaks at the frequency of the mains; needs the time of a step."""
    seconds = SECONDS.get(time.unit.lower())
    if spectrum is None or seconds is None:
        return
    hertz = spectrum.frequency / (time.length * seconds)
    for line in LINES_HZ:
        if line > hertz[-1]:
            continue
        at_line = np.abs(hertz - line) <= max(1.0, 1.5 * hertz[0])
        beside = (np.abs(hertz - line) <= 8 * max(1.0, hertz[0])) & ~at_line
        if at_line.any() and beside.any():
            power = spectrum.power[at_line].max(0), np.median(spectrum.power[beside], axis=0)
            ratio = np.nan_to_num(power[0] / power[1])  # NaN of channels that do not vary
            which = np.flatnonzero(ratio > LINE)
            if len(which):
                yield (
                    f"hum of {line:g} Hz in {quantity(len(which), 'channels')} ({list_of(which)}), "
                    f"{ratio.max():.0f} times what is beside it: take the line out by a notch "
                    "filter"
                )


def unequal_episodes(table: Table) -> Iterator[str]:
    """Episodes whose channels count much more or less than in the median episode."""
    if len(table.lengths) < 2 or not table.is_count.any():
        return
    rates = [mean_of_known(y)[table.is_count] for y in table.episodes(table.y)]
    rates = np.stack(rates)  # [E, n], NaN where an episode lacks a channel
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # channels or episodes without any value
        usual = np.nanmedian(rates, axis=0)
        ratio = np.nanmedian(rates[:, usual > 0] / usual[usual > 0], axis=1)
    odd = np.flatnonzero((ratio > RATES) | (ratio < 1 / RATES))
    if len(odd):
        e = odd[0]
        yield (
            f"{quantity(len(odd), 'episodes')} of other rates ({list_of(odd)}); the median channel "
            f"has {ratio[e]:.2g} times its usual rate in episode {e}: another bin width, or another"
            " state of the animal"
        )


def input_faults(table: Table) -> Iterator[str]:
    """Inputs that never change although they are not 0, and inputs that go together."""
    spread = np.ptp(table.u, axis=0)
    still = np.flatnonzero((spread == 0) & (table.u[0] != 0))
    if len(still):
        yield (
            f"{quantity(len(still), 'inputs')} constant but not 0 ({list_of(still)}): their effect "
            "cannot be told from the field"
        )
    moving = np.flatnonzero(spread > 0)
    if len(moving) > 1:
        similarity = np.triu(np.abs(np.corrcoef(table.u[:, moving], rowvar=False)), 1)
        first, second = np.nonzero(similarity > TWIN)
        if len(first):
            pairs = ", ".join(
                f"{moving[a]} and {moving[b]}" for a, b in zip(first, second, strict=True)
            )
            yield f"inputs go together ({pairs}): which of them acts cannot be told"
