"""Maps of eigenvectors and visits: the arithmetic behind them, and that they are drawn."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from envs.grid import layouts
from tests.train.images import saved_figures, size_alone, words_fit
from train.allo.drawings import maps

MAZE = layouts.parse("#####\n#...#\n#.#.#\n#...#\n#####", "ring")  # 8 states


def draw(path, d: int = 2, layout=MAZE, **changes) -> Figure:
    """The heat maps of a random truth, all but signs learned."""
    states = layout.num_states
    truth = np.random.default_rng(0).normal(size=(states, d))
    arguments = {
        "truth": truth,
        "learned": -truth,
        "values": np.linspace(0, 0.5, d),
        "learned_values": np.linspace(0, 0.6, d),
        "cosines": np.ones(d),
        "group": np.arange(d) // 2,
        "column_group": np.arange(d) // 2,
    }
    with saved_figures() as figures:
        maps.heat_maps(layout, maps.Eigenvectors(**{**arguments, **changes}), path, "A $maze_")
    return figures[0]


def test_a_rotation_within_a_group_is_undone_and_signs_are_chosen():
    truth = np.random.default_rng(1).normal(size=(30, 6))
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    learned = truth * [-1, 1, 1, 1, 1, -1]
    learned[:, 2:4] = learned[:, 2:4] @ turn
    learned[:, [1, 4]] = learned[:, [4, 1]]  # of groups that are not equal: no excuse
    rotated = maps.align_columns(truth, learned, np.array([0, 1, 2, 2, 3, 4]))
    np.testing.assert_allclose(rotated[:, [0, 2, 3, 5]], truth[:, [0, 2, 3, 5]], atol=1e-12)
    np.testing.assert_allclose(np.abs(rotated[:, [1, 4]]), np.abs(truth[:, [4, 1]]), atol=1e-12)


def test_a_turned_group_is_as_near_as_any_rotation_brings_it():
    """Held against all angles, with and without a reflection."""
    rng = np.random.default_rng(2)
    truth, learned = rng.normal(size=(2, 12, 2))
    nearest = np.linalg.norm(maps.align_columns(truth, learned, np.zeros(2, int)) - truth)
    distances = []
    for angle in np.linspace(0, 2 * np.pi, 2001):
        c, s = np.cos(angle), np.sin(angle)
        for turn in ([[c, -s], [s, c]], [[c, s], [s, -c]]):
            distances.append(np.linalg.norm(learned @ turn - truth))
    assert nearest == pytest.approx(min(distances), abs=1e-4)


@pytest.mark.slow
def test_of_a_group_that_goes_on_the_nearest_true_vectors_are_shown(tmp_path):
    """Any two vectors in the space of four equal λ may be learned as the last ones."""
    truth = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 5)))[0]
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    learned = np.concatenate([-truth[:, :1], truth[:, 1:] @ turn[:, :2]], axis=1)
    none, group, column_group = np.zeros(3), np.array([0, 1, 1]), np.array([0, 1, 1, 1, 1])
    pairs = maps.Eigenvectors(truth, learned, none, none, none, group, column_group)
    nearest = maps.nearest_columns(pairs)
    np.testing.assert_allclose(nearest[:, 1:], learned[:, 1:], atol=1e-12)
    np.testing.assert_array_equal(nearest[:, 0], truth[:, 0])
    figure = draw(tmp_path / "maps.png", 3, **pairs._asdict())
    assert any("goes on beyond" in text.get_text() for text in figure.texts)


@pytest.mark.slow
def test_more_than_six_pairs_take_another_double_row(tmp_path):
    sizes = {}
    for d in (1, 4, 6, 7, 8):
        figure = draw(tmp_path / "maps.png", d)
        sizes[d] = size_alone(tmp_path / "maps.png")
        assert words_fit(figure)
    assert sizes[7] == sizes[8]  # two double rows of four
    assert sizes[7][0] == sizes[4][0]
    assert sizes[7][1] > 1.7 * sizes[4][1]
    assert sizes[6][0] > 1.2 * sizes[4][0]


def test_zero_has_no_sign():
    assert [maps.decimal_text(x) for x in (-1e-6, -0.0, -0.00006, 0.25)] == [
        "0.0000",
        "0.0000",
        "-0.0001",
        "0.2500",
    ]


def test_thin_and_large_mazes_have_room_for_their_labels(tmp_path):
    for rows in (1, 40):
        free = np.ones((rows, 30), bool)
        assert words_fit(draw(tmp_path / "maps.png", layout=layouts.from_free(free)))
        width, height = size_alone(tmp_path / "maps.png")
        assert height < 1.5 * width  # no long roll of paper


def test_normalised_entropy():
    assert maps.normalised_entropy(np.ones(8)) == pytest.approx(1)
    assert maps.normalised_entropy(np.array([5.0, 0, 0, 0])) == 0
    assert maps.normalised_entropy(np.array([2.0, 2, 0, 0])) == pytest.approx(0.5)


def test_visits_are_drawn(tmp_path):
    with saved_figures() as figures:
        maps.visitation(MAZE, np.arange(8), tmp_path / "visits.png", "A $maze_")
    assert min(size_alone(tmp_path / "visits.png")) >= 300
    assert words_fit(figures[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learned": np.ones((8, 3))}, r"learned has shape \(8, 3\); expected \(8, 2\)"),
        ({"truth": np.ones(8)}, r"truth has shape \(8,\); expected \[S, d\]"),
        ({"learned_values": np.ones(3)}, r"learned_values has shape \(3,\); expected \(2,\)"),
        ({"group": np.zeros(3, int)}, r"group has shape \(3,\); expected \(2,\)"),
        ({"learned": np.full((8, 2), np.nan)}, "truth and learned are not all finite"),
        ({"layout": layouts.from_free(np.ones((2, 2), bool)), "truth": np.ones((8, 2)),
          "learned": np.ones((8, 2))}, r"values have shape \(8,\); expected \(4,\)"),
    ],
)  # fmt: skip
def test_vectors_that_do_not_fit_are_refused_in_one_line(tmp_path, change, message):
    with pytest.raises(ValueError, match=message) as error:
        draw(tmp_path / "maps.png", **change)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("visits", "message"),
    [
        (np.ones(3), r"visits has shape \(3,\); expected \(8,\)"),
        (np.zeros(8), "all 0; expected counts"),
        (-np.ones(8), "negative"),
    ],
)
def test_visits_that_do_not_fit_are_refused_in_one_line(tmp_path, visits, message):
    with pytest.raises(ValueError, match=message) as error:
        maps.visitation(MAZE, visits, tmp_path / "visits.png", "x")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())
