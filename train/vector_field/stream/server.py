"""The closed loop on a socket: one client at a time, on this machine alone.

Whatever a client sends, it gets one line for each of its own, and the loop goes on. If a client is
lost, the inputs go the quiet path, as it should do too, and the next client takes over from there.
"""

import selectors
import socket
import time
from collections.abc import Callable

from train.host.errors import UsageError, in_one_line
from train.vector_field.stream import protocol
from train.vector_field.stream.latency import Latencies
from train.vector_field.stream.loop import BadSample, ClosedLoop
from train.vector_field.stream.protocol import LONGEST_LINE

HOST = "127.0.0.1"
WAIT = 0.1
"""Seconds without anything, after which the server looks around."""


class Server:
    """Answers samples until it is told to stop."""

    def __init__(self, loop: ClosedLoop, listener: socket.socket, silence: float):
        """Serves those who come to `listener`, which it closes in the end."""
        self._loop, self._silence = loop, silence
        self._listener = listener
        self.port = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._client: socket.socket | None = None
        self._text, self._is_too_long, self._heard = b"", False, 0.0
        self.latencies = Latencies()

    def run(self, stops: Callable[[], bool], looks: Callable[["Server"], None]) -> None:
        """Serves until `stops()`; calls `looks(self)` whenever nothing waits for an answer."""
        try:
            while not stops():
                for key, _ in self._selector.select(WAIT):
                    if key.fileobj is self._listener:
                        self._welcome()
                    elif key.fileobj is self._client:
                        self._read()
                self._loop.settle()
                looks(self)
        finally:
            if self._client is not None:
                self._lose_client()
            self._selector.close()
            self._listener.close()

    @property
    def has_client(self) -> bool:
        """Whether a rig is connected."""
        return self._client is not None

    def _welcome(self) -> None:
        """Takes a client, unless another one is alive."""
        connection, _ = self._listener.accept()
        connection.settimeout(1.0)  # for answers; who reads none is lost
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._client is not None and time.monotonic() - self._heard < self._silence:
            message = "another client is connected: come back once it is silent"
            self._try_to_send(connection, protocol.error(message, self._loop.next_number))
            connection.close()
            return
        if self._client is not None:
            self._lose_client()
        self._client, self._heard = connection, time.monotonic()
        self._text, self._is_too_long = b"", False
        self._selector.register(connection, selectors.EVENT_READ)
        loop = self._loop
        self._answer(
            protocol.greeting(loop.limits, loop.options.channels, loop.next_number, loop.last_input)
        )

    def _lose_client(self) -> None:
        assert self._client is not None
        self._selector.unregister(self._client)
        self._client.close()
        self._client = None
        self._loop.fall_silent()

    def _read(self) -> None:
        """Answers each whole line that has come."""
        assert self._client is not None
        began = time.perf_counter()
        try:
            part = self._client.recv(LONGEST_LINE)
        except OSError:
            part = b""
        if not part:
            self._lose_client()
            return
        self._heard = time.monotonic()
        *lines, self._text = (self._text + part).split(b"\n")
        for line in lines:
            if self._client is None:  # it was lost at an answer
                return
            self._take_line(line, began)
            began = time.perf_counter()
        if len(self._text) > LONGEST_LINE:  # the end of which is not worth waiting for
            self._text, self._is_too_long = b"", True

    def _take_line(self, line: bytes, began: float) -> None:
        loop = self._loop
        if self._is_too_long or len(line) > LONGEST_LINE:
            self._is_too_long = False
            message = f"a line is longer than {LONGEST_LINE:,} bytes"
            self._answer(protocol.error(message, loop.next_number))
            return
        try:
            sample = protocol.parse(line)
            number = loop.next_number if sample.number is None else sample.number
            if number == loop.next_number - 1 and number == loop.newest_number:
                self._answer(protocol.answer(number, loop.last_input))  # it was asked for again
                return
            answer = protocol.answer(number, loop.observe(sample.y, number))
        except BadSample as error:
            answer = protocol.error(in_one_line(error), loop.next_number)
            self._answer(answer)
            return
        self._answer(answer)
        self.latencies.add(time.perf_counter() - began)

    def _answer(self, line: bytes) -> None:
        if self._client is not None and not self._try_to_send(self._client, line):
            self._lose_client()

    def _try_to_send(self, connection: socket.socket, line: bytes) -> bool:
        try:
            connection.sendall(line)
        except OSError:
            return False
        return True


def listen(port: int) -> socket.socket:
    """A socket that clients on this machine can reach. Raises UsageError if the port is taken."""
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise UsageError(
            f"port {port} cannot be used ({in_one_line(error)}): give another --port"
        ) from error
    return listener
