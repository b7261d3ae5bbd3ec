"""What happened in tracks, against counts by hand and plain loops."""

from typing import Any

import jax
import numpy as np
import pytest
from PIL import Image

from envs.durotaxis.tracks import events
from envs.durotaxis.tracks.spawning import Displacements
from tests.train.durotaxis.tracks import track_files
from train.durotaxis.tracks import command, fitting, recording, tables
from train.durotaxis.tracks.files import formats
from train.durotaxis.tracks.ground import law_ground, measured_ground, refuse_outside
from train.durotaxis.tracks.report.cautions import soft_line
from train.durotaxis.tracks.tracks import Rows, assemble

GROUND = law_ground(False, 0.1, 1.0, 60, 50)


def read(tmp_path, text: str):
    (tmp_path / "tracks.csv").write_text(text)
    return formats.read(str(tmp_path / "tracks.csv"))


def test_the_birth_of_a_small_colony(tmp_path):
    """The mother's five frames all tell of the birth, the child's two as well."""
    table = tables.tabulate(read(tmp_path, track_files.OWN), GROUND)
    data = table.displacements
    np.testing.assert_allclose(data.distance, [4.0])
    np.testing.assert_allclose(data.angle, [0.0])
    np.testing.assert_allclose(data.stiffness, [2.0])
    np.testing.assert_allclose(data.variance, [1 / 5 + 1 / 2])
    assert (float(data.squares), float(data.freedom)) == (0.0, 2 * (4 + 1 + 4))
    assert (table.num_edge, table.num_short, table.num_twins) == (0, 0, 0)
    # Ten cells and frames before the last frame; one death, and one birth among nine survivors.
    assert (len(table.deaths.happened), table.deaths.happened.sum()) == (10, 1)
    assert (len(table.births.happened), table.births.happened.sum()) == (9, 1)
    (dead,) = table.deaths.covariates[table.deaths.happened == 1]
    np.testing.assert_allclose(dead, [1, 0, 1 / events.AGE, np.log2(3 / 32), np.log2(2.4)])


def test_frames_are_shared_out_among_births():
    """No frame of a cell is used twice, so errors of displacements are independent."""
    rng = np.random.default_rng(0)
    frames = np.arange(7.0)
    names, frame = ["a"] * 7 + ["b"] * 3 + ["c"] * 2, np.concatenate([frames, [2, 3, 4], [5, 6]])
    x, y = rng.normal(30, 3, 12), rng.normal(25, 3, 12)
    tracks = assemble("it", Rows(names, frame, x, y, {"b": "a", "c": "a"}))
    uses, num_short = tables.share_frames(tracks)
    assert num_short == 0
    np.testing.assert_array_equal(np.sort(np.concatenate([*uses.values()])), np.arange(12))
    assert {use: len(rows) for use, rows in uses.items()} == {
        (0, 1): 4, (0, 2): 3, (1, 1): 3, (2, 2): 2
    }  # fmt: skip
    child, mean, variance, squares, freedom = tables.measure(tracks, uses)
    np.testing.assert_array_equal(child, [1, 2])
    np.testing.assert_allclose(mean[0, 0], [x[:4].mean(), y[:4].mean()])
    np.testing.assert_allclose(variance, [1 / 4 + 1 / 3, 1 / 3 + 1 / 2])
    groups = [slice(0, 4), slice(4, 7), slice(7, 10), slice(10, 12)]
    expected = sum(len(x[g]) * (x[g].var() + y[g].var()) for g in groups)
    np.testing.assert_allclose([squares, freedom], [expected, 2 * (12 - 4)])


def test_births_near_an_edge_are_left_out(tmp_path):
    near = track_files.OWN.replace("10,20", "5,20").replace("14,20", "9,20")
    table = tables.tabulate(read(tmp_path, near), GROUND)
    assert (len(table.displacements.distance), table.num_edge) == (0, 1)
    with pytest.raises(ValueError, match=r"0 births with a parent \(1 near an edge left out\)"):
        fitting.fit(table, "directed", (), ())


def test_ground_without_stiffness_is_refused_and_told():
    """Before anything is fitted; zeros under some cells have no relative change."""
    one, none = np.ones(12, np.float32), np.zeros(0)
    empty: Any = events.Events(none, none, none)
    make = lambda stiffness: tables.Table(
        Displacements(one, one, np.float32(stiffness), one, one, np.float32(1), np.float32(12)),
        *(none, empty, empty, 0, 0, 0),
    )
    with pytest.raises(ValueError, match="is at most 0 under the parents of all births; exp"):
        fitting.fit(make([-2] * 11 + [0]), "directed", (), ())
    x, y = np.array([1.5, 11.5, 20.5]), np.full(3, 25.0)
    tracks = assemble(
        "it", Rows("abcabc", np.repeat([0.0, 1.0], 3), np.tile(x, 2), np.tile(y, 2), {})
    )
    assert command.steepness(tracks, law_ground(False, -0.1, 1.2, 60, 50)) == pytest.approx(
        np.median([0.1 / 1.1, 0.1 / 0.1])
    )
    assert "5 of 12 births have a parent on stiffness of 0 or less" in soft_line(
        make([0] * 5 + [1] * 7)
    )


def test_cells_beyond_the_ground_are_refused(tmp_path):
    with pytest.raises(ValueError, match="x from 10 to 400 px, and the ground goes from 0 to 60"):
        refuse_outside(read(tmp_path, track_files.OWN.replace("40,30", "400,30")), GROUND)
    refuse_outside(read(tmp_path, track_files.OWN.replace("40,30", "61.5,-1.5")), GROUND)
    with pytest.raises(ValueError, match=r"y from -2\.5 to 20 px, and the ground goes"):
        refuse_outside(read(tmp_path, track_files.OWN.replace("40,30", "40,-2.5")), GROUND)


def test_a_table_of_stiffness_is_interpolated(tmp_path):
    path = tmp_path / "afm.csv"
    path.write_text("x,stiffness\n0,1\n40,5\n")
    ground = measured_ground(str(path), None, None, (60, 50))
    np.testing.assert_allclose(
        ground.stiffness(np.array([10.2, 55.0]), np.array([3.0, 40.0])), [2.05, 5]
    )
    path.write_text("x,y,stiffness\n0,0,1\n60,0,7\n0,50,1\n60,50,7\n")
    ground = measured_ground(str(path), None, None, (60, 50))
    np.testing.assert_allclose(
        ground.stiffness(np.array([20.0]), np.array([25.0])), [3.05], atol=1e-5
    )
    for separator in (";", "\t", " "):
        path.write_text("x,stiffness,µm\n0,1,2\n40,5,2\n".replace(",", separator), "latin-1")
        ground = measured_ground(str(path), None, None, (60, 50))
        assert float(ground.stiffness(10.2, 3.0)) == pytest.approx(2.05)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,kPa\n0,1\n1,2\n", "has the columns x, kpa; expected a table with columns x, stiffness"),
        ("x,stiffness\n0,1\n", "has 1 point; expected a table"),
        ("x,stiffness\n0,1\n1_5,2\n", "has '1_5' in column x, row 2; expected a number with"),
        ("x,stiffness\n0,1\n,2\n", "has a point without a place, row 2"),
        ("x,stiffness\n0,-1\n1,2\n", "has stiffness from -1 to 2; expected none below 0"),
        ("x,stiffness\n0,1\n1,1e30\n", r"has values up to 1e\+30; expected stiffness, at most"),
        ("x,stiffness\n0,1\n1,\n", "has 1 value that is not finite"),
        ("x;stiffness\n0;1\n1;2,5\n", "has '2,5' in column stiffness, row 2; expected a number w"),
    ],
)
def test_other_tables_of_stiffness_are_refused(tmp_path, text, message):
    (tmp_path / "afm.csv").write_text(text)
    with pytest.raises(ValueError, match=r"afm\.csv " + message) as refused:
        measured_ground(str(tmp_path / "afm.csv"), None, None, (60, 50))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ("0,0,1\n30,30,4\n60,60,7", [1 + (20.5 + 25.5) / 20, 1 + (10.5 + 5.5) / 20]),  # a diagonal
        ("0,1,1\n30,30,4\n60,61,7", [1 + (20.5 + 25.5) / 20, 1 + (10.5 + 5.5) / 20]),  # rounded
        ("30,0,1\n30,25,3.5\n30,50,6", [3.55, 1.55]),
        ("0,0,1\n60,0,7\n0,60,7", [1 + (20.5 + 25.5) / 10, 1 + (10.5 + 5.5) / 10]),  # a plane
        ("9,9,3\n9,9,3", [3, 3]),
    ],
)
def test_stiffness_is_linear_between_points_on_a_line_and_between_three(tmp_path, points, expected):
    (tmp_path / "afm.csv").write_text(f"x,y,stiffness\n{points}\n")
    ground = measured_ground(str(tmp_path / "afm.csv"), None, None, (60, 50))
    np.testing.assert_allclose(ground.field[[25, 5], [20, 10]], expected, atol=0.05)


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("x,stiffness\n0,1\n20,2\n20,10\n20,3\n40,9\n", "3 points, places in px, x from 0 to 40,"),
        ("x,y,stiffness\n0,7,1\n20,7,2\n20,7,10\n20,7,3\n40,7,9\n", "3 points"),  # on a line
        ("x,y,stiffness\n0,0,1\n20,0,1\n20,0,9\n20,0,5\n0,50,1\n20,50,5\n", "4 points"),
    ],
)
def test_measurements_at_one_place_are_averaged(tmp_path, table, line, capsys):
    (tmp_path / "afm.csv").write_text(table)
    field = measured_ground(str(tmp_path / "afm.csv"), None, None, (60, 50)).field
    np.testing.assert_allclose(field[9, [0, 4, 9, 14]], [1.1, 1.9, 2.9, 3.9], rtol=1e-5)  # to 5
    output = capsys.readouterr().err
    assert line in output
    assert "; 3 measurements at places that were measured more than once are averaged\n" in output


def test_places_across_a_line_count_once_along_it(tmp_path):
    table = "x,y,stiffness\n0,9,1\n20,8,2\n20,10,8\n40,9,9\n"
    (tmp_path / "afm.csv").write_text(table)
    field = measured_ground(str(tmp_path / "afm.csv"), None, None, (60, 50)).field
    np.testing.assert_allclose(field[3, [4, 9, 14]], [1.9, 2.9, 3.9], rtol=1e-5)


def test_a_table_of_stiffness_has_the_unit_of_the_tracks(tmp_path, capsys):
    path = tmp_path / "afm.csv"
    path.write_text("x,y,stiffness\n0,0,1\n30,0,7\n0,25,1\n30,25,7\n")
    (tmp_path / "tracks.csv").write_text(track_files.OWN.replace("x,y", "x_um,y_um"))
    tracks = formats.read(str(tmp_path / "tracks.csv"), pixel_size=2.0)  # x from 5 to 20 px
    stiffness = lambda scale, tracks: float(
        measured_ground(str(path), scale, None, (60, 50), "right", tracks).stiffness(10.0, 7.0)
    )
    assert stiffness(1.0, tracks) == pytest.approx(3.1, abs=1e-5)
    assert stiffness(0.5, None) == pytest.approx(5.2, abs=1e-5)
    path.write_text("x,y,stiffness\n0,0,1\n60,0,7\n0,50,1\n60,50,7\n")
    assert stiffness(None, tracks) == pytest.approx(3.1, abs=1e-5)
    line = "places in µm, x from 0 to 60 and y from 0 to 50 (x from 0 to 30 and y from 0 to 25 px"
    assert line in capsys.readouterr().err
    assert stiffness(None, tracks._replace(pixel_size=None)) == pytest.approx(2.05, abs=1e-5)
    assert "places in px, x from 0 to 60 and y from 0 to 50, stiff" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("x,stiffness\n0,1\n30,5\n", "x from 10 to 40 px, and the ground's points go from 0 to 30"),
        ("x,y,stiffness\n0,0,1\n60,25,7\n", "y from 20 to 30 px, and the ground's points go fr"),
        ("x,y,stiffness\n0,9,1\n60,9,7\n", "from 9 to 9 in .*afm.csv: leave y out, shift y, or"),
        ("x,y,stiffness\n9,30,1\n40,30,7\n9,30,1\n40,19,7\n", ""),  # in the box, not in the hull
    ],
)
def test_cells_beyond_a_table_of_stiffness_are_refused(tmp_path, table, message):
    (tmp_path / "afm.csv").write_text(table)
    tracks = read(tmp_path, track_files.OWN)
    ground = lambda: measured_ground(
        str(tmp_path / "afm.csv"), None, None, (60, 50), "right", tracks
    )
    if not message:
        assert float(ground().stiffness(10.0, 20.0)) == 1
        return
    with pytest.raises(ValueError, match=message) as refused:
        ground()
    assert "\n" not in str(refused.value)


def test_cells_and_tables_in_um_are_compared_in_um(tmp_path):
    (tmp_path / "afm.csv").write_text("x,stiffness\n0,1\n30,5\n")
    tracks = read(tmp_path, track_files.OWN)
    tracks = tracks._replace(x=tracks.x / 2, y=tracks.y / 2, pixel_size=2.0)
    with pytest.raises(ValueError, match="x from 10 to 40 µm, and the ground's points go from 0"):
        measured_ground(str(tmp_path / "afm.csv"), None, None, (60, 50), "right", tracks)


@pytest.mark.parametrize(
    ("name", "scale", "greys", "message"),
    [
        ("gel.png", None, None, "say what stiffness black and white are with --field-range BLACK"),
        ("gel.npy", None, (1.0, 2.0), "--field-range tells the stiffness of black and white, but"),
        ("gel.tif", None, (1.0, 2.0), "--field-range tells the stiffness of black and white, but"),
        ("gel.npy", 9000.0, None, "cut it, or give a smaller --field-pixel-size"),
    ],
)
def test_mistakes_about_measured_ground_name_flags_of_fit(tmp_path, name, scale, greys, message):
    values, path = np.ones((3, 2), np.float32), tmp_path / name
    np.save(tmp_path / "gel.npy", values)
    Image.fromarray(values).save(tmp_path / "gel.tif")
    Image.fromarray(values.astype(np.uint8)).save(tmp_path / "gel.png")
    with pytest.raises(ValueError, match=message) as refused:
        measured_ground(str(path), scale, greys, (60, 50))
    assert "--env." not in str(refused.value)


@pytest.mark.slow
def test_laws_of_events_are_recovered():
    """Intervals of 24 colonies hold nearly all coefficients; one compilation serves them all."""
    compiled: Any = fitting._fit_events
    compiled.clear_cache()
    ground = law_ground(**recording.EXAMPLE_GROUND)
    inside = []
    for key in jax.random.split(jax.random.key(1), 24):
        register = recording.simulate_founded(key, recording.TRUTH, ground, frames=20, capacity=256)
        tracks = recording.tracks_of(register, 20, 0.4, np.random.default_rng(0))
        deaths = tables.tabulate(tracks, ground).deaths
        rows = np.arange(512) % len(deaths.happened)
        weight = np.float32(np.arange(512) < len(deaths.happened))
        deaths = events.Events(deaths.covariates[rows], deaths.happened[rows], weight)
        estimate = fitting.fit_events(deaths, ("rear", "crowding", "age"))
        assert estimate.theta[4] == 0
        inside.append(
            (estimate.low <= recording.TRUTH.deaths) & (recording.TRUTH.deaths <= estimate.high)
        )
    assert compiled._cache_size() <= 1  # 0 where JAX has forgotten it, as one of very many
    assert np.sum(inside, axis=0)[:4].min() >= 19  # of 24 at 95 %: fewer in 1 of 2,000
