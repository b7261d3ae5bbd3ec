"""Tables that are one data set: every name is one channel, wherever it stands in a file."""

import numpy as np
import pytest

from train.vector_field.data.files import loading


def write_table(path, header: str, rows) -> str:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))
    return str(path)


def test_units_keep_their_channel_where_others_are_silent(tmp_path, capsys):
    """Counted spike by spike, by the name of the unit."""
    spikes = {
        "monday.csv": [("2", 0.1), ("10", 1.2), ("1", 2.3), ("2", 3.4)],
        "tuesday.csv": [("10", 0.1), ("2", 1.2), ("3", 2.3), ("10", 2.4), ("2", 3.4)],
    }
    paths = [write_table(tmp_path / name, "unit,time", rows) for name, rows in spikes.items()]
    data = loading.load(paths)
    expected, order = np.zeros((2, 4, 4)), ["1", "2", "3", "10"]
    for episode, rows in enumerate(spikes.values()):
        for unit, time in rows:
            expected[episode, int(time), order.index(unit)] += 1
    np.testing.assert_array_equal(data.y, expected)
    lines = capsys.readouterr().err
    assert f"{paths[0]}: no spikes of 1 unit of the other files, 3: taken as silent" in lines
    assert f"{paths[1]}: no spikes of 1 unit of the other files, 1: taken as silent" in lines


def test_units_of_which_none_is_in_both_files_are_sessions(tmp_path):
    paths = [
        write_table(tmp_path / f"{name}.csv", "unit,time", [(f"{name}{k}", k) for k in (1, 2)])
        for name in "ab"
    ]
    with pytest.raises(ValueError, match=r"has the units b1, b2 and .*a\.csv a1, a2, none of"):
        loading.load(paths)


def test_units_of_a_table_beside_numbered_ones_are_those_of_their_numbers(tmp_path, capsys):
    """Unit 1 is silent in the table, and as many have spikes there as there are in the arrays."""
    table = write_table(tmp_path / "a.csv", "unit,time", [(3, 0.5), (0, 1.5), (2, 2.5)])
    arrays = str(tmp_path / "b.npz")
    np.savez(arrays, spike_times=[0.5, 1.5], spike_units=[1, 2], u=np.zeros((3, 1)))
    expected = np.zeros((2, 3, 4))
    expected[0, [0, 1, 2], [3, 0, 2]] = expected[1, [0, 1], [1, 2]] = 1
    np.testing.assert_array_equal(loading.load([table, arrays]).y, expected)
    np.testing.assert_array_equal(loading.load([arrays, table]).y, expected[::-1])
    assert f"{table}: units are those of {arrays} with these" in capsys.readouterr().err
    named = write_table(tmp_path / "c.csv", "unit,time", [("b", 0.5), ("a", 1.5), ("c", 2.5)])
    np.testing.assert_array_equal(loading.load([named, arrays]).y[0].argmax(1), [1, 0, 2])
    assert f"{named}: a, b, c are taken for units 0 to 2 of {arrays}" in capsys.readouterr().err
    np.savez(arrays, spike_times=[0.5], spike_units=[1], u=np.zeros((3, 1)), num_units=4)
    with pytest.raises(
        ValueError, match=r"c\.csv names 3 units, a, b, c, and .*b\.npz has 4, by n"
    ):
        loading.load([named, arrays])


def test_two_names_of_one_number_are_no_one_unit(tmp_path):
    table = write_table(tmp_path / "a.csv", "unit,time", [("01", 0.5), ("1", 1.5), ("2", 2.5)])
    arrays = str(tmp_path / "b.npz")
    np.savez(arrays, spike_times=[0.5, 1.5], spike_units=[1, 2], u=np.zeros((3, 1)))
    assert loading.load(table).y.shape[-1] == 3  # by itself it has three units
    with pytest.raises(ValueError, match=r"a\.csv has the units 01 and 1, both number 1 beside "):
        loading.load([arrays, table])


def test_a_spike_needs_a_unit(tmp_path):
    path = write_table(tmp_path / "spikes.csv", "unit,time", [(1, 0.5), ("", 1.5)])
    with pytest.raises(ValueError, match="1 spike without a unit in column unit: leave them out"):
        loading.load(path)


def test_columns_are_matched_by_name(tmp_path, capsys):
    a, b, light, tone = np.random.default_rng(0).normal(size=(4, 12)).round(3)
    first = write_table(tmp_path / "1.csv", "time,a,b,stim_1,stim_2", _rows(a, b, light, tone))
    other = write_table(tmp_path / "2.csv", "time,b,stim_2,stim_1,a", _rows(b, tone, light, a))
    data = loading.load([first, other])
    np.testing.assert_array_equal(data.y[1], data.y[0])
    np.testing.assert_array_equal(data.u[1], data.u[0])
    assert "are taken for" not in capsys.readouterr().err
    renamed = write_table(tmp_path / "3.csv", "time,a,c,stim_1,stim_2", _rows(a, b, light, tone))
    data = loading.load([first, renamed])
    np.testing.assert_array_equal(data.y[1], data.y[0])
    line = f"{renamed}: a, c are taken for a, b of {first}, in this order"
    assert line in capsys.readouterr().err
    shifted = write_table(tmp_path / "4.csv", "time,b,c,stim_1,stim_2", _rows(b, a, light, tone))
    with pytest.raises(ValueError, match=r"has the columns b, c and .* a, b: b would be mixed up"):
        loading.load([first, shifted])


def test_inputs_of_spikes_are_matched_by_name(tmp_path):
    light, tone = np.random.default_rng(1).normal(size=(2, 12)).round(3)
    spikes = [write_table(tmp_path / f"{k}.csv", "unit,time", [(1, 0.5), (1, 11.5)]) for k in "ab"]
    inputs = [
        write_table(tmp_path / "u1.csv", "time,light,tone", _rows(light, tone)),
        write_table(tmp_path / "u2.csv", "time,tone,light", _rows(tone, light)),
    ]
    data = loading.load(spikes, inputs=inputs)
    np.testing.assert_array_equal(data.u[1], data.u[0])
    np.testing.assert_allclose(data.u[0], np.stack([light, tone], 1), rtol=1e-6)


def _rows(*columns: np.ndarray):
    return [(k, *values) for k, values in enumerate(zip(*columns, strict=True))]
