"""The time of a step of recorded data: from files and flags, or not known."""

import numpy as np
import pytest
import scipy.io

from train.vector_field.data import step_time
from train.vector_field.data.step_time import StepTime

RISING = {"y": np.zeros(4), "u": np.zeros(4), "t": 0.02 * np.arange(4)}


def load(tmp_path, *files, bin_width=1.0, length=None, unit=""):
    """Loads files of these arrays, which are called 0.npz, 1.npz, …"""
    paths = [str(tmp_path / f"{i}.npz") for i in range(len(files))]
    for path, arrays in zip(paths, files, strict=True):
        np.savez(path, **arrays)
    return step_time.load(paths, bin_width, length, unit)


@pytest.mark.parametrize(
    ("files", "flags", "expected"),
    [
        ([{}], {}, StepTime(1.0, "steps")),
        ([{"dt": 0.02, "time_unit": "s"}], {}, StepTime(0.02, "s")),
        ([{"dt": np.array([20]), "time_unit": np.array([b"ms"])}], {}, StepTime(20.0, "ms")),
        ([{"dt": 0.02}], {}, StepTime(0.02, "")),
        ([{}], {"length": 0.5, "unit": " min "}, StepTime(0.5, "min")),
        ([{"dt": np.float32(0.1)}, {"time_unit": "s"}], {"length": 0.1}, StepTime(0.1, "s")),
        ([RISING | {"dt": 0.02, "fs": 50}], {}, StepTime(0.02, "")),
        ([RISING | {"dt": 0.02001}], {}, StepTime(0.02001, "")),  # rounded
        ([RISING | {"t": np.arange(4), "dt": 0.5}], {}, StepTime(0.5, "")),  # numbers of the rows
        ([{"spike_times": [0.5]}], {"bin_width": 0.02, "unit": "s"}, StepTime(0.02, "s")),
    ],
)
def test_it_is_what_files_and_flags_say(tmp_path, files, flags, expected):
    assert load(tmp_path, *files, **flags) == expected


@pytest.mark.parametrize(
    ("files", "flags", "message"),
    [
        ([{"dt": 0.02}, {"dt": 0.01}], {}, r"dt in .*0.npz is 0.02 and dt in .*1.npz is 0.01: say"),
        ([RISING | {"dt": 0.5}], {}, "dt in .* is 0.5 and .* a step by t in .* is 0.02: say the"),
        ([RISING | {"fs": 1000}], {}, "by fs in .* is 0.001 and .* by t in .* is 0.02: say the"),
        (
            [{"y": [0], "dt": 0.02, "fs": 100}],
            {},
            "is 0.02 and .* by fs in .* is 0.01: say",
        ),
        ([{"dt": 0.02}], {"length": 0.1}, "--step-time is 0.1 and dt in .* is 0.02: say the same"),
        ([{"dt": 0.02, "spike_times": [0.5]}], {}, "0.02 and --env.bin-width, .*, is 1.0: say"),
        ([{"time_unit": "s"}], {}, "time_unit in .* is 's', but nothing says how long a step is"),
        ([{}], {"unit": "ms"}, "--time-unit is 'ms', but nothing says how long a step is"),
        ([{"dt": 0.02, "time_unit": "s"}], {"unit": "ms"}, "--time-unit is ms and time_unit .* s:"),
        ([{"dt": -0.5}], {}, "dt in .* is -0.5; expected one finite time above 0"),
        ([{"dt": np.nan}], {}, "dt in .* expected one finite time above 0"),
        ([{"dt": [0.1, 0.1]}], {}, r"dt in .* is float64 of shape \(2,\); expected one"),
        ([{"dt": "fast"}], {}, "dt in .* expected one finite time above 0"),
        ([{"dt": None}], {}, "dt in .* is not a number or text"),
        ([{"dt": 0.1, "time_unit": 3}], {}, "time_unit in .* must be a short text"),
        ([{"dt": 0.1, "time_unit": "s\n"}], {"unit": "\x1b"}, "--time-unit must be a short text"),
    ],
)
def test_what_contradicts_itself_or_is_no_time_is_refused_in_one_line(
    tmp_path, files, flags, message
):
    with pytest.raises(ValueError, match=message) as error:
        load(tmp_path, *files, **flags)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("time", "line", "axis"),
    [
        (StepTime(0.02, "s"), "each 0.02 s, 14 s in all; 0.1 in the model", "time (s)"),
        (StepTime(0.02, ""), "each 0.02, 14 in all, unit not given", "time"),
        (StepTime(), "their time not given: axes count steps", "time (steps)"),
    ],
)
def test_a_run_says_how_long_its_steps_are(capsys, time, line, axis):
    for _ in range(2):  # but once
        step_time.tell(f"{time}.npz", time, (300, 400), 0.1)
    (printed_line,) = capsys.readouterr().err.splitlines()
    assert f"700 steps in 2 episodes, {line}" in printed_line
    assert time.axis() == axis
    assert [StepTime().text(), StepTime().text(2)] == ["1 step", "2 steps"]


def test_times_that_only_number_the_rows_contradict_no_flag(tmp_path):
    """Unless their unit says that they are times: then a step lasts 1 of it."""
    y, t = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40.0)
    np.savez(tmp_path / "a.npz", y=y, u=y, t=t)
    scipy.io.savemat(tmp_path / "a.mat", {"y": y, "t": t})
    for path in (tmp_path / "a.npz", tmp_path / "a.mat"):
        assert step_time.load([str(path)], 1.0, 0.02, "s") == StepTime(0.02, "s")
        assert step_time.load([str(path)], 1.0, None, "") == StepTime(1.0, "")
    for name, is_refused in (("t", False), ("time (s)", True)):
        rows = [f"{i},{a},{b}" for i, (a, b) in zip(t, y, strict=True)]
        (tmp_path / "a.csv").write_text("\n".join([f"{name},a,b", *rows]) + "\n")
        path = [str(tmp_path / "a.csv")]
        if is_refused:
            with pytest.raises(ValueError, match="say the same"):
                step_time.load(path, 1.0, 0.02, "s")
        else:
            assert step_time.load(path, 1.0, 0.02, "s") == StepTime(0.02, "s")
    timed = {"y": y, "u": y, "t": t, "time_unit": "s"}
    np.savez(tmp_path / "a.npz", **timed)
    scipy.io.savemat(tmp_path / "a.mat", timed)
    for path in (tmp_path / "a.npz", tmp_path / "a.mat"):
        with pytest.raises(ValueError, match="say the same"):
            step_time.load([str(path)], 1.0, 0.02, "s")
    scipy.io.savemat(tmp_path / "a.mat", {"y": y, "dt": 1.0})
    with pytest.raises(ValueError, match="say the same"):
        step_time.load([str(tmp_path / "a.mat")], 1.0, 0.02, "s")
