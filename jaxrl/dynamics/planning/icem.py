"""Model-predictive planning: minimises a cost over sequences of actions, without gradients.

iCEM (Pinneri et al. 2020): the cross-entropy method with coloured noise, which explores farther
than white noise, and elites that are kept between iterations and between calls.
Axes: N sequences, H actions of a sequence, m dimensions of an action, k elites carried over.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, Positive, Range, Share, TwoOrMore
from jaxrl.numerics.linalg import matmul

Cost = Callable[[jax.Array], jax.Array]
"""Sequences `[N, H, m]` -> costs `[N]`; a cost that is not finite is taken as infinite."""


@struct.dataclass
class Config:
    horizon: Count = struct.field(pytree_node=False, default=10)
    """H, actions planned ahead."""
    candidates: Count = struct.field(pytree_node=False, default=32)
    """N, sequences drawn in the first iteration."""
    iterations: Count = struct.field(pytree_node=False, default=5)
    """Draws and refits in one call."""
    elites: TwoOrMore = struct.field(pytree_node=False, default=8)
    """Cheapest sequences to which the distribution of the next draw is fitted."""
    momentum: Annotated[float, Range(least=0.0, below=1.0)] = 0.1
    """Share of the old mean and standard deviation that a refit keeps, from 0 to below 1."""
    initial_std: Positive = 0.5
    """Standard deviation of the first draw, as a share of half the box."""
    colour: Annotated[float, Range(least=0.0, most=10.0)] = 1.0
    """β: the noise has power f^-β at frequency f along the horizon. 0 is white; more is slower."""
    sample_decay: Annotated[float, Range(least=1.0)] = struct.field(pytree_node=False, default=1.25)
    """Factor by which each iteration draws fewer sequences, but never fewer than twice the elites,
    or than all `candidates` where these are fewer."""
    reused: Share = struct.field(pytree_node=False, default=0.3)
    """Share of the elites that the next iteration keeps, and the next call evaluates again."""

    @property
    def num_reused(self) -> int:
        """k, elites that are kept from an iteration, and from a call, to the next one."""
        return int(self.reused * self.elites + 1e-9)  # 0.29 of 100 are 29

    @property
    def draws(self) -> tuple[int, ...]:
        """Sequences drawn in each iteration."""
        sizes = [self.candidates]
        least = min(2 * self.elites, self.candidates)
        for _ in range(self.iterations - 1):
            sizes.append(max(least, int(sizes[-1] / self.sample_decay)))
        return tuple(sizes)


class Plan(NamedTuple):
    """The state of the planner between calls."""

    mean: jax.Array  # [H, m]
    elites: jax.Array  # [k, H, m], the best first
    started: jax.Array  # bool; whether `elites` come from an earlier call
    invalid: jax.Array  # int32; sequences so far, in all calls, whose cost was not finite


def check_config(config: Config) -> None:
    """Raises ValueError for out-of-range hyperparameters."""
    checks.config(config)
    if config.elites > config.candidates:
        raise ValueError(
            f"elites is {config.elites}, expected at most candidates, {config.candidates}: "
            "draw more sequences or keep fewer"
        )


def first_plan(config: Config, low: jax.Array, high: jax.Array) -> Plan:
    """The plan before the first call: the centre of the box from `low` `[m]` to `high` `[m]`.

    Raises ValueError for a box of another shape, and as `check_config` does.
    """
    check_config(config)
    if low.ndim != 1 or low.shape != high.shape:
        raise ValueError(
            f"low and high have shapes {low.shape} and {high.shape}, expected one shape [m]: give "
            "the least and the largest value of each dimension of an action"
        )
    centre = (low + high) / 2
    mean = jnp.broadcast_to(centre[None], (config.horizon, len(low)))
    elites = jnp.broadcast_to(mean[None], (config.num_reused, *mean.shape))
    return Plan(mean, elites, jnp.asarray(False), jnp.zeros((), jnp.int32))


def icem(
    cost: Cost, config: Config, plan: Plan, low: jax.Array, high: jax.Array, key: jax.Array
) -> tuple[jax.Array, jax.Array, Plan]:
    """The cheapest sequence found `[H, m]`, its cost, and the plan after its first step.

    Every action lies between `low` `[m]` and `high` `[m]`. The sequence is the best of all
    iterations, and never more expensive than the mean that the last one drew around. `plan` is from
    `first_plan` or the last call; if s > 1 steps were taken since that call, from
    `advance(plan, s - 1, ...)`. Consumes `key`.
    """
    noise_key, shift_key = jax.random.split(key)
    shape = (sum(config.draws), config.horizon, len(low))
    # All noise at once: one large matrix product instead of many small ones.
    noises = coloured_noise(noise_key, shape, config.colour, plan.mean.dtype)
    box = [jnp.broadcast_to(side[None], shape[1:]) for side in (low, high)]
    mean, std = plan.mean, config.initial_std * (box[1] - box[0]) / 2
    pool, pool_cost = plan.elites, jnp.zeros(0)
    best, best_cost, invalid = mean, jnp.asarray(jnp.inf), plan.invalid
    for i, noise in enumerate(jnp.split(noises, np.cumsum(config.draws)[:-1])):
        samples = jnp.clip(mean[None] + std[None] * noise, *(side[None] for side in box))
        if i == config.iterations - 1:
            samples = samples.at[0].set(mean)
        population = jnp.concatenate([samples, pool])
        if i == 0:
            # The first call has no elites of an earlier one.
            is_absent = (jnp.arange(len(population)) >= len(samples)) & ~plan.started
            costs = cost(population)
            invalid = invalid + jnp.sum(~jnp.isfinite(costs) & ~is_absent, dtype=jnp.int32)
            costs = jnp.where(is_absent, jnp.inf, costs)
        else:
            costs = cost(samples)
            invalid = invalid + jnp.sum(~jnp.isfinite(costs), dtype=jnp.int32)
            costs = jnp.concatenate([costs, pool_cost])
        costs = jnp.where(jnp.isfinite(costs), costs, jnp.inf)
        negated_costs, elite_indices = jax.lax.top_k(-costs, config.elites)
        elites, elite_costs = population[elite_indices], -negated_costs
        best = jnp.where(elite_costs[0] < best_cost, elites[0], best)
        best_cost = jnp.minimum(elite_costs[0], best_cost)
        mean = _blend(config.momentum, jnp.mean(elites, axis=0), mean)
        std = _blend(config.momentum, jnp.std(elites, axis=0, ddof=1), std)
        pool, pool_cost = elites[: config.num_reused], elite_costs[: config.num_reused]
    new_plan = Plan(mean, pool, jnp.asarray(True), invalid)
    return best, best_cost, advance(new_plan, 1, low, high, shift_key)


def advance(
    plan: Plan, steps: int | jax.Array, low: jax.Array, high: jax.Array, key: jax.Array
) -> Plan:
    """The plan after `steps` more actions, shifted to the front.

    The mean is padded with its last action, the elites with actions drawn from the box. Consumes
    `key`.
    """
    horizon = len(plan.mean)
    index = jnp.arange(horizon)
    mean = plan.mean[jnp.minimum(index + steps, horizon - 1)]
    shares = jax.random.uniform(key, plan.elites.shape, plan.elites.dtype)  # f32 with x64, too
    new_actions = shares * (high - low)[None, None] + low[None, None]
    shifted_elites = plan.elites[:, jnp.minimum(index + steps, horizon - 1)]
    return plan._replace(
        mean=mean,
        elites=jnp.where((index + steps < horizon)[None, :, None], shifted_elites, new_actions),
    )


def coloured_noise(
    key: jax.Array, shape: tuple[int, int, int], exponent: float | jax.Array, dtype: Any = float
) -> jax.Array:
    """Gaussian noise `[N, H, m]`, of variance 1 and of power f^-exponent along the horizon.

    Independent between sequences and dimensions; stationary and periodic along H. Frequency 0 has
    the power of the lowest other one (Timmer & König 1995). Consumes `key`.
    """
    number, horizon, dims = shape
    basis, frequency = _fourier(horizon)
    power = jnp.asarray(frequency) ** -jnp.asarray(exponent, jnp.float32)
    shaped = jnp.sqrt(power / jnp.mean(power))[:, None] * basis  # [frequency, time]
    white = jax.random.normal(key, (number, dims, horizon), dtype)
    # A matrix product instead of an FFT: horizons are short, and this is one call for all.
    return jnp.swapaxes(matmul(white, shaped), 1, 2)


def _fourier(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal waves `[length, length]`, a row each, and their frequencies `[length]`."""
    time = np.arange(length)
    order = (np.arange(length) + 1) // 2  # 0, 1, 1, 2, 2, ...: cosine and sine of each
    phase = np.where(np.arange(length) % 2 == 1, 0.0, -np.pi / 2)
    phase[0] = 0.0
    waves = np.cos(2 * np.pi * order[:, None] * time[None] / length + phase[:, None])
    waves /= np.linalg.norm(waves, axis=1, keepdims=True)
    return waves.astype(np.float32), (np.maximum(order, 1) / length).astype(np.float32)


def _blend(share: float | jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    return (1 - share) * new + share * old
