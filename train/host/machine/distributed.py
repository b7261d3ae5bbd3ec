"""Runs of several processes, on one machine or many: the same program in each, in step.

`--distributed auto` finds SLURM, Open MPI and Cloud TPU by itself; otherwise each process is told
where the first one is, which one it is and how many there are, as `--distributed
HOST:PORT,INDEX,COUNT`. All processes compute; the first one alone writes records and pictures, and
of checkpoints each writes its parts of the arrays. They share the file system.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

import jax
import numpy as np
from jax.experimental import multihost_utils

from train.host.arguments import flag_value
from train.host.errors import FAILED, REFUSED, Interrupted, RunError, UsageError, in_one_line
from train.host.machine import quiet_libraries

PATTERN = re.compile(r"(?P<address>[^\s,]+:\d+),(?P<index>\d+),(?P<count>\d+)")
SILENT = 30
"""Seconds without a sign of life after which a process is given up."""
DAY = 86_400


class RefusedElsewhere(RunError):
    """Another process has refused the run, and has said why; its exit code is that of this one."""

    def __init__(self, exit_code: int):
        super().__init__(
            "another process could not begin the run: the line that it printed says why"
        )
        self.exit_code = exit_code


def begin(arguments: Sequence[str]) -> None:
    """Joins the other processes if the command line says so; raises UsageError if it cannot."""
    request = flag_value(arguments, "--distributed")
    if not request:
        return
    quiet_libraries.keep_off_output()
    try:
        join(request)
    except (UsageError, ValueError, RuntimeError) as error:
        raise UsageError(f"--distributed {request}: {in_one_line(error)}") from error


def refuse_unjoined(arguments: Sequence[str]) -> None:
    """Raises UsageError for a program that was to join others and has not called `begin`."""
    if flag_value(arguments, "--distributed") and not has_joined():
        raise UsageError("--distributed: this command does not join others; leave it out")


def join(request: str) -> None:
    """Connects to the other processes. Raises UsageError for a value that means nothing."""
    join_in_time = partial(
        jax.distributed.initialize,
        heartbeat_timeout_seconds=SILENT,
        shutdown_timeout_seconds=DAY,  # the others wait for the first one's pictures
    )
    if request == "auto":
        join_in_time()
        return
    match = PATTERN.fullmatch(request)
    if not match or int(match["index"]) >= int(match["count"]):
        raise UsageError("expected auto or HOST:PORT,INDEX,COUNT, with INDEX below COUNT")
    bind_address = match["address"] if match["index"] == "0" else None
    place = match["address"], int(match["count"]), int(match["index"])
    join_in_time(*place, coordinator_bind_address=bind_address)


def has_joined() -> bool:
    """Whether this process is one of several."""
    return jax.distributed.is_initialized()


def is_first() -> bool:
    """Whether this process writes; a single one does."""
    return jax.process_index() == 0


def is_alone() -> bool:
    return jax.process_count() == 1


def any_process(flag: bool) -> bool:
    """Whether it is true in any process; all must ask."""
    if is_alone():
        return flag
    return bool(multihost_utils.process_allgather(np.array(flag)).any())


@contextmanager
def refused_together(advice: str = "start all again") -> Iterator[None]:
    """What the body refuses in one process ends all; all must ask, and none before the body ends.

    Some things are seen by one of them alone: the first one writes, each has a command line of its
    own, and machines differ in memory. The others would wait for it in their next exchange. Each
    process raises its own error, or `RefusedElsewhere`. `advice` is what to do once a process is
    gone.
    """
    if is_alone():
        yield
        return
    try:
        yield
    except Interrupted:  # this process ends at once, which the others notice
        raise
    except Exception as error:
        code = REFUSED if isinstance(error, ValueError) else FAILED
        _largest(getattr(error, "exit_code", code), advice)
        raise
    if exit_code := _largest(0, advice):
        raise RefusedElsewhere(exit_code)


def _largest(number: int, advice: str) -> int:
    """The largest of the numbers of all processes."""
    try:
        return int(multihost_utils.process_allgather(np.array(number)).max())
    except Exception as error:
        give_up(error, advice)


def give_up(error: Exception, advice: str) -> NoReturn:
    """Ends this process: an exchange failed, so to wait for the others would be in vain."""
    reason = f"a process is gone, or failed ({in_one_line(error)[:200]})"
    print(f"{reason}: {advice}", file=sys.stderr)
    exit_now(FAILED)


def broadcast_text(text: str) -> str:
    """What the first process says; all must ask."""
    if is_alone():
        return text
    encoded = np.frombuffer(text.encode(), np.uint8)
    size = int(multihost_utils.broadcast_one_to_all(np.array(encoded.size)))
    buffer = encoded if is_first() else np.zeros(size, np.uint8)
    return bytes(multihost_utils.broadcast_one_to_all(buffer)).decode() if size else ""


def exit_now(code: int) -> NoReturn:
    """Ends this process at once: others are gone, and would be waited for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
