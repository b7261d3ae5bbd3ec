"""What can be made of a film that is drawn: another format, and a strip for print."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageSequence

from train.host.files.whole_files import replacement_file

MOMENTS, ACROSS = 6, 3
"""Frames of a strip, and how many are beside each other."""
GAP = 8
"""Pixels between them."""
PRINT = 300  # dots per inch
WIDEST = 2_400  # pixels of a strip for print: 8 inches


def convert_to_webp(film: Path) -> Path:
    """The same film as `NAME.webp` beside it, without any loss, and in place of it.

    A half to a quarter of the size; all browsers show it, some viewers of pictures do not.
    """
    path = film.with_suffix(".webp")
    frames, times = decode_frames(film)
    with replacement_file(path) as file:
        options = {"lossless": True, "quality": 50, "method": 3, "loop": 0, "duration": times}
        frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:], **options)
    film.unlink()
    return path


def decode_frames(film: Path) -> tuple[list[Image.Image], list[int]]:
    """The frames of a film, and for how many milliseconds each is shown."""
    with Image.open(film) as image:
        frames = [(x.convert("RGB"), x.info["duration"]) for x in ImageSequence.Iterator(image)]
    return [frame for frame, _ in frames], [time for _, time in frames]


def strip(film: Path) -> Path:
    """Writes `NAME_strip.png`: moments of a film, evenly spread, the first and the last included.

    Pixels are enlarged by a whole number, so that edges stay sharp in print.
    """
    frames, _ = decode_frames(film)
    indices = sorted({round(i) for i in np.linspace(0, len(frames) - 1, MOMENTS)})
    width, height = frames[0].size
    across = min(ACROSS, len(indices))
    down = -(-len(indices) // across)
    size = across * (width + GAP) - GAP, down * (height + GAP) - GAP
    canvas = Image.new("RGB", size, "white")
    for place, i in enumerate(indices):
        row, col = divmod(place, across)
        canvas.paste(frames[i], (col * (width + GAP), row * (height + GAP)))
    scale = max(1, WIDEST // size[0])
    canvas = canvas.resize((size[0] * scale, size[1] * scale), Image.Resampling.NEAREST)
    path = film.with_name(f"{film.stem}_strip.png")
    with replacement_file(path) as file:
        canvas.save(file, "PNG", dpi=(PRINT, PRINT), optimize=True)
    return path
