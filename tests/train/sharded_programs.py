"""The chunks of programs, sharded over four devices: `python -m tests.train.sharded_programs`.

A program of its own, since the number of devices is chosen before JAX starts. Its arguments are
`PROGRAM:PRESET[:FIELD=INTEGER ...]`; it prints JSON, `{argument: [bytes of the largest collective
of each kind, bytes of the parameters]}`.
"""

import json
import sys
from typing import Any

from tests.jaxrl.sharded_runs import ShardedRun, collectives, params_bytes
from train.host.plain_config import with_field
from train.host.program import find

SIZES = {"loop.num_envs": 16, "loop.num_steps": 16, "loop.blocks": 4}


def answer(case: str) -> Any:
    name, preset, *fields = case.split(":")
    program = find(name, "a test")
    config = program.presets[preset].config
    overrides = {field: int(value) for field, value in (x.split("=") for x in fields)}
    for field, value in (SIZES | overrides).items():
        config = with_field(config, field, value)
    training = program.training(config)
    sharded_run = ShardedRun(training, (1, 4), 2)
    return collectives(sharded_run.chunk.as_text() or ""), params_bytes(sharded_run.state.agent)


if __name__ == "__main__":
    print(json.dumps({case: answer(case) for case in sys.argv[1:]}))
