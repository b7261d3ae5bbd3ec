"""Pictures of learned eigenvectors: the arithmetic behind them, and that they are drawn."""

import numpy as np
import pytest
from PIL import Image

from envs.grid import layouts
from train import allo_pictures

MAZE = layouts.parse("#####\n#...#\n#.#.#\n#...#\n#####", "ring")  # 8 states


def rows_of(d: int, seeds: int, chunks: int) -> list[dict]:
    """Rows as in `metrics.jsonl`, one chunk of them without scores."""
    rows = []
    for seed in range(seeds):
        for i in range(chunks):
            known = i != 1
            agent = {
                "similarity": 1 - 0.5 ** (i + seed) if known else None,
                "cosines": [1 - 0.5**i] * d if known else None,
                "eigenvalues": [None if i == 2 else 0.1 * k + seed for k in range(d)],
            }
            rows.append({"seed": seed, "steps": 50 * (i + 1), "finished": {}, "agent": agent})
    return rows


def shape(path) -> tuple[int, int]:
    """Width and height of the one file there; it is more than an empty page."""
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    image = Image.open(path).convert("L")
    assert np.mean(np.asarray(image) < 250) > 0.002
    return image.size


def maps(path, d: int = 2, layout=MAZE, **changes) -> None:
    states = layout.num_states
    truth = np.random.default_rng(0).normal(size=(states, d))
    arguments = {
        "truth": truth,
        "learned": -truth,
        "values": np.linspace(0, 0.5, d),
        "found": np.linspace(0, 0.6, d),
        "cosines": np.ones(d),
        "group": np.arange(d) // 2,
    }
    allo_pictures.heat_maps(layout, **{**arguments, **changes}, path=path, title="A $maze_")


def test_a_rotation_within_a_group_is_undone_and_signs_are_chosen():
    truth = np.random.default_rng(1).normal(size=(30, 6))
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    learned = truth * [-1, 1, 1, 1, 1, -1]
    learned[:, 2:4] = learned[:, 2:4] @ turn
    learned[:, [1, 4]] = learned[:, [4, 1]]  # of groups that are not equal: no excuse
    found = allo_pictures.aligned(truth, learned, np.array([0, 1, 2, 2, 3, 4]))
    np.testing.assert_allclose(found[:, [0, 2, 3, 5]], truth[:, [0, 2, 3, 5]], atol=1e-12)
    np.testing.assert_allclose(np.abs(found[:, [1, 4]]), np.abs(truth[:, [4, 1]]), atol=1e-12)


def test_a_turned_group_is_as_near_as_any_rotation_brings_it():
    """Held against all angles, with and without a reflection."""
    rng = np.random.default_rng(2)
    truth, learned = rng.normal(size=(2, 12, 2))
    nearest = np.linalg.norm(allo_pictures.aligned(truth, learned, np.zeros(2, int)) - truth)
    distances = []
    for angle in np.linspace(0, 2 * np.pi, 2001):
        c, s = np.cos(angle), np.sin(angle)
        for turn in ([[c, -s], [s, c]], [[c, s], [s, -c]]):
            distances.append(np.linalg.norm(learned @ turn - truth))
    assert nearest == pytest.approx(min(distances), abs=1e-4)


def test_more_than_six_pairs_take_another_double_row(tmp_path):
    sizes = {}
    for d in (1, 4, 6, 7, 8):
        maps(tmp_path / "maps.png", d)
        sizes[d] = shape(tmp_path / "maps.png")
    assert sizes[7] == sizes[8]  # two double rows of four
    assert sizes[7][0] == sizes[4][0]
    assert sizes[7][1] > 1.7 * sizes[4][1]
    assert sizes[6][0] > 1.2 * sizes[4][0]
    assert sizes[1][0] == 990  # room for the title


def test_thin_and_large_mazes_have_room_for_their_labels(tmp_path):
    maps(tmp_path / "maps.png", layout=layouts.from_free(np.ones((1, 30), bool)))
    assert shape(tmp_path / "maps.png")[1] > 2 * 0.5 * 150
    maps(tmp_path / "maps.png", layout=layouts.from_free(np.ones((40, 30), bool)))
    assert shape(tmp_path / "maps.png")[1] < 1500


@pytest.mark.parametrize(("d", "seeds", "chunks"), [(1, 1, 1), (3, 3, 4)])
def test_curves_are_drawn(tmp_path, d, seeds, chunks):
    path, rows = tmp_path / "curves.png", rows_of(d, seeds, chunks)
    allo_pictures.similarity_curves(rows, path, 0.999, "A $maze_")
    assert shape(path) == (1500, 630)
    allo_pictures.eigenvalue_curves(rows, path, np.arange(d) / 10, np.arange(d) / 9, "A $maze_")
    assert shape(path) == (1500, 630)


def test_a_run_without_rows_has_empty_panels(tmp_path):
    allo_pictures.similarity_curves([], tmp_path / "curves.png", None, "Nothing")
    allo_pictures.eigenvalue_curves([], tmp_path / "curves.png", np.ones(2), None, "Nothing")
    assert shape(tmp_path / "curves.png") == (1500, 630)


def test_component_curves_leave_out_what_is_missing():
    (first, second) = allo_pictures.component_curves(rows_of(2, 2, 4), "eigenvalues")
    np.testing.assert_array_equal(first, [[[50, 100, 200], [s, s, s]] for s in (0, 1)])
    np.testing.assert_allclose(second[1][1], [1.1, 1.1, 1.1])
    np.testing.assert_array_equal(
        allo_pictures.component_curves(rows_of(1, 1, 3), "cosines"), [[[[50, 150], [0, 0.75]]]]
    )


def test_the_band_is_students_interval():
    """Of 1, 2 and 6: mean 3, deviation √7, and t = 4.3027 for two degrees of freedom."""
    _, (axes, _) = allo_pictures._panels("A maze")
    lines = [(np.array([0.0, 1.0]), np.array([y, y])) for y in (1.0, 2.0, 6.0)]
    allo_pictures._draw_component(axes, lines, "black")
    low, high = axes.collections[0].get_datalim(axes.transData).intervaly
    margin = 4.3027 * np.sqrt(7 / 3)
    assert (low, high) == pytest.approx((3 - margin, 3 + margin), abs=0.01 * margin)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [3, 3])


def test_normalised_entropy():
    assert allo_pictures.normalised_entropy(np.ones(8)) == pytest.approx(1)
    assert allo_pictures.normalised_entropy(np.array([5.0, 0, 0, 0])) == 0
    assert allo_pictures.normalised_entropy(np.array([2.0, 2, 0, 0])) == pytest.approx(0.5)


def test_visits_are_drawn(tmp_path):
    allo_pictures.visitation(MAZE, np.arange(8), tmp_path / "visits.png", "A $maze_")
    width, height = shape(tmp_path / "visits.png")
    assert (width, 700 < height < 900) == (990, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learned": np.ones((8, 3))}, r"learned has shape \(8, 3\); expected \(8, 2\)"),
        ({"truth": np.ones(8)}, r"truth has shape \(8,\); expected \[S, d\]"),
        ({"found": np.ones(3)}, r"found has shape \(3,\); expected \(2,\)"),
        ({"group": np.zeros(3, int)}, r"group has shape \(3,\); expected \(2,\)"),
        ({"learned": np.full((8, 2), np.nan)}, "truth and learned are not all finite"),
        ({"layout": layouts.from_free(np.ones((2, 2), bool)), "truth": np.ones((8, 2)),
          "learned": np.ones((8, 2))}, r"values have shape \(8,\); expected \(4,\)"),
    ],
)  # fmt: skip
def test_vectors_that_do_not_fit_are_refused_in_one_line(tmp_path, change, message):
    with pytest.raises(ValueError, match=message) as error:
        maps(tmp_path / "maps.png", **change)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_rows_and_visits_that_do_not_fit_are_refused_in_one_line(tmp_path):
    path, rows = tmp_path / "curves.png", rows_of(2, 1, 3)
    refused = {
        "no row has similarity": lambda: allo_pictures.similarity_curves(
            [{**rows[0], "agent": {}}], path, None, "x"
        ),
        r"truth has shape \(3,\); expected \(2,\)": lambda: allo_pictures.eigenvalue_curves(
            rows, path, np.ones(3), None, "x"
        ),
        r"published has shape \(1,\); expected \(2,\)": lambda: allo_pictures.eigenvalue_curves(
            rows, path, np.ones(2), np.ones(1), "x"
        ),
        r"eigenvalues has \[2, 3\] components": lambda: allo_pictures.eigenvalue_curves(
            rows + rows_of(3, 1, 1), path, np.ones(2), None, "x"
        ),
        r"visits has shape \(3,\); expected \(8,\)": lambda: allo_pictures.visitation(
            MAZE, np.ones(3), path, "x"
        ),
        "all 0; expected counts": lambda: allo_pictures.visitation(MAZE, np.zeros(8), path, "x"),
        "negative": lambda: allo_pictures.visitation(MAZE, -np.ones(8), path, "x"),
    }
    for message, draw in refused.items():
        with pytest.raises(ValueError, match=message) as error:
            draw()
        assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())
