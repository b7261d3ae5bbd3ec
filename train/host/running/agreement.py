"""Several processes of one run compute one program, so what each was told has to be the same."""

import json
from typing import Any

import jax

from train.host.errors import UsageError
from train.host.machine import distributed
from train.host.plain_config import differences, flatten, plain

OF_A_PROCESS = frozenset({"run.distributed", "run.directory", "run.resume", "run.live"})
"""Fields of a process: which one it is, what it calls the run folder, and a page of the first."""


def refuse_other_config(config: Any) -> None:
    """Raises UsageError in a process whose configuration is not that of the first one.

    All must ask; the others are refused as `distributed.refused_together` says. Unnoticed, they
    would train together with other numbers, or wait for each other without end.
    """
    if distributed.is_alone():
        return
    own = {name: json.dumps(x) for name, x in flatten(plain(config)).items()}
    first = json.loads(distributed.broadcast_text(json.dumps(own)))
    with distributed.refused_together():
        if changes := differences(first, own, OF_A_PROCESS):
            raise UsageError(
                f"process {jax.process_index()} has other flags than process 0 "
                f"({'; '.join(changes)}): start all again with the same flags"
            )
