"""What actor-critics learn by: advantages of a rollout, the loss of PPO, and its gradient steps.

The `Config` of an agent inherits the one here. Policies are distributions of
`jaxrl.losses.distributions`. Where the environment gives the K components of its reward, a critic
with K values learns one value for each; their advantages are added.
"""

from typing import Annotated, Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxrl.checks import NonNegative, Positive, Share
from jaxrl.dependent_fields import unless
from jaxrl.losses import returns
from jaxrl.losses.distributions.distribution import Distribution
from jaxrl.numerics import precision
from jaxrl.types import PyTree, Transition


@struct.dataclass
class Config:
    """Hyperparameters that all policy gradients have."""

    learning_rate: Positive = 1e-3
    """Step size of Adam at the start."""
    discount: Share = 0.99
    """γ, per environment step."""
    gae_lambda: Share = 0.95
    """λ of the advantage estimates."""
    clip: Positive = 0.2
    """ε: how far the probability ratio may move before its gradient stops."""
    value_clip: Positive | None = None
    """How far a value may move before its gradient stops; None: any distance."""
    value_weight: NonNegative = 0.5
    """Weight of the critic's loss."""
    component_weights: tuple[NonNegative, ...] | None = None
    """Weights of the K components of the reward, in their advantages and in the critic's loss;
    None: all 1."""
    entropy_weight: NonNegative = 0.01
    """Weight of the entropy bonus at the start."""
    target_entropy: float | None = None
    """Entropy of the policy, in nats, below which the weight of the bonus grows; None: it does not.
    Continuous policies have that of the sample before the squash, which may be negative."""
    entropy_gain: Annotated[
        NonNegative, unless("target_entropy", None, why="it needs {}target-entropy")
    ] = 2.0
    """By how much it grows for each nat that the entropy is below `target_entropy`."""
    max_grad_norm: Positive = 0.5
    """Global norm to which gradients are clipped."""
    adam_epsilon: Positive = 1e-5
    """Denominator term of Adam."""
    standardise: bool = struct.field(pytree_node=False, default=True)
    """Give the advantages of each minibatch zero mean and unit variance; that of a minibatch of a
    single transition stays as it is."""


class Batch(NamedTuple):
    """Transitions to learn from, `[B, ...]`; `[T, B, ...]` where their order matters."""

    obs: PyTree
    action: PyTree
    log_prob: jax.Array  # of the action, when it was taken
    value: jax.Array  # [B] or [B, K]; V(obs), when the action was taken
    advantage: jax.Array
    target: jax.Array  # [B] or [B, K]; what the critic should have said


def check_output(output: Any, obs: PyTree, names: tuple[str, ...] = ("policy", "value")) -> None:
    """Raises ValueError unless a network gives one policy and one value for one observation.

    `output` is what it returned, or its shapes, with a part for each of `names`. Actions may be a
    number or a vector, or one number for each node of a graph; values `[]`, or `[K]` of the
    components of the reward. Real numbers have 32 bits.
    """
    shapes_of = lambda tree: jax.tree.map(lambda x: list(jnp.shape(x)), tree)
    has_parts = isinstance(output, tuple | list) and len(output) == len(names)
    if not has_parts or not hasattr(output[0], "entropy") or not hasattr(output[1], "shape"):
        raise ValueError(
            f"the network returns {shapes_of(output)} for one observation of shape "
            f"{shapes_of(obs)}, expected ({', '.join(names)}), the policy one of "
            "losses.distributions: put heads on it, such as networks.mlp.ActorCritic"
        )
    policy, value, *_ = output
    precision.refuse_narrow((policy, value), obs)
    shape, entropy = jnp.shape(value), jax.eval_shape(lambda x: x.entropy(), policy).shape
    if len(shape) > 1 or entropy:
        raise ValueError(
            f"the network returns values of shape {list(shape)} and policies of shape "
            f"{list(entropy)} for one observation of shape {shapes_of(obs)}, expected one of each: "
            "put Conv or Flatten below a network of vectors"
        )


def advantages(
    rollout: Transition, value: jax.Array, next_value: jax.Array, config: Config
) -> tuple[jax.Array, jax.Array]:
    """Advantages `[T, N]` of a rollout and targets of its critic `[T, N]`, or `[T, N, K]`.

    `value` and `next_value` are V(obs) and V(next_obs), `[T, N]` or `[T, N, K]`; the sum of all
    components is the reward of a critic with one value. Raises ValueError, when traced, for values
    of other components than the reward has.
    """
    # one value, or one of each component
    reward = rollout.total_reward if value.ndim == rollout.terminated.ndim else rollout.reward
    if reward.shape != value.shape:
        raise ValueError(
            f"the network returns values of shape {list(value.shape[2:])} for one observation, the "
            f"reward of a step has the shape {list(reward.shape[2:])}: return one value, as "
            "networks.mlp.ActorCritic does, or one for each component of the reward"
        )
    broadcast = lambda ended: jnp.broadcast_to(
        ended.reshape(ended.shape + (1,) * (reward.ndim - ended.ndim)), reward.shape
    )
    advantage = returns.gae(
        reward,
        value,
        next_value,
        broadcast(rollout.terminated),
        broadcast(rollout.truncated),
        config.discount,
        config.gae_lambda,
    )
    target = advantage + value
    if reward.ndim > rollout.terminated.ndim:
        advantage = jnp.sum(advantage * weights_of(config, reward.shape[-1]), axis=-1)
    return advantage, target


def weights_of(config: Config, num_components: int) -> jax.Array:
    """`[1, 1, K]`, the `component_weights`, by default 1.

    Raises ValueError, when traced, unless there is a weight for each component.
    """
    weights = config.component_weights
    if weights is None:
        return jnp.ones((1, 1, num_components))
    if len(weights) != num_components:
        raise ValueError(
            f"{len(weights)} component_weights for {num_components} components of the reward: "
            "give one each, or none"
        )
    return jnp.stack([jnp.asarray(w, jnp.float32) for w in weights])[None, None, :]


def loss(
    policy: Distribution, value: jax.Array, batch: Batch, config: Config
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """-L^CLIP + c₁ L^VF - c₂ S (Schulman et al. 2017, eq. 9), and its parts.

    `policy` and `value` are what the network now makes of `batch.obs`, `[B]`.
    """
    log_ratio = policy.log_prob(batch.action) - batch.log_prob
    ratio = jnp.exp(log_ratio)
    advantage = standardise(batch.advantage) if config.standardise else batch.advantage
    objective = jnp.mean(clipped_objective(ratio, advantage, config.clip))
    value_loss = jnp.mean(value_error(value, batch, config))
    entropy = jnp.mean(policy.entropy())
    bonus, entropy_metrics = entropy_weight(entropy, config)
    total = -objective + config.value_weight * value_loss - bonus * entropy
    return total, entropy_metrics | {
        "policy_loss": -objective,
        "value_loss": value_loss,
        "entropy": entropy,
        "kl": jnp.mean(kl_estimate(log_ratio)),
        "clip_fraction": jnp.mean((jnp.abs(ratio - 1.0) > config.clip).astype(jnp.float32)),
    }


def entropy_weight(
    entropy: jax.Array, config: Config
) -> tuple[float | jax.Array, dict[str, jax.Array]]:
    """The weight of the entropy bonus, and the same as a metric where it adapts.

    Without `target_entropy` the weight is `entropy_weight`. With one, `entropy_gain` max(0, target
    - S) is added, S being the mean entropy of the minibatch: the less random the policy, the larger
    the bonus. The weight is a number, so its own gradient does not count.
    """
    if config.target_entropy is None:
        return config.entropy_weight, {}
    shortfall = jnp.maximum(config.target_entropy - jax.lax.stop_gradient(entropy), 0.0)
    weight = jnp.asarray(config.entropy_weight + config.entropy_gain * shortfall, jnp.float32)
    return weight, {"entropy_weight": weight}


def clipped_objective(ratio: jax.Array, advantage: jax.Array, clip: float | jax.Array) -> jax.Array:
    """L^CLIP: min(ρ A, clip(ρ, 1 - ε, 1 + ε) A) (Schulman et al. 2017, eq. 7)."""
    return jnp.minimum(ratio * advantage, jnp.clip(ratio, 1.0 - clip, 1.0 + clip) * advantage)


def standardise(advantage: jax.Array) -> jax.Array:
    """Zero mean and unit variance over a minibatch; one number alone, which has none, stays."""
    if advantage.size == 1:
        return advantage
    return (advantage - jnp.mean(advantage)) / (jnp.std(advantage) + 1e-8)


def kl_estimate(log_ratio: jax.Array) -> jax.Array:
    """An estimate of KL(old ‖ new) from log ρ of each action; of low variance, never negative.

    Schulman (2020), "Approximating KL divergence", k₃ = ρ - 1 - log ρ.
    """
    return jnp.exp(log_ratio) - 1.0 - log_ratio


def value_error(value: jax.Array, batch: Batch, config: Config) -> jax.Array:
    """Half the squared error of the critic `[B]`; of K values `[B, K]` the weighted sum."""
    error = squared_error(value, batch.value, batch.target, config.value_clip)
    if error.ndim == 1:
        return error
    return jnp.sum(error * weights_of(config, error.shape[-1])[0], axis=-1)


def squared_error(
    value: jax.Array, old_value: jax.Array, target: jax.Array, clip: float | jax.Array | None
) -> jax.Array:
    """Half the squared error, number by number, or with the value clipped if that is larger.

    max[(V - target)², (V_old + clip(V - V_old, -ε, ε) - target)²] / 2, so that a value gains
    nothing by moving further than ε; None: not clipped (Huang et al. 2022, detail 9).
    """
    error = optax.l2_loss(value, target)
    if clip is None:
        return error
    chex.assert_equal_shape([value, old_value])
    clipped_value = old_value + jnp.clip(value - old_value, -clip, clip)
    return jnp.maximum(error, optax.l2_loss(clipped_value, target))


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """Adam with a step size of 1, on gradients whose global norm is at most `max_grad_norm`."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),  # pyright: ignore[reportArgumentType]
        optax.scale_by_adam(eps=config.adam_epsilon),
    )


def descend(
    optimizer: optax.GradientTransformation,
    gradient: PyTree,
    params: PyTree,
    opt_state: optax.OptState,
    learning_rate: float | jax.Array,
) -> tuple[PyTree, optax.OptState]:
    """Parameters and state of the optimizer after one step against a gradient."""
    direction, opt_state = optimizer.update(gradient, opt_state, params)
    return jax.tree.map(lambda p, d: p - learning_rate * d, params, direction), opt_state


def action_metrics(action: PyTree) -> dict[str, jax.Array]:
    """What the numbers of continuous actions `[T, N, ...]` of a rollout are: P of them in order.

    `action_mean`, `action_deviation`, `action_min` and `action_max`, `[P]` over all steps and
    environments; nothing for discrete actions.
    """
    numbers = [x for x in jax.tree.leaves(action) if jnp.issubdtype(x.dtype, jnp.floating)]
    if not numbers:
        return {}
    compute = lambda statistic: jnp.concatenate(
        [jnp.ravel(statistic(x, axis=(0, 1))) for x in numbers]  # not reshaped: N may be split
    )
    return {
        "action_mean": compute(jnp.mean),
        "action_deviation": compute(jnp.std),
        "action_min": compute(jnp.min),
        "action_max": compute(jnp.max),
    }
