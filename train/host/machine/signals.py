"""SIGTERM and Ctrl-C: the first one asks to stop, a second one quits at once.

While a run trains, the first one asks it to stop after its chunk (`StopRequest`). At all other
times it ends a command at once (`Ending`), which says what is there and how to go on
(`interruption`). Before that, while a command is still loaded, there is nothing to say
(`end_until_handled`).
"""

import atexit
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from train.host.errors import INTERRUPTED, QUIT, Interrupted

SIGNALS = (signal.SIGTERM, signal.SIGINT)
SAME_PRESS = 0.5
"""Seconds within which two signals are one request, as `timeout` and some batch systems signal both
the process and its group."""
PATIENCE = 1.5
"""Seconds after which a command that has not ended by itself is ended, as compiling cannot be."""

_messages: list[str] = []
"""What an interruption says now, the innermost last: signals are of the whole process."""


@contextmanager
def interruption(message: str) -> Iterator[None]:
    """An interruption of the body is told as `message`: what is there, and how to go on."""
    _messages.append(message)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(message) from None
    finally:
        _messages.pop()


_early: dict[int, Any] = {}
"""The handlers from before `end_until_handled`, until the first `_Handlers`."""


def end_until_handled() -> None:
    """Lets a signal end this process, in one line, until the first `_Handlers` are there.

    These restore, in the end, the handlers from before this call.
    """
    for number in SIGNALS:
        _early[number] = signal.signal(number, _end_early)


def _end_early(number: int, frame) -> None:
    del number, frame
    os.write(2, b"stopped before anything began: start it again\n")
    os._exit(INTERRUPTED)


class _Handlers:
    """A context manager that handles the two signals; restores the handlers on exit.

    Python runs signal handlers only between its own instructions, so not while it waits for a
    chunk. A thread that listens on the interpreter's wake-up socket gets the signal at once and can
    quit. Outside the main thread, where Python allows no handlers, nothing is changed.
    """

    def __init__(self):
        self._first = 0.0

    def _note(self, number: int, frame) -> None:
        """The signal handler; the thread gets the signal too, perhaps later."""
        raise NotImplementedError

    def _answer(self, name: str) -> None:
        """What the thread does about the first signal."""
        raise NotImplementedError

    def _wait_no_longer(self) -> None:
        """What the thread does if nothing came for as long as `_answer` says."""
        raise NotImplementedError

    def __enter__(self):
        self._active = threading.current_thread() is threading.main_thread()
        if not self._active:
            return self
        self._listener, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._former = {x: _early.pop(x, signal.getsignal(x)) for x in SIGNALS}
        self._former_fd = signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, self._note)
        self._thread = threading.Thread(target=self._listen, name="signals", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        if not self._active:
            return
        for number, handler in self._former.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._former_fd)
        self._waker.send(b"\0")  # no signal has this number: the thread ends
        self._thread.join()
        self._listener.close()
        self._waker.close()

    def _listen(self) -> None:
        while number := self._next_number():
            if number not in SIGNALS:
                continue
            if not self._first:
                self._first = time.monotonic()
                self._answer(signal.Signals(number).name)
            elif time.monotonic() - self._first > SAME_PRESS:
                exit_now(QUIT)

    def _next_number(self) -> int:
        try:
            return self._listener.recv(1)[0]
        except TimeoutError:
            self._wait_no_longer()
            return 0


class StopRequest(_Handlers):
    """A context manager in which the first signal is a request that the body looks for.

    `remainder` is what the body does then.
    """

    def __init__(
        self, notify: Callable[[str], None], remainder: str = "finishing the chunk, then saving"
    ):
        super().__init__()
        self.requested = False
        self._notify, self._remainder = notify, remainder

    def _note(self, number: int, frame) -> None:
        del number, frame
        self.requested = True

    def _answer(self, name: str) -> None:
        self.requested = True
        self._notify(f"{name}: {self._remainder}; a second one quits at once")


class Ending(_Handlers):
    """A context manager in which the first signal is a KeyboardInterrupt.

    If the body then goes on for `PATIENCE`, as while it compiles, the process ends nevertheless and
    says what the interruption would have said.
    """

    def _note(self, number: int, frame) -> None:
        del number, frame
        if not self._is_noted:
            self._is_noted = True
            atexit.register(end_without_waiting)
            raise KeyboardInterrupt

    def __enter__(self) -> "Ending":
        self._is_noted = False
        return super().__enter__()

    def _answer(self, name: str) -> None:
        del name
        self._listener.settimeout(PATIENCE)

    def _wait_no_longer(self) -> None:
        print(*_messages[-1:], file=sys.stderr, flush=True)
        exit_now(INTERRUPTED)


def end_without_waiting() -> None:
    """Ends this process where it would wait for threads that still compile, or crash with them."""
    sys.stdout.flush()
    sys.stderr.flush()
    exit_now(INTERRUPTED)


def exit_now(code: int) -> None:
    """Ends this process now, whatever it does."""
    if sys.stdout.isatty():
        os.write(sys.stdout.fileno(), b"\x1b[?25h\n")  # a progress bar hid the cursor
    os._exit(code)
