"""A file of measured stiffness: what a cell of it is, and what is refused."""

import re

import numpy as np
import pytest
from PIL import Image

from train.durotaxis import config, field


def written(path, values) -> str:
    np.save(path, values)
    return str(path)


def test_every_cell_is_one_px_which_is_said_once(tmp_path, capsys):
    values = np.random.default_rng(0).random((30, 40))
    path = written(tmp_path / "soft.npy", values)
    for _ in range(2):
        np.testing.assert_array_equal(field.read_field(path), values.astype(np.float32))
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "every cell is one px, so the ground is 40 px wide and 30 px high" in told
    assert "the same everywhere" not in told
    _, params = config.make_env(config.experiment(field_file=path))
    assert (params.width, params.height) == (40.0, 30.0)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, ">f4", np.float16])
def test_numbers_of_any_kind_are_stiffness(tmp_path, kind):
    values = np.asfortranarray(np.random.default_rng(0).integers(0, 100, (9, 7)).astype(kind))
    found = field.read_field(written(tmp_path / "any.npy", values))
    np.testing.assert_array_equal(found, values.astype(np.float32))


def test_flat_ground_is_named(tmp_path, capsys):
    field.read_field(written(tmp_path / "flat.npy", np.full((30, 40), 2.0)))
    assert "it is the same everywhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (-np.ones((9, 9)), "stiffness from -1 to -1; expected none below 0"),
        (np.zeros((9, 9)), "stiffness from 0 to 0; .* some above"),
        (np.full((9, 9), np.nan), "not finite"),
        (np.full((9, 9), 1e30), "beyond 1e.06"),
        (np.full((9, 9), -128, np.int8), "stiffness from -128 to -128"),
        (np.ones(9), r"has the shape \(9,\)"),
        (np.array([["a"]]), "expected real numbers"),
    ],
)
def test_other_files_are_refused(tmp_path, values, told):
    with pytest.raises(ValueError, match=told) as caught:
        field.read_field(written(tmp_path / "x.npy", values))
    assert "\n" not in str(caught.value)


GREYS = np.random.default_rng(1).integers(0, 256, (12, 20), dtype=np.uint8)


def image(path, values) -> str:
    Image.fromarray(values).save(path)
    return str(path)


@pytest.mark.parametrize("name", ["soft.png", "soft.tif", "soft.tiff"])
def test_greys_are_stiffness_from_black_to_white(tmp_path, name):
    found = field.read_field(image(tmp_path / name, GREYS), None, (2.0, 12.0))
    np.testing.assert_allclose(found, 2 + 10.0 * GREYS / 255, rtol=1e-6)
    deep = (GREYS.astype(np.uint16) << 8) + 7
    found = field.read_field(image(tmp_path / f"deep-{name}", deep), None, (0.0, 65535.0))
    np.testing.assert_allclose(found, deep, rtol=1e-6)


def test_floats_of_an_image_are_stiffness_themselves(tmp_path):
    values = GREYS.astype(np.float32) / 3
    path = image(tmp_path / "floats.tif", values)
    np.testing.assert_array_equal(field.read_field(path), values)
    with pytest.raises(ValueError, match="are stiffness already: leave it out"):
        field.read_field(path, None, (0.0, 1.0))


@pytest.mark.parametrize("scale", [2.0, 0.5, 3.25])
def test_pixels_of_another_size_are_resampled(tmp_path, scale, capsys):
    """A plane stays a plane away from its edges: the middle of a pixel is where it was."""
    x, y = np.meshgrid(np.arange(40) + 0.5, np.arange(30) + 0.5)
    path = written(tmp_path / f"plane{scale}.npy", 3 + 0.5 * x + 0.25 * y)
    found = field.read_field(path, scale)
    assert found.shape == (round(30 * scale), round(40 * scale))
    x, y = np.meshgrid(np.arange(found.shape[1]) + 0.5, np.arange(found.shape[0]) + 0.5)
    ratio = np.array(found.shape) / (30, 40)
    expected = 3 + 0.5 * x / ratio[1] + 0.25 * y / ratio[0]
    edge = max(3, round(2 * scale))
    inner = slice(edge, -edge), slice(edge, -edge)
    np.testing.assert_allclose(found[inner], expected[inner], rtol=1e-5)
    assert f"every cell is {scale:g} px" in capsys.readouterr().err


def test_the_size_of_pixels_is_in_micrometres(tmp_path):
    path = image(tmp_path / "gel.png", GREYS)
    experiment = config.experiment(
        field_file=path, field_range=(1.0, 20.0), field_pixel_size=6.5, pixel_size=1.3
    )
    _, params = config.make_env(experiment)
    assert params.field.shape == (60, 100) == (params.height, params.width)


@pytest.mark.parametrize(
    ("make", "stiffness", "told"),
    [
        (lambda p: image(p / "a.png", GREYS), None, "say what stiffness black and white are"),
        (lambda p: image(p / "a.png", np.stack([GREYS] * 3, -1)), (0, 1), "its mode is RGB"),
        (lambda p: written(p / "a.npy", GREYS), (0, 1), "is no image: its numbers are stiffness"),
        (lambda p: (p / "a.png").write_text("x") and str(p / "a.png"), (0, 1), "no image of"),
        (lambda p: str(p / "none.tif"), (0, 1), "there is no file"),
    ],
)
def test_other_images_are_refused(tmp_path, make, stiffness, told):
    with pytest.raises(ValueError, match=re.escape(told)) as caught:
        field.read_field(make(tmp_path), None, stiffness)
    assert "\n" not in str(caught.value)


def test_ground_that_would_be_too_large_is_refused(tmp_path):
    path = written(tmp_path / "wide.npy", np.ones((100, 100)))
    with pytest.raises(ValueError, match=re.escape("expected at most 100,000,000 px")):
        field.read_field(path, 1100.0)
