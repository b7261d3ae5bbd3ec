"""Pictures of mazes: the colour in the middle of every cell against what is there."""

import numpy as np
import pytest
from PIL import Image

from envs.grid import drawing, layouts, mazes

TEXT = "####\n#.G#\n##.#\n####"
LAYOUT = layouts.parse(TEXT)


def middles(image: Image.Image, layout) -> np.ndarray:
    """The colour in the middle of every cell, int `[H, W, 3]`."""
    pixels = np.asarray(image.convert("RGB")).astype(int)
    size = pixels.shape[0] // layout.height
    return pixels[size // 2 :: size, size // 2 :: size]


def test_every_cell_shows_what_is_on_it():
    colours = {"#": drawing.WALL, ".": drawing.FREE, "G": drawing.GOAL}
    expected = np.array([[colours[c] for c in row] for row in TEXT.split()])
    image = drawing.picture(LAYOUT)
    assert image.size == (400, 400)
    np.testing.assert_array_equal(middles(image, LAYOUT), expected)
    for state, cell in enumerate(LAYOUT.cells):
        drawn_colours = middles(drawing.picture(LAYOUT, state, size=50), LAYOUT)
        expected_colours = expected.copy()
        expected_colours[tuple(cell)] = drawing.AGENT
        np.testing.assert_array_equal(drawn_colours, expected_colours)


def test_heat_map():
    cells = drawing.heat_map(LAYOUT, np.array([1, -2, 3]))
    np.testing.assert_array_equal(np.isnan(cells), ~LAYOUT.free)
    assert cells[LAYOUT.free].tolist() == [1, -2, 3]


def test_zero_is_white_and_signs_mirror_each_other():
    layout = mazes.layout_by_name("GridRoom-1")
    values = np.linspace(-3, 3, 225)
    colours = middles(drawing.picture(layout, values=values), layout)[layout.free]
    np.testing.assert_array_equal(colours[112], drawing.DIVERGING[3])
    assert (colours[:100, 2] > colours[:100, 0]).all()  # blue
    assert (colours[-100:, 2] < colours[-100:, 0]).all()  # red
    lightness = colours @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness[:113]) >= -1).all()  # but for rounding
    assert (np.diff(lightness[112:]) <= 1).all()
    np.testing.assert_allclose(lightness, lightness[::-1], atol=25)
    # a scale that knows its zero: shifting all values does not keep the picture, scaling does
    scaled_colours = middles(drawing.picture(layout, values=0.01 * values), layout)[layout.free]
    np.testing.assert_allclose(scaled_colours, colours, atol=1)
    positive = middles(drawing.picture(layout, values=values + 3), layout)[layout.free]
    assert (positive[:, 0] >= positive[:, 2]).all()
    zero_colours = middles(drawing.picture(layout, values=np.zeros(225)), layout)[layout.free]
    np.testing.assert_array_equal(zero_colours, np.tile(drawing.DIVERGING[3], (225, 1)))


def test_doors_and_portals_show_their_direction():
    layout = layouts.parse("DR,.,PL:1\n.,.,E1")
    image = np.asarray(drawing.picture(layout, size=300)).astype(int)
    for point, colour in [((50, 85), drawing.DOOR), ((50, 215), drawing.PORTAL)]:
        np.testing.assert_array_equal(image[point], colour)
    np.testing.assert_array_equal(image[50, 15], drawing.FREE)


def test_film(tmp_path):
    path = tmp_path / "walk.gif"
    walk = np.array([0, 0, 1, 2, 1], np.int32)
    drawing.film(LAYOUT, walk, path, fps=20, size=80)
    with Image.open(path) as film:
        assert (film.n_frames, film.size) == (5, (80, 80))  # pyright: ignore
        for i, state in enumerate(walk):
            film.seek(i)
            assert film.info["duration"] == (50 if i < 4 else 1500)
            still_colours = middles(drawing.picture(LAYOUT, int(state), size=80), LAYOUT)
            np.testing.assert_allclose(middles(film, LAYOUT), still_colours, atol=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: drawing.picture(LAYOUT, 3), "position is 3; expected a state from 0 to 2"),
        (lambda: drawing.picture(LAYOUT, -1), "position is -1"),
        (lambda: drawing.picture(LAYOUT, size=0), "size is 0; expected at least 1 pixel"),
        (lambda: drawing.picture(LAYOUT, values=np.ones(4)), r"shape \(4,\); expected \(3,\)"),
        (lambda: drawing.heat_map(LAYOUT, np.array([1, np.nan, 0])), "values are not all finite"),
        (lambda: drawing.film(LAYOUT, np.array([], int), "x.gif"), "there are no positions"),
        (lambda: drawing.film(LAYOUT, np.array([0]), "x.gif", fps=0), "fps is 0; expected 1 to 50"),
    ],
)
def test_what_cannot_be_drawn(call, message):
    with pytest.raises(ValueError, match=message):
        call()
