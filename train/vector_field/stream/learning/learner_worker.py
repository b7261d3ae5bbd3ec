"""The process of a learner: it learns from the journal of a directory, as it is told over a socket.

    python -m train.vector_field.stream.learning.learner_worker DIRECTORY PORT

is started by `learner_process.LearnerProcess`, where the frames are described.
"""

import contextlib
import os
import socket
import sys
from pathlib import Path

import jax
import numpy as np

from train.host.command_line.command import command
from train.vector_field.stream import settings
from train.vector_field.stream.journal import Rows
from train.vector_field.stream.learning.learner import BatchLearner, Snapshot, in_units
from train.vector_field.stream.learning.learner_process import (
    CHUNK,
    FINISH,
    FRAME,
    KNOWLEDGE,
    TOKEN,
)
from train.vector_field.stream.learning.live import BLOCK, Live
from train.vector_field.stream.settings import Options

LOWEST_PRIORITY = 19


class Loop:
    """The closed loop, as its learner sees it."""

    def __init__(self, port: int):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.sendall(os.environ[TOKEN].encode())
        self._received = b""

    def newest_frame(self) -> tuple[bytes, int]:
        """The newest frame, once one has come. Raises EOFError where the loop has ended."""
        while len(self._received) < FRAME.size:
            part = self._socket.recv(CHUNK)
            if not part:
                raise EOFError
            self._received += part
        count = len(self._received) // FRAME.size * FRAME.size
        frames, self._received = self._received[:count], self._received[count:]
        return FRAME.unpack(frames[-FRAME.size :])

    def send(self, kind: bytes, snapshot: Snapshot) -> None:
        """Tells what was learned."""
        leaves = [np.asarray(x).tobytes() for x in jax.tree.leaves(snapshot.knowledge)]
        self._socket.sendall(FRAME.pack(kind, snapshot.count) + b"".join(leaves))


def serve(directory: Path, port: int) -> None:
    """Learns until the loop ends; then saves what is known."""
    loop, options = Loop(port), settings.read(directory)
    batch = BatchLearner(options, directory)
    batch.compile()
    live = Live(options, batch.snapshot().knowledge)
    live.after(batch.snapshot().knowledge, Rows(*_nothing(options)))
    batch.restore()
    batch.learn(batch.journal.count)
    change_priority(is_lowest=True)  # from the first sample on; until then it is waited for
    loop.send(KNOWLEDGE, batch.snapshot())

    def publish() -> None:
        """What the newest fit makes of all samples: the batch may have another fit before it."""
        knowledge, count = batch.snapshot()
        while len((rows := batch.journal.rows(count, count + BLOCK)).y):
            knowledge = live.after(knowledge, Rows(rows.y, in_units(batch.problem, rows.u)))
            count += len(rows.y)
        loop.send(KNOWLEDGE, Snapshot(knowledge, count))

    try:
        while True:
            kind, end = loop.newest_frame()
            if kind == FINISH:  # which is waited for, too
                change_priority(is_lowest=False)
            batch.learn(end, publish)
            if kind == FINISH:
                batch.save()
                loop.send(FINISH, batch.snapshot())
    except (EOFError, ConnectionError):
        batch.save()


def leave_a_core() -> None:
    """Keeps this process, where the system can, to all cores but one, which the loop has then."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[1:] or cores)


def change_priority(is_lowest: bool) -> None:
    """Lets all other processes go first, with every thread that there is and will be; or no more.

    Not every system, and not every user, may go back.
    """
    threads = Path("/proc/self/task")  # where each has a priority of its own
    if threads.is_dir() and hasattr(os, "SCHED_IDLE"):
        kind = os.SCHED_IDLE if is_lowest else os.SCHED_OTHER
        for thread in threads.iterdir():
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.sched_setscheduler(int(thread.name), kind, os.sched_param(0))
    elif is_lowest and hasattr(os, "nice"):
        os.nice(LOWEST_PRIORITY)


def _nothing(options: Options) -> tuple[np.ndarray, np.ndarray]:
    """A sample that was missing, without an input."""
    y = np.full((1, options.channels), np.nan, np.float32)
    return y, np.zeros((1, options.inputs), np.float32)


def main(arguments: list[str]) -> int:
    leave_a_core()
    return command(lambda _: serve(Path(arguments[0]), int(arguments[1])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
