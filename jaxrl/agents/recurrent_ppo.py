"""Proximal policy optimisation (Schulman et al. 2017) of a network with a memory.

The network is `jaxrl.networks.recurrent.RecurrentActorCritic` or has its functions:
`initial_memory() -> memory`, `init(key, obs, memory) -> params`, `apply(params, obs, memory) ->
(policy, value, memory)` for a step, and `apply(params, obs, memory, starts, method="sequence") ->
(policy, value)` for many.

To learn, whole sequences are run again from the memory that each began with; a minibatch is some of
the N environments with all their T steps (Huang et al. 2022, "The 37 implementation details of
PPO", LSTM details 3 to 5). So gradients reach back to the start of the episode or of the rollout,
whichever is later: give a rollout as many steps as have to be remembered. In later minibatches that
first memory is still the one of the parameters which acted.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxrl import blocks as in_blocks
from jaxrl import checks
from jaxrl.blocks import BlockBatch
from jaxrl.checks import Count, Span
from jaxrl.losses import minibatches, policy_gradient, returns, schedules
from jaxrl.types import Agent, Memory, Metrics, PyTree, Transition, check_network

SOURCE = "an instance of networks.recurrent.RecurrentActorCritic, or one without a memory to ppo"
"""Where a network that fits is from."""


@struct.dataclass
class Config(policy_gradient.Config):
    """Hyperparameters."""

    anneal_updates: Span = float("inf")
    """Updates over which learning rate and entropy weight fall linearly to zero; inf: never."""
    epochs: Count = struct.field(pytree_node=False, default=4)
    """Passes over each rollout."""
    minibatches: Count = struct.field(pytree_node=False, default=4)
    """Gradient steps per pass; must divide the number of environments."""


class State(NamedTuple):
    params: PyTree
    opt_state: optax.OptState
    updates: jax.Array  # int32, rollouts learned from


class Extras(NamedTuple):
    """What `act` computes and `update` needs."""

    log_prob: jax.Array  # [] of the action taken
    value: jax.Array  # [] V(obs), or [K] of each component of the reward
    memory: Memory  # the one that `act` was given


@struct.dataclass
class Sequences:
    """All steps of B environments; those of a minibatch are by block (`jaxrl.blocks`)."""

    steps: policy_gradient.Batch  # [T, B, ...]
    starts: jax.Array  # [T, B] bool; the first steps of episodes, but for row 0
    memory: Memory  # [B, ...] before row 0
    blocks: int = struct.field(pytree_node=False, default=1)


def make(network: Any, config: Config, greedy: bool = False, blocks: int = 1) -> Agent:
    """A recurrent PPO agent. `greedy` takes the mode of the policy instead of a sample.

    `blocks` are those of the loop (`jaxrl.blocks`). Raises ValueError for out-of-range
    hyperparameters and for what is no such network, when traced if `minibatches` does not divide
    the number of environments of a block, and in `init` for a network with the wrong output.
    """
    checks.config_of(Config, config)
    names = ("init", "apply", "initial_memory")
    check_network("network", network, ("obs", "memory"), SOURCE, names)
    optimizer = policy_gradient.make_optimizer(config)

    # What an agent begins with.
    def init(key: jax.Array, obs: PyTree) -> State:
        memory = network.initial_memory()
        params = network.init(key, obs, memory)
        output = jax.eval_shape(network.apply, params, obs, memory)
        policy_gradient.check_output(output, obs, ("policy", "value", "memory"))
        return State(params, optimizer.init(params), jnp.zeros((), jnp.int32))

    # Acting also records the memory that it was given, from which sequences are run again.
    def act(state: State, memory: Memory, obs: PyTree, key: jax.Array):
        policy, value, next_memory = network.apply(state.params, obs, memory)
        action = policy.mode() if greedy else policy.sample(key)
        return action, next_memory, Extras(policy.log_prob(action), value, memory)

    def explain(state: State, memory: Memory, obs: PyTree):
        policy, value, _ = network.apply(state.params, obs, memory)
        return policy.describe() | {"value": value}

    parts = network, config, optimizer, blocks
    return Agent(init, network.initial_memory, act, partial(update, *parts), explain, blocks)


def update(
    network: Any,
    config: Config,
    optimizer: optax.GradientTransformation,
    blocks: int,
    state: State,
    rollout: Transition,
    key: jax.Array,
) -> tuple[State, Metrics]:
    """Learns from minibatches of environments, each with all of its steps. Consumes `key`."""
    annealed_config = with_annealing(config, state.updates)
    sequences = make_sequences(network, state.params, rollout, annealed_config)

    def gradient_step(learning, envs):
        params, opt_state = learning
        gradient_of = jax.value_and_grad(loss, argnums=1, has_aux=True)
        minibatch = select_envs(sequences, envs)
        (_, metrics), gradient = gradient_of(network, params, minibatch, annealed_config)
        metrics |= {"grad_norm": optax.tree.norm(gradient)}
        learning = policy_gradient.descend(
            optimizer, gradient, params, opt_state, annealed_config.learning_rate
        )
        return learning, metrics

    all_envs = BlockBatch(jnp.arange(rollout.terminated.shape[1]), blocks)
    check_split(all_envs, config.minibatches)
    start, sizes = (state.params, state.opt_state), (config.epochs, config.minibatches)
    (params, opt_state), metrics = minibatches.epochs(gradient_step, start, all_envs, key, *sizes)
    learning_rate = jnp.asarray(annealed_config.learning_rate, jnp.float32)
    metrics = jax.tree.map(jnp.mean, metrics) | {"learning_rate": learning_rate}
    metrics |= policy_gradient.action_metrics(rollout.action)
    return State(params, opt_state, state.updates + 1), metrics


def check_split(envs: BlockBatch[jax.Array], num_minibatches: int) -> None:
    """Raises ValueError unless the sequences of all environments can be shared out equally."""
    num_envs, blocks = envs.size, envs.blocks
    in_blocks.check(num_envs, blocks)
    if num_envs // blocks % num_minibatches:
        within = f" in each of {blocks} blocks" if blocks > 1 else ""
        raise ValueError(
            f"the sequences of {num_envs // blocks} environments{within} cannot be split into "
            f"{num_minibatches} equal minibatches; change minibatches or num_envs"
        )


def with_annealing(config: Config, updates: jax.Array) -> Config:
    """The hyperparameters after so many updates."""
    remaining = schedules.decay(updates, config.anneal_updates)
    return replace(
        config,
        learning_rate=remaining * config.learning_rate,
        entropy_weight=remaining * config.entropy_weight,
    )


def make_sequences(network: Any, params: PyTree, rollout: Transition, config: Config) -> Sequences:
    """Advantages, critic targets and episode starts of a rollout `[T, N]`."""
    extras = rollout.extras
    next_value = successor_values(network, params, rollout)
    advantage, target = policy_gradient.advantages(rollout, extras.value, next_value, config)
    ended = rollout.terminated | rollout.truncated
    return Sequences(
        steps=policy_gradient.Batch(
            obs=rollout.obs,
            action=rollout.action,
            log_prob=extras.log_prob,
            value=extras.value,
            advantage=advantage,
            target=target,
        ),
        starts=jnp.concatenate([jnp.zeros_like(ended[:1]), ended[:-1]]),
        memory=jax.tree.map(lambda x: x[0], extras.memory),
    )


def successor_values(network: Any, params: PyTree, rollout: Transition) -> jax.Array:
    """V(next_obs) `[T, N]` of the true successor, from what is remembered after the step.

    Where an episode goes on that is the value of the next step, known already. Elsewhere the memory
    after the step was not kept, so the step is taken once more.
    """

    def value_of(successor):
        memory, obs, next_obs = successor
        _, _, next_memory = network.apply(params, obs, memory)
        return network.apply(params, next_obs, next_memory)[1]

    successors = (rollout.extras.memory, rollout.obs, rollout.next_obs)
    return returns.successor_values(
        value_of, rollout._replace(next_obs=successors), rollout.extras.value
    )


def select_envs(sequences: Sequences, envs: BlockBatch[jax.Array]) -> Sequences:
    """The sequences of some environments, by block."""
    indices, blocks = envs.data, envs.blocks
    take_columns = lambda x: in_blocks.take(x, (None, indices), 1, blocks)
    steps, starts = jax.tree.map(take_columns, (sequences.steps, sequences.starts))
    take_rows = lambda x: in_blocks.take(x, (indices,), 0, blocks)
    return Sequences(steps, starts, jax.tree.map(take_rows, sequences.memory), blocks)


def loss(
    network: Any, params: PyTree, sequences: Sequences, config: Config
) -> tuple[jax.Array, Metrics]:
    """The loss of PPO, a mean over all steps, and its parts; see `policy_gradient.loss`."""
    steps = sequences.steps
    outputs = network.apply(
        params, steps.obs, sequences.memory, sequences.starts, method="sequence"
    )
    (policy, value), flat_steps = in_blocks.flatten((outputs, steps), sequences.blocks).data
    return policy_gradient.loss(policy, value, flat_steps, config)
