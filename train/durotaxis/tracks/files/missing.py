"""Detections that a recording lacks: frames in which a cell lives but has no place."""

import numpy as np

from train.durotaxis.tracks.tracks import Tracks
from train.host.numbers import quantity


def notes(tracks: Tracks) -> tuple[str, ...]:
    """A line on cells that are missing in the middle of their lives, one on empty frames."""
    lived = int(np.sum(tracks.last - tracks.first + 1))
    missing = lived - len(tracks.cell)
    verb = "is" if missing == 1 else "are"
    cells = (
        f"{missing:,} of {quantity(lived, 'detections')} {verb} missing between the first and last "
        "frame of their cells, which are taken to live on"
    )
    empty = np.setdiff1d(np.arange(tracks.frames), tracks.frame)
    frames = (
        f"{len(empty):,} of {quantity(tracks.frames, 'frames')} between the first and the last "
        f"{'has' if len(empty) == 1 else 'have'} no cell at all"
    )
    return (cells,) * (missing > 0) + (frames,) * (len(empty) > 0)
