"""Parallelised Q-network (Gallici et al. 2024): Q(λ) on fresh experience, without replay.

Q is fitted to the λ-returns of each rollout of many ε-greedy environments, in a few epochs of
minibatches. There is no replay and no target network; layer norm in the network, as in
`MLP(layer_norm=True)`, keeps the values from diverging.
"""

from functools import partial
from typing import Annotated, Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxrl import blocks as in_blocks
from jaxrl import checks
from jaxrl.checks import Count, Positive, Range, Share, Span
from jaxrl.losses import action_values, exploration, minibatches, q_learning, returns, schedules
from jaxrl.types import Agent, Metrics, PyTree, Transition, check_network


@struct.dataclass
class Config:
    """Hyperparameters."""

    learning_rate: Positive = 5e-4
    """Step size of RAdam at the start."""
    anneal_updates: Span = float("inf")
    """Updates over which the learning rate falls linearly to zero; inf: never."""
    discount: Share = 0.99
    """γ, per environment step."""
    lambda_: Share = 0.9
    """λ of the returns: 0 bootstraps after one step, 1 at the end of the rollout."""
    reward_scale: Positive = 1.0
    """Factor of rewards while learning, so that values have about the size of 1."""
    max_grad_norm: Positive = 10.0
    """Global norm to which gradients are clipped."""
    epsilon_start: Share = 0.1
    """Share of steps at which a random action begins, at first."""
    epsilon_end: Share = 0.01
    """Share of such steps from `epsilon_updates` on."""
    epsilon_updates: Annotated[float, Range(least=0.0, finite=False)] = 500.0
    """Updates over which the share of such steps falls linearly."""
    repeat_exponent: Annotated[float, Range(above=1.0)] | None = None
    """μ of εz-greedy (Dabney et al. 2021): a random action is repeated for n steps, P(n >= k) =
    k^(1 - μ). 2, as in the paper: mostly 1 to 3 steps, one time in a hundred 100 or more. None: one
    step."""
    epochs: Count = struct.field(pytree_node=False, default=2)
    """Passes over each rollout."""
    minibatches: Count = struct.field(pytree_node=False, default=8)
    """Gradient steps per pass; must divide the rollout's transitions."""
    shuffle_group: Count = struct.field(pytree_node=False, default=1)
    """Neighbouring environments that stay together when a rollout is shuffled: faster above 1,
    where networks are small. The largest number up to this one is taken that divides the
    environments of a block and their part of a minibatch."""


class State(NamedTuple):
    params: PyTree
    opt_state: optax.OptState
    updates: jax.Array  # int32, rollouts learned from


class Extras(NamedTuple):
    """What `act` computes and `update` needs."""

    value: jax.Array  # [] maxₐ Q(obs, a)


class Batch(NamedTuple):
    """Transitions to learn from, `[T, N, ...]`; of a minibatch `[B, ...]`."""

    obs: PyTree
    action: jax.Array  # int32
    target: jax.Array  # λ-returns


def make(network: Any, config: Config, greedy: bool = False, blocks: int = 1) -> Agent:
    """A PQN agent for `network.apply(params, obs [..., D]) -> q [..., A]`.

    `greedy` always takes the best action; `blocks` are those of the loop (`jaxrl.blocks`). Raises
    ValueError for out-of-range hyperparameters and for what is no such network, when traced if
    `minibatches` does not divide the transitions of a block's rollout, and in `init` for a network
    with the wrong output.
    """
    checks.config_of(Config, config)
    check_network("network", network, ("obs",), "an instance of networks.dueling.QNetwork")
    repeats = None if greedy else config.repeat_exponent
    optimizer = optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),  # pyright: ignore[reportArgumentType]
        optax.scale_by_radam(),
    )

    # What an agent begins with.
    def init(key: jax.Array, obs: PyTree) -> State:
        params = network.init(key, obs)
        output = jax.eval_shape(network.apply, params, obs)
        q_learning.check_output(output, False, obs)
        return State(params, optimizer.init(params), jnp.zeros((), jnp.int32))

    # Acting: ε-greedy, and the value that the λ-returns need.
    def act(state: State, memory: Any, obs: PyTree, key: jax.Array):
        q = network.apply(state.params, obs)  # [A]
        epsilon = 0.0 if greedy else epsilon_at(state.updates, config)
        action, memory = exploration.epsilon_greedy(key, q, epsilon, repeats, memory)
        return action, memory, Extras(action_values.max_value(q))

    def explain(state: State, memory: tuple, obs: PyTree):
        del memory
        q = network.apply(state.params, obs)
        return {"q": q, "value": action_values.max_value(q)}

    memory = partial(exploration.memory_of_repeats, repeats)
    parts = network, config, optimizer, blocks
    return Agent(init, memory, act, partial(update, *parts), explain, blocks)


def update(
    network: Any,
    config: Config,
    optimizer: optax.GradientTransformation,
    blocks: int,
    state: State,
    rollout: Transition,
    key: jax.Array,
) -> tuple[State, Metrics]:
    """Learns from shuffled minibatches of a rollout, whose targets stay as they are.

    Consumes `key`.
    """
    batch = in_blocks.flatten(make_batch(network, state.params, rollout, config), blocks)
    learning_rate = learning_rate_at(state.updates, config)

    def gradient_step(learning, minibatch):
        params, opt_state = learning
        (_, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(
            params, network, minibatch.data
        )
        metrics |= {"grad_norm": optax.tree.norm(gradient)}
        direction, opt_state = optimizer.update(gradient, opt_state, params)
        params = jax.tree.map(lambda p, d: p - learning_rate * d, params, direction)
        return (params, opt_state), metrics

    start = (state.params, state.opt_state)
    group = minibatches.group_size(config, batch, num_envs=rollout.terminated.shape[1])
    sizes = (config.epochs, config.minibatches, group)
    (params, opt_state), metrics = minibatches.epochs(gradient_step, start, batch, key, *sizes)
    metrics = jax.tree.map(jnp.mean, metrics) | {
        "epsilon": epsilon_at(state.updates, config),
        "learning_rate": jnp.asarray(learning_rate, jnp.float32),
    }
    return State(params, opt_state, state.updates + 1), metrics


def make_batch(network: Any, params: PyTree, rollout: Transition, config: Config) -> Batch:
    """A rollout `[T, N]` with its λ-returns, where V = maxₐ Q."""
    value_of = lambda obs: action_values.max_value(network.apply(params, obs))
    next_value = returns.successor_values(value_of, rollout, rollout.extras.value)
    target = returns.lambda_returns(
        config.reward_scale * rollout.total_reward,
        next_value,
        rollout.terminated,
        rollout.truncated,
        config.discount,
        config.lambda_,
    )
    return Batch(rollout.obs, rollout.action, target)


def loss(params: PyTree, network: Any, batch: Batch) -> tuple[jax.Array, Metrics]:
    """Mean of ½ (Q(s, a) - Gλ)² over a minibatch (Gallici et al. 2024, algorithm 1)."""
    q = action_values.value_of_action(network.apply(params, batch.obs), batch.action)  # [B]
    chex.assert_equal_shape([q, batch.target])
    total = jnp.mean(optax.l2_loss(q, batch.target))
    return total, {"loss": total, "q": jnp.mean(q)}


def learning_rate_at(updates: jax.Array, config: Config) -> jax.Array:
    """Step size after so many updates: linear to zero."""
    return schedules.decay(updates, config.anneal_updates) * config.learning_rate


def epsilon_at(updates: jax.Array, config: Config) -> jax.Array:
    """ε after so many updates: linear from start to end, then constant."""
    return schedules.linear(
        config.epsilon_start, config.epsilon_end, updates, config.epsilon_updates
    )
