"""Proximal policy optimisation (Schulman et al. 2017), for discrete and continuous actions.

The network maps an observation to `(policy, value)`: a distribution of `jaxrl.losses.distributions`
and V(obs). One loss trains both. Where the environment gives the K components of its reward, a
network with K values learns one value for each; their advantages are added.

In a single step on the whole rollout the probability ratio is 1, where the clipped objective has
the gradient of A log π. So `epochs=1, minibatches=1, standardise=False` is advantage actor-critic
(A2C, Mnih et al. 2016; Huang et al. 2022, "A2C is a special case of PPO"), and with `gae_lambda=1`
and rollouts as long as episodes it is REINFORCE with a learned baseline (Williams 1992).
"""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxrl import blocks as in_blocks
from jaxrl import checks
from jaxrl.blocks import BlockBatch
from jaxrl.checks import Count, NonNegative, Range, Span
from jaxrl.losses import minibatches, policy_gradient, returns, schedules
from jaxrl.losses.policy_gradient import Batch, advantages, check_output, descend, make_optimizer
from jaxrl.types import Agent, Metrics, PyTree, Transition, check_network

SOURCE = "an instance of networks.mlp.ActorCritic, or one with a memory to recurrent_ppo"
"""Where a network that fits is from."""


@struct.dataclass
class Config(policy_gradient.Config):
    """Hyperparameters."""

    anneal_updates: Span = float("inf")
    """Updates over which the learning rate falls linearly to zero, and the discount moves from
    `discount` to `final_discount`; inf: never."""
    entropy_updates: Span | None = None
    """Updates over which the entropy weight falls linearly to zero; inf: never; None: those of the
    learning rate."""
    final_rate: NonNegative = 0.0
    """Lower bound of the annealed step size."""
    final_discount: Annotated[float, Range(least=0.0, below=1.0)] | None = None
    """γ at the end; the horizon 1 / (1 - γ) grows geometrically towards it, so that an agent first
    learns short-term effects (cf. Berner et al. 2019). None: constant."""
    target_kl: Annotated[float, Range(least=0.0, finite=False)] = float("inf")
    """Skip the rest of an update once a minibatch has exceeded this KL divergence; inf: never."""
    epochs: Count = struct.field(pytree_node=False, default=2)
    """Passes over each rollout."""
    minibatches: Count = struct.field(pytree_node=False, default=8)
    """Gradient steps per pass; must divide the rollout's transitions."""
    shuffle_group: Count = struct.field(pytree_node=False, default=1)
    """Neighbouring environments that stay together when a rollout is shuffled: faster above 1,
    where networks are small. The largest number up to this one is taken that divides the
    environments of a block and their part of a minibatch."""
    microbatch_size: Count | None = struct.field(pytree_node=False, default=None)
    """Transitions of a block whose gradient is computed at once; those of a minibatch are added up,
    so it changes speed alone. A few hundred help a CPU with large minibatches. None: all."""


class State(NamedTuple):
    params: PyTree
    opt_state: optax.OptState
    updates: jax.Array  # int32, rollouts learned from


class Extras(NamedTuple):
    """What `act` computes and `update` needs."""

    log_prob: jax.Array  # [] of the action taken
    value: jax.Array  # [] V(obs), or [K] of each component of the reward


def make(network: Any, config: Config, greedy: bool = False, blocks: int = 1) -> Agent:
    """A PPO agent. `greedy` takes the mode of the policy instead of a sample.

    `blocks` are those of the loop (`jaxrl.blocks`). Raises ValueError for out-of-range
    hyperparameters and for what is no such network, when traced if `minibatches` does not divide
    the transitions of a block's rollout, and in `init` for a network with the wrong output.
    """
    check_config(config)
    check_network("network", network, ("obs",), SOURCE)
    optimizer = make_optimizer(config)

    # What an agent begins with.
    def init(key: jax.Array, obs: PyTree) -> State:
        params = network.init(key, obs)
        check_output(jax.eval_shape(network.apply, params, obs), obs)
        return State(params, optimizer.init(params), jnp.zeros((), jnp.int32))

    # Acting: a sample of the policy, and what the loss needs to know of it.
    def act(state: State, memory: tuple, obs: PyTree, key: jax.Array):
        policy, value = network.apply(state.params, obs)
        action = policy.mode() if greedy else policy.sample(key)
        return action, memory, Extras(policy.log_prob(action), value)

    def explain(state: State, memory: tuple, obs: PyTree):
        del memory
        policy, value = network.apply(state.params, obs)
        return policy.describe() | {"value": value}

    parts = network, config, optimizer, blocks
    return Agent(init, lambda: (), act, partial(update, *parts), explain, blocks)


def check_config(config: Config) -> None:
    """Raises ValueError for out-of-range hyperparameters, and those that exclude each other."""
    checks.config_of(Config, config)
    if config.final_discount is not None:  # its horizon begins with a finite one
        checks.number("discount", config.discount, least=0.0, below=1.0)
    if config.microbatch_size is not None and config.target_entropy is not None:
        raise ValueError(
            "target_entropy needs the entropy of a whole minibatch: leave out microbatch_size"
        )


def with_annealing(config: Config, updates: jax.Array) -> Config:
    """The hyperparameters after so many updates."""
    remaining = schedules.decay(updates, config.anneal_updates)
    span = config.anneal_updates if config.entropy_updates is None else config.entropy_updates
    discount = config.discount
    if config.final_discount is not None:
        discount = 1.0 - (1.0 - discount) ** remaining * (1.0 - config.final_discount) ** (
            1.0 - remaining
        )
    return replace(
        config,
        learning_rate=jnp.maximum(remaining * config.learning_rate, config.final_rate),
        entropy_weight=schedules.decay(updates, span) * config.entropy_weight,
        discount=discount,
    )


def make_batch(network: Any, params: PyTree, rollout: Transition, config: Config) -> Batch:
    """A rollout `[T, N]` with its advantages and critic targets."""
    value = rollout.extras.value
    next_value = returns.successor_values(lambda obs: network.apply(params, obs)[1], rollout, value)
    advantage, target = advantages(rollout, value, next_value, config)
    log_prob = rollout.extras.log_prob
    return Batch(rollout.obs, rollout.action, log_prob, value, advantage, target)


class Learning(NamedTuple):
    """The state that minibatches update."""

    params: PyTree
    opt_state: optax.OptState
    stopped: jax.Array  # bool; the policy has moved as far as `target_kl` allows
    metrics: dict[str, jax.Array]  # of the last minibatch that was learned from


def update(
    network: Any,
    config: Config,
    optimizer: optax.GradientTransformation,
    blocks: int,
    state: State,
    rollout: Transition,
    key: jax.Array,
) -> tuple[State, Metrics]:
    """Learns from shuffled minibatches of a rollout, until `target_kl` stops it. Consumes `key`."""
    annealed_config = with_annealing(config, state.updates)
    batch = make_batch(network, state.params, rollout, annealed_config)
    batch = in_blocks.flatten(batch, blocks)

    def step(learning, minibatch):
        return gradient_step(network, optimizer, learning, minibatch, annealed_config)

    def skip(learning, minibatch):
        del minibatch
        return learning, learning.metrics

    def step_unless_stopped(learning, minibatch):
        return jax.lax.cond(learning.stopped, skip, step, learning, minibatch)

    start = Learning(state.params, state.opt_state, jnp.bool_(False), no_metrics(config))
    group = minibatches.group_size(config, batch, num_envs=rollout.terminated.shape[1])
    sizes = (config.epochs, config.minibatches, group)
    # The conditional is left out where nothing stops: a GPU's host would wait for it.
    may_stop = checks.may_be_finite(config.target_kl)
    final, metrics = minibatches.epochs(
        step_unless_stopped if may_stop else step, start, batch, key, *sizes
    )
    metrics = jax.tree.map(jnp.mean, metrics) | {
        "stopped": final.stopped.astype(jnp.float32),
        "learning_rate": jnp.asarray(annealed_config.learning_rate, jnp.float32),
        **policy_gradient.action_metrics(rollout.action),
    }
    return State(final.params, final.opt_state, state.updates + 1), metrics


def gradient_step(
    network: Any,
    optimizer: optax.GradientTransformation,
    learning: Learning,
    batch: BlockBatch[Batch],
    config: Config,
) -> tuple[Learning, dict[str, jax.Array]]:
    """One step of clipped, preconditioned gradient descent on a minibatch."""
    gradient, metrics = gradient_of(network, learning.params, batch, config)
    metrics |= {"grad_norm": optax.tree.norm(gradient)}
    params, opt_state = descend(
        optimizer, gradient, learning.params, learning.opt_state, config.learning_rate
    )
    return Learning(params, opt_state, metrics["kl"] > config.target_kl, metrics), metrics


def gradient_of(
    network: Any, params: PyTree, batch: BlockBatch[Batch], config: Config
) -> tuple[PyTree, dict[str, jax.Array]]:
    """The gradient of the loss of a minibatch, and its metrics."""
    size = config.microbatch_size
    if size is None:
        return jax.grad(loss, argnums=1, has_aux=True)(network, params, batch.data, config)
    if config.standardise:  # over the whole minibatch
        advantage = policy_gradient.standardise(batch.data.advantage)
        batch = replace(batch, data=batch.data._replace(advantage=advantage))
        config = replace(config, standardise=False)
    part_gradient = lambda part: jax.grad(loss, argnums=1, has_aux=True)(
        network, params, part, config
    )
    return minibatches.mean_of_parts(part_gradient, batch, size)


def loss(
    network: Any, params: PyTree, batch: Batch, config: Config
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """`policy_gradient.loss` of what the network makes of a minibatch."""
    policy, value = network.apply(params, batch.obs)
    return policy_gradient.loss(policy, value, batch, config)


def no_metrics(config: Config) -> dict[str, jax.Array]:
    """Zeros, the metrics before the first minibatch."""
    names = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction", "grad_norm")
    extra_names = ("entropy_weight",) * (config.target_entropy is not None)
    return {name: jnp.zeros(()) for name in names + extra_names}
