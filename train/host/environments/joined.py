"""Observations of several parts that one vector holds: which of its numbers are of an image."""

from typing import Any

import numpy as np
from gymnax.environments.spaces import Box

from envs.spaces import flatten
from envs.wrappers.flatten_observation import size


class JoinedBox(Box):
    """The space of vectors `[F D]` of F frames, each of parts, some of which are images."""

    def __init__(self, whole: Box, parts: tuple[Any, ...], frames: int):
        super().__init__(whole.low, whole.high, whole.shape, whole.dtype)
        self.parts = parts
        self.frames = frames

    def __repr__(self) -> str:
        return f"parts with an image, joined to {self.shape[0]:,} numbers"

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
    """The space of observations `whole [F D]`, with the parts of `space` if any is an image.

    What each frame shows beyond these, such as the last action, is one more part.
    """
    parts = [part for part, _ in flatten(space)]
    if not any(is_image(part) for part in parts):
        return whole
    extra_size = whole.shape[0] // frames - sum(size(part) for part in parts)
    return JoinedBox(whole, (*parts, *([free_box(extra_size)] if extra_size else [])), frames)


def is_image(space: Any) -> bool:
    """Whether observations have the axes [rows, cols, channels]."""
    return isinstance(space, Box) and len(space.shape) == 3


def free_box(count: int) -> Box:
    """The space of vectors of any numbers."""
    return Box(-np.inf, np.inf, (count,))
