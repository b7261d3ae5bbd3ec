"""`--look`: what is printed and written, and what it says of files that do not fit together."""

import json

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from train.vector_field.data import recordings
from train.vector_field.data.step_time import StepTime
from train.vector_field.look import facts, look, picture
from train.vector_field.program import PROGRAM

RNG = np.random.default_rng(0)
COUNTS, INPUTS = RNG.poisson(0.7, (2, 150, 5)), RNG.normal(size=(2, 150, 1))


def look_at(capsys, *arguments: str) -> tuple[int, str, str]:
    code = look.main(PROGRAM, ["recordings", look.FLAG, *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_look_prints_draws_and_fits_nothing(tmp_path, capsys):
    counts = COUNTS.astype(float)
    counts[0, 40:50] = np.nan
    file = str(tmp_path / "day.npz")
    np.savez(file, y=counts, u=INPUTS, dt=0.02, time_unit="s")
    out = tmp_path / "out"
    code, text, _ = look_at(capsys, "--data", file, "--run.directory", str(out))
    assert code == 0
    assert "300 steps of 5 channels and 1 input, 2 episodes" in text
    assert "time of a step: 0.02 s, 6 s in all" in text
    assert "5 channels of counts" in text
    assert "1 gap without any value, the longest of 0.2 s" in text
    assert "nothing looks broken" in text
    assert sorted(x.name for x in out.iterdir()) == ["look.json", "look.png"]
    content = json.loads((out / "look.json").read_text())
    assert content["lengths"] == [150, 150]
    assert content["faults"] == []
    assert len(content["channels"]["mean"]) == 5
    pixels = np.asarray(Image.open(out / "look.png").convert("L"), float)
    assert pixels.shape[1] > 1000
    assert pixels.std() > 20


def test_numbers_and_short_records_are_drawn_too(tmp_path, capsys):
    y = RNG.normal(size=(20, 2))
    y[:, 1] = np.nan
    file = str(tmp_path / "short.npz")
    np.savez(file, y=y, u=np.zeros((20, 1)))
    code, text, _ = look_at(capsys, "--data", file, "--run.directory", str(tmp_path / "out"))
    assert code == 0
    assert "looks broken: 1 channel without any value (1): leave them out" in text
    assert "cannot be fitted like this: only 16 steps in a row in the training data" in text
    assert (tmp_path / "out" / "look.png").is_file()


def test_inputs_far_from_0_are_seen_beside_others():
    """In units of its largest value a temperature of 290 to 300 is a flat line."""
    light, heat = np.arange(8.0) % 2, np.linspace(290, 300, 8)
    for u, labels, last in (
        ([light, heat], ["input 0, 0 to 1", "input 1, 290 to 300"], heat / 10 - 29),
        ([light, -2 * light], ["input 0, up to 1", "input 1, up to 2"], -light),
    ):
        data = recordings.join_episodes([(np.zeros((8, 1)), np.stack(u, axis=1))])
        axes = Figure().subplots()
        picture.draw_inputs(axes, facts.table_of(data, np.array([True])), StepTime())
        assert [x.get_label() for x in axes.lines] == labels
        np.testing.assert_allclose(np.asarray(axes.lines[1].get_ydata()), last, atol=1e-5)


def test_how_many_channels_have_a_rate_is_a_whole_number():
    y = np.repeat([[1.0, 2, 3]], 8, axis=0)
    table = facts.table_of(recordings.join_episodes([(y, np.zeros((8, 1)))]), np.ones(3, bool))
    axes = Figure().subplots()
    picture.draw_sizes(axes, table)
    assert all(x == round(x) for x in axes.get_yticks())


def test_files_that_do_not_fit_together_are_shown_one_by_one(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(look.picture, "draw", lambda *_: None)  # which takes a second each
    first, second = str(tmp_path / "a.npz"), str(tmp_path / "b.npz")
    np.savez(first, y=COUNTS, u=INPUTS)
    np.savez(second, y=COUNTS[..., :3], u=INPUTS)
    arguments = ("--data", first, second, "--run.directory", str(tmp_path / "out"))
    code, text, _ = look_at(capsys, *arguments)
    assert code == 0
    assert "cannot be read together" in text
    assert "b.npz: 300 steps of 3 channels" in text
    assert "as in cortex, bins of 1" in text
    assert "e+02" not in text
    assert (tmp_path / "out" / "a" / "look.json").is_file()
    assert (tmp_path / "out" / "b" / "look.json").is_file()
    assert look_at(capsys)[0] == 2


def test_files_of_one_name_in_several_folders_have_a_look_each(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(look.picture, "draw", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    for day, channels in (("monday", 5), ("tuesday", 3)):
        (tmp_path / day).mkdir()
        np.savez(tmp_path / day / "rec.npz", y=COUNTS[..., :channels], u=INPUTS)
    files = ("--data", "monday/rec.npz", "tuesday/rec.npz", "--sessions")
    assert look_at(capsys, *files)[0] == 0
    for day, channels in (("monday", 5), ("tuesday", 3)):
        written = tmp_path / "runs" / f"look-{day}-rec.npz" / "look.json"
        assert len(json.loads(written.read_text())["counts"]) == channels


def test_folders_of_looks_are_told_apart():
    names = ["a/x.npz", "a/y.npz"], ["a/x.npz", "b/x.npz"], ["a-b/x.npz", "a/b/x.npz", "c/x.npz"]
    assert [look.folders_of(paths) for paths in names] == [
        ["x", "y"],
        ["a-x.npz", "b-x.npz"],
        ["0-a-b-x.npz", "1-a-b-x.npz", "2-c-x.npz"],
    ]


def test_an_error_is_told_once(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(look.picture, "draw", lambda *_: None)
    code, text, error = look_at(capsys, "--data", str(tmp_path / "none.npz"))
    assert code == 2
    assert (text + error).count("there is no file") == 1
    file, out = str(tmp_path / "a.npz"), str(tmp_path / "out")
    np.savez(file, y=COUNTS, u=INPUTS)
    arguments = ("--data", str(tmp_path / "none.npz"), file, "--run.directory", out)
    code, text, error = look_at(capsys, *arguments)
    assert code == 0
    assert (text + error).count("there is no file") == 1


def test_another_number_of_files_of_inputs_is_refused(tmp_path, capsys):
    file = str(tmp_path / "a.npz")
    np.savez(file, y=COUNTS, u=INPUTS)
    for flag in ((), ("--sessions",)):
        code, text, error = look_at(capsys, "--data", file, file, "--inputs", "u.csv", *flag)
        assert code == 2
        assert "there are 2 files of data and 1 of inputs: give one of inputs for each" in error
        assert "steps of" not in text


def test_a_stretch_step_by_step_is_of_one_episode():
    """In every order of episodes, of which the median varies least or most."""
    for lengths in ((90, 450, 60), (450, 90), (60, 90, 300, 30)):
        for quiet in range(len(lengths)):
            y = [
                RNG.normal(size=(n, 2)) * (0.1 if e == quiet else 1) for e, n in enumerate(lengths)
            ]
            data = recordings.join_episodes([(x, np.zeros((len(x), 1))) for x in y])
            table = facts.table_of(data, np.zeros(2, bool))
            part = picture.typical_stretch(table, table.y)
            assert part.stop - part.start == picture.STRETCH
            inside = (table.starts <= part.start) & (part.stop <= table.starts + table.lengths)
            assert inside.any()
    short = recordings.join_episodes([(np.ones((n, 2)), np.zeros((n, 1))) for n in (30, 90, 40)])
    table = facts.table_of(short, np.zeros(2, bool))
    assert picture.typical_stretch(table, table.y) == slice(30, 120)
