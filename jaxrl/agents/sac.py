"""Soft actor-critic (Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications").

For continuous actions in a box, with a temperature that is learned. Critics see actions scaled to
[-1, 1], and π is the density of those: an entropy, and so a target entropy, means the same in every
box. The density of the actions themselves has the entropy plus Σ log((high - low) / 2).
Log-probabilities are those of raw samples, which are exact close to the bounds. A truncated step
bootstraps from its true successor.
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
from jaxrl.checks import Count, CountOrZero, NonNegative, Positive, Range, Share
from jaxrl.dependent_fields import needs
from jaxrl.losses import exploration, n_step
from jaxrl.losses.distributions.continuous import SquashedNormal
from jaxrl.losses.n_step import Batch
from jaxrl.networks import continuous
from jaxrl.numerics import precision
from jaxrl.replay import uniform as replay
from jaxrl.types import Agent, Metrics, PyTree, Transition, check_network

OF_TEMPERATURE = needs("learn_temperature", why="it needs {}learn-temperature")


@struct.dataclass
class Config:
    """Replay, learning and temperature of a SAC."""

    actor_learning_rate: NonNegative = 1e-3
    """Step size of Adam for the policy."""
    critic_learning_rate: NonNegative = 3e-3
    """Step size of Adam for the critics."""
    temperature_learning_rate: Annotated[NonNegative, OF_TEMPERATURE] = 3e-3
    """Step size of Adam for log α."""
    discount: Share = 0.99
    """γ, per environment step."""
    tau: Annotated[float, Range(above=0.0, most=1.0)] = 0.02
    """τ: how far the target critics move towards the critics in each gradient update."""
    batch_size: Count = struct.field(pytree_node=False, default=128)
    """Transitions in one gradient update."""
    updates_per_rollout: Count = struct.field(pytree_node=False, default=8)
    """Gradient updates after each rollout; N T of them are one for each transition."""
    capacity: Count = struct.field(pytree_node=False, default=100_000)
    """Transitions in the replay, rounded up to whole rows."""
    warmup: CountOrZero = 1_000
    """Transitions gathered by uniformly random actions before the first gradient update; a full
    replay is always enough."""
    initial_temperature: Positive = 1.0
    """α at the start: the weight of the entropy, in units of return per nat."""
    learn_temperature: bool = struct.field(pytree_node=False, default=True)
    """Whether α moves the entropy towards `target_entropy`; otherwise it stays as it is."""
    target_entropy: Annotated[float | None, OF_TEMPERATURE] = None
    """Entropy that α aims for, in nats, of actions scaled to [-1, 1]; None: minus their number of
    coordinates. Uniform actions have the most, log 2 for each coordinate."""
    noise_correlation: Annotated[float, Range(least=0.0, below=1.0)] | None = None
    """ρ between the noise of neighbouring steps while exploring, which takes an agent farther: 0.95
    lasts for about 20 steps. Single actions keep their distribution. None: independent."""
    max_grad_norm: Annotated[float, Range(above=0.0, finite=False)] = float("inf")
    """Global norm to which the gradients of the actor, of the critics and of log α are clipped,
    each by itself; inf: never."""


class Networks(NamedTuple):
    actor: Any
    critic: Any


class Parts(NamedTuple):
    """What is learned, or something for each of the three: gradients, rates."""

    actor: Any
    critic: Any
    log_temperature: Any  # float32 []; log α


class Targets(NamedTuple):
    critic: PyTree  # follows the parameters of the critics slowly


class Learner(NamedTuple):
    """What a gradient update changes."""

    params: Parts
    target_params: Targets
    opt_state: PyTree
    updates: jax.Array  # int32; gradient updates so far


class State(NamedTuple):
    """The whole state of a SAC."""

    learner: Learner
    replay: replay.Replay  # of transitions whose actions are scaled to [-1, 1]


MEASURED = ("critic_loss", "actor_loss", "entropy", "q", "critic_grad_norm", "actor_grad_norm")
"""Means over the gradient updates of one rollout; 0 where there was none."""


def make(
    actor: Any,
    critic: Any,
    config: Config,
    greedy: bool = False,
    num_envs: int = 1,
    blocks: int = 1,
) -> Agent:
    """A SAC for experience that comes from `num_envs` environments side by side.

    Args:
      actor: `init(key, obs) -> params` and `apply(params, obs [..., D])`, which returns a
        SquashedNormal policy over actions `[..., A]`, as `networks.continuous.GaussianActor` does;
        its `action_size` is read where noise is correlated.
      critic: `init(key, obs, action)` and `apply(params, obs, action [..., A])`, which returns K
        estimates of Q `[..., K]`, as `networks.continuous.QFunctions` does.
      config: its number leaves may be traced, so that `vmap` over them is a sweep.
      greedy: act by the mode; otherwise sample, uniformly until the end of the warm-up.
      num_envs: N of the rollouts to come; the replay has a column for each.
      blocks: those of the loop (`jaxrl.blocks`).

    The extras of `act` are the action scaled to [-1, 1]. Raises ValueError for out-of-range
    hyperparameters, for what are no such networks, unless `blocks` divides `num_envs` and the batch
    and, in `init`, for networks with the wrong output.
    """
    checks.config_of(Config, config)
    source = "an instance of networks.continuous."
    check_network("actor", actor, ("obs",), f"{source}GaussianActor")
    check_network("critic", critic, ("obs", "action"), f"{source}QFunctions")
    in_blocks.check_draws(num_envs, config.batch_size, blocks)
    networks = Networks(actor, critic)
    init = partial(initial_state, networks, config, num_envs, blocks)

    # Acting: uniformly until the end of the warm-up, then by the policy.
    def act(state: State, memory: Any, obs: PyTree, key: jax.Array):
        policy = actor.apply(state.learner.params.actor, obs)
        raw = policy.raw.mean
        if not greedy:
            sampled, uniform, memory = explore(policy, config, memory, key)
            raw = jnp.where(is_warm(state.replay, config), sampled, uniform)
        return policy.squash(raw), memory, in_unit_box(policy).squash(raw)

    def explain(state: State, memory: tuple, obs: PyTree):
        del memory
        params = state.learner.params
        policy = actor.apply(params.actor, obs)
        mode_action = in_unit_box(policy).squash(policy.raw.mean)
        value = jnp.min(critic.apply(params.critic, obs, mode_action), axis=-1)
        return policy.describe() | {"value": value}

    def update(state: State, rollout: Transition, key: jax.Array):
        return remember_and_learn(networks, config, state, rollout, key)

    def memory() -> Any:
        if greedy or config.noise_correlation is None:
            return ()
        return exploration.memory_of_noise(actor.action_size)

    return Agent(init, memory, act, update, explain, blocks)


def initial_state(
    networks: Networks, config: Config, num_envs: int, blocks: int, key: jax.Array, obs: PyTree
) -> State:
    """What an agent begins with: networks, α, and an empty replay of scaled actions."""
    capacity = replay.rows_for(config.capacity, num_envs)
    actor_key, critic_key = jax.random.split(key)
    actor_params = networks.actor.init(actor_key, obs)
    policy = jax.eval_shape(networks.actor.apply, actor_params, obs)
    action = continuous.example_action(policy)
    critic_params = networks.critic.init(critic_key, obs, action)
    q = jax.eval_shape(networks.critic.apply, critic_params, obs, action)
    continuous.check_critic(q)
    for name, output in (("actor", policy), ("critic", q)):
        precision.refuse_narrow(output, obs, name)
    log_temperature = jnp.log(jnp.asarray(config.initial_temperature, jnp.float32))
    params = Parts(actor_params, critic_params, log_temperature)
    # A copy: the same buffer twice in a state could not be donated.
    targets = Targets(jax.tree.map(jnp.copy, critic_params))
    opt_state = optax.scale_by_adam().init(params)
    example = n_step.example(obs)._replace(action=action)
    learner = Learner(params, targets, opt_state, jnp.zeros((), jnp.int32))
    return State(learner, replay.init(example, capacity, num_envs, blocks))


def explore(
    policy: SquashedNormal, config: Config, memory: Any, key: jax.Array
) -> tuple[jax.Array, jax.Array, Any]:
    """Raw samples `[A]` of the policy and of uniform actions, and the memory. Consumes `key`."""
    if config.noise_correlation is None:
        uniform_key, policy_key = jax.random.split(key)
        # Half a logistic sample is squashed into a uniform one.
        uniform = 0.5 * jax.random.logistic(uniform_key, policy.raw.mean.shape)
        return policy.raw.sample(policy_key), uniform, memory
    memory = exploration.correlated_noise(key, config.noise_correlation, memory)
    below, above = (jax.scipy.special.log_ndtr(x) for x in (memory.value, -memory.value))
    return policy.raw.mean + policy.raw.scale * memory.value, 0.5 * (below - above), memory


def is_warm(ring: replay.Replay, config: Config) -> jax.Array:
    """Whether the warm-up is over."""
    capacity, num_envs = replay.ring_shape(ring)
    return ring.size * num_envs >= jnp.minimum(config.warmup, capacity * num_envs)


def remember_and_learn(
    networks: Networks, config: Config, state: State, rollout: Transition, key: jax.Array
) -> tuple[State, Metrics]:
    """Remembers a rollout `[T, N]` and, once warm, learns from the replay. Consumes `key`."""
    draw_key, learn_key = jax.random.split(key)
    reward = rollout.total_reward
    scaled_rollout = rollout._replace(action=rollout.extras, reward=reward, extras=())
    ring = replay.add(state.replay, scaled_rollout)
    # The ring stays outside of the conditional, which would copy it.
    sizes = (config.updates_per_rollout, config.batch_size)
    batches = n_step.sample(ring, draw_key, *sizes, 1, config.discount)
    learner, metrics = jax.lax.cond(
        is_warm(ring, config),
        lambda learner: learn(networks, config, learner, batches, learn_key),
        lambda learner: (learner, dict.fromkeys(MEASURED, jnp.zeros(()))),
        state.learner,
    )
    temperature = jnp.exp(learner.params.log_temperature)
    return State(learner, ring), metrics | {"temperature": temperature, "updates": learner.updates}


def learn(
    networks: Networks, config: Config, learner: Learner, batches: Batch, key: jax.Array
) -> tuple[Learner, Metrics]:
    """One gradient update per minibatch of `batches [M, B, ...]`. Consumes `key`."""

    def step(learner: Learner, batch_and_key: tuple[Batch, jax.Array]) -> tuple[Learner, Metrics]:
        return gradient_step(networks, config, learner, *batch_and_key)

    keys = jax.random.split(key, len(batches.return_))
    learner, metrics = jax.lax.scan(step, learner, (batches, keys))
    return learner, jax.tree.map(jnp.mean, metrics)


def gradient_step(
    networks: Networks, config: Config, learner: Learner, batch: Batch, key: jax.Array
) -> tuple[Learner, Metrics]:
    """The learner after one minibatch, and its metrics (algorithm 1). Consumes `key`.

    All three gradients are taken at the same parameters.
    """
    target_key, actor_key = jax.random.split(key)
    params = learner.params
    target = soft_target(networks, learner, batch, target_key)
    (loss_of_critic, q), critic_grads = jax.value_and_grad(critic_loss, has_aux=True)(
        params.critic, networks, batch, target
    )
    (loss_of_actor, log_prob), actor_grads = jax.value_and_grad(actor_loss, has_aux=True)(
        params.actor, networks, params, batch.obs, actor_key
    )
    slope = jnp.zeros(())
    if config.learn_temperature:
        target_entropy = config.target_entropy
        target_entropy = (
            -float(batch.action.shape[-1]) if target_entropy is None else target_entropy
        )
        slope = jax.grad(temperature_loss)(params.log_temperature, log_prob, target_entropy)
    norms = optax.tree.norm(critic_grads), optax.tree.norm(actor_grads)
    measures = (loss_of_critic, loss_of_actor, -jnp.mean(log_prob), jnp.mean(q), *norms)
    learner = descend(config, learner, Parts(actor_grads, critic_grads, slope))
    return learner, dict(zip(MEASURED, measures, strict=True))


def soft_target(networks: Networks, learner: Learner, batch: Batch, key: jax.Array) -> jax.Array:
    """`[B]` r + γ (minₖ Q⁻ₖ(s', a') - α log π(a'|s')), a' from π (eq. 3 and 5). Consumes `key`.

    Where the discount is 0, as after a terminal step, what it multiplies may be NaN.
    """
    action, log_prob = draw(networks.actor.apply(learner.params.actor, batch.next_obs), key)
    q = networks.critic.apply(learner.target_params.critic, batch.next_obs, action)  # [B, K]
    value = jnp.min(q, axis=-1) - jnp.exp(learner.params.log_temperature) * log_prob
    chex.assert_equal_shape([value, batch.return_])
    return batch.return_ + batch.discount * jnp.where(batch.discount == 0, 0.0, value)


def critic_loss(
    critic_params: PyTree, networks: Networks, batch: Batch, target: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Σₖ E[½ (Qₖ(s, a) - target)²] (eq. 5), and Q `[B, K]`."""
    q = networks.critic.apply(critic_params, batch.obs, batch.action)
    return 0.5 * jnp.sum(jnp.mean(jnp.square(q - target[:, None]), axis=0)), q


def actor_loss(
    actor_params: PyTree, networks: Networks, params: Parts, obs: PyTree, key: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """E[α log π(a|s) - minₖ Qₖ(s, a)], a from π (eq. 9), and log π `[B]`. Consumes `key`."""
    action, log_prob = draw(networks.actor.apply(actor_params, obs), key)
    q = jnp.min(networks.critic.apply(params.critic, obs, action), axis=-1)
    chex.assert_equal_shape([q, log_prob])
    return jnp.mean(jnp.exp(params.log_temperature) * log_prob - q), log_prob


def temperature_loss(
    log_temperature: jax.Array, log_prob: jax.Array, target_entropy: float | jax.Array
) -> jax.Array:
    """E[-log α (log π + H̄)]: eq. 18 with log α for α.

    The gradient has the same sign and the same zero, but does not shrink with α.
    """
    return -log_temperature * jnp.mean(log_prob + target_entropy)


def draw(policy: SquashedNormal, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Actions scaled to [-1, 1], `[..., A]`, and the logarithm of their density there, `[...]`.

    Reparameterised: differentiable in the policy (appendix C). Consumes `key`.
    """
    unit = in_unit_box(policy)
    raw = unit.raw.sample(key)
    return unit.squash(raw), unit.raw.log_prob(raw) - unit.log_jacobian(raw)


def in_unit_box(policy: SquashedNormal) -> SquashedNormal:
    """The same policy over actions scaled to [-1, 1]: the same raw samples in another box."""
    one = jnp.ones_like(policy.raw.mean)
    return SquashedNormal(policy.raw, -one, one)


def descend(config: Config, learner: Learner, grads: Parts) -> Learner:
    """A step of Adam for each part, then the targets move towards the critics."""
    clip = optax.clip_by_global_norm(config.max_grad_norm)  # pyright: ignore[reportArgumentType]
    clipped = Parts(*(clip.update(part, optax.EmptyState())[0] for part in grads))
    changes, opt_state = optax.scale_by_adam().update(clipped, learner.opt_state)
    rates = Parts(
        config.actor_learning_rate, config.critic_learning_rate, config.temperature_learning_rate
    )
    subtract = lambda rate, part, change: jax.tree.map(lambda x, dx: x - rate * dx, part, change)
    params = jax.tree.map(subtract, rates, learner.params, changes)
    old_critic = learner.target_params.critic
    target_critic = optax.incremental_update(params.critic, old_critic, config.tau)
    return Learner(params, Targets(target_critic), opt_state, learner.updates + 1)
