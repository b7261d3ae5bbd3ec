"""Temporal-difference targets and losses of deep Q-learning, for values and for distributions.

A network maps observations to values of the actions, `[..., D] -> [..., A]`, or to logits
`[..., A, K]` of distributions of returns (Bellemare et al. 2017). `value_range`, the lowest and the
highest return of a distribution, is None for values. `apply(params, obs, rngs=...)` is given a key
for "noise" (Fortunato et al. 2018).
"""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax

from jaxrl.losses import action_values
from jaxrl.losses.n_step import Batch
from jaxrl.types import PyTree

Range = tuple[float | jax.Array, float | jax.Array]
ValueRange = Range | None


def values(output: jax.Array, value_range: ValueRange) -> jax.Array:
    """Q `[..., A]` from the network's output."""
    if value_range is None:
        return output
    return action_values.expectation(output, support_of(output, value_range))


def support_of(logits: jax.Array, value_range: Range) -> jax.Array:
    """`[K]` the support of the distributions with `logits [..., K]`."""
    return action_values.support(*value_range, logits.shape[-1])


def td_target(
    apply: Any,
    params: PyTree,
    target_params: PyTree,
    batch: Batch,
    key: jax.Array,
    double: bool,
    value_range: ValueRange,
) -> jax.Array:
    """`[B]` Σₖ γᵏ rₖ + γⁿ Q⁻(sₙ, a*), or the distribution of that `[B, K]`.

    The online network chooses a* if `double` (van Hasselt et al. 2016), else the target network;
    each has its own noise. Where the discount is 0, as after a terminal step, the target network
    may give NaN.
    """
    target_key, online_key = jax.random.split(key)
    output = apply(target_params, batch.next_obs, rngs={"noise": target_key})
    target_q = online_q = values(output, value_range)  # [B, A]
    if double:
        online_output = apply(params, batch.next_obs, rngs={"noise": online_key})
        online_q = values(online_output, value_range)
    if value_range is None:
        value = action_values.double_value(online_q, target_q)
        return batch.return_ + batch.discount * jnp.where(batch.discount == 0, 0.0, value)
    logits = action_values.logits_of_action(output, jnp.argmax(online_q, axis=-1))
    is_unused = (batch.discount == 0)[:, None] & ~jnp.isfinite(logits)
    logits = jnp.where(is_unused, 0.0, logits)
    return action_values.project(
        jax.nn.softmax(logits), batch.return_, batch.discount, support_of(logits, value_range)
    )


def loss(
    params: PyTree,
    apply: Any,
    batch: Batch,
    target: jax.Array,
    key: jax.Array,
    delta: float | jax.Array,
    value_range: ValueRange,
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Weighted mean loss, Q(s, a) `[B]` and the size of each error `[B]`, the new priority.

    For values the Huber loss, which at an infinite `delta` is half the squared error, and |error|.
    For distributions KL(target ‖ prediction) as both, the cross-entropy less the entropy of the
    target (Hessel et al. 2018, "The Integrated Agent").
    """
    output = apply(params, batch.obs, rngs={"noise": key})
    q = action_values.value_of_action(values(output, value_range), batch.action)  # [B]
    if value_range is not None:
        logits = action_values.logits_of_action(output, batch.action)  # [B, K]
        chex.assert_equal_shape([logits, target])
        loss_terms = size = optax.kl_divergence(jax.nn.log_softmax(logits), target)
    else:
        chex.assert_equal_shape([q, target])
        loss_terms = action_values.huber_loss(q - target, delta)
        size = jnp.abs(q - target)
    weighted_loss = loss_terms if batch.weight is None else batch.weight * loss_terms
    return jnp.mean(weighted_loss), (q, size)


def check_output(output: Any, categorical: bool, obs: PyTree) -> None:
    """Raises ValueError unless the output for `obs` is `[A]`, or `[A, K]` of logits.

    `output` is what the network returned, or its shapes.
    """
    advice = "use networks.dueling.QNetwork"
    if hasattr(output, "shape"):
        if len(output.shape) == 1 + categorical:
            return
        advice = (
            "put Conv or Flatten below a network of vectors, and give it atoms only where the "
            "agent is categorical"
        )
    obs_shape, output_shape = (jax.tree.map(lambda x: list(jnp.shape(x)), x) for x in (obs, output))
    expected = "[A, K] of a distribution" if categorical else "[A]"
    raise ValueError(
        f"the network returns {output_shape} for one observation of shape {obs_shape}, expected "
        f"{expected}: {advice}"
    )
