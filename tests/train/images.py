"""What tests ask of a picture that was written."""

from pathlib import Path

import numpy as np
from PIL import Image


def shape(path: Path) -> tuple[int, int]:
    """Width and height of the one file there; it is more than an empty page."""
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    image = Image.open(path).convert("L")
    assert np.mean(np.asarray(image) < 250) > 0.002
    return image.size
