"""Sessions of different channels as one data set: an episode lacks the channels of the others.

Axes: E episodes, n channels of all sessions.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from train.host.files.array_files import MAX_BYTES
from train.vector_field.data.recordings import Data, Sessions


def session_names(paths: Sequence[str]) -> tuple[str, ...]:
    """A name for each file: without folder and ending where these names differ."""
    stems = tuple(Path(x).stem for x in paths)
    return stems if len(set(stems)) == len(stems) else tuple(paths)


def join_sessions(parts: Sequence[Data], names: Sequence[str]) -> Data:
    """One data set of sessions, each with its own channels, in their order.

    Raises ValueError for sessions with different numbers of inputs.
    """
    inputs = [x.u.shape[-1] for x in parts]
    if len(set(inputs)) > 1:
        listing = ", ".join(f"{name} {m}" for name, m in zip(names, inputs, strict=True))
        raise ValueError(f"sessions have different numbers of inputs, {listing}: give all the same")
    sizes, counts = [x.y.shape[-1] for x in parts], [len(x.lengths) for x in parts]
    lengths = np.concatenate([x.lengths for x in parts])
    shape = sum(counts), int(lengths.max()), sum(sizes)
    if np.prod([float(x) for x in shape]) * 4 > MAX_BYTES:
        raise ValueError(
            f"{sum(sizes)} channels of all sessions in {shape[0]} episodes of up to {shape[1]} "
            "steps are too many: give fewer sessions, or fewer channels of each"
        )
    y, observed = np.zeros(shape, np.float32), np.zeros(shape, bool)
    u = np.zeros((*shape[:2], inputs[0]), np.float32)
    first_episode = first_channel = 0
    for part, count, size in zip(parts, counts, sizes, strict=True):
        rows = slice(first_episode, first_episode + count), slice(part.y.shape[1])
        columns = slice(first_channel, first_channel + size)
        y[*rows, columns], observed[*rows, columns], u[rows] = part.y, part.observed, part.u
        first_episode, first_channel = first_episode + count, first_channel + size
    order = np.arange(len(parts))
    sessions = Sessions(tuple(names), np.repeat(order, counts), np.repeat(order, sizes))
    return Data(y, u, observed, lengths, all(x.holds_counts for x in parts), sessions)


def session_of(data: Data, session: int) -> Data:
    """One session alone, with its channels."""
    assert data.sessions is not None
    episodes = np.flatnonzero(data.sessions.of_episode == session)
    part = data._replace(sessions=None).episodes(slice(episodes[0], episodes[-1] + 1))
    channels = data.sessions.channels(session)
    return part._replace(y=part.y[..., channels], observed=part.observed[..., channels])


def parts_of(data: Data) -> list[Data]:
    """All sessions alone; the data themselves where there are none."""
    if data.sessions is None:
        return [data]
    return [session_of(data, s) for s in range(len(data.sessions.names))]


def map_sessions(function: Callable[[Data], tuple[Data, ...]], data: Data) -> tuple[Data, ...]:
    """What `function` makes of each session, joined; of data without sessions, of them.

    A ValueError names the session that it is about.
    """
    if data.sessions is None:
        return function(data)
    results = []
    for name, part in zip(data.sessions.names, parts_of(data), strict=True):
        try:
            results.append(function(part))
        except ValueError as error:
            raise ValueError(f"session {name}: {error}") from None
    return tuple(join_sessions(x, data.sessions.names) for x in zip(*results, strict=True))


def longest_session(data: Data) -> int:
    """The session of the most observed values."""
    return int(np.argmax([x.observed.sum() for x in parts_of(data)]))
