"""Files of trajectories: which pairs of moments are transitions, and what is refused."""

import numpy as np
import pytest

from train.allo.recorded import id_positions, recordings

IDS = np.array([0, 1, 2, 3, 4, 0, 2])
VECTORS = np.stack([IDS, IDS**2], axis=1).astype(float)


def save_and_load(tmp_path, **arrays) -> recordings.Recording:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    return recordings.load(str(path))


def transitions(recording: recordings.Recording) -> list[tuple[int, ...]]:
    return [tuple(map(int, x)) for x in zip(*recording[:3], strict=True)]


WHOLE = [(0, 1, 6), (1, 2, 5), (2, 3, 4), (3, 4, 3), (4, 0, 2), (0, 2, 1)]
PARTS = [(0, 1, 2), (1, 2, 1), (3, 4, 3), (4, 0, 2), (0, 2, 1)]  # 0 1 2 | 3 4 0 2


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"states": IDS}, WHOLE),
        ({"states": IDS, "lengths": [3, 4]}, PARTS),
        ({"states": IDS, "ends": [0, 0, 1, 0, 0, 0, 0]}, PARTS),
        ({"states": IDS, "ends": np.array([0, 0, 1, 0, 0, 0, 1], bool)}, PARTS),
        ({"states": [[0, 1, 2, 9], [3, 4, 0, 2]], "lengths": [3, 4]}, PARTS),
        ({"states": IDS, "lengths": [1, 2, 4]}, [(1, 2, 1), *PARTS[2:]]),  # one state: no pair
        ({"states": [[0, 1], [1, 2]]}, [(0, 1, 1), (1, 2, 1)]),  # rows never join
        ({"states": [0, 1, 3], "successors": [1, 2, 4]}, [(0, 1, 2), (1, 2, 1), (3, 4, 1)]),
        (
            {"states": [0, 1, 3], "successors": [1, 3, 4], "ends": [0, 1, 0]},
            [(0, 1, 2), (1, 3, 1), (3, 4, 1)],
        ),
        ({"states": [3], "successors": [4]}, [(3, 4, 1)]),
        ({"states": IDS, "lengths": [3.0, 4.0]}, PARTS),
        ({"states": IDS, "lengths": np.array([[3], [4]], np.uint8)}, PARTS),
        ({"states": IDS[:, None], "lengths": [[3.0, 4.0]]}, PARTS),
        ({"states": IDS[:, None].astype(">i2"), "ends": np.eye(7)[:, [2]]}, PARTS),
        ({"states": IDS[None], "ends": np.eye(7)[2]}, PARTS),
        ({"states": IDS[None].astype(np.uint8)}, WHOLE),
        (
            {"states": IDS[:-1, None], "successors": IDS[1:].astype(float), "ends": np.eye(6)[2]},
            [(0, 1, 3), (1, 2, 2), (2, 3, 1), *PARTS[2:]],
        ),
        ({"states": [[0, 1], [1, 3]], "successors": [[1, 1], [3, 4]]}, None),
    ],
)
def test_pairs_never_cross_the_end_of_an_episode(tmp_path, arrays, expected):
    recording = save_and_load(tmp_path, **{name: np.asarray(x) for name, x in arrays.items()})
    expected = expected or [(0, 1, 2), (1, 1, 1), (1, 3, 2), (3, 4, 1)]
    assert transitions(recording) == expected
    assert recording.trajectories == sum(left == 1 for *_, left in expected)


def test_vectors_break_where_ids_do_and_are_scaled(tmp_path):
    ids = save_and_load(tmp_path, states=IDS, lengths=np.array([3, 4]))
    recording = save_and_load(tmp_path, states=VECTORS, lengths=np.array([3, 4]))
    np.testing.assert_array_equal(recording.left, ids.left)
    assert (recording.num_ids, recording.positions) == (0, None)
    first = recording.state * recording.scale + recording.middle
    np.testing.assert_allclose(first, VECTORS[ids.state.astype(int)][:, :], atol=1e-5)
    assert np.abs(recording.places).max() == 1  # the widest coordinate; both keep their proportion
    assert np.ptp(recording.places[:, 0]) == pytest.approx(2 * 4 / 16)
    assert recording.points is not None
    np.testing.assert_allclose(recording.points, VECTORS, atol=1e-5)
    padded = np.full((2, 4, 2), np.nan)
    padded[0, :3], padded[1] = VECTORS[:3], VECTORS[3:]
    row_recording = save_and_load(tmp_path, states=padded, lengths=np.array([3, 4]))
    for a, b in zip(row_recording[:4], recording[:4], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", [bool, np.float16, ">f8"])
@pytest.mark.filterwarnings("error")
def test_vectors_of_any_kind_of_number(tmp_path, kind):
    vectors = np.asfortranarray((VECTORS % 5 > 1).astype(kind))
    recording = save_and_load(tmp_path, states=vectors, successors=vectors[:, :, None])
    np.testing.assert_allclose(
        recording.places * recording.scale + recording.middle, vectors.astype(float)
    )


def test_what_was_read_is_said_once(tmp_path, capsys):
    for _ in range(2):
        save_and_load(tmp_path, states=IDS, lengths=[3, 4])
    line = capsys.readouterr().out
    assert line.endswith("data.npz: 5 transitions in 2 trajectories, between 5 ids\n")
    save_and_load(tmp_path, states=VECTORS.astype(int))  # x and y on a grid, which are no ids
    line = capsys.readouterr().out
    assert "7 transitions in 7 trajectories, between 17 ids; if they are coordinates" in line
    save_and_load(tmp_path, states=VECTORS)
    assert "6 transitions in 1 trajectory, between vectors of 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ({"length": [3, 4]}, "length (perhaps lengths)"),
        ({"Ends": IDS == 2, "reward": IDS}, "Ends (perhaps ends), reward"),
        ({"lengths": [3, 4], "length": [3, 4]}, "length"),  # which is there, too
        ({"lengths": [3, 4]}, ""),
    ],
)
def test_arrays_that_are_not_read_are_named(tmp_path, more, note, capsys):
    save_and_load(tmp_path, states=IDS, **more)
    readable = "read are states, successors, ends, lengths, positions"
    expected = f"{tmp_path}/data.npz: not read: {note}; {readable}\n" if note else ""
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize(
    ("ranges", "line"),
    [
        (
            (300, 0.3),
            "coordinate 1 (counted from 0) varies over 1/1,000 of the range of coordinate ",
        ),
        (
            (1, 0, 200, 3),
            "coordinates 0, 3 (counted from 0) vary over 1/200, 1/67 of the range of ",
        ),
        ((300, 6), ""),
        ((300, 0), ""),
    ],
)
def test_coordinates_in_another_unit_are_named(tmp_path, ranges, line, capsys):
    save_and_load(tmp_path, states=np.linspace(-0.5, 0.5, 9)[:, None] * ranges)
    output = capsys.readouterr().err
    assert output.startswith(f"{tmp_path}/data.npz: {line}" if line else "")
    assert len(output.splitlines()) == bool(line)
    assert not line or "one scale serves all" in output


def test_ids_that_never_occur_are_counted(tmp_path, capsys):
    recording = save_and_load(tmp_path, states=[0, 1, 57, 30], lengths=[3, 1])
    np.testing.assert_array_equal(np.flatnonzero(recording.occurs), [0, 1, 57])
    assert "between 58 ids; 3 of 58 ids occur\n" in capsys.readouterr().out


def test_positions_number_the_ids(tmp_path):
    recording = save_and_load(tmp_path, states=IDS, positions=np.eye(6)[:, :2])
    assert recording.num_ids == 6
    np.testing.assert_array_equal(recording.points, np.eye(6)[IDS, :2])
    assert save_and_load(tmp_path, states=IDS).points is None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"obs": IDS}, "has no array 'states'; expected an .npz file with states"),
        ({"states": IDS.astype(float)}, r"of float64; expected an .npz .* states.astype\(int\)"),
        ({"states": IDS > 1}, r"have shape \(7,\) of bool; expected an .npz"),
        ({"states": IDS, "lengths": [3.0, np.nan]}, "integers from 1 on"),
        ({"states": np.zeros((2, 2, 2, 2))}, r"have shape \(2, 2, 2, 2\)"),
        ({"states": np.array(3)}, r"have shape \(\) of int64"),
        ({"states": IDS[:0]}, "states in .* are empty"),
        ({"states": IDS - 1}, "are int64 from -1 to 3; expected ids from 0 to at most 4,999: num"),
        ({"states": IDS * 10_000}, "from 0 to 40000; expected ids"),
        ({"states": IDS[:1]}, "holds no transition"),
        ({"states": 0 * IDS}, "holds one state only"),
        ({"states": IDS, "successors": IDS[1:]}, r"shape \(6,\); expected \(7,\), as states"),
        ({"states": IDS, "successors": IDS + 0.5}, "successors in .* are float64 from 0.5"),
        (
            {"states": IDS, "ends": IDS},
            "hold 2; expected .*, 1 at the last of an episode and else 0",
        ),
        ({"states": IDS, "positions": np.full((5, 2), 1e300)}, "positions in .* beyond 1e"),
        ({"states": IDS, "ends": IDS[:2] * 0}, r"ends in .* have shape \(2,\); expected \(7,\)"),
        ({"states": IDS, "ends": 0 * IDS, "lengths": [7]}, "has both ends and lengths"),
        ({"states": IDS, "lengths": [3, 3]}, "integers from 1 on that add up to 7 states"),
        ({"states": IDS, "lengths": [3, 0, 4]}, "integers from 1 on"),
        ({"states": IDS, "lengths": [3.5, 3.5]}, "integers from 1 on"),
        ({"states": IDS, "lengths": [[3, 2], [1, 1]]}, "integers from 1 on"),
        ({"states": IDS[None], "lengths": [8]}, "must be 1 integers from 1 to 7, one of each row"),
        ({"states": IDS, "positions": np.eye(3)[:, :2]}, "are of 3 ids; expected 5 to 5,000"),
        ({"states": IDS, "positions": np.eye(5)}, r"have shape \(5, 5\); expected \[S, 2\]"),
        ({"states": IDS, "positions": np.full((5, 2), np.nan)}, "of finite numbers"),
        ({"states": VECTORS * np.nan}, "have 14 values that are NaN or infinite; cut them out"),
        ({"states": VECTORS * 1e20}, "have values beyond 1e.15: rescale them"),
        ({"states": 0 * VECTORS}, "never change; there is nothing to learn"),
        ({"states": VECTORS[:, :0]}, "are empty"),
        ({"states": VECTORS.T}, "are 2 moments of 7 numbers each; .*: transpose them"),
        ({"states": np.array(["a", "b"])}, "cannot be read .*expected real numbers"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=message) as refused:
        save_and_load(tmp_path, **{name: np.asarray(x) for name, x in arrays.items()})
    assert "\n" not in str(refused.value)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"there is no file .*; expected an .npz file"):
        recordings.load(str(tmp_path / "missing.npz"))
    (tmp_path / "text.npz").write_text("no arrays")
    with pytest.raises(ValueError, match=r"cannot be read \(.*; expected an .npz file"):
        recordings.load(str(tmp_path / "text.npz"))


def test_positions_far_from_0_are_all_different_to_the_network(tmp_path):
    steps = np.array([[0, 0], [0.25, 0], [0.25, 0.25], [0.5, 0.25], [1, 0.5]])
    recording = save_and_load(tmp_path, states=IDS, positions=steps + np.array([4e5, 5.3e6]))
    assert recording.positions is not None
    inputs = id_positions.inputs_of(recording.positions)
    np.testing.assert_allclose(inputs, (steps - [0.5, 0.25]) / 0.5, atol=1e-6)
    assert id_positions.warning("data", inputs, recording.occurs) == ""


def test_ids_that_occur_in_the_same_place_are_named():
    positions = np.array([[0, 0], [0, 1], [0, 0], [0, 1], [2, 2]], float)
    occurs = np.array([True, True, True, False, True])  # of 1 and 3, which are alike, one occurs
    warning = id_positions.warning("data", id_positions.inputs_of(positions), occurs)
    assert warning.startswith("data: 2 ids have the same position as another one (0, 2), and the")


@pytest.mark.parametrize("axes", [(7, 1), (1, 7, 1), (7, 1, 1)])
def test_ids_may_end_in_an_axis_of_one(tmp_path, axes):
    if axes == (7, 1, 1):  # episodes of one state
        with pytest.raises(ValueError, match="holds no transition"):
            save_and_load(tmp_path, states=IDS.reshape(axes))
    else:
        assert transitions(save_and_load(tmp_path, states=IDS.reshape(axes))) == WHOLE


def test_ids_saved_as_floats_are_told(tmp_path, capsys):
    ids = np.random.default_rng(0).integers(0, 6, (12, 7)).astype(float)
    for states, is_told in ((ids, True), (ids[:, :2], False), (ids / 2, False), (-ids, False)):
        save_and_load(tmp_path, states=states)
        output = capsys.readouterr().out
        assert ("if they are ids of episodes in rows, save states.astype(int)" in output) == is_told


def test_positions_of_vectors_are_told_not_to_be_read(tmp_path, capsys):
    save_and_load(tmp_path, states=VECTORS, positions=VECTORS)
    assert "not read: positions; they are of ids" in capsys.readouterr().err
