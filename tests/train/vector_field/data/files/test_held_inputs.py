"""Inputs with times of their own are held from row to row, and averaged over time in each step."""

import re

import numpy as np
import pytest

from train.vector_field.data.files import loading
from train.vector_field.data.files.held_inputs import Series, hold

PULSES = "0,0\n10.90,1\n11.10,0\n20.01,1\n20.02,0\n30.5,1\n40.5,0\n"


def write(tmp_path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def spikes_at(tmp_path, times, header: str = "unit,time_s") -> str:
    return write(tmp_path, "spikes.csv", header + "\n" + "".join(f"0,{t}\n" for t in times))


def test_short_pulses_count_by_how_long_they_last(tmp_path):
    path = spikes_at(tmp_path, [0.5, 99.5])
    data = loading.load(path, 1.0, inputs=(write(tmp_path, "u.csv", "time,light\n" + PULSES),))
    expected = np.zeros(100)
    expected[[10, 11, 20, 30, 40]] = 0.1, 0.1, 0.01, 0.5, 0.5
    expected[31:40] = 1
    np.testing.assert_allclose(data.u[0, :, 0], expected, atol=1e-7)


def test_the_mean_over_time_is_that_of_a_fine_grid():
    rng = np.random.default_rng(0)
    times = np.sort(rng.integers(-50, 1200, 60)) / 100  # some of them the same, some on edges
    values = rng.normal(size=(60, 2))
    fine = (np.arange(1000) + 0.5) / 100
    held = np.concatenate([np.zeros((1, 2)), values])[np.searchsorted(times, fine)]
    expected = held.reshape(20, 50, 2).mean(1)
    np.testing.assert_allclose(hold([Series(times, values)], np.arange(21) / 2), expected)


@pytest.mark.parametrize("start", [0.0, 3600.1, 1.7e9])
def test_a_row_for_each_step_stays_as_it_is(start):
    values = np.random.default_rng(1).normal(size=(500, 3))
    times = start + np.cumsum(np.full(500, 0.1)) - 0.1  # with the rounding of a sum
    edges = start + 0.1 * np.arange(501)
    np.testing.assert_array_equal(hold([Series(times, values)], edges), values)
    assert not hold([Series(times[:0], values[:0])], edges).any()


def test_bins_last_until_the_inputs_end(tmp_path):
    rows = "".join(f"{t},{t % 7}\n" for t in range(120))
    inputs = write(tmp_path, "u.csv", "time,light\n" + rows)
    data = loading.load(spikes_at(tmp_path, [0.5, 59.5]), 1.0, inputs=(inputs,))
    np.testing.assert_array_equal(data.u[0, :, 0], np.arange(120) % 7)
    np.testing.assert_array_equal(np.flatnonzero(data.y[0, :, 0]), [0, 59])


def test_times_in_another_unit_are_converted(tmp_path):
    path = spikes_at(tmp_path, [0.5, 19.5])
    inputs = write(tmp_path, "u.csv", "time (ms),light\n0,0\n10900,1\n11100,0\n")
    light = loading.load(path, 1.0, inputs=(inputs,)).u[0, :, 0]
    np.testing.assert_allclose(light[[10, 11]], 0.1, atol=1e-7)
    assert np.count_nonzero(light) == 2
    in_ms = write(tmp_path, "ms.csv", "unit,spike_time_ms\n0,500\n0,19500\n")
    seconds = write(tmp_path, "u.csv", "t_s,light\n0,0\n10.9,1\n11.1,0\n")
    np.testing.assert_array_equal(loading.load(in_ms, 1e3, inputs=(seconds,)).u[0, :, 0], light)
    minutes = write(tmp_path, "m.csv", f"Time (min),light\n0,0\n{10.9 / 60},1\n{11.1 / 60},0\n")
    same = loading.load(in_ms, 1e3, inputs=(minutes,)).u[0, :, 0]
    np.testing.assert_allclose(same, light, atol=1e-7)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,0\n109,1\n111,0\n", "no input but 0 is between 0 and 20.5, when all was observed"),
        ("109,1\n111,0\n", "no row of inputs is between 0 and 20.5, when all was observed, and th"),
        ("-9,1\n-1,0\n", "no row of inputs is between 0 and 20.5"),
    ],
)
def test_inputs_at_another_time_than_spikes_are_refused(tmp_path, rows, message):
    path = spikes_at(tmp_path, [0.5, 19.5])
    with pytest.raises(ValueError, match=message):
        loading.load(path, inputs=(write(tmp_path, "u.csv", "time,light\n" + rows),))


def test_inputs_may_be_0_throughout(tmp_path):
    path = spikes_at(tmp_path, [0.5, 19.5])
    none = write(tmp_path, "u.csv", "time,light\n0,0\n30,0\n")
    assert not loading.load(path, inputs=(none,)).u.any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "time,light\n0,0\n2,1\n1,0\n",
            "time goes back at row 2 (counted from 0), from 2 to 1: sort the rows",
        ),
        ("time,light\n0,0\n,1\n", "time has 1 times that are not finite: give each row its time"),
        (
            "time,light\n0,x\n1,1\n",
            "column light has 'x' in row 0 (counted from 0); expected numbers",
        ),
        ("light,u\n0,0\n1,1\n", "there is no column of times; there are light, u"),
    ],
)
def test_what_is_wrong_with_a_file_of_inputs_names_that_file(tmp_path, text, message):
    inputs = write(tmp_path, "u.csv", text)
    expected = f"the inputs in {inputs} cannot be read ({message}"
    with pytest.raises(ValueError, match=re.escape(expected)):
        loading.load(spikes_at(tmp_path, [0.5, 3]), inputs=(inputs,))
