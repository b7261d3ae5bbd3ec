"""What tests ask of a picture that was written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from train.host.showing import pictures


def size(path: Path) -> tuple[int, int]:
    """Width and height; it is more than an empty page."""
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("L"))
    assert np.mean(pixels < 250) > 0.002
    return pixels.shape[1], pixels.shape[0]


def assert_drawn(path: Path) -> None:
    """There is something to see, and room to see it."""
    assert min(size(path)) >= 300


def size_alone(path: Path) -> tuple[int, int]:
    """The same of the one file in its folder: nothing half-written lies beside it."""
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return size(path)


@contextmanager
def saved_figures() -> Iterator[list[Figure]]:
    """The figures that are saved meanwhile, in this order."""
    figures, save = [], pictures.save

    def keep_figure(figure: Figure, path: str | Path) -> None:
        figures.append(figure)
        save(figure, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "save", keep_figure)
        yield figures


def words_fit(figure: Figure) -> bool:
    """Whether no title, caption or name of an axis runs over the edge of the page."""
    names = [(axes.title, axes.xaxis.label, axes.yaxis.label) for axes in figure.axes]
    visible_texts = [text for text in [*figure.texts, *sum(names, ())] if text.get_text()]
    boxes = [text.get_window_extent() for text in visible_texts]
    page = figure.bbox
    return bool(visible_texts) and all(
        page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
        for box in boxes
    )
