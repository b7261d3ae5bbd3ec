"""The process that serves the page of a run while it learns: `--live`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from train.host.files.run_directory import RunDirectory
from train.host.machine import distributed
from train.host.machine.quiet_libraries import output_of_children
from train.host.training import Config

ON_CPU = {"JAX_PLATFORMS": "cpu"}
"""A page needs no accelerator, and must not take memory of the one that trains."""
STARTED_BY = "JAXRL_STARTED_BY"
"""Environment variable of a page: the number of the process that trains, after which it ends."""


@contextmanager
def live_page(settings: Config, directory: RunDirectory) -> Iterator[None]:
    """Serves the page of `--live` in a process of its own, at a lower priority."""
    if not (settings.live and distributed.is_first()):
        yield
        return
    command = [sys.executable, "-m", "train.report", str(directory), "--live"]
    environment = os.environ | ON_CPU | {STARTED_BY: str(os.getpid())}
    ways: Any = {"start_new_session": True, "env": environment}
    with subprocess.Popen(command, stdout=output_of_children(), **ways) as server:
        try:
            yield
        finally:
            server.terminate()
