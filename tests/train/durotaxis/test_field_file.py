"""A file of measured stiffness: what a cell of it is, and what is refused."""

import re
import struct

import numpy as np
import pytest
from PIL import Image

from train.durotaxis import config, field, program
from train.durotaxis.evaluation.evaluate import measured_ground
from train.durotaxis.greys import read


def write_array(path, values) -> str:
    np.save(path, values)
    return str(path)


def test_every_cell_is_one_px_which_is_said_once(tmp_path, capsys):
    values = np.random.default_rng(0).random((30, 40))
    path = write_array(tmp_path / "soft.npy", values)
    for _ in range(2):
        np.testing.assert_array_equal(field.read_field(path), values.astype(np.float32))
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "every pixel is one px, so the ground is 40 px wide and 30 px high" in message
    assert "the same everywhere" not in message
    _, params = config.make_env(config.Experiment(field_file=path))
    assert (params.width, params.height) == (40.0, 30.0)
    for goal in ("right", "up", "30"):  # a summary tells the size of the file
        size = measured_ground(config.Experiment(field_file=path, goal=goal))
        assert (size["width"], size["height"]) == (40, 30)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, ">f4", np.float16])
def test_numbers_of_any_kind_are_stiffness(tmp_path, kind):
    values = np.asfortranarray(np.random.default_rng(0).integers(0, 100, (9, 7)).astype(kind))
    ground = field.read_field(write_array(tmp_path / "any.npy", values))
    np.testing.assert_array_equal(ground, values.astype(np.float32))


def test_flat_ground_is_named(tmp_path, capsys):
    field.read_field(write_array(tmp_path / "flat.npy", np.full((30, 40), 2.0)))
    assert "it is the same everywhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (-np.ones((9, 9)), "stiffness from -1 to -1; expected none below 0"),
        (np.zeros((9, 9)), "stiffness from 0 to 0; .* some above"),
        (np.array([[1, np.nan], [np.inf, 2]]), "has 2 values that are not finite; .* fill the"),
        (np.full((9, 9), 1e30), "has values up to 1e.30; .* at most 1e.06: divide"),
        (np.full((9, 9), -128, np.int8), "stiffness from -128 to -128"),
        (np.array([[1.0, -3e38], [5.0, 2.0]]), r"stiffness from -3e\+38 to 5; expected none below"),
        (np.ones(9), r"has the shape \(9,\)"),
        (np.array([["a"]]), "expected real numbers"),
    ],
)
def test_other_files_are_refused(tmp_path, values, message):
    with pytest.raises(ValueError, match=message) as caught:
        field.read_field(write_array(tmp_path / "x.npy", values))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".csv", ".jpg", ".npz"])
def test_a_file_of_another_kind_is_named_by_its_ending(tmp_path, suffix):
    path = tmp_path / f"gel{suffix}"
    path.write_bytes(b"1.5,2.5")
    with pytest.raises(ValueError, match=rf"\(it ends in {suffix}\): write it with numpy.save"):
        field.read_field(str(path), None, (1.0, 40.0))


def test_titles_name_measured_ground_and_the_goal():
    title = lambda **changes: program.environment(config.Config(config.Experiment(**changes)))
    assert title() == "Durotaxis, linear ground, directed spawning"
    measured = title(field_file="gel.tif", goal="up")
    assert measured == "Durotaxis, measured ground, goal up, directed spawning"


GREYS = np.random.default_rng(1).integers(0, 256, (12, 20), dtype=np.uint8)


def image(path, values) -> str:
    Image.fromarray(values).save(path)
    return str(path)


@pytest.mark.parametrize("name", ["soft.png", "soft.tif", "soft.tiff"])
def test_greys_are_stiffness_from_black_to_white(tmp_path, name):
    stiffness = field.read_field(image(tmp_path / name, GREYS), None, (2.0, 12.0))
    np.testing.assert_allclose(stiffness, 2 + 10.0 * GREYS / 255, rtol=1e-6)
    deep = (GREYS.astype(np.uint16) << 8) + 7
    stiffness = field.read_field(image(tmp_path / f"deep-{name}", deep), None, (0.0, 65535.0))
    np.testing.assert_allclose(stiffness, deep, rtol=1e-6)


def tiff(path, values, bits, tags=(), order="<", text="") -> str:
    """A TIFF of one strip, written by hand: Pillow turns some arrays over when it saves them."""
    rows = np.atleast_2d(values)
    strip, width = rows.tobytes(), rows.shape[1] * rows.dtype.itemsize * 8 // bits
    label = text.encode().ljust(8, b"\0")
    numbers = {256: width, 257: len(rows), 258: bits, 259: 1, 262: 1, 273: 8, 277: 1}
    numbers |= {278: len(rows), 279: len(strip), **dict(tags)}
    directory = {tag: struct.pack(f"{order}HHII", tag, 4, 1, x) for tag, x in numbers.items()}
    directory[270] = struct.pack(f"{order}HHII", 270, 2, len(label), 8 + len(strip))
    start = struct.pack(f"{order}HI", 42, 8 + len(strip) + len(label))
    count = struct.pack(f"{order}H", len(directory))
    content = [{"<": b"II", ">": b"MM"}[order], start, strip, label, count]
    entries = [directory[tag] for tag in sorted(directory)]
    path.write_bytes(b"".join([*content, *entries, bytes(4)]))
    return str(path)


PHOTOMETRIC, FORMAT = 262, 339


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("bits", [8, 16])
def test_white_may_be_zero(tmp_path, order, bits, capsys):
    white = 2**bits - 1
    values = np.random.default_rng(2).integers(0, white + 1, (9, 7)).astype(f"{order}u{bits // 8}")
    for photometric, greys in ((1, values.astype(float)), (0, white - values.astype(float))):
        tags = {PHOTOMETRIC: photometric}
        path = tiff(tmp_path / f"{photometric}.tif", values, bits, tags, order)
        ground = field.read_field(path, None, (1.0, 40.0))
        np.testing.assert_allclose(ground, 1 + 39 * greys / white, rtol=1e-6)
        printed = capsys.readouterr().err
        assert f"greys are {greys.min():,.0f} to {greys.max():,.0f}, white is {white:,}" in printed
        assert f"stiffness from {1 + 39 * greys.min() / white:g} to " in printed


def test_white_is_as_large_as_the_bits_allow(tmp_path):
    packed = np.array([[0x12, 0x3A, 0xBC, 0xFF, 0xF0, 0x01]], np.uint8)  # 12 bits each
    ground = field.read_field(tiff(tmp_path / "12.tif", packed, 12), None, (0.0, 1.0))
    np.testing.assert_allclose(ground, np.array([[0x123, 0xABC, 0xFFF, 1]]) / 4095, rtol=1e-6)
    for name in ("bits.png", "bits.tif"):
        ground = field.read_field(image(tmp_path / name, GREYS > 99), None, (2.0, 12.0))
        np.testing.assert_array_equal(ground, np.where(GREYS > 99, 12, 2))
    four = np.array([[0x0F, 0x5A]], np.uint8)
    ground = field.read_field(tiff(tmp_path / "4.tif", four, 4), None, (0.0, 15.0))
    np.testing.assert_allclose(ground, [[0, 15, 5, 10]], rtol=1e-6)


IMAGEJ = "ImageJ=1.53t\n"


@pytest.mark.parametrize(
    ("values", "bits", "tags", "text", "message"),
    [
        (GREYS.astype("<i2"), 16, {FORMAT: 2}, "", "have a sign or 32 bits, so none of them is"),
        (GREYS.astype("i1"), 8, {FORMAT: 2}, "", "have a sign or 32 bits, so none of them is"),
        (GREYS.astype("<u4"), 32, {FORMAT: 1}, "", "have a sign or 32 bits, so none of them is"),
        (GREYS.astype("<i4"), 32, {FORMAT: 2}, "", "have a sign or 32 bits, so none of them is"),
        (GREYS.astype("<f8"), 64, {FORMAT: 3}, "", "of an unusual kind); expected one picture in"),
        (GREYS, 8, {PHOTOMETRIC: 3}, "", "is no image of stiffness"),
        (GREYS.astype("<u2"), 16, {}, IMAGEJ + "images=30\n", "it has 30 pictures of 20 x 12"),
        (GREYS.astype("<u2"), 16, {}, IMAGEJ + "cf=0\nc0=-32768\nc1=1\n", "has calibrated its n"),
        (np.full((2, 2), np.nan, "<f4"), 32, {FORMAT: 3}, "", "not finite"),
    ],
)
def test_tiffs_without_a_white_are_refused(tmp_path, values, bits, tags, text, message):
    path = tiff(tmp_path / "x.tif", values, bits, tags, text=text)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        field.read_field(path, None, None if "f" in values.dtype.str else (0.0, 1.0))
    assert "\n" not in str(caught.value)


def test_what_imagej_says_of_an_image_that_is_as_it_seems(tmp_path):
    text = IMAGEJ + "min=3.0\nmax=9.0\nimages=1\n"
    path = tiff(tmp_path / "x.tif", GREYS.astype(">u2"), 16, order=">", text=text)
    ground = field.read_field(path, None, (0.0, 65535.0))
    np.testing.assert_array_equal(ground, GREYS)


def test_images_of_more_than_one_grey_are_refused(tmp_path):
    grey = Image.fromarray(GREYS)
    for mode in ("P", "LA", "RGB", "RGBA"):
        grey.convert(mode).save(tmp_path / f"{mode}.png")
    grey.save(tmp_path / "hole.png", transparency=int(GREYS[0, 0]))
    for name in ("film.png", "pages.tif"):
        grey.save(tmp_path / name, save_all=True, append_images=[Image.fromarray(255 - GREYS)])
    grey.save(tmp_path / "film.gif")
    for path in tmp_path.iterdir():
        with pytest.raises(
            ValueError, match=r"its mode is|transparent|2 pictures|it ends in|no image"
        ) as refusal:
            field.read_field(str(path), None, (0.0, 1.0))
        assert "\n" not in str(refusal.value)


def test_floats_of_an_image_are_stiffness_themselves(tmp_path):
    values = GREYS.astype(np.float32) / 3
    path = image(tmp_path / "floats.tif", values)
    np.testing.assert_array_equal(field.read_field(path), values)
    with pytest.raises(ValueError, match="are stiffness already: leave it out"):
        field.read_field(path, None, (0.0, 1.0))


@pytest.mark.parametrize("compression", [None, "tiff_lzw"])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_a_tiff_is_turned_as_it_says(tmp_path, kind, compression):
    """Each of the 8 orientations: first row and first column are which sides of the picture."""
    stored = GREYS.astype(kind)
    turned = {
        **{1: stored, 2: stored[:, ::-1], 3: stored[::-1, ::-1], 4: stored[::-1]},
        **{5: stored.T, 6: np.rot90(stored, -1), 7: stored[::-1, ::-1].T, 8: np.rot90(stored)},
    }
    for orientation, expected in turned.items():
        path = tmp_path / f"{orientation}.tif"
        Image.fromarray(stored).save(path, tiffinfo={274: orientation}, compression=compression)
        np.testing.assert_array_equal(read(str(path)).values, expected)


@pytest.mark.parametrize("scale", [2.0, 0.5, 3.25])
def test_pixels_of_another_size_are_resampled(tmp_path, scale, capsys):
    """A plane stays a plane away from its edges: the middle of a pixel is where it was."""
    x, y = np.meshgrid(np.arange(40) + 0.5, np.arange(30) + 0.5)
    path = write_array(tmp_path / f"plane{scale}.npy", 3 + 0.5 * x + 0.25 * y)
    ground = field.read_field(path, scale)
    assert ground.shape == (round(30 * scale), round(40 * scale))
    x, y = np.meshgrid(np.arange(ground.shape[1]) + 0.5, np.arange(ground.shape[0]) + 0.5)
    ratio = np.array(ground.shape) / (30, 40)
    expected = 3 + 0.5 * x / ratio[1] + 0.25 * y / ratio[0]
    edge = max(3, round(2 * scale))
    inner = slice(edge, -edge), slice(edge, -edge)
    np.testing.assert_allclose(ground[inner], expected[inner], rtol=1e-5)
    assert f"every pixel is {scale:g} px" in capsys.readouterr().err


def test_the_size_of_pixels_is_in_micrometres(tmp_path):
    path = image(tmp_path / "gel.png", GREYS)
    experiment = config.Experiment(
        field_file=path, field_range=(1.0, 20.0), field_pixel_size=6.5, pixel_size=1.3
    )
    _, params = config.make_env(experiment)
    assert params.field.shape == (60, 100) == (params.height, params.width)


@pytest.mark.parametrize(
    ("make", "stiffness", "message"),
    [
        (lambda p: image(p / "a.png", GREYS), None, "say what stiffness black and white are"),
        (lambda p: image(p / "a.png", np.stack([GREYS] * 3, -1)), (0, 1), "its mode is RGB"),
        (
            lambda p: write_array(p / "a.npy", GREYS),
            (0, 1),
            "is no image: its numbers are stiffness",
        ),
        (lambda p: (p / "a.png").write_text("x") and str(p / "a.png"), (0, 1), "no image of"),
        (lambda p: str(p / "none.tif"), (0, 1), "there is no file"),
    ],
)
def test_other_images_are_refused(tmp_path, make, stiffness, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        field.read_field(make(tmp_path), None, stiffness)
    assert "\n" not in str(caught.value)


def test_ground_that_would_be_too_large_is_refused(tmp_path):
    path = write_array(tmp_path / "wide.npy", np.ones((100, 100)))
    with pytest.raises(ValueError, match=re.escape("expected at most 100,000,000 px")):
        field.read_field(path, 1100.0)
