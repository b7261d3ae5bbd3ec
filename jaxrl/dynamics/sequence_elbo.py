"""The evidence lower bound of a latent sequence, with K-step predictions of the dynamics.

A window has T consecutive times. z_t is the latent state, y_t its observation, u_{t-1} the action
before it, q(z_t) = N(mean_t, variance_t) the filtering distribution, and the model

    z_{t+1} = z_t + dt (f(z_t) + g(u_t)) + sqrt(q dt) eps,  eps ~ N(0, I),

with q the process noise per unit of time, a variance; g may depend on z_t too. Written for one
window; `vmap` outside makes a batch. Letters: T times, S samples, K steps ahead, d latent
dimensions, n channels.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, NonNegative, Positive, Share
from jaxrl.types import Metrics

Schedule = Literal["none", "linear", "cyclic"]
Velocity = Callable[[jax.Array], jax.Array]
"""f: `[..., d] -> [..., d]`."""


@struct.dataclass
class Config:
    """How the bound is estimated; sizes are static, numbers may be traced."""

    samples: Count = struct.field(pytree_node=False, default=5)
    """S, latent sequences drawn from the filter."""
    k_steps: Count = struct.field(pytree_node=False, default=5)
    """K, steps ahead that the dynamics predict; 1 is the ELBO itself."""
    decay: NonNegative = 0.8
    """Weight of k + 1 steps ahead, relative to k."""
    masking: bool = struct.field(pytree_node=False, default=False)
    """Whether any time is ever treated as missing; costs one more call of the field."""
    mask_probability: Share = 0.5
    """Probability that a time is treated as missing, where there is masking."""
    dt: Positive = 0.1
    """Time from one step to the next."""
    prior_variance: Positive = 1.0
    """Prior variance of the first state in a window, whose mean is 0; large is uninformative."""


class DiagonalBelief(NamedTuple):
    """q(z_t), independent Gaussians."""

    mean: jax.Array  # [T, d]
    variance: jax.Array  # [T, d]


class Draws(NamedTuple):
    """The random numbers of one estimate."""

    sample: jax.Array  # [S, T, d] standard normal
    steps: jax.Array  # [K - 1, S, T, d] standard normal
    keep: jax.Array | None  # bool [T], false where masked or missing; None: nowhere


class Dynamics(NamedTuple):
    """The model of the latent dynamics."""

    velocity: Velocity  # f
    effect: jax.Array  # [T - 1, d] g(u_t), between time t and the next; with `push` u_t [T - 1, m]
    process_variance: jax.Array  # [d] q, per unit of time
    push: Callable[[jax.Array, jax.Array], jax.Array] | None = None
    """g(u, z), `[..., m], [..., d] -> [..., d]`, where the effect depends on the state; 0 at u = 0.
    """

    def drift(self, z: jax.Array, effect: jax.Array) -> jax.Array:
        """f(z) + g: the expected velocity `[S, t, d]` at `z`, for `effect` `[1, t, ...]`."""
        if self.push is None:
            return self.velocity(z) + effect
        action = jnp.broadcast_to(effect, (*z.shape[:-1], effect.shape[-1]))
        return self.velocity(z) + self.push(action, z)


def draw(key: jax.Array, config: Config, length: int, dims: int) -> Draws:
    """Draws for a window of T = `length` and d = `dims`; consumes `key`."""
    noise_key, mask_key = jax.random.split(key)
    shape = (config.k_steps, config.samples, length, dims)
    noise = jax.random.normal(noise_key, shape)
    keep = None
    if config.masking:
        keep = jax.random.bernoulli(mask_key, 1 - config.mask_probability, (length,))
    return Draws(noise[0], noise[1:], keep)


def negative_elbo(
    draws: Draws,
    y: jax.Array,
    valid: jax.Array,
    belief: DiagonalBelief,
    dynamics: Dynamics,
    log_prob: Callable[[jax.Array, jax.Array], jax.Array],
    config: Config,
    beta: float | jax.Array = 1.0,
) -> tuple[jax.Array, Metrics]:
    """-(LL - beta (KL_first + Σ_k w_k KL_k)) per valid step, and its parts.

    LL = E_s Σ_t log p(y_t | z̃_t). The states z̃ are samples of q or, at masked times, the noise-free
    prediction from the sample before, so that there the likelihood trains the dynamics. KL_k is
    that of q(z_t) from the predictions of K-step rollouts from every z̃ (see `k_step_kl`); masked
    times are not targets. KL_first is that of the first state from
    N(0, prior_variance), which masks do not change. With K = 1, beta = 1, nothing masked and the
    true prior, the negative loss times the valid steps is a lower bound of log p(y). beta = 0 is
    a warm-up, in which nothing is masked.

    Args:
      draws: from `draw`, or fixed ones.
      y: `[T, n]`.
      valid: bool `[T]`, contiguous; false in padding, which is neither target nor predictor.
      belief: q.
      dynamics: f, g(u) and q, as above.
      log_prob: `(z [S, T, d], y [1, T, n]) -> [S, T]`.
      beta: weight of the divergences.

    Returns the loss and `loss, log_likelihood, kl` (weighted sum over k, without beta),
    `kl_first`, `kl_1` (one step ahead), all per valid step; sums over channels and dimensions.
    """
    state, keep = latents(draws, valid, belief, dynamics, config, beta)
    masked_sum = lambda mask, x: jnp.sum(jnp.where(mask, x, 0.0))
    steps = jnp.maximum(jnp.sum(valid), 1)
    likelihood = masked_sum(valid, jnp.mean(log_prob(state, y[None]), axis=0)) / steps
    ahead_kl = k_step_kl(draws.steps, state, belief, valid, keep, dynamics, config) / steps
    zeros = jnp.zeros_like(belief.mean)
    prior_kl = gaussian_kl(*belief, zeros, zeros + config.prior_variance)
    is_first = valid & ~jnp.concatenate([jnp.zeros(1, bool), valid[:-1]])
    kl_first = masked_sum(is_first, prior_kl) / steps
    kl = jnp.sum(kl_weights(config.k_steps, config.decay) * ahead_kl)
    loss = -(likelihood - beta * (kl_first + kl))
    parts = {"loss": loss, "log_likelihood": likelihood, "kl": kl, "kl_first": kl_first}
    return loss, {**parts, "kl_1": ahead_kl[0]}


def latents(
    draws: Draws,
    valid: jax.Array,
    belief: DiagonalBelief,
    dynamics: Dynamics,
    config: Config,
    beta: float | jax.Array = 1.0,
) -> tuple[jax.Array, jax.Array]:
    """The states z̃ `[S, T, d]` of `negative_elbo`, and which times are targets, bool `[T]`."""
    sample = belief.mean[None] + jnp.sqrt(belief.variance)[None] * draws.sample
    if draws.keep is None:
        return sample, valid
    keep = draws.keep | (jnp.asarray(beta) == 0)
    before = sample[:, :-1]
    ahead = before + config.dt * dynamics.drift(before, dynamics.effect[None])
    # The first valid time has no predecessor to be predicted from: it stays the sample.
    stays = (keep[1:] | ~valid[:-1])[None, :, None]
    state = jnp.concatenate([sample[:, :1], jnp.where(stays, sample[:, 1:], ahead)], axis=1)
    return state, keep & valid


def k_step_kl(
    noise: jax.Array,
    state: jax.Array,
    belief: DiagonalBelief,
    valid: jax.Array,
    keep: jax.Array,
    dynamics: Dynamics,
    config: Config,
) -> jax.Array:
    """`[K]`: E_s Σ_t KL(q(z_t) || N(m_t^k, q dt)), over the times t in `keep`.

    m_t^k is the mean of step k of a rollout, see `rollout_means`, that began at time t - k. A
    target counts if its whole rollout is valid.

    Args:
      noise: `[K - 1, S, T, d]` standard normal, of the sampled steps.
      state: `[S, T, d]`, where rollouts begin.
      valid, keep: bool `[T]`.
    """
    k_steps, length = config.k_steps, state.shape[1]

    def shift_ahead(x: jax.Array) -> jax.Array:
        """x `[T, ...]` at 1 to K times later, `[K, T, ...]`; what is beyond the window is 0."""
        padding = jnp.zeros((k_steps, *x.shape[1:]), x.dtype)
        padded = jnp.concatenate([x, padding])
        return jnp.stack([padded[k : k + length] for k in range(1, k_steps + 1)])

    is_complete = valid[None] & (jnp.cumprod(shift_ahead(valid), axis=0) > 0)
    counted = is_complete & shift_ahead(keep)  # [K, T]
    mean = rollout_means(noise, state, dynamics, config)
    target_variance = jnp.where(counted[..., None], shift_ahead(belief.variance), 1.0)
    divergence = gaussian_kl(
        shift_ahead(belief.mean)[:, None],
        target_variance[:, None],
        mean,
        (dynamics.process_variance * config.dt).reshape(1, 1, 1, -1),
    )  # [K, S, T]
    total = jnp.sum(jnp.where(counted[:, None], divergence, 0.0), axis=(1, 2))
    return total / state.shape[0]


def rollout_means(
    noise: jax.Array, state: jax.Array, dynamics: Dynamics, config: Config
) -> jax.Array:
    """`[K, S, T, d]`: the mean of step k, given the sampled step k - 1, of rollouts of all states.

    All T rollouts advance together, so that K steps are K calls of the field and not K²/2. Those
    that leave the window continue without actions, since calls of one shape are twice as fast on a
    CPU as shrinking ones.
    """
    length = state.shape[1]
    beyond = jnp.zeros((config.k_steps, dynamics.effect.shape[-1]))
    effect = jnp.concatenate([dynamics.effect, beyond])
    std = jnp.sqrt(dynamics.process_variance * config.dt).reshape(1, 1, -1)
    means = []
    for k in range(config.k_steps):
        push = effect[None, k : k + length]
        means.append(state + config.dt * dynamics.drift(state, push))
        if k + 1 < config.k_steps:
            state = means[k] + std * noise[k]
    return jnp.stack(means)


def kl_weights(k_steps: int, decay: float | jax.Array) -> jax.Array:
    """`[K]`, in proportion to decay^(k - 1) for k = 1..K; their sum is 1."""
    weights = jnp.asarray(decay, jnp.float32) ** jnp.arange(k_steps)
    return weights / jnp.sum(weights)


def gaussian_kl(
    mean: jax.Array, variance: jax.Array, other_mean: jax.Array, other_variance: jax.Array
) -> jax.Array:
    """KL(N(mean, variance) || N(other_mean, other_variance)), summed over the last axis.

    `[...]` from four `[..., d]` that broadcast: ½ Σ (log v'/v + ((m - m')² + v) / v' - 1).
    """
    inverse = 1 / other_variance
    ratio = variance * inverse
    terms = (mean - other_mean) ** 2 * inverse + (ratio - 1 - jnp.log(ratio))
    return 0.5 * jnp.sum(terms, axis=-1)


def beta_schedule(
    kind: Schedule, beta: float = 1.0, warmup: int = 0, period: int = 1000
) -> Callable[[int | jax.Array], jax.Array]:
    """`count of gradient steps so far -> weight of the divergences`; 0 while count < warmup.

    Then: none, `beta`; linear, a ramp from 0 to `beta` over `period` steps; cyclic, such a ramp
    over the first half of every `period`, and `beta` over the other (Fu et al. 2019).

    Raises ValueError for an unknown kind and for numbers out of range.
    """
    if kind not in ("none", "linear", "cyclic"):
        raise ValueError(f"beta schedule {kind!r} is unknown: use none, linear or cyclic")
    checks.number("beta", beta, least=0)
    checks.number("warmup", warmup, least=0)
    checks.number("period", period, least=2)

    def schedule(count: int | jax.Array) -> jax.Array:
        steps_since_warmup = jnp.maximum(jnp.asarray(count) - warmup, 0)
        share = 1.0
        if kind == "linear":
            share = jnp.minimum(steps_since_warmup / period, 1.0)
        if kind == "cyclic":
            share = jnp.minimum((steps_since_warmup % period) / (period / 2), 1.0)
        return jnp.where(jnp.asarray(count) < warmup, 0.0, beta * share)

    return schedule
