"""Observations of several parts that one vector holds: which have first layers of their own."""

from typing import Any

import numpy as np
from gymnax.environments.spaces import Box

from envs.spaces import flatten
from envs.wrappers.flatten_observation import size


class JoinedBox(Box):
    """The space of vectors `[F D]` of F frames, each of parts: images, numbers, categories."""

    def __init__(self, whole: Box, parts: tuple[Any, ...], frames: int):
        super().__init__(whole.low, whole.high, whole.shape, whole.dtype)
        self.parts = parts
        self.frames = frames

    def __repr__(self) -> str:
        return f"parts{' with an image' * self.has_image}, joined to {self.shape[0]:,} numbers"

    @property
    def has_image(self) -> bool:
        """Whether a part is an image."""
        return any(is_image(part) for part in self.parts)

    def is_of_image(self) -> np.ndarray:
        """Which numbers are those of images, bool `[F D]`."""
        sizes = [size(part) for part in self.parts]
        return np.tile(np.repeat([is_image(part) for part in self.parts], sizes), self.frames)

    def with_free_numbers(self) -> "JoinedBox":
        """The space once all numbers but those of images are normalised."""
        free = lambda part: part if is_image(part) else free_box(size(part))
        whole = Box(-np.inf, np.inf, self.shape)
        return JoinedBox(whole, tuple(free(part) for part in self.parts), self.frames)


def join(space: Any, whole: Box, frames: int) -> Box:
    """The space of observations `whole [F D]`, with the parts of `space` if any needs layers.

    Those are images, and integers that `is_scaled` brings to 0 to 1. What each frame shows beyond
    its parts, such as the last action, is one more part.
    """
    parts = [part for part, _ in flatten(space)]
    if not any(is_image(x) or (isinstance(x, Box) and is_scaled(x).any()) for x in parts):
        return whole
    extra_size = whole.shape[0] // frames - sum(size(part) for part in parts)
    return JoinedBox(whole, (*parts, *([free_box(extra_size)] if extra_size else [])), frames)


def is_image(space: Any) -> bool:
    """Whether observations have the axes [rows, cols, channels]."""
    return isinstance(space, Box) and len(space.shape) == 3


def is_scaled(box: Box) -> np.ndarray:
    """Which numbers of a space a network brings to 0 to 1, bool in the shape of the space.

    Grey values of images from 0 to 255, of any dtype, and integers between finite bounds that are
    255 apart or more, up to 16 bits. Other numbers stay as they are: whoever declares no bounds may
    mean anything, and `normalise.observations` learns their scale.
    """
    low, high = ends(box)
    is_grey = is_image(box) & (low == 0) & (high == 255)
    is_count = (high - low >= 255) & (high - low <= 65_535)
    return is_grey | (is_count & np.issubdtype(np.dtype(box.dtype), np.integer))


def ends(box: Box) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of each number of a space, float64."""
    low, high = (np.asarray(end, np.float64) for end in (box.low, box.high))
    return np.broadcast_to(low, box.shape), np.broadcast_to(high, box.shape)


def free_box(count: int) -> Box:
    """The space of vectors of any numbers."""
    return Box(-np.inf, np.inf, (count,))
