"""Pictures of colonies, read back pixel by pixel."""

import math
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from PIL import Image
from scipy.spatial import ConvexHull

from envs.durotaxis.pictures import drawing, scenery, symbols
from envs.durotaxis.rules import Colony
from envs.durotaxis.substrate import Law

NO_FIELD = np.zeros((0, 0), np.float32)
NODES = [(40.0, 60.0), (80.0, 40.0), (90.0, 70.0), (60.0, 90.0)]  # a hull with the centroid inside


def colony_of(points, parents, births=None) -> Colony:
    points = np.array(points, np.float32).reshape(-1, 2)
    births = np.zeros(len(points), int) if births is None else np.array(births)
    pad = (0, 8 - len(points))
    values: list = [np.pad(v, pad) for v in (points[:, 0], points[:, 1])]
    values += [np.pad(np.array(parents, int), pad, constant_values=-1), np.pad(births, pad)]
    return Colony(*values, num_nodes=np.int32(len(points)))  # pyright: ignore


def ground(exponential: bool = False, slope: float = 0.05) -> np.ndarray:
    law = Law(np.bool_(exponential), np.float32(slope), np.float32(1.0))  # pyright: ignore
    return scenery.ground(law, NO_FIELD, 150.0, 100.0)


def near(colour: np.ndarray, expected: tuple[int, int, int]) -> bool:
    return np.abs(colour.astype(int) - expected).max() < 30


@pytest.mark.parametrize("exponential", [False, True])
def test_the_ground_is_coloured_by_its_stiffness(exponential):
    stiffness = ground(exponential)
    column = [math.exp(0.05 * c) if exponential else 0.05 * c + 1 for c in range(150)]
    np.testing.assert_allclose(stiffness, np.tile(column, (100, 1)), rtol=1e-5)
    levels, is_log = scenery.shades(stiffness)
    assert is_log == exponential  # e^7.45 is far beyond what one scale can show
    np.testing.assert_allclose(levels[0], np.arange(150) / 149, atol=1e-5)
    shade = np.linspace(0, 1, 50)
    truth = matplotlib.colormaps["viridis"](shade)[:, :3] * 255
    assert np.abs(scenery.viridis(shade) - truth).max() < 16


def test_ground_of_one_stiffness_and_measured_ground():
    assert scenery.shades(np.full((20, 30), 2.0))[0].max() == 0
    field = np.random.default_rng(0).uniform(-1, 1, (20, 30)).astype(np.float32)
    law = Law(np.bool_(False), np.float32(0), np.float32(0))  # pyright: ignore
    np.testing.assert_array_equal(scenery.ground(law, field, 30.0, 20.0), field)
    assert not scenery.shades(field)[1]


def test_nodes_lie_where_they_are_and_show_what_they_are():
    colony = colony_of(NODES, [-1, 0, 1, 2], [0, 0, 3, 3])
    deleted = np.zeros(8, bool)
    deleted[1] = True
    picture = np.asarray(drawing.draw(ground(), colony, deleted, step=3))
    scene = scenery.make_scene(ground(), 100.0)
    close = scene._replace(reach=drawing.reach_of(batch([colony]))).close_up(*np.mean(NODES, 0))
    for view in (scene.whole, close):
        places = view.place(np.array(NODES))
        colours = [picture[round(y), round(x)] for x, y in places - 2.2]  # beside a cross
        assert near(colours[0], symbols.WHITE)
        assert near(colours[2], symbols.NEW)
        assert near(colours[3], symbols.NEW)
    x, y = close.place(np.array(NODES[1]))
    assert near(picture[round(y - 5), round(x)], symbols.INK)
    x, y = close.place(np.mean(NODES, 0))
    assert near(picture[round(y), round(x)], symbols.STAR)
    x, y = scene.whole.place(np.array([150 - 2.5, 50.0]))  # 2 px off the edge, and half a px
    np.testing.assert_array_equal(scene.goal, [(147.5, 0), (147.5, 100)])
    column = picture[scenery.STRIP : scenery.STRIP + 400, round(x)]
    assert (column == symbols.WHITE).all(-1).mean() > 0.4


def test_edges_lead_to_parents_that_exist():
    apart = np.asarray(drawing.draw(ground(), colony_of(NODES[:2], [-1, -1])))
    linked = np.asarray(drawing.draw(ground(), colony_of(NODES[:2], [-1, 0])))
    scene = scenery.make_scene(ground(), 100.0)
    x, y = scene.whole.place(np.mean(NODES[:2], 0))
    assert near(linked[round(y), round(x)], symbols.WHITE)
    assert not near(apart[round(y), round(x)], symbols.WHITE)


def test_the_outline_is_the_convex_hull():
    points = np.random.default_rng(1).normal(size=(60, 2))
    hull = ConvexHull(points)
    vertices = symbols.outline(points)
    assert {tuple(p) for p in vertices} == {tuple(p) for p in points[hull.vertices]}
    x, y = vertices.T
    area = abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2  # in order, or it is smaller
    assert area == pytest.approx(hull.volume)
    np.testing.assert_array_equal(symbols.outline(np.ones((3, 2))), [[1, 1]])
    assert len(symbols.outline(np.array([[0, 0], [1, 1], [2, 2]]))) == 2


def batch(colonies: list[Colony]) -> Colony:
    fields = ("x", "y", "parent", "birth", "num_nodes")
    values: dict[str, Any] = {n: np.stack([getattr(c, n) for c in colonies]) for n in fields}
    return Colony(**values)


def test_a_film_shows_every_position(tmp_path: Path):
    steps = [[(x + 10.0 * s, y) for x, y in NODES] for s in range(4)]
    colonies = batch([colony_of(p, [-1, 0, 1, 2][: len(p)]) for p in [*steps, []]])
    path = tmp_path / "climb.gif"
    drawing.film(ground(), colonies, np.zeros((5, 8), bool), path, fps=10, ending="empty")
    assert [entry.name for entry in tmp_path.iterdir()] == ["climb.gif"]
    scene = scenery.make_scene(ground(), 100.0)
    with Image.open(path) as film:
        assert film.n_frames == 5  # pyright: ignore
        assert film.size == scene.image.size
        for i in range(4):
            film.seek(i)
            assert film.info["duration"] == 100
            frame = np.asarray(film.convert("RGB"))
            x, y = scene.whole.place(np.array(steps[i][0]))
            assert near(frame[round(y), round(x)], symbols.WHITE)
            for past in range(i):  # where the centroid was
                x, y = scene.whole.place(np.mean(steps[past], 0))
                assert near(frame[round(y), round(x)], symbols.STAR)
        film.seek(4)
        assert film.info["duration"] == 1000 * drawing.HOLD
        assert near(np.asarray(film.convert("RGB"))[2, 2], scenery.FRAME)


def test_the_caption_says_step_nodes_and_way():
    first = drawing.draw(ground(), colony_of(NODES, [-1, 0, 1, 2]))
    words = lambda image: np.asarray(image.crop((0, 0, 500, scenery.STRIP)))
    again = drawing.draw(ground(), colony_of(NODES, [-1, 0, 1, 2]), step=7)
    fewer = drawing.draw(ground(), colony_of(NODES[:3], [-1, 0, 1]))
    assert (words(first) != words(again)).any()
    assert (words(first) != words(fewer)).any()


def test_what_cannot_be_filmed_is_refused(tmp_path: Path):
    colonies = batch([colony_of(NODES, [-1, 0, 1, 2])])
    none = Colony(**{name: value[:0] for name, value in vars(colonies).items()})
    with pytest.raises(ValueError, match="no positions"):
        drawing.film(ground(), none, np.zeros((0, 8), bool), tmp_path / "a.gif")
    with pytest.raises(ValueError, match="fps is 90"):
        drawing.film(ground(), colonies, np.zeros((1, 8), bool), tmp_path / "a.gif", fps=90)
    assert not list(tmp_path.iterdir())
