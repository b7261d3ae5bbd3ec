"""Compiles one program for one absent chip and prints what the compiler made of it, as JSON.

python -m bench.accelerators.compilation PROGRAM:PRESET CHIP DEVICES [--text F] [--parts P ...]

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
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from bench import traffic
from bench.accelerators import chips, kernels, model
from bench.compiling import lower_chunk, lower_update, mesh_of, program_and_config
from jaxrl import sharding
from train.host import device_presets
from train.host.compilation.cpu_kernels import equations

GAMES = 64  # of the evaluation while training


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", metavar="PROGRAM:PRESET")
    parser.add_argument("chip", choices=chips.CHIPS)
    parser.add_argument("devices", type=int, choices=(1, 8))
    parser.add_argument("--text", type=Path, help="folder to write the compiled modules into")
    parser.add_argument("--parts", nargs="*", help="names of what to compile; all if left out")
    options = parser.parse_args()
    mesh = mesh_of(chips.absent_devices(options.chip, options.devices))
    program, config = program_and_config(options.case, options.devices)
    device_presets.on_accelerator = lambda: True  # the training of the chip, not of this machine
    training = program.training(program.complete(config))
    shapes = jax.eval_shape(training.init, jax.random.key(0))
    row = {"case": options.case, "chip": options.chip, "devices": options.devices}
    row["steps"] = training.steps_per_update
    row["products"] = products(jax.make_jaxpr(training.update)(shapes).jaxpr)
    for name, lowering in parts(training, shapes, mesh).items():
        if options.parts and name not in options.parts:
            continue
        try:
            row[name], text = measure(lowering)
        except Exception as error:  # whatever the compiler says is the result
            row[name] = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
            continue
        if options.text:
            options.text.mkdir(parents=True, exist_ok=True)
            stem = f"{options.chip}_{options.devices}_{options.case.replace(':', '_')}_{name}"
            (options.text / f"{stem}.txt").write_text(text, encoding="utf-8")
    print(json.dumps(row))


def parts(training: Any, shapes: Any, mesh: Mesh) -> dict[str, Callable[[], Any]]:
    """What a run compiles, by name: functions that return the lowered program."""
    whole = NamedSharding(mesh, PartitionSpec())
    key = jax.eval_shape(lambda: jax.random.key(0))

    def lower_init() -> Any:
        shardings = sharding.shardings(mesh, shapes)
        return jax.jit(training.init, in_shardings=whole, out_shardings=shardings).lower(key)

    def lower_evaluation() -> Any:
        games = jax.jit(training.games(GAMES), in_shardings=whole, out_shardings=whole)
        return games.lower(shapes.agent, key)

    def lower_members() -> Any:
        states = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((model.MEMBERS, *x.shape), x.dtype), shapes
        )
        return lower_update(jax.vmap(training.update), states, mesh)

    lowerings = {
        "init": lower_init,
        "update": lambda: lower_update(training.update, shapes, mesh),
        "chunk": lambda: lower_chunk(training, shapes, mesh),
    }
    if mesh.size == 1:
        lowerings["members"] = lower_members
    return lowerings if training.games is None else lowerings | {"evaluation": lower_evaluation}


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
        "exchanged_bytes": exchanged_bytes(text),
        "estimate": estimate,
    }
    return row, text


def exchanged_bytes(text: str) -> dict[str, int]:
    """Bytes of the results of collective operations in one execution, by kind."""
    total = Counter()
    for exchange in traffic.exchanges(text):
        total[exchange.kind] += exchange.times * (exchange.arrays + exchange.scalars)
    return dict(total)


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
