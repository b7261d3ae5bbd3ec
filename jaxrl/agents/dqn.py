"""Deep Q-learning (Mnih et al. 2015), double (van Hasselt et al. 2016), with n-step targets.

The network maps observations to one value per action, `[..., D] -> [..., A]`; whether it is dueling
is its own matter. Time limits are not deaths: a truncated step bootstraps from its true successor.
"""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxrl import replay, returns
from jaxrl.types import Agent, Metrics, PyTree, Transition


@struct.dataclass
class Config:
    """How a DQN remembers, learns and explores."""

    learning_rate: float = 1e-3
    """Step size of Adam."""
    discount: float = 0.99
    """γ, what a reward is worth one step later."""
    batch_size: int = struct.field(pytree_node=False, default=64)
    """Transitions in one gradient update."""
    updates_per_rollout: int = struct.field(pytree_node=False, default=8)
    """Gradient updates after each rollout."""
    capacity: int = struct.field(pytree_node=False, default=100_000)
    """Transitions remembered, rounded up to whole rows of the replay."""
    warmup: int = 1_000
    """Transitions gathered before the first gradient update."""
    target_period: int = 250
    """Gradient updates between two copies of the parameters into the target network."""
    n_step: int = struct.field(pytree_node=False, default=1)
    """Rewards summed before the target bootstraps."""
    double: bool = struct.field(pytree_node=False, default=True)
    """Whether the online network picks the action that the target network values."""
    huber_delta: float = 1.0
    """Error beyond which the loss grows linearly, in units of return."""
    max_grad_norm: float = 10.0
    """Global norm that gradients are scaled down to."""
    epsilon_start: float = 1.0
    """Share of random actions at the start."""
    epsilon_end: float = 0.01
    """Share of random actions from `epsilon_transitions` on."""
    epsilon_transitions: int = 50_000
    """Transitions over which the share of random actions falls linearly."""


class Learner(NamedTuple):
    """What a gradient update changes."""

    params: PyTree
    target_params: PyTree
    opt_state: PyTree
    updates: jax.Array  # int32; gradient updates so far


class State(NamedTuple):
    """Everything a DQN knows."""

    learner: Learner
    replay: replay.Replay
    transitions: jax.Array  # int32; experience so far, resting at its maximum instead of wrapping
    epsilon: jax.Array  # share of random actions until the next update


class Batch(NamedTuple):
    """Minibatches `[M, B, ...]` ready for the loss, or one of them `[B, ...]`."""

    obs: Any
    action: jax.Array  # int32
    return_: jax.Array  # rewards of the next n steps, discounted and summed
    discount: jax.Array  # of the value of `next_obs`; 0 where the episode terminated
    next_obs: Any  # the true successor n steps on, or where the episode ended before


MEASURED = ("loss", "q", "grad_norm")  # means over the gradient updates of one rollout


def make(network: Any, config: Config, greedy: bool = False, num_envs: int = 1) -> Agent:
    """A DQN for experience that comes from `num_envs` environments side by side.

    Args:
      network: has `init(key, obs) -> params` and `apply(params, obs [..., D]) -> q [..., A]`.
      config: its number leaves may be traced, so that `vmap` over them is a sweep.
      greedy: whether `act` always takes the best action.
      num_envs: N of the rollouts to come; the replay has a column for each.
    """
    check_config(config)
    capacity = replay.rows_for(config.capacity, num_envs)
    optimizer = make_optimizer(config)

    def init(key: jax.Array, obs: PyTree) -> State:
        params = network.init(key, obs)
        # A copy: the same buffer twice in a state could not be donated.
        target_params = jax.tree.map(jnp.copy, params)
        learner = Learner(params, target_params, optimizer.init(params), jnp.zeros((), jnp.int32))
        nothing = jnp.zeros((), jnp.int32)
        return State(
            learner,
            replay.init(example_transition(obs), max(capacity, config.n_step), num_envs),
            transitions=nothing,
            epsilon=epsilon_at(nothing, config),
        )

    def act(state: State, memory: tuple, obs: PyTree, key: jax.Array):
        q = network.apply(state.learner.params, obs)  # [A]
        action = jnp.argmax(q).astype(jnp.int32) if greedy else explore(key, q, state.epsilon)
        return action, memory, ()

    def update(state: State, rollout: Transition, key: jax.Array) -> tuple[State, Metrics]:
        ring = replay.add(state.replay, rollout)
        transitions = count(state.transitions, rollout.reward.size)
        warm = (transitions >= config.warmup) & (ring.size >= config.n_step)
        # The ring stays outside of the conditional, which would copy it.
        batches = sample_batches(ring, key, config)
        learner, metrics = jax.lax.cond(
            warm,
            lambda learner: learn(network, optimizer, config, learner, batches),
            lambda learner: (learner, dict.fromkeys(MEASURED, jnp.zeros(()))),
            state.learner,
        )
        epsilon = epsilon_at(transitions, config)
        metrics = {**metrics, "epsilon": epsilon, "updates": learner.updates}
        return State(learner, ring, transitions, epsilon), metrics

    return Agent(init, lambda: (), act, update)


def learn(
    network: Any,
    optimizer: optax.GradientTransformation,
    config: Config,
    learner: Learner,
    batches: Batch,
) -> tuple[Learner, Metrics]:
    """One gradient update per minibatch of `batches [M, B, ...]`."""

    def step(learner: Learner, batch: Batch) -> tuple[Learner, Metrics]:
        target = td_target(network.apply, learner, batch, config.double)  # [B]
        (loss_, q), grads = jax.value_and_grad(loss, has_aux=True)(
            learner.params, network.apply, batch, target, config.huber_delta
        )
        changes, opt_state = optimizer.update(grads, learner.opt_state, learner.params)
        params = optax.apply_updates(learner.params, changes)
        updates = learner.updates + 1
        is_due = updates % config.target_period == 0
        target_params = jax.tree.map(
            lambda new, old: jnp.where(is_due, new, old), params, learner.target_params
        )
        measured = {"loss": loss_, "q": jnp.mean(q), "grad_norm": optax.tree.norm(grads)}
        return Learner(params, target_params, opt_state, updates), measured

    learner, measured = jax.lax.scan(step, learner, batches)
    return learner, jax.tree.map(jnp.mean, measured)


def loss(
    params: PyTree, apply: Any, batch: Batch, target: jax.Array, huber_delta: float | jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Mean Huber loss of Q(s, a) against the target, and Q(s, a) `[B]` (Mnih et al. 2015)."""
    q = value_of_action(apply(params, batch.obs), batch.action)  # [B]
    chex.assert_equal_shape([q, target])
    return jnp.mean(optax.huber_loss(q, target, delta=huber_delta)), q


def td_target(apply: Any, learner: Learner, batch: Batch, double: bool) -> jax.Array:
    """`[B]` Σₖ γᵏ rₖ + γⁿ V(sₙ), where V is `double_value` or `max_value`."""
    target_q = apply(learner.target_params, batch.next_obs)  # [B, A]
    if double:
        value = double_value(apply(learner.params, batch.next_obs), target_q)
    else:
        value = max_value(target_q)
    return batch.return_ + batch.discount * value


def max_value(target_q: jax.Array) -> jax.Array:
    """V = maxₐ Q⁻(s, a) (Mnih et al. 2015): `[..., A] -> [...]`."""
    return jnp.max(target_q, axis=-1)


def double_value(online_q: jax.Array, target_q: jax.Array) -> jax.Array:
    """V = Q⁻(s, argmaxₐ Q(s, a)) (van Hasselt et al. 2016): `[..., A] -> [...]`."""
    return value_of_action(target_q, jnp.argmax(online_q, axis=-1))


def value_of_action(q: jax.Array, action: jax.Array) -> jax.Array:
    """Q(s, a): `[..., A], [...] -> [...]`. A sum, whose gradient needs no scatter."""
    chosen = jax.nn.one_hot(action, q.shape[-1], dtype=bool)
    return jnp.sum(jnp.where(chosen, q, 0.0), axis=-1)


def sample_batches(ring: replay.Replay, key: jax.Array, config: Config) -> Batch:
    """All minibatches of one rollout, `[M, B, ...]`, in one gather. Consumes `key`."""
    shape = (config.updates_per_rollout, config.batch_size)
    data = ring.data
    places = replay.draw(ring, key, shape[0] * shape[1], config.n_step)
    reward, terminated, truncated = replay.take(
        (data.reward, data.terminated, data.truncated), places.row, places.env
    )  # [n, M * B]
    steps = returns.n_step(reward, terminated, truncated, config.discount)
    obs, action = replay.take((data.obs, data.action), places.row[0], places.env)
    last_row = jnp.take_along_axis(places.row, steps.last[None], axis=0)[0]
    next_obs = replay.take(data.next_obs, last_row, places.env)
    batch = Batch(obs, action, steps.return_, steps.discount, next_obs)
    return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), batch)


def explore(key: jax.Array, q: jax.Array, epsilon: jax.Array) -> jax.Array:
    """ε-greedy over `q [A]`: random with probability ε, else the best. Consumes `key`."""
    is_random, which = jax.random.uniform(key, (2,))
    random_action = (which * q.shape[-1]).astype(jnp.int32)
    return jnp.where(is_random < epsilon, random_action, jnp.argmax(q).astype(jnp.int32))


def epsilon_at(transitions: jax.Array, config: Config) -> jax.Array:
    """ε after so much experience: linear from start to end, then constant."""
    progress = jnp.minimum(transitions / jnp.maximum(config.epsilon_transitions, 1), 1.0)
    return config.epsilon_start + progress * (config.epsilon_end - config.epsilon_start)


def count(transitions: jax.Array, new: int) -> jax.Array:
    """`transitions + new`, resting at the largest int32 instead of wrapping."""
    limit = jnp.iinfo(jnp.int32).max
    return jnp.minimum(transitions, limit - new) + new


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """Adam on gradients whose global norm is at most `max_grad_norm`."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),  # pyright: ignore[reportArgumentType]
        optax.adam(config.learning_rate),
    )


def example_transition(obs: PyTree) -> Transition:
    """What one environment stores in one step; `act` adds no extras."""
    no = jnp.zeros((), bool)
    return Transition(obs, jnp.zeros((), jnp.int32), jnp.zeros(()), obs, no, no, ())


def check_config(config: Config) -> None:
    """Raises unless every size is at least 1."""
    for name in ("batch_size", "updates_per_rollout", "capacity", "n_step"):
        if (size := getattr(config, name)) < 1:
            raise ValueError(f"dqn {name} is {size}, expected at least 1: raise it")
