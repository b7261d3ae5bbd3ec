"""An actor-critic with a memory: a torso, a gated recurrent unit, and heads on what it remembers.

The GRU is that of Cho et al. (2014). Its weights start orthogonal with gain 1, its biases and the
memory at 0 (Huang et al. 2022, "The 37 implementation details of PPO", LSTM details 1 and 2).
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.numerics import linalg
from jaxrl.types import Observation


class RecurrentActorCritic(nn.Module):
    """A policy and a value of all that was observed in an episode.

    Torso and heads see single steps, so that a sequence goes through each in one piece, and only
    the GRU step by step. `heads` may be `ActorCritic(MLP(()), num_actions)`, or, for continuous
    actions, `GaussianActorCritic(MLP(()), MLP(()), action_size)`; an `MLP` that is not empty puts
    layers between memory and head. Policy and value share torso and memory, so scale rewards until
    values are of the order of 1: large errors of values would drown the gradient of the policy.
    """

    torso: nn.Module
    """`obs [...] -> [..., D]`, an `MLP` for instance."""
    heads: nn.Module
    """`[..., H] -> (policy, value)`, from the memory after the step."""
    memory_size: int = 128
    """H, the numbers that are remembered."""

    def setup(self):
        start = linalg.orthogonal_start(1.0)
        self.cell = nn.GRUCell(
            self.memory_size, kernel_init=start, recurrent_kernel_init=start, name="gru"
        )

    @nn.nowrap
    def initial_memory(self) -> jax.Array:
        """`[H]`, the memory at the start of an episode."""
        return jnp.zeros(self.memory_size)

    def __call__(self, obs: Observation, memory: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        """One step: `(policy, value [...], memory [..., H] after it)`; leading axes as in `obs`.

        Raises ValueError if the torso gives not one vector for each memory.
        """
        features = self.torso(obs)
        if features.shape[:-1] != memory.shape[:-1]:
            raise ValueError(
                f"the torso returns {list(features.shape)} for memories {list(memory.shape)}, "
                "expected one vector each: put Conv or Flatten below a torso of vectors"
            )
        memory, _ = self.cell(memory, features)
        return *self.heads(memory), memory

    def sequence(
        self, obs: Observation, memory: jax.Array, starts: jax.Array
    ) -> tuple[Any, jax.Array]:
        """The same for consecutive steps.

        Args:
          obs: `[T, ...]`, with any further axes before those of one observation.
          memory: `[..., H]`, what is remembered before the first step.
          starts: `[T, ...]` bool; the steps at which the memory is the initial one instead.

        Returns:
          `(policy, value [T, ...])`.
        """
        scan = nn.scan(remember, variable_broadcast="params", split_rngs={"params": False})
        _, memories = scan(self.cell, memory, (self.torso(obs), starts))
        return self.heads(memories)


def remember(
    cell: nn.GRUCell, memory: jax.Array, inputs: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """One step of a scan over features `[..., D]` and starts `[...]`."""
    features, starts = inputs
    memory, _ = cell(jnp.where(starts[..., None], 0.0, memory), features)
    return memory, memory
