"""Policies as compiled programs: versioned StableHLO, which runs wherever JAX does.

`python -m train.policies compile --policy NAME` writes `NAME.jax` and `NAME.json`. The program maps
a batch of observations (and memories, of agents that have one) to greedy actions, and needs nothing
of this library:

    policy = jax.export.deserialize(bytearray(open("NAME.jax", "rb").read()))
    (action,) = policy.call(observations)  # [B, ...] -> [B, ...]

Arrays go in and come out flat, in the order that `NAME.json` lists them in. Writing and reading
such a file needs the package flatbuffers beside JAX.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from jax import export

from train.host import abilities
from train.host.files import whole_files
from train.host.files.provenance import provenance
from train.host.program import Run
from train.host.running import saved_policies, saved_runs

PLATFORMS = ("cpu", "cuda", "tpu")


@dataclass(frozen=True)
class Compile:
    """Writes a policy as a program that needs only JAX and flatbuffers: NAME.jax, and NAME.json
    beside it."""

    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    """Run directory."""
    policy: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Policy instead: a name that `python -m train.policies list` shows, or a file."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """Which of several seeds."""
    best: bool = False
    """The policy that was best while training, kept in RUN/best, instead of the newest."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """File to write; None: NAME.jax in the current directory."""
    overwrite: bool = False
    """Replace files that exist."""


def write(options: Compile) -> list[Path]:
    """The paths of the program and of its description. Raises UsageError."""
    run = saved_policies.load_run_or_policy(options.run, options.policy, options.best)
    seed = saved_policies.one_seed(run, options.seed)
    if options.out:
        whole_files.refuse_no_file(options.out)
    path = options.out or Path(saved_policies.name_of(options.run, options.policy))
    # what follows another dot, as in lr0.1, is part of the name
    if path.suffix != saved_policies.COMPILED:
        path = path.with_name(f"{path.name}{saved_policies.COMPILED}")
    paths = [path, path.with_suffix(".json")]
    for file in paths:
        whole_files.refuse_existing(file, options.overwrite)
    agent = run.agents[run.seeds.index(seed)]
    updates = saved_runs.updates_of(run, seed, options.best)
    program, description = compile_policy(run._replace(agents=[agent], updates=updates))
    with whole_files.replacement_file(path) as file:
        file.write(program)
    whole_files.write_whole(paths[1], json.dumps(description, indent=1) + "\n")
    return paths


def compile_policy(run: Run) -> tuple[bytes, dict[str, Any]]:
    """The greedy policy of a run's first agent, and what goes into and comes out of it."""
    # what goes in: the arrays of one observation and memory
    player = abilities.player_of(run)
    agent, agent_state = player.agent, player.acting_state(run.agents[0])
    input_shapes = {"observation": player.observation(), "memory": jax.eval_shape(agent.memory)}
    leaves, structure = jax.tree.flatten(input_shapes)

    def act(*flat: jax.Array) -> tuple[jax.Array, ...]:
        def act_on_one(*one: jax.Array) -> dict[str, Any]:
            inputs = jax.tree.unflatten(structure, one)
            key = jax.random.key(0)  # a greedy agent draws nothing
            out = agent.act(agent_state, inputs["memory"], inputs["observation"], key)
            return {"action": out[0], "memory": out[1]}

        return tuple(jax.tree.leaves(jax.vmap(act_on_one)(*flat)))

    # the program, for batches of any size
    (count,) = export.symbolic_shape("b")
    shapes = [jax.ShapeDtypeStruct((count, *x.shape), x.dtype) for x in leaves]
    program = export.export(jax.jit(act), platforms=PLATFORMS)(*shapes)
    # its description: the shapes of a batch of one
    one = [jax.ShapeDtypeStruct((1, *x.shape), x.dtype) for x in leaves]
    batch_shapes = jax.tree.unflatten(structure, one)
    action, memory, _ = jax.eval_shape(
        lambda batch: jax.vmap(agent.act, (None, 0, 0, None))(
            agent_state, batch["memory"], batch["observation"], jax.random.key(0)
        ),
        batch_shapes,
    )
    description = {
        "program": run.program.address,
        "updates": run.updates,
        "inputs": _describe_arrays(batch_shapes),
        "outputs": _describe_arrays({"action": action, "memory": memory}),
        "platforms": list(PLATFORMS),
        "calling_convention": program.calling_convention_version,
        "versions": provenance()["versions"],
    }
    return bytes(program.serialize()), description


def _describe_arrays(tree: Any) -> list[dict[str, Any]]:
    """Name, shape (behind the batch) and type of each array of a tree, in order."""
    return [
        {
            "name": jax.tree_util.keystr(path, simple=True, separator="."),
            "shape": list(x.shape[1:]),
            "type": str(x.dtype),
        }
        for path, x in jax.tree_util.tree_flatten_with_path(tree)[0]
    ]
