"""SIGTERM and Ctrl-C: the first asks a run to stop after its chunk, a second one quits at once."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

from train.host.errors import QUIT

SIGNALS = (signal.SIGTERM, signal.SIGINT)
SAME_PRESS = 0.5
"""Seconds within which two signals are one request, as `timeout` and some batch systems signal both
the process and its group."""


class StopRequest:
    """A context manager in which the two signals are requests; restores the handlers on exit.

    Python runs signal handlers only between its own instructions, so not while it waits for a
    chunk. A thread that listens on the interpreter's wake-up socket gets the signal at once and can
    quit. Outside the main thread, where Python allows no handlers, nothing is changed.
    """

    def __init__(self, notify: Callable[[str], None]):
        self.requested = False
        self._notify = notify
        self._first = 0.0

    def __enter__(self) -> "StopRequest":
        self._active = threading.current_thread() is threading.main_thread()
        if not self._active:
            return self
        self._listener, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._former = {number: signal.getsignal(number) for number in SIGNALS}
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

    def _note(self, number: int, frame) -> None:
        """The signal handler; the thread gets the signal too, perhaps later."""
        del number, frame
        self.requested = True

    def _listen(self) -> None:
        while number := self._listener.recv(1)[0]:
            if number not in SIGNALS:
                continue
            if not self._first:
                self._first, self.requested = time.monotonic(), True
                name = signal.Signals(number).name
                self._notify(
                    f"{name}: finishing the chunk, then saving; a second one quits at once"
                )
            elif time.monotonic() - self._first > SAME_PRESS:
                if sys.stdout.isatty():
                    os.write(sys.stdout.fileno(), b"\x1b[?25h\n")  # the progress bar hid the cursor
                os._exit(QUIT)
