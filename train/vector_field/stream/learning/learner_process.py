"""A learner in a process of its own, of the lowest priority, so that no sample waits for a fit.

It reads samples in the journal (`learner_worker`). Over a local socket it is sent frames of a
letter and a number: `s` END, samples up to before END are in the journal; `f` END, learn from all
of them and save. Back come `k` COUNT (or, in answer to the latter, `f` COUNT) and the bytes of what
is known after COUNT samples: at the start and after each fit.

It has a session of its own: Ctrl-C in a terminal, and what `timeout` and batch systems signal to a
group, is for the loop alone. It ends when its socket does, so with the loop, however that ends.
"""

import os
import secrets
import selectors
import socket
import struct
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np

from train.host.errors import RunError
from train.host.machine.progress import print_line
from train.vector_field.stream import settings
from train.vector_field.stream.learning.learner import Snapshot, first_state
from train.vector_field.stream.settings import Options

MODULE = "train.vector_field.stream.learning.learner_worker"
FRAME = struct.Struct("<cq")
TOKEN = "JAXRL_STREAM_TOKEN"
"""Environment variable with what the process says first, so that nobody else is taken for it."""
CHUNK = 2**18
PATIENCE = 1.0
"""Seconds in which the process may save and end by itself."""
SAMPLES, FINISH, KNOWLEDGE = b"s", b"f", b"k"
UNFINISHED = "the learner has ended: all samples are saved, and --resume learns from them"
ENDED = "the learner has ended: inputs go on, by what is known, without further fits"


class LearnerProcess:
    """A `Learner` in a process of its own. Without it, if it ends, there are no more fits."""

    def __init__(self, options: Options, directory: Path):
        self._directory, self._unsent, self._received = directory, b"", b""
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen | None = None
        self._end = 0
        problem = settings.problem(options)
        knowledge = jax.eval_shape(lambda: first_state(problem, options).params)
        leaves, self._tree = jax.tree.flatten(knowledge)
        self._leaves = [(x.shape, np.dtype(x.dtype)) for x in leaves]
        self._size = FRAME.size + sum(
            int(np.prod(shape)) * dtype.itemsize for shape, dtype in self._leaves
        )
        self.has_ended = self._is_finishing = False

    def start(self) -> None:
        token = secrets.token_hex(16)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = str(listener.getsockname()[1])
            command = [sys.executable, "-m", MODULE, str(self._directory), port]
            environment = {**os.environ, TOKEN: token, "PYTHONPATH": os.pathsep.join(sys.path)}
            self._process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
            )
            listener.settimeout(0.2)
            self._socket = self._accept(listener, token.encode(), self._process)

    def _accept(
        self, listener: socket.socket, token: bytes, process: subprocess.Popen
    ) -> socket.socket:
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                if process.poll() is not None:
                    raise RunError(UNFINISHED) from None
                continue
            connection.settimeout(5.0)
            if secrets.compare_digest(receive_exactly(connection, len(token)), token):
                connection.setblocking(False)
                return connection
            connection.close()

    def begin(self) -> Snapshot:
        snapshot = self._wait()
        self._end = snapshot.count
        return snapshot

    def send(self, end: int) -> None:
        self._end = end
        self._push(FRAME.pack(SAMPLES, end))

    def poll(self) -> Snapshot | None:
        self._push(b"")
        return self._pull()

    def finish(self) -> Snapshot:
        """Raises RunError if the process has ended before."""
        self._push(FRAME.pack(FINISH, self._end))
        self._is_finishing = True
        while self._is_finishing:
            snapshot = self._wait()
        return snapshot

    def close(self) -> None:
        """Ends the process at once: what it has not saved it learns again from the journal."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _wait(self) -> Snapshot:
        """The next thing that is learned, however long that takes."""
        while (snapshot := self.poll()) is None:
            if self.has_ended:
                raise RunError(UNFINISHED)
            assert self._socket is not None
            wait_to_read(self._socket, 0.2)
        return snapshot

    def _push(self, frame: bytes) -> None:
        """Sends a frame, as far as there is room; the rest goes with the next one."""
        self._unsent += frame
        if self._unsent and not self.has_ended and self._socket is not None:
            try:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            except BlockingIOError:
                pass
            except OSError:
                self._note_end()

    def _pull(self) -> Snapshot | None:
        """Takes what has come; something learned once all of it is there."""
        if self.has_ended or self._socket is None:
            return None
        try:
            part = self._socket.recv(CHUNK)
            self._received += part
            if not part:
                self._note_end()
        except BlockingIOError:
            pass
        except OSError:
            self._note_end()
        if len(self._received) < self._size:
            return None
        content, self._received = self._received[: self._size], self._received[self._size :]
        kind, count = FRAME.unpack_from(content)
        self._is_finishing &= kind != FINISH
        leaves, place = [], FRAME.size
        for shape, dtype in self._leaves:
            size = int(np.prod(shape))
            leaves.append(np.frombuffer(content, dtype, size, place).reshape(shape))
            place += size * dtype.itemsize
        return Snapshot(jax.tree.unflatten(self._tree, leaves), count)

    def _note_end(self) -> None:
        self.has_ended = True
        print_line(ENDED, stderr=True)


def wait_to_read(connection: socket.socket, seconds: float) -> None:
    """Waits until a socket has something to read, at most so long."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        selector.select(seconds)


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer if no more come."""
    content = b""
    while len(content) < size and (part := connection.recv(size - len(content))):
        content += part
    return content
