"""Exploration that lasts for several steps, kept in the memory of an agent.

Random actions that are drawn anew in every step cancel each other, so that an agent hardly leaves
the place where it is. Both kinds here make neighbouring actions alike: repeated random actions
(discrete) and noise that is correlated in time (continuous). Noise leaves the distribution of
single actions as it is. Repetition does not: more steps are random than those at which a random
action begins. Functions of one environment.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.losses import action_values

LONGEST = 10_000
"""Most steps for which a random action is repeated, as in Dabney et al. (2021)."""


class RepeatedAction(NamedTuple):
    """A random action that is being repeated."""

    action: jax.Array  # int32 []
    left: jax.Array  # int32 []; steps for which it still will be


def memory_of_repeats(exponent: float | jax.Array | None) -> Any:
    """What `epsilon_greedy` remembers at the start of an episode; `()` without an exponent."""
    if exponent is None:
        return ()
    return RepeatedAction(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def epsilon_greedy(
    key: jax.Array,
    q: jax.Array,
    epsilon: float | jax.Array,
    exponent: float | jax.Array | None,
    memory: Any,
) -> tuple[jax.Array, Any]:
    """An ε-greedy action for `q [A]`, int32, and the memory after it. Consumes `key`.

    With an exponent μ above 1 this is εz-greedy (Dabney et al. 2021, algorithm 1): with probability
    ε a random action is begun and repeated for n steps in all, whatever `q` says in the meantime.
    P(n >= k) = k^(1 - μ), which has the tail of the paper's zeta distribution and an inverse in
    closed form; the paper takes μ = 2. Then n is about 10 in the mean, and of the steps of a long
    episode the share ε n / (1 - ε + ε n) is random: half of them at ε = 0.1.
    """
    if exponent is None:
        return action_values.epsilon_greedy(key, q, epsilon), memory
    begin_key, action_key, length_key = jax.random.split(key, 3)
    is_repeating = memory.left > 0
    begins = ~is_repeating & (jax.random.uniform(begin_key) < epsilon)
    random_action = jax.random.randint(action_key, (), 0, q.shape[-1], jnp.int32)
    steps = durations(length_key, exponent)
    greedy = jnp.argmax(q).astype(jnp.int32)
    action = jnp.where(is_repeating, memory.action, jnp.where(begins, random_action, greedy))
    steps_left = jnp.where(is_repeating, memory.left, jnp.where(begins, steps, 1)) - 1
    return action, RepeatedAction(action, steps_left)


def durations(key: jax.Array, exponent: float | jax.Array, shape: tuple = ()) -> jax.Array:
    """n >= 1 with P(n >= k) = k^(1 - exponent), int32, at most `LONGEST`. Consumes `key`."""
    share = 1.0 - jax.random.uniform(key, shape)  # in (0, 1]
    steps = share ** (-1.0 / (exponent - 1.0))
    return jnp.minimum(steps, LONGEST).astype(jnp.int32)


class Noise(NamedTuple):
    """Standard normal noise that is correlated in time."""

    value: jax.Array  # [A]
    is_begun: jax.Array  # bool []; False before the first step of an episode


def memory_of_noise(size: int) -> Noise:
    """The memory of `correlated_noise` at the start of an episode, for A = `size` coordinates."""
    return Noise(jnp.zeros(size), jnp.bool_(False))


def correlated_noise(key: jax.Array, correlation: float | jax.Array, memory: Noise) -> Noise:
    """The noise of the next step: ρ ε + √(1 - ρ²) η with η ~ N(0, 1). Consumes `key`.

    Each step alone is standard normal from the first one on; k steps apart the correlation is ρ^k.
    It is the stationary Ornstein-Uhlenbeck process, one of the coloured noises of Eberhard et al.
    (2023), "Pink Noise Is All You Need".
    """
    innovation = jax.random.normal(key, memory.value.shape)
    next_value = correlation * memory.value + jnp.sqrt(1.0 - correlation**2) * innovation
    return Noise(jnp.where(memory.is_begun, next_value, innovation), jnp.bool_(True))
