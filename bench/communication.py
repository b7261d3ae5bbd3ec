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

from bench.compiling import UPDATES, lower_chunk, mesh_of, program_and_config
from bench.memory import nodes, size
from bench.snake_speed import append, machine
from bench.traffic import exchanges, products
from tests.jaxrl.sharded_runs import answers

RESULTS = Path(__file__).parent / "results" / "communication.json"
DEVICES = 8
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
    program, config = program_and_config(case, DEVICES)
    training = program.training(config)
    shapes: Any = jax.eval_shape(training.init, jax.random.key(0))
    chunk = lower_chunk(training, shapes, mesh_of(jax.devices()[:DEVICES]))
    operations = exchanges(chunk.compile().as_text() or "")
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
