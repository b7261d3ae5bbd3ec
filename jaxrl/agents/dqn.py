"""Deep Q-learning (Mnih et al. 2015) and what Rainbow joins to it (Hessel et al. 2018).

Switches of `Config`: double (van Hasselt et al. 2016), n-step targets, prioritised replay (Schaul
et al. 2016) and distributions of returns (Bellemare et al. 2017). The network maps observations to
a value of each action, `[..., D] -> [..., A]`, or to logits `[..., A, K]` of a distribution.
Whether it is dueling or noisy is its own matter; it is given a key for "noise" wherever noise may
be. Time limits are not deaths: a truncated step bootstraps from its true successor.
"""

from typing import Any, Literal, NamedTuple, get_args

import chex
import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxrl import action_values, checks, prioritised, replay, returns
from jaxrl.types import Agent, Metrics, PyTree, Transition

Loss = Literal["huber", "squared"]


@struct.dataclass
class Config:
    """How a DQN remembers, learns and explores."""

    learning_rate: float = 1e-3
    """Step size of Adam at the start."""
    anneal_updates: float = float("inf")
    """Gradient updates over which the learning rate falls linearly to zero; inf: never."""
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
    loss: Loss = struct.field(pytree_node=False, default="huber")
    """Of values: huber, half the squared error but linear beyond `huber_delta`; or squared, half
    the squared error everywhere. Distributions of returns have the cross-entropy instead."""
    huber_delta: float = 1.0
    """huber: error beyond which the loss grows linearly, in units of return."""
    max_grad_norm: float = 10.0
    """Global norm that gradients are scaled down to."""
    epsilon_start: float = 1.0
    """Share of random actions at the start; 0 where a noisy network explores."""
    epsilon_end: float = 0.01
    """Share of random actions from `epsilon_transitions` on; 0 where a noisy network explores."""
    epsilon_transitions: int = 50_000
    """Transitions over which the share of random actions falls linearly."""
    categorical: bool = struct.field(pytree_node=False, default=False)
    """Whether the network tells a distribution of returns, on as many atoms as it puts out."""
    value_low: float = -10.0
    """Lowest return of a distribution."""
    value_high: float = 10.0
    """Highest return of a distribution."""
    prioritised: bool = struct.field(pytree_node=False, default=False)
    """Whether transitions are learned from in proportion to their last error."""
    priority_exponent: float = 0.5
    """α, how much the error counts; 0 draws uniformly."""
    importance_start: float = 0.4
    """β at the start, how much of what priorities bias is made up for; it rises linearly to 1."""
    importance_transitions: int = 1_000_000
    """Transitions until β is 1."""


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
    priorities: Any  # prioritised.Priorities of the replay's steps; () without
    transitions: jax.Array  # int32; experience so far, resting at its maximum instead of wrapping
    epsilon: jax.Array  # share of random actions until the next update


class Batch(NamedTuple):
    """Minibatches `[M, B, ...]` ready for the loss, or one of them `[B, ...]`."""

    obs: Any
    action: jax.Array  # int32
    return_: jax.Array  # rewards of the next n steps, discounted and summed
    discount: jax.Array  # of the value of `next_obs`; 0 where the episode terminated
    next_obs: Any  # the true successor n steps on, or where the episode ended before
    weight: jax.Array | None = None  # of each error in the loss; None: all 1


MEASURED = ("loss", "q", "grad_norm")  # means over the gradient updates of one rollout
NOISE = 2**31 - 1  # folded into a key for noise, so that what else is drawn from it stays apart


def make(network: Any, config: Config, greedy: bool = False, num_envs: int = 1) -> Agent:
    """A DQN for experience that comes from `num_envs` environments side by side.

    Args:
      network: has `init(key, obs) -> params` and `apply(params, obs [..., D], rngs=...)`, which
        tells q `[..., A]`, or logits `[..., A, K]` where `config.categorical`.
      config: its number leaves may be traced, so that `vmap` over them is a sweep.
      greedy: whether `act` always takes the best action, by the mean weights of a noisy network.
      num_envs: N of the rollouts to come; the replay has a column for each.

    Raises ValueError for numbers that nothing can be learned with, and in `init` for a network that
    does not suit.
    """
    check_config(config)
    capacity = max(replay.rows_for(config.capacity, num_envs), config.n_step)

    def init(key: jax.Array, obs: PyTree) -> State:
        params = network.init(key, obs)
        check_output(jax.eval_shape(network.apply, params, obs).shape, config)
        # A copy: the same buffer twice in a state could not be donated.
        target_params = jax.tree.map(jnp.copy, params)
        nothing = jnp.zeros((), jnp.int32)
        opt_state = make_optimizer(config).init(params)
        return State(
            Learner(params, target_params, opt_state, jnp.zeros((), jnp.int32)),
            replay.init(example_transition(obs), capacity, num_envs),
            prioritised.init(capacity, num_envs) if config.prioritised else (),
            transitions=nothing,
            epsilon=epsilon_at(nothing, config),
        )

    def act(state: State, memory: tuple, obs: PyTree, key: jax.Array):
        rngs = {} if greedy else {"noise": jax.random.fold_in(key, NOISE)}
        q = values(network.apply(state.learner.params, obs, rngs=rngs), config)  # [A]
        if greedy:
            return jnp.argmax(q).astype(jnp.int32), memory, ()
        return action_values.epsilon_greedy(key, q, state.epsilon), memory, ()

    def update(state: State, rollout: Transition, key: jax.Array) -> tuple[State, Metrics]:
        ring = replay.add(state.replay, rollout)
        transitions = count(state.transitions, rollout.reward.size)
        warm = (transitions >= config.warmup) & (ring.size >= config.n_step)
        priorities = state.priorities
        if config.prioritised:
            priorities = prioritised.add(priorities, ring, len(rollout.reward))
            state = state._replace(replay=ring, priorities=priorities, transitions=transitions)
            learner, priorities, metrics = learn_by_priority(network, config, state, warm, key)
        else:
            # The ring stays outside of the conditional, which would copy it.
            batches = sample_batches(ring, key, config)
            learner, metrics = jax.lax.cond(
                warm,
                lambda learner: learn(network, config, learner, batches, key),
                lambda learner: (learner, nothing_measured()),
                state.learner,
            )
        epsilon = epsilon_at(transitions, config)
        metrics = {**metrics, "epsilon": epsilon, "updates": learner.updates}
        return State(learner, ring, priorities, transitions, epsilon), metrics

    return Agent(init, lambda: (), act, update)


def learn(
    network: Any, config: Config, learner: Learner, batches: Batch, key: jax.Array
) -> tuple[Learner, Metrics]:
    """One gradient update per minibatch of `batches [M, B, ...]`; `key` is for noise alone."""

    def step(learner: Learner, batch: Batch) -> tuple[Learner, Metrics]:
        return gradient_step(network, config, learner, batch, key)[:2]

    learner, measured = jax.lax.scan(step, learner, batches)
    return learner, jax.tree.map(jnp.mean, measured)


def learn_by_priority(
    network: Any, config: Config, state: State, warm: jax.Array, key: jax.Array
) -> tuple[Learner, prioritised.Priorities, Metrics]:
    """One gradient update per minibatch, drawn by the priorities the one before has left.

    Changes nothing unless `warm`. Consumes `key`.
    """
    exponent = action_values.linear(
        config.importance_start, 1.0, state.transitions, config.importance_transitions
    )

    def step(carry, share):
        learner, priorities = carry
        row, env, mass = prioritised.draw(priorities, state.replay, share, config.n_step)
        batch = gather(state.replay, row, env, config)
        batch = batch._replace(weight=prioritised.importance_weights(mass, exponent))

        def update(learner):
            learner, measured, error = gradient_step(network, config, learner, batch, key)
            return learner, measured, prioritised.mass_of(error, config.priority_exponent)

        learner, measured, mass = jax.lax.cond(
            warm, update, lambda learner: (learner, nothing_measured(), mass), learner
        )
        return (learner, prioritised.update(priorities, row, env, mass)), measured

    shares = prioritised.shares(key, config.updates_per_rollout, config.batch_size)
    start = (state.learner, state.priorities)
    (learner, priorities), measured = jax.lax.scan(step, start, shares)
    return learner, priorities, jax.tree.map(jnp.mean, measured)


def gradient_step(
    network: Any, config: Config, learner: Learner, batch: Batch, key: jax.Array
) -> tuple[Learner, Metrics, jax.Array]:
    """The learner after one minibatch, what was measured, and how wrong each value was `[B]`."""
    key = jax.random.fold_in(jax.random.fold_in(key, NOISE), learner.updates)
    target_key, loss_key = jax.random.split(key)
    target = td_target(network.apply, learner, batch, config, target_key)  # [B] or [B, K]
    (loss_, (q, error)), grads = jax.value_and_grad(loss, has_aux=True)(
        learner.params, network.apply, batch, target, config, loss_key
    )
    changes, opt_state = make_optimizer(config).update(grads, learner.opt_state, learner.params)
    rate = action_values.linear(config.learning_rate, 0.0, learner.updates, config.anneal_updates)
    params = jax.tree.map(lambda param, change: param - rate * change, learner.params, changes)
    updates = learner.updates + 1
    is_due = updates % config.target_period == 0
    target_params = jax.tree.map(
        lambda new, old: jnp.where(is_due, new, old), params, learner.target_params
    )
    measured = {"loss": loss_, "q": jnp.mean(q), "grad_norm": optax.tree.norm(grads)}
    return Learner(params, target_params, opt_state, updates), measured, error


def loss(
    params: PyTree, apply: Any, batch: Batch, target: jax.Array, config: Config, key: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Weighted mean error against the target, Q(s, a) `[B]` and how wrong each is `[B]`.

    Of values `config.loss`, and |error| as wrongness; of distributions KL(target ‖ prediction) for
    both, the cross-entropy less the entropy of the target (Hessel et al. 2018, section 3).
    """
    output = apply(params, batch.obs, rngs={"noise": key})
    q = action_values.value_of_action(values(output, config), batch.action)  # [B]
    if config.categorical:
        logits = action_values.logits_of_action(output, batch.action)  # [B, K]
        chex.assert_equal_shape([logits, target])
        each = wrong = optax.kl_divergence(jax.nn.log_softmax(logits), target)
    else:
        chex.assert_equal_shape([q, target])
        delta = config.huber_delta if config.loss == "huber" else jnp.inf
        each = action_values.huber_loss(q - target, delta)
        wrong = jnp.abs(q - target)
    weighted = each if batch.weight is None else batch.weight * each
    return jnp.mean(weighted), (q, wrong)


def td_target(
    apply: Any, learner: Learner, batch: Batch, config: Config, key: jax.Array
) -> jax.Array:
    """`[B]` Σₖ γᵏ rₖ + γⁿ Q⁻(sₙ, a*), or the distribution of that `[B, K]`.

    The online network chooses a* if `config.double`, else the target network; each has noise of its
    own.
    """
    target_key, online_key = jax.random.split(key)
    output = apply(learner.target_params, batch.next_obs, rngs={"noise": target_key})
    target_q = online_q = values(output, config)  # [B, A]
    if config.double:
        online = apply(learner.params, batch.next_obs, rngs={"noise": online_key})
        online_q = values(online, config)
    if not config.categorical:
        value = action_values.double_value(online_q, target_q)
        return batch.return_ + batch.discount * value
    logits = action_values.logits_of_action(output, jnp.argmax(online_q, axis=-1))
    return action_values.project(
        jax.nn.softmax(logits), batch.return_, batch.discount, support_of(logits, config)
    )


def values(output: jax.Array, config: Config) -> jax.Array:
    """Q `[..., A]` from what the network puts out."""
    if not config.categorical:
        return output
    return action_values.expectation(output, support_of(output, config))


def support_of(logits: jax.Array, config: Config) -> jax.Array:
    """`[K]` the returns that `logits [..., K]` are of."""
    return action_values.support(config.value_low, config.value_high, logits.shape[-1])


def sample_batches(ring: replay.Replay, key: jax.Array, config: Config) -> Batch:
    """All minibatches of one rollout, `[M, B, ...]`, in one gather. Consumes `key`."""
    shape = (config.updates_per_rollout, config.batch_size)
    # What follows the end of an episode may be drawn: n-step returns pass it over.
    places = replay.draw(ring, key, shape[0] * shape[1], config.n_step, cross_episodes=True)
    batch = gather(ring, places.row[0], places.env, config)
    return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), batch)


def gather(ring: replay.Replay, row: jax.Array, env: jax.Array, config: Config) -> Batch:
    """The transitions that start at `row [B]`, `env [B]` and last n steps: `[B, ...]`."""
    data = ring.data
    rows = (row[None] + jnp.arange(config.n_step)[:, None]) % replay.ring_shape(ring)[0]  # [n, B]
    reward, terminated, truncated = replay.take(
        (data.reward, data.terminated, data.truncated), rows, env
    )
    steps = returns.n_step(reward, terminated, truncated, config.discount)
    obs, action = replay.take((data.obs, data.action), row, env)
    last_row = jnp.take_along_axis(rows, steps.last[None], axis=0)[0]
    next_obs = replay.take(data.next_obs, last_row, env)
    return Batch(obs, action, steps.return_, steps.discount, next_obs)


def nothing_measured() -> Metrics:
    """In the place of what gradient updates measure, where there was none."""
    return dict.fromkeys(MEASURED, jnp.zeros(()))


def epsilon_at(transitions: jax.Array, config: Config) -> jax.Array:
    """ε after so much experience: linear from start to end, then constant."""
    return action_values.linear(
        config.epsilon_start, config.epsilon_end, transitions, config.epsilon_transitions
    )


def count(transitions: jax.Array, new: int) -> jax.Array:
    """`transitions + new`, resting at the largest int32 instead of wrapping."""
    limit = jnp.iinfo(jnp.int32).max
    return jnp.minimum(transitions, limit - new) + new


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """Adam, before its step size, on gradients whose global norm is at most `max_grad_norm`."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),  # pyright: ignore[reportArgumentType]
        optax.scale_by_adam(),
    )


def example_transition(obs: PyTree) -> Transition:
    """What one environment stores in one step; `act` adds no extras."""
    no = jnp.zeros((), bool)
    return Transition(obs, jnp.zeros((), jnp.int32), jnp.zeros(()), obs, no, no, ())


def check_config(config: Config) -> None:
    """Raises unless every number is within its bounds and the support, where known, not empty."""
    sizes = ("batch_size", "updates_per_rollout", "capacity", "n_step", "target_period")
    checks.fields("dqn ", config, *sizes, least=1)
    if config.loss not in get_args(Loss):
        raise ValueError(
            f"dqn loss {config.loss!r} is unknown, expected one of {', '.join(get_args(Loss))}"
        )
    checks.fields("dqn ", config, "learning_rate", "huber_delta", "max_grad_norm", above=0.0)
    shares = ("discount", "epsilon_start", "epsilon_end", "importance_start")
    checks.fields("dqn ", config, *shares, least=0.0, most=1.0)
    checks.number("dqn priority_exponent", config.priority_exponent, least=0.0)
    checks.number("dqn value_low", config.value_low)
    if isinstance(config.value_low, int | float):
        checks.number("dqn value_high", config.value_high, above=config.value_low)


def check_output(shape: tuple[int, ...], config: Config) -> None:
    """Raises unless the network puts out what `config.categorical` expects for one observation."""
    if len(shape) != 1 + config.categorical:
        raise ValueError(
            f"the network puts out {list(shape)} for one observation, but dqn categorical is "
            f"{config.categorical}: use it with atoms, [A, K], and only with them"
        )
