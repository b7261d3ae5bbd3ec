"""What a run keeps: bytes of an environment and, where there is a replay, of a transition.

python -m bench.memory [PROGRAM ...] [--presets PRESET ...]

From the shapes of the initial state alone; nothing is compiled. The least that a replay can store
of a transition is its observation, action, reward and two flags. A ring stores the successor, too:
in the next row stands what the environment showed after a reset, where an episode was cut.
"""

import math
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bench.flags import selected_presets
from jaxrl import sharding
from jaxrl.replay.prioritised import Priorities
from jaxrl.replay.uniform import Replay
from jaxrl.types import Transition
from train.host.errors import in_one_line
from train.host.program import Program

MIB = 2**20


class Use(NamedTuple):
    """Bytes, and how many of each there are."""

    environment: float  # of one: its state, what it shows, its memory
    num_envs: int
    transition: float  # of one in the replay, its priority included; 0 without a replay
    least: float  # of one: observation, action, reward and flags
    transitions: int  # that the replay holds


def size(tree: Any) -> int:
    """Bytes of all arrays of a tree, or of what has their shapes."""
    plain = (x for x in jax.tree.leaves(tree) if not is_key(x))
    keys = (x for x in jax.tree.leaves(tree) if is_key(x))
    of_keys = sum(math.prod(jax.eval_shape(jax.random.key_data, x).shape) * 4 for x in keys)
    return of_keys + sum(math.prod(x.shape) * x.dtype.itemsize for x in plain)


def is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def nodes(tree: Any, kind: type) -> list[Any]:
    """All nodes of a type."""
    is_one = lambda x: isinstance(x, kind)
    return [x for x in jax.tree.leaves(tree, is_leaf=is_one) if is_one(x)]


def use(program: Program, config: Any) -> Use:
    """What the state of one member of a configuration takes; several replays count together."""
    state: Any = jax.eval_shape(program.training(config).init, jax.random.key(0))
    fields = sharding.SPLIT.get(type(state), {})
    environments = size([getattr(state, name) for name in fields])
    num_envs = len(state.episode.length) if fields else 0
    rings = nodes(state.agent, Replay)
    transitions = sum(length(ring) for ring in rings)
    least_data = [  # the successor is that of the next step, but for the last step of an episode
        x.data._replace(next_obs=()) if isinstance(x.data, Transition) else x.data for x in rings
    ]
    stored = size([x.data for x in rings]) + size([x.mass for x in nodes(state.agent, Priorities)])
    return Use(
        environments / max(num_envs, 1),
        num_envs,
        stored / max(transitions, 1),
        size(least_data) / max(transitions, 1),
        transitions,
    )


def length(ring: Replay) -> int:
    """The transitions that a ring holds, or rings side by side."""
    return math.prod(jax.tree.leaves(ring.data)[0].shape[: ring.head.ndim + 2])


def describe(usage: Use) -> str:
    """The use in one line."""
    parts = []
    if usage.num_envs:
        parts += [f"{usage.environment:,.0f} bytes for each of {usage.num_envs:,} environments"]
    if usage.transitions:
        parts += [
            f"{usage.transition:,.0f} bytes for each of {usage.transitions:,} transitions, "
            f"{usage.transition / usage.least:.2f} times the least, "
            f"{usage.transition * usage.transitions / MIB:,.1f} MiB"
        ]
    return "; ".join(parts) or "neither environments nor a replay"


def main() -> int:
    for program, preset in selected_presets(__doc__):
        try:
            text = describe(use(program, program.presets[preset].config))
        except ValueError as error:  # it needs data, or a run to learn from
            text = in_one_line(error)
        print(f"{program.name} {preset}: {text}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
