"""Runs of several processes, on one machine or many: the same program in each, in step.

`--distributed auto` finds SLURM, Open MPI and Cloud TPU by itself; otherwise each process is told
where the first one is, which one it is and how many there are, as `--distributed
HOST:PORT,INDEX,COUNT`. All processes compute; the first one alone writes records, checkpoints and
pictures. They share the file system.
"""

import os
import re
import sys
from collections.abc import Sequence
from functools import partial

import jax
import numpy as np
from jax.experimental import multihost_utils

from train.host.arguments import flag_value
from train.host.errors import UsageError, in_one_line

PATTERN = re.compile(r"(?P<address>[^\s,]+:\d+),(?P<index>\d+),(?P<count>\d+)")
SILENT = 30
"""Seconds without a sign of life after which a process is given up."""
DAY = 86_400


def begin(arguments: Sequence[str]) -> None:
    """Joins the other processes if the command line says so; raises UsageError if it cannot."""
    request = flag_value(arguments, "--distributed")
    if not request:
        return
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


def broadcast_text(text: str) -> str:
    """What the first process says; all must ask."""
    if is_alone():
        return text
    buffer = np.zeros(4096, np.uint8)
    encoded = text.encode() if is_first() else b""
    buffer[: len(encoded)] = np.frombuffer(encoded, np.uint8)
    return bytes(multihost_utils.broadcast_one_to_all(buffer)).rstrip(b"\0").decode()


def exit_now(code: int) -> None:
    """Ends this process at once: others are gone, and would be waited for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
