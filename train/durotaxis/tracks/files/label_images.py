"""Places of cells from the label images of the Cell Tracking Challenge.

Beside `man_track.txt` lie `man_track000.tif`, …, beside `res_track.txt` `mask000.tif`, …: in each
px is the label of the track that it belongs to, 0 for none (Maška et al. 2014, *Bioinformatics*
30, 1609).
"""

import re
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError


def centroids(path: str) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, int]:
    """`(label, frame, x, y)` of every label in every image beside a table, px; n of each.

    The fifth is the number of the last image, which may show no label. Raises ValueError if there
    are no images, or other ones.
    """
    table = Path(path)
    stem = {"res_track": "mask"}.get(table.stem, table.stem)
    numbered = re.compile(rf"{re.escape(stem)}(\d+)\.tiff?")
    matches = [(numbered.fullmatch(x.name), x) for x in sorted(table.parent.iterdir())]
    images = [(int(match[1]), image) for match, image in matches if match]
    if not images:
        raise ValueError(
            f"{path} has no places, and no label images {stem}000.tif, … lie beside it; put them "
            "there, or add columns X and Y"
        )
    names: list[str] = []
    frames, columns, rows = [], [], []
    for frame, image in images:
        labels = read_labels(image)
        height, width = labels.shape
        count = np.bincount(labels.ravel())
        present = np.flatnonzero(count[1:]) + 1
        x = np.bincount(labels.ravel(), np.tile(np.arange(width) + 0.5, height))
        y = np.bincount(labels.ravel(), np.repeat(np.arange(height) + 0.5, width))
        names += [str(label) for label in present]
        frames.append(np.full(len(present), float(frame)))
        columns.append(x[present] / count[present])
        rows.append(y[present] / count[present])
    frame, x, y = (np.concatenate(values) for values in (frames, columns, rows))
    return names, frame, x, y, max(number for number, _ in images)


def read_labels(path: Path) -> np.ndarray:
    """An image of labels, int `[height, width]`. Raises ValueError for others."""
    try:
        with Image.open(path) as image:
            pages = getattr(image, "n_frames", 1)
            labels = np.asarray(image)
    except (OSError, UnidentifiedImageError) as error:
        raise ValueError(f"{path} is no image that can be read ({error})") from None
    if pages > 1 or labels.ndim != 2 or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ValueError(f"{path} is no plane of labels; expected one page of whole numbers from 0")
    return labels.astype(int)
