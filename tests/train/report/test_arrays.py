"""Arrays inside a page, unpacked by a plain reading of how they are stored."""

import base64
import gzip

import numpy as np
import pytest

from train.report.arrays import Arrays


def unpack(text: str, place: dict) -> np.ndarray:
    """One array, as a browser makes it again."""
    raw = gzip.decompress(base64.b64decode(text))
    shape, bits = place["shape"], place["bits"]
    size, total = int(np.prod(shape[1:], dtype=int)), int(np.prod(shape, dtype=int))
    wide = bits // 8
    part = raw[place["offset"] : place["offset"] + total * wide]
    numbers = [int.from_bytes(part[i : i + wide], "little") for i in range(0, len(part), wide)]
    for i in range(size, total):
        numbers[i] = (numbers[i] + numbers[i - size]) % 2**bits
    if "low" in place:
        span = place["high"] - place["low"]
        numbers = [np.nan if x == 65535 else place["low"] + span * (x / 65534) for x in numbers]
    elif bits == 32:
        numbers = [x - 2**32 if x >= 2**31 else x for x in numbers]
    return np.array(numbers, float).reshape(shape)


WHOLE = [
    np.array([[0, 255], [3, 4], [255, 0]], np.uint8),
    np.array([True, False, True]),
    np.array([-(2**31), 5, -1, 2**31 - 1], np.int32),
    np.array([[70_000], [1]], np.int64),
    np.array([1, 300, 7], np.int16),
    np.zeros((0, 3), np.int32),
    np.array(7, np.int32),
]


def test_whole_numbers_come_back_as_they_were():
    arrays = Arrays()
    places = [arrays.add(x) for x in WHOLE]
    for place, expected in zip(places, WHOLE, strict=True):
        np.testing.assert_array_equal(unpack(arrays.text(), place), expected.astype(float))
        assert place["offset"] % 4 == 0


@pytest.mark.parametrize(
    "values",
    [
        np.array([[0.25, np.nan], [-3.0, 1e4]]),
        np.array([2.5, 2.5], np.float32),
        np.array([np.nan, np.nan]),
        np.array([-3e38, 3e38], np.float32),
        np.random.default_rng(0).normal(size=(50, 3)),
    ],
)
def test_fractions_come_back_to_half_a_step_of_their_range(values):
    arrays = Arrays()
    place = arrays.add(values)
    unpacked_values = unpack(arrays.text(), place)
    is_finite = np.isfinite(values)
    np.testing.assert_array_equal(np.isfinite(unpacked_values), is_finite)
    span = float(np.ptp(values[is_finite].astype(float))) if is_finite.any() else 0.0
    error = np.abs(unpacked_values - values.astype(float))[is_finite]
    assert (error <= 0.5001 * span / 65534 + 1e-12 * np.abs(values[is_finite].astype(float))).all()


def test_equal_arrays_are_stored_once():
    arrays = Arrays()
    first, again = arrays.add(np.arange(9)), arrays.add(np.arange(9))
    other = arrays.add(np.arange(9) + 1)
    assert first == again
    assert other["offset"] != first["offset"]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="32 bits"):
        Arrays().add(np.array([2**40]))
