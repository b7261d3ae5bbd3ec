"""Recorded data: episodes of observations and inputs, of one session or of several.

Axes: E episodes, T steps of the longest, n channels, m inputs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from train.host.files.whole_files import write_arrays


class Sessions(NamedTuple):
    """Sessions that have channels of their own."""

    names: tuple[str, ...]
    of_episode: np.ndarray  # int [E], ascending
    of_channel: np.ndarray  # int [n], ascending

    def channels(self, session: int) -> np.ndarray:
        """The places of a session's channels among all."""
        return np.flatnonzero(self.of_channel == session)


class Data(NamedTuple):
    """Episodes, each padded at its end to the longest; float32."""

    y: np.ndarray  # [E, T, n]; 0 where missing
    u: np.ndarray  # [E, T, m]; 0 in padding
    observed: np.ndarray  # bool [E, T, n]; false where missing, and in padding
    lengths: np.ndarray  # int [E]
    holds_counts: bool = False  # whether all observed are whole numbers from 0 on, unrounded
    sessions: Sessions | None = None  # None: all episodes have the same channels

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing but padding."""
        valid = np.arange(self.y.shape[1]) < self.lengths[:, None]
        return bool(self.observed[valid].all())

    def episodes(self, which: slice) -> "Data":
        """Some of the episodes, without the padding that they do not need."""
        longest = int(self.lengths[which].max(initial=0))
        return self.cut(which, slice(longest), self.lengths[which])

    def cut(self, which: slice, steps: slice, lengths: np.ndarray) -> "Data":
        """Some steps of some of the episodes, which then have these lengths."""
        y, u, observed = (x[which, steps] for x in self[:3])
        sessions = self.sessions
        if sessions is not None:
            sessions = sessions._replace(of_episode=sessions.of_episode[which])
        return Data(y, u, observed, lengths, self.holds_counts, sessions)

    def episode(self, which: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`y [T, n]`, `u [T, m]` and `observed [T, n]` of one episode, without padding."""
        y, u, observed = (x[which, : self.lengths[which]] for x in self[:3])
        return y, u, observed


def join_episodes(episodes: Sequence[tuple[np.ndarray, np.ndarray]]) -> Data:
    """Pads pairs of y `[T, n]`, NaN where missing, and u `[T, m]`."""
    lengths = np.array([len(y) for y, _ in episodes])
    y, u = (_pad_episodes(arrays, int(lengths.max())) for arrays in zip(*episodes, strict=True))
    observed = ~np.isnan(y)
    y[~observed] = 0
    inside = np.arange(lengths.max()) < lengths[:, None]
    u[~inside] = 0
    holds_counts = all(_are_counts(y) for y, _ in episodes)  # float32 would make others whole
    return Data(y, u, observed, lengths, holds_counts)


def _pad_episodes(episodes: Sequence[np.ndarray], steps: int) -> np.ndarray:
    """`[E, steps, n]` of episodes `[T, n]`, NaN behind their ends."""
    padded = np.full((len(episodes), steps, episodes[0].shape[1]), np.nan, np.float32)
    for row, episode in zip(padded, episodes, strict=True):
        row[: len(episode)] = episode
    return padded


def _are_counts(y: np.ndarray) -> bool:
    return bool(np.all(np.isnan(y) | (y >= 0) & (y == np.round(y))))


def write_experiments(
    directory: Path,
    samples: dict[str, np.ndarray],
    seeds: list[int],
    policies: tuple[str, ...],
    fields: tuple[str, ...],
    lengths: np.ndarray | None = None,
) -> list[Path]:
    """Writes `recordings/POLICY-FIELD-seedN.npz` for each experiment.

    `samples` are `[S, P, F, T, ...]`, of which `lengths` `[S, P, F]` count; None: all. Each file
    holds what `loading.load` reads, `y` `[T, n]` and `u` `[T, m]`, and beside it the true state `z`
    `[T, d]` and the learner's `belief` `[T, learned dimensions]`.
    """
    folder, paths = directory / "recordings", []
    folder.mkdir(exist_ok=True)
    for s, seed in enumerate(seeds):
        for p, policy in enumerate(policies):
            for f, field in enumerate(fields):
                paths.append(folder / f"{policy}-{field}-seed{seed}.npz")
                count = None if lengths is None else int(lengths[s, p, f])
                write_arrays(paths[-1], {name: x[s, p, f, :count] for name, x in samples.items()})
    return paths
