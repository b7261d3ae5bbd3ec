"""Where numbers of a rollout cease to be finite: what was first, of which environment, and when.

A learner that is fed NaN or infinity returns the same, and so does one that diverges. Only the
rollout tells these apart.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxrl.types import AgentState, PyTree, Transition, parameters

PARTS = ("obs", "action", "reward", "next_obs")
"""Fields of a transition, in the order in which they come to be."""
HAPPENED = {
    "obs": "environment {env} shows an observation that is not finite before its step {step}",
    "action": "the policy gives environment {env} an action that is not finite for its step {step}",
    "reward": "environment {env} pays a reward that is not finite in its step {step}",
    "next_obs": "environment {env} shows an observation that is not finite after its step {step}",
}
"""By the part of a transition that was not finite first."""
NEVER = jnp.iinfo(jnp.int32).max


class Origin(NamedTuple):
    """The first number of a rollout that is not finite."""

    part: jax.Array  # int32, of `PARTS`
    env: jax.Array  # int32, of the N environments
    step: jax.Array  # int32, of that environment, from 0; `NEVER` where all are finite


def origin(rollout: Transition, steps_before: jax.Array) -> Origin:
    """The origin in a rollout `[T, N]` that begins after `steps_before` steps.

    The first in time, then by `PARTS`, then of the first environment. One sum over blocks finds it:
    the place of each number is a number, and the smallest is the first.
    """
    num_envs = rollout.terminated.shape[1]
    broken = jnp.stack([is_broken(getattr(rollout, name)) for name in PARTS], 1)  # [T, P, N]
    place = jnp.arange(broken.size, dtype=jnp.int32).reshape(broken.shape)
    first = jnp.min(jnp.where(broken, place, NEVER))
    row, env = jnp.divmod(first, num_envs)
    step, part = jnp.divmod(row, len(PARTS))
    return Origin(part, env, jnp.where(first == NEVER, NEVER, steps_before + step))


def is_broken(part: PyTree) -> jax.Array:
    """`[T, N]`, whether any number of a transition's part `[T, N, ...]` is not finite."""
    leaves = jax.tree.leaves(part)
    leaf_is_broken = [
        jnp.any(~jnp.isfinite(x), axis=tuple(range(2, x.ndim)))
        for x in leaves
        if jnp.issubdtype(x.dtype, jnp.inexact)
    ]
    start = jnp.zeros(leaves[0].shape[:2], bool)
    return sum(leaf_is_broken, start)


def broken_environments(rollout: Transition) -> jax.Array:
    """`[N]`, whether an environment showed or paid what is not finite."""
    parts = (rollout.obs, rollout.reward, rollout.next_obs)
    return jnp.any(is_broken(parts), axis=0)


def refuse(agent: AgentState, origin: Origin) -> None:
    """Raises FloatingPointError unless a training of U updates, whose origin is `[U]`, is finite.

    Names what was first in its rollouts, or the parameters. Traced, it cannot know and returns.
    """
    is_real = lambda x: jnp.issubdtype(jnp.result_type(x), jnp.inexact)
    params = [x for x in parameters(agent) if is_real(x)]
    if any(isinstance(x, Tracer) for x in (*params, *origin)):
        return
    for update in np.flatnonzero(np.asarray(origin.step) != NEVER):
        place = {"env": int(origin.env[update]), "step": int(origin.step[update]) + 1}
        happened = HAPPENED[PARTS[origin.part[update]]].format(**place)
        raise FloatingPointError(f"update {update + 1}: {happened}")
    if not all(bool(jnp.all(jnp.isfinite(x))) for x in params):
        raise FloatingPointError(
            "parameters of the agent are not finite at the end: lower its learning rate"
        )
