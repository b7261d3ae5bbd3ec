"""A server whose loop learns nothing, for tests of what goes over the socket."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from train.vector_field.stream.guard import Account, RigLimits
from train.vector_field.stream.loop import BadSample
from train.vector_field.stream.server import Server, listen

ALLOWED = RigLimits((-1.0,), (1.0,), (0.25,), 3.0, 4, 1.0)


class EagerLoop:
    """Asks for the largest input; refuses observations of another size than 2."""

    def __init__(self):
        self.limits, self._account = ALLOWED, Account(ALLOWED)
        self.options = SimpleNamespace(channels=2)
        self.outputs: list = []
        self.newest_number: int | None = None
        self.settled = 0

    @property
    def next_number(self) -> int:
        return len(self.outputs)

    @property
    def last_input(self):
        return self._account.last

    def observe(self, y, number: int):
        if len(y) != 2 or number < self.next_number:
            raise BadSample(f"sample {number} with {len(y)} channels")
        self.outputs += self._account.fall_silent(number - self.next_number)
        self.outputs.append(self._account.project([5.0]))
        self.newest_number = number
        return self.outputs[-1]

    def fall_silent(self):
        self.newest_number = None
        self.outputs += self._account.fall_silent(self._account.samples_to_quiet())

    def settle(self):
        self.settled = self.next_number


@contextmanager
def serve(loop: Any, silence: float = 60.0) -> Iterator[Server]:
    """Serves a loop in a thread."""
    stop = threading.Event()
    server = Server(loop, listen(0), silence)
    thread = threading.Thread(target=server.run, args=(stop.is_set, lambda _: None))
    thread.start()
    try:
        yield server
    finally:
        stop.set()
        thread.join()
