"""Compiles one program for one absent chip and prints what the compiler made of it, as JSON.

python -m bench.accelerators.compilation PROGRAM:PRESET CHIP DEVICES [--text FOLDER]

Runs in the environment of `bench.accelerators.environment`, which has the plugins of the chips.
"""

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"  # where constants are computed; the chip is told in the layouts

import jax
import jax.extend.core
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from bench.accelerators import chips, kernels
from jaxrl import sharding
from train.host.machine.compiled import equations
from train.host.plain_config import with_field
from train.host.program import find

UPDATES = 2  # of a chunk; one would not be a loop
GAMES = 64  # of the evaluation while training


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", metavar="PROGRAM:PRESET")
    parser.add_argument("chip", choices=chips.CHIPS)
    parser.add_argument("devices", type=int, choices=(1, 8))
    parser.add_argument("--text", type=Path, help="folder to write the compiled modules into")
    options = parser.parse_args()
    mesh = mesh_of(options.chip, options.devices)
    training = training_of(options.case, options.devices)
    like = jax.eval_shape(training.init, jax.random.key(0))
    row = {"case": options.case, "chip": options.chip, "devices": options.devices}
    row["steps"] = training.steps_per_update
    row["products"] = products(jax.make_jaxpr(training.update)(like).jaxpr)
    for name, compilation in parts(training, like, mesh).items():
        try:
            row[name], text = measure(compilation)
        except Exception as error:  # whatever the compiler says is the result
            row[name] = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
            continue
        if options.text:
            options.text.mkdir(parents=True, exist_ok=True)
            stem = f"{options.chip}_{options.devices}_{options.case.replace(':', '_')}_{name}"
            (options.text / f"{stem}.txt").write_text(text, encoding="utf-8")
    print(json.dumps(row))


def training_of(case: str, devices: int) -> Any:
    """The training of `PROGRAM:PRESET[:FIELD=JSON ...]`, with a block for each device."""
    name, preset, *fields = case.split(":")
    program = find(name, "the command line")
    config = program.presets[preset or next(iter(program.presets))].config
    for field, number in (x.split("=") for x in fields):
        config = with_field(config, field, json.loads(number))
    place = next((x for x in ("loop", "agent") if hasattr(getattr(config, x, None), "blocks")), "")
    if devices > 1 and place:
        config = with_field(config, f"{place}.blocks", devices)
    return program.training(program.complete(config))


def mesh_of(chip: str, count: int) -> Mesh:
    """A mesh of one member and as many blocks as devices, as a run has it."""
    import numpy as np

    devices = np.array(chips.absent_devices(chip, count)).reshape(1, count)
    return Mesh(devices, (sharding.MEMBER, sharding.BLOCK), axis_types=(AxisType.Auto,) * 2)


def parts(training: Any, like: Any, mesh: Mesh) -> dict[str, Callable[[], Any]]:
    """What a run compiles, by name: functions that return the lowered program."""
    placed = sharding.shardings(mesh, like)
    whole = NamedSharding(mesh, PartitionSpec())
    key = jax.eval_shape(lambda: jax.random.key(0))

    def chunk(state: Any) -> Any:
        return jax.lax.scan(lambda state, _: training.update(state), state, length=UPDATES)

    lowerings = {
        "init": lambda: jax.jit(training.init, in_shardings=(whole,), out_shardings=placed).lower(
            key
        ),
        "update": lambda: jax.jit(
            training.update,
            in_shardings=(placed,),
            out_shardings=(placed, None),
            donate_argnums=0,
        ).lower(like),
        "chunk": lambda: jax.jit(
            chunk, in_shardings=(placed,), out_shardings=(placed, None), donate_argnums=0
        ).lower(like),
    }
    if training.games is not None:
        games = training.games(GAMES)
        lowerings["evaluation"] = lambda: jax.jit(
            games, in_shardings=(whole, whole), out_shardings=whole
        ).lower(like.agent, key)
    return lowerings


def measure(lowering: Callable[[], Any]) -> tuple[dict[str, Any], str]:
    """Seconds, memory and counts of one program, and its compiled text."""
    start = time.perf_counter()
    lowered = lowering()
    lowered_at = time.perf_counter()
    compiled = lowered.compile()
    compiled_at = time.perf_counter()
    memory, text = compiled.memory_analysis(), compiled.as_text()
    estimate = {}
    for name, number in (compiled.cost_analysis() or {}).items():
        if name in ("flops", "bytes accessed", "optimal_seconds"):
            estimate[name.replace(" ", "_")] = number
    row = {
        "lower_seconds": round(lowered_at - start, 2),
        "compile_seconds": round(compiled_at - lowered_at, 2),
        "argument_bytes": memory.argument_size_in_bytes,
        "temporary_bytes": memory.temp_size_in_bytes,
        "code_bytes": memory.generated_code_size_in_bytes,
        "counts": kernels.count(text)._asdict(),
        "estimate": estimate,
    }
    return row, text


def products(program: Any) -> dict[str, int]:
    """Matrix products and convolutions of a jaxpr by type and precision, each counted once."""
    counts = Counter()
    for equation in equations(program):
        if equation.primitive.name in ("dot_general", "conv_general_dilated"):
            precision = equation.params["precision"]
            precision = precision[0] if isinstance(precision, tuple) else precision
            kind = equation.invars[0].aval.dtype.name
            counts[f"{kind} {getattr(precision, 'name', precision or 'DEFAULT').lower()}"] += 1
    return dict(counts)


if __name__ == "__main__":
    main()
