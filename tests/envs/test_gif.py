"""GIFs against Pillow's reader, frame for frame."""

import numpy as np
import pytest
from PIL import Image

from envs import gif


def frames_of(path) -> tuple[list[np.ndarray], list[float]]:
    """RGB frames and the seconds each is shown."""
    pictures, seconds = [], []
    with Image.open(path) as image:
        for i in range(image.n_frames):  # pyright: ignore[reportAttributeAccessIssue]
            image.seek(i)
            pictures.append(np.asarray(image.convert("RGB")))
            seconds.append(image.info["duration"] / 1000)
    return pictures, seconds


@pytest.mark.parametrize("num_colours", [2, 3, 4, 96, 128, 255])
def test_every_frame_is_read_as_it_was_written(tmp_path, num_colours):
    rng = np.random.default_rng(num_colours)
    colours = rng.integers(0, 256, (num_colours, 3), np.uint8)
    first = rng.integers(0, num_colours, (19, 31)).astype(np.uint8)
    little = first.copy()
    little[4:6, 20:23] = rng.integers(0, num_colours, (2, 3))
    noise = rng.integers(0, num_colours, first.shape).astype(np.uint8)
    pixels = [first, little, little.copy(), noise, np.zeros_like(first)]
    seconds = [0.05, 0.04, 0.1, 1.0, 2.0]
    gif.write(tmp_path / "film.gif", zip(pixels, seconds, strict=True), colours)
    frames, durations = frames_of(tmp_path / "film.gif")
    assert durations == pytest.approx(seconds)
    for wrote, got in zip(pixels, frames, strict=True):
        np.testing.assert_array_equal(got, colours[wrote])
    with Image.open(tmp_path / "film.gif") as image:
        assert image.info["loop"] == 0  # for ever


def test_unchanged_parts_cost_next_to_nothing(tmp_path):
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 256, (64, 3), np.uint8)
    noise = rng.integers(0, 64, (60, 60)).astype(np.uint8)
    gif.write(tmp_path / "one.gif", [(noise, 0.1)], colours)
    gif.write(tmp_path / "many.gif", [(noise, 0.1)] * 50, colours)
    one, many = ((tmp_path / name).stat().st_size for name in ("one.gif", "many.gif"))
    assert many - one < 50 * 40


def test_a_film_that_breaks_off_leaves_the_old_one(tmp_path):
    path = tmp_path / "film.gif"
    path.write_bytes(b"the old one")

    def breaks_off():
        yield np.zeros((4, 4), np.uint8), 0.1
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        gif.write(path, breaks_off(), np.zeros((2, 3), np.uint8))
    with pytest.raises(ValueError, match="at least one frame"):
        gif.write(path, [], np.zeros((2, 3), np.uint8))
    assert path.read_bytes() == b"the old one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["film.gif"]


def test_too_many_colours_are_refused(tmp_path):
    with pytest.raises(ValueError, match="at most 255"):
        gif.write(tmp_path / "film.gif", [], np.zeros((256, 3), np.uint8))
