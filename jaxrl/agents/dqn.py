"""Deep Q-learning (Mnih et al. 2015) and the extensions of Rainbow (Hessel et al. 2018).

Switches of `Config`: double (van Hasselt et al. 2016), n-step targets, prioritised replay (Schaul
et al. 2016) and distributions of returns (Bellemare et al. 2017). Dueling and noisy layers are
switches of the network, which is given a key for "noise" while learning and exploring. A truncated
step bootstraps from its true successor. Targets and losses: `jaxrl.losses.q_learning`.
"""

from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxrl import blocks as in_blocks
from jaxrl import checks
from jaxrl.checks import Count, CountOrZero, NonNegative, Positive, Range, Share, Span
from jaxrl.dependent_fields import needs, unless
from jaxrl.losses import action_values, exploration, q_learning, schedules
from jaxrl.losses import n_step as n_step_replay
from jaxrl.losses.n_step import Batch
from jaxrl.numerics import precision
from jaxrl.replay import prioritised
from jaxrl.replay import uniform as replay
from jaxrl.types import Agent, Metrics, PyTree, Transition, check_network

Loss = Literal["huber", "squared"]
OF_VALUES = unless("categorical", why="a distribution of returns is learned by its cross-entropy")


@struct.dataclass
class Config:
    """Replay, learning and exploration of a DQN."""

    learning_rate: Positive = 1e-3
    """Step size of Adam at the start."""
    anneal_updates: Span = float("inf")
    """Gradient updates over which the learning rate falls linearly to zero; inf: never."""
    discount: Share = 0.99
    """γ, per environment step."""
    batch_size: Count = struct.field(pytree_node=False, default=64)
    """Transitions in one gradient update."""
    updates_per_rollout: Count = struct.field(pytree_node=False, default=8)
    """Gradient updates after each rollout."""
    capacity: Count = struct.field(pytree_node=False, default=100_000)
    """Transitions in the replay, rounded up to whole rows."""
    warmup: CountOrZero = 1_000
    """Transitions gathered before the first gradient update."""
    target_period: Count = 250
    """Gradient updates between two moves of the target network."""
    target_step: Annotated[float, Range(above=0.0, most=1.0)] = 1.0
    """How far each moves it towards the parameters: 1 copies them; small steps with a period of 1
    make a soft target (Lillicrap et al. 2016)."""
    n_step: Count = struct.field(pytree_node=False, default=1)
    """Rewards summed before the target bootstraps."""
    double: bool = struct.field(pytree_node=False, default=True)
    """Whether the online network picks the action that the target network values."""
    loss: Annotated[Loss, OF_VALUES] = struct.field(pytree_node=False, default="huber")
    """Loss of values: huber, half the squared error but linear beyond `huber_delta`; squared, half
    the squared error everywhere. With squared a value becomes the mean of its targets. With huber
    it does not where chance moves them by more than `huber_delta`: rare large ones then count for
    less, and another action may seem the best. Distributions of returns use the cross-entropy
    instead."""
    huber_delta: Annotated[Positive, OF_VALUES, needs("loss", "huber")] = 1.0
    """huber: error beyond which the loss grows linearly, in units of return."""
    max_grad_norm: Positive | None = 10.0
    """Global norm to which gradients are clipped; None: never, which is faster."""
    epsilon_start: Share = 1.0
    """Share of steps at which a random action begins, at first; 0 with a noisy network."""
    epsilon_end: Share = 0.01
    """Share of such steps from `epsilon_transitions` on; 0 with a noisy network."""
    epsilon_transitions: CountOrZero = 50_000
    """Transitions over which the share of such steps falls linearly."""
    repeat_exponent: Annotated[
        Annotated[float, Range(above=1.0)] | None,
        needs("epsilon_start", why="it needs random actions, {}epsilon-start")
        | needs("epsilon_end"),
    ] = None
    """μ of εz-greedy (Dabney et al. 2021): a random action is repeated for n steps, P(n >= k) =
    k^(1 - μ). 2, as in the paper: mostly 1 to 3 steps, one time in a hundred 100 or more. None: one
    step."""
    categorical: bool = struct.field(pytree_node=False, default=False)
    """Whether the network predicts a distribution of returns, on as many atoms as it outputs."""
    value_low: Annotated[float, needs("categorical")] = -10.0
    """Lowest return of a distribution."""
    value_high: Annotated[float, needs("categorical")] = 10.0
    """Highest return of a distribution."""
    prioritised: bool = struct.field(pytree_node=False, default=False)
    """Whether transitions are sampled in proportion to their last error."""
    priority_exponent: Annotated[NonNegative, needs("prioritised")] = 0.5
    """α: probabilities are proportional to error^α; 0 draws uniformly."""
    importance_start: Annotated[Share, needs("prioritised")] = 0.4
    """β at the start, exponent of the importance weights, which rises linearly to 1."""
    importance_transitions: Annotated[CountOrZero, needs("prioritised")] = 1_000_000
    """Transitions until β is 1."""

    @property
    def value_range(self) -> tuple[float, float] | None:
        """Lowest and highest return of a distribution; None where the network predicts values."""
        return (self.value_low, self.value_high) if self.categorical else None

    @property
    def has_constant_epsilon(self) -> bool:
        """Whether the share of steps at which a random action begins stays as it is."""
        return self.epsilon_start == self.epsilon_end

    @property
    def loss_delta(self) -> float:
        """δ of the Huber loss; infinite for the squared error."""
        return self.huber_delta if self.loss == "huber" else float("inf")


class Learner(NamedTuple):
    """What a gradient update changes."""

    params: PyTree
    target_params: PyTree
    opt_state: PyTree
    updates: jax.Array  # int32; gradient updates so far


class State(NamedTuple):
    """The whole state of a DQN."""

    learner: Learner
    replay: replay.Replay
    priorities: Any  # prioritised.Priorities of the replay's steps; () without
    transitions: jax.Array  # int32; experience so far, saturating at the largest int32
    epsilon: jax.Array  # share of steps at which a random action begins, until the next update

    @property
    def params(self) -> PyTree:
        """Parameters of the network that acts."""
        return self.learner.params


MEASURED = ("loss", "q", "grad_norm")  # means over the gradient updates of one rollout
NOISE = 2**31 - 1  # folded into a key for noise, so that other draws from that key stay independent


def make(
    network: Any, config: Config, greedy: bool = False, num_envs: int = 1, blocks: int = 1
) -> Agent:
    """A DQN for experience that comes from `num_envs` environments side by side.

    Args:
      network: `init(key, obs) -> params` and `apply(params, obs [..., D], rngs=...)`, which returns
        q `[..., A]`, or logits `[..., A, K]` where `config.categorical`.
      config: its number leaves may be traced, so that `vmap` over them is a sweep.
      greedy: always take the best action, by the mean weights of a noisy network.
      num_envs: N of the rollouts to come; the replay has a column for each.
      blocks: those of the loop (`jaxrl.blocks`).

    Raises ValueError for hyperparameters out of range, for what is no such network, unless `blocks`
    divides `num_envs` and the batch and, in `init`, for a network with the wrong output.
    """
    check_config(config)
    check_network("network", network, ("obs",), "an instance of networks.dueling.QNetwork")
    in_blocks.check_draws(num_envs, config.batch_size, blocks)
    capacity = max(replay.rows_for(config.capacity, num_envs), config.n_step)
    repeats = None if greedy else config.repeat_exponent

    def init(key: jax.Array, obs: PyTree) -> State:
        params = network.init(key, obs)
        output = jax.eval_shape(network.apply, params, obs)
        q_learning.check_output(output, config.categorical, obs)
        precision.refuse_narrow(output, obs)
        # A copy: the same buffer twice in a state could not be donated.
        target_params = jax.tree.map(jnp.copy, params)
        no_transitions = jnp.zeros((), jnp.int32)
        opt_state = make_optimizer(config).init(params)
        learner = Learner(params, target_params, opt_state, jnp.zeros((), jnp.int32))
        ring = replay.init(n_step_replay.example(obs), capacity, num_envs, blocks)
        return State(
            learner,
            ring,
            prioritised.init(ring) if config.prioritised else (),
            transitions=no_transitions,
            epsilon=epsilon_at(no_transitions, config),
        )

    def act(state: State, memory: tuple, obs: PyTree, key: jax.Array):
        rngs = {} if greedy else {"noise": jax.random.fold_in(key, NOISE)}
        output = network.apply(state.learner.params, obs, rngs=rngs)
        q = q_learning.values(output, config.value_range)  # [A]
        if greedy:
            return jnp.argmax(q).astype(jnp.int32), memory, ()
        return *exploration.epsilon_greedy(key, q, state.epsilon, repeats, memory), ()

    def explain(state: State, memory: tuple, obs: PyTree):
        del memory
        q = q_learning.values(network.apply(state.learner.params, obs), config.value_range)
        return {"q": q, "value": action_values.max_value(q)}

    update = partial(remember_and_learn, network, config)
    memory = partial(exploration.memory_of_repeats, repeats)
    return Agent(init, memory, act, update, explain, blocks)


def remember_and_learn(
    network: Any, config: Config, state: State, rollout: Transition, key: jax.Array
) -> tuple[State, Metrics]:
    """Remembers a rollout `[T, N]` and, once warm, learns from the replay. Consumes `key`."""
    ring = replay.add(state.replay, rollout._replace(reward=rollout.total_reward))
    transitions = count(state.transitions, rollout.terminated.size)
    warm = (transitions >= config.warmup) & (ring.size >= config.n_step)
    priorities = state.priorities
    if config.prioritised:
        priorities = prioritised.add(priorities, ring, len(rollout.terminated))
        state = state._replace(replay=ring, priorities=priorities, transitions=transitions)
        learner, priorities, metrics = learn_by_priority(network, config, state, warm, key)
    else:
        # The ring stays outside of the conditional, which would copy it.
        sizes = (config.updates_per_rollout, config.batch_size, config.n_step)
        batches = n_step_replay.sample(ring, key, *sizes, config.discount)
        learner, metrics = jax.lax.cond(
            warm,
            lambda learner: learn(network, config, learner, batches, key),
            lambda learner: (learner, no_metrics()),
            state.learner,
        )
    epsilon = epsilon_at(transitions, config)
    metrics = {**metrics, "epsilon": epsilon, "updates": learner.updates}
    return State(learner, ring, priorities, transitions, epsilon), metrics


def learn(
    network: Any, config: Config, learner: Learner, batches: Batch, key: jax.Array
) -> tuple[Learner, Metrics]:
    """One gradient update per minibatch of `batches [M, B, ...]`; `key` is for noise alone."""

    def step(learner: Learner, batch: Batch) -> tuple[Learner, Metrics]:
        return gradient_step(network, config, learner, batch, key)[:2]

    learner, metrics = jax.lax.scan(step, learner, batches)
    return learner, jax.tree.map(jnp.mean, metrics)


def learn_by_priority(
    network: Any, config: Config, state: State, warm: jax.Array, key: jax.Array
) -> tuple[Learner, prioritised.Priorities, Metrics]:
    """One gradient update per minibatch, drawn by the priorities after the one before.

    Changes nothing unless `warm`. Consumes `key`.
    """
    exponent = schedules.linear(
        config.importance_start, 1.0, state.transitions, config.importance_transitions
    )

    def step(carry, share):
        learner, priorities = carry
        ring, n = state.replay, config.n_step
        row, env, mass = prioritised.draw(priorities, ring, share, n)
        batch = n_step_replay.gather(ring, row, env, n, config.discount)
        sums = jnp.sum(prioritised.row_masses(priorities, ring, n), axis=1)
        batch = batch._replace(weight=prioritised.importance_weights(mass, exponent, sums))

        def update(learner):
            learner, metrics, error = gradient_step(network, config, learner, batch, key)
            return learner, metrics, prioritised.mass_of(error, config.priority_exponent)

        learner, metrics, mass = jax.lax.cond(
            warm, update, lambda learner: (learner, no_metrics(), mass), learner
        )
        return (learner, prioritised.update(priorities, row, env, mass)), metrics

    sizes = (config.updates_per_rollout, config.batch_size)
    shares = prioritised.shares(state.priorities, key, *sizes)
    start = (state.learner, state.priorities)
    (learner, priorities), metrics = jax.lax.scan(step, start, shares)
    return learner, priorities, jax.tree.map(jnp.mean, metrics)


def gradient_step(
    network: Any, config: Config, learner: Learner, batch: Batch, key: jax.Array
) -> tuple[Learner, Metrics, jax.Array]:
    """The learner after one minibatch, its metrics, and the size of each error `[B]`."""
    key = jax.random.fold_in(jax.random.fold_in(key, NOISE), learner.updates)
    target_key, loss_key = jax.random.split(key)
    models = (learner.params, learner.target_params)
    target = q_learning.td_target(
        network.apply, *models, batch, target_key, config.double, config.value_range
    )  # [B] or [B, K]
    (loss, (q, error)), grads = jax.value_and_grad(q_learning.loss, has_aux=True)(
        learner.params,
        network.apply,
        batch,
        target,
        loss_key,
        config.loss_delta,
        config.value_range,
    )
    changes, opt_state = make_optimizer(config).update(grads, learner.opt_state, learner.params)
    rate = schedules.linear(config.learning_rate, 0.0, learner.updates, config.anneal_updates)
    params = jax.tree.map(lambda param, change: param - rate * change, learner.params, changes)
    updates = learner.updates + 1
    is_due = updates % config.target_period == 0
    # at a step of 1 exactly the parameters
    next_target = optax.incremental_update(params, learner.target_params, config.target_step)
    target_params = jax.tree.map(
        lambda new, old: jnp.where(is_due, new, old), next_target, learner.target_params
    )
    metrics = {"loss": loss, "q": jnp.mean(q), "grad_norm": optax.tree.norm(grads)}
    return Learner(params, target_params, opt_state, updates), metrics, error


def no_metrics() -> Metrics:
    """The metrics where there was no gradient update."""
    return dict.fromkeys(MEASURED, jnp.zeros(()))


def epsilon_at(transitions: jax.Array, config: Config) -> jax.Array:
    """ε after so many transitions: linear from start to end, then constant."""
    return schedules.linear(
        config.epsilon_start, config.epsilon_end, transitions, config.epsilon_transitions
    )


def count(transitions: jax.Array, new: int) -> jax.Array:
    """`transitions + new`, saturating at the largest int32."""
    limit = jnp.iinfo(jnp.int32).max
    return jnp.minimum(transitions, limit - new) + new


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """Adam, before its step size, on gradients whose global norm is at most `max_grad_norm`."""
    limit = config.max_grad_norm
    clip = optax.identity() if limit is None else optax.clip_by_global_norm(limit)  # pyright: ignore[reportArgumentType]
    return optax.chain(clip, optax.scale_by_adam())


def check_config(config: Config) -> None:
    """Raises ValueError for out-of-range hyperparameters and an empty support."""
    checks.config_of(Config, config)
    if isinstance(config.value_low, int | float):
        checks.number("value_high", config.value_high, above=config.value_low)
