"""What an update exchanges between devices, and what it computes meanwhile.

python -m bench.communication [CASE ...] [--show]

Compiles each case, `PROGRAM:PRESET[:FIELD=JSON ...]` with eight blocks, for eight host devices,
and reads in the compiled text how often and how much is exchanged. The closed form is the gradient,
4 bytes for each parameter that is trained, once in each gradient step. Nothing is run and nothing
is timed. With `--show` the rows are printed as JSON and not kept; the process then needs eight
devices from `XLA_FLAGS`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import jax
import optax
from jax.sharding import AxisType

from bench.memory import nodes, size
from bench.snake_speed import append, machine
from bench.traffic import exchanges, products
from jaxrl import loop, sharding
from tests.jaxrl.sharded_runs import answers
from train.host.plain_config import with_field
from train.host.program import find

RESULTS = Path(__file__).parent / "results" / "communication.json"
DEVICES = 8
UPDATES = 2  # of a chunk; one would not be a loop
CASES = (
    "gymnax:ppo",
    "gymnax:recurrent",
    "gymnax:pqn",
    "gymnax:sac",
    "snake:ppo",
    "snake:dqn:agent.prioritised=true",
    "snake:rainbow",
    "allo:sampled",
)


def measure(case: str) -> dict[str, Any]:
    """A row: all numbers are of one update, bytes as they are before a ring carries them."""
    name, preset, *fields = case.split(":")
    program = find(name, "the command line")
    config = program.presets[preset].config
    blocks = "loop.blocks" if hasattr(config, "loop") else "agent.blocks"
    config = with_field(config, blocks, DEVICES)
    for field, value in (x.split("=") for x in fields):
        config = with_field(config, field, json.loads(value))
    training = program.training(config)
    shapes: Any = jax.eval_shape(training.init, jax.random.key(0))
    operations = exchanges(compiled_text(training, shapes))
    total = lambda count: sum(count(x) * x.times for x in operations) // UPDATES
    trained_bytes = sum(size(x.mu) for x in nodes(shapes.agent, optax.ScaleByAdamState))
    steps, batch = gradient_steps(config)
    return {
        "case": case,
        "parameters": trained_bytes // 4,
        "gradient_steps": steps,
        "batch": batch,
        "steps": training.steps_per_update,
        "kinds": sorted({x.kind for x in operations}),
        "exchanges": total(lambda x: not x.is_open),
        "open_exchanges": total(lambda x: x.is_open),
        "arrays": total(lambda x: x.arrays),
        "scalars": total(lambda x: x.scalars),
        "closed_form": trained_bytes * steps,
        "products": products(jax.make_jaxpr(training.update)(shapes).jaxpr),
    }


def compiled_text(training: Any, shapes: Any) -> str:
    """The text of a compiled chunk on a mesh of one member and as many blocks as devices."""
    kinds = (AxisType.Auto,) * 2
    mesh = jax.make_mesh((1, DEVICES), (sharding.MEMBER, sharding.BLOCK), axis_types=kinds)
    shardings = sharding.shardings(mesh, shapes)
    chunk = jax.jit(
        loop.make_chunk(training.update, UPDATES),
        in_shardings=(shardings,),
        out_shardings=(shardings, None),
        donate_argnums=0,
    )
    return chunk.lower(shapes).compile().as_text() or ""


def gradient_steps(config: Any) -> tuple[int, int]:
    """`(gradient steps of an update, transitions or pairs in each)`."""
    agent = config.agent
    if hasattr(agent, "minibatches"):
        batch = config.loop.steps_per_update // agent.minibatches
        return agent.epochs * agent.minibatches, batch
    field_name = (
        "updates_per_rollout" if hasattr(agent, "updates_per_rollout") else "steps_per_update"
    )
    return getattr(agent, field_name), agent.batch_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--show", action="store_true", help="print JSON and keep nothing")
    options = parser.parse_args()
    if options.show:
        print(json.dumps({case: measure(case) for case in options.cases}))
    else:  # in a process that is told of the devices before JAX starts
        rows = answers("--show", *options.cases, module="bench.communication")
        append(RESULTS, {**machine(), "devices": DEVICES, "rows": [*rows.values()]})


if __name__ == "__main__":
    main()
