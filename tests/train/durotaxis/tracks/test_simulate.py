"""`python -m train.durotaxis simulate`: a file is the colony that it says, and can be read back."""

import numpy as np
import pytest

from train.durotaxis.tracks import recording, simulate_command
from train.durotaxis.tracks.files import formats
from train.durotaxis.tracks.ground import law_ground
from train.durotaxis.tracks.tracks import Rows


@pytest.mark.slow
def test_the_example_is_what_its_seed_simulates(tmp_path, capsys):
    path = tmp_path / "tracks.csv"
    assert simulate_command.main([str(path), "--seed", str(recording.EXAMPLE_KEY)]) == 0
    tracks, example = formats.read(str(path)), formats.read(str(recording.EXAMPLE))
    for name in ("cell", "frame", "parent", "first", "last"):
        np.testing.assert_array_equal(getattr(tracks, name), getattr(example, name))
    for name in ("x", "y"):  # two decimals, and programs of tests round otherwise
        np.testing.assert_allclose(getattr(tracks, name), getattr(example, name), atol=0.011)
    out = capsys.readouterr().out
    assert "193 cells in 40 frames, 181 births" in out
    assert f"fit {path} --slope 0.05 --base 0.5 --width 300 --height 200\n" in out
    assert simulate_command.main([str(path)]) == 2  # nothing is overwritten
    assert "exists already" in capsys.readouterr().err


@pytest.mark.slow
def test_flags_are_the_laws_of_the_tracks(tmp_path, capsys):
    """Births that are certain, deaths that are not to be had: cells double in every frame."""
    path = tmp_path / "tracks.csv"
    flags = "--frames 8 --founders 10 --births.constant 50 --births.crowding 0 --error 0 "
    flags += "--deaths.constant -50 --deaths.rear 0 --deaths.age 0 --deaths.crowding 0 "
    flags += "--gamma 6 --alpha 1e-3 --noise 0 --scatter 0 --kappa 1e6 --theta 90 --height 2000"
    assert simulate_command.main([str(path), *flags.split()]) == 0
    tracks = formats.read(str(path))
    count = 10 * 2**7  # more than the least register holds
    assert (len(tracks.parent), tracks.frames, tracks.num_deaths) == (count, 8, 0)
    assert tracks.notes[0].split("; ")[1] in capsys.readouterr().out
    alive = [int(np.sum((tracks.first <= t) & (t <= tracks.last))) for t in range(8)]
    assert alive == [10 * 2**t for t in range(8)]
    x, y = tracks.places
    child = np.flatnonzero((tracks.parent >= 0) & (y < 1900))  # none is held back at an edge
    parent = tracks.parent[child]
    np.testing.assert_allclose(y[child] - y[parent], 6, atol=0.05)
    np.testing.assert_allclose(x[child] - x[parent], 0, atol=0.05)


def test_places_that_errors_put_beyond_the_ground_are_at_its_edge():
    """Founders lie up to the edge, and `fit` refuses what is farther beyond than small errors."""
    ground = law_ground(False, 0.1, 1.0, 60, 50)
    rows = Rows(["0", "1"], np.zeros(2), np.array([-9.0, 3.5]), np.array([7.0, 58.0]), {})
    inside = simulate_command.on_ground(rows, ground)
    assert (inside.x.tolist(), inside.y.tolist()) == ([0.0, 3.5], [7.0, 50.0])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "expected a file to write: give TRACKS.csv"),
        ("none/tracks.csv", "there is no folder none"),
        ("tracks.csv --slope 1", "give --slope and --base of its law"),
        ("tracks.csv --spawning isotropic --kappa 3", "--kappa has no effect with"),
        ("tracks.csv --gamma 0", "--gamma"),
        ("tracks.csv --births.rear nan", "--births.rear"),
        ("tracks.csv --frames 1", "--frames"),
        ("tracks.csv --founders 100000", "more than 32,768 cells"),
    ],
)
def test_mistakes_are_told_in_one_line(flags, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert simulate_command.main(flags.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
