"""Normal distributions over actions: unbounded, squashed into a box, clipped, and partly fixed."""

import math
from typing import Self, TypeVar

import jax
import jax.numpy as jnp
from flax import struct

LOG_2PI = math.log(2 * math.pi)
Coordinates = TypeVar("Coordinates")


@struct.dataclass
class Normal:
    """Independent normal coordinates; actions are `[..., D]`."""

    mean: jax.Array  # [..., D]
    scale: jax.Array  # [..., D] standard deviation

    def sample(self, key: jax.Array) -> jax.Array:
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + self.scale * noise

    def log_prob(self, action: jax.Array) -> jax.Array:
        z = (action - self.mean) / self.scale
        return -jnp.sum(0.5 * jnp.square(z) + jnp.log(self.scale) + 0.5 * LOG_2PI, axis=-1)

    def entropy(self) -> jax.Array:
        return jnp.sum(0.5 + 0.5 * LOG_2PI + jnp.log(self.scale), axis=-1)

    def kl(self, other: Self) -> jax.Array:
        ratio = self.scale / other.scale
        z = (self.mean - other.mean) / other.scale
        return jnp.sum(0.5 * (jnp.square(ratio) + jnp.square(z) - 1) - jnp.log(ratio), axis=-1)

    def mode(self) -> jax.Array:
        return self.mean

    def describe(self) -> dict[str, jax.Array]:
        low, high = self.mean - self.scale, self.mean + self.scale
        return {"mean": self.mean, "low": low, "high": high}


@struct.dataclass
class SquashedNormal:
    """A Normal `raw`, squashed into the box: action = low + (high - low) (1 + tanh raw) / 2.

    Haarnoja et al. (2018), appendix C. A learner may store actions and use the methods that all
    distributions share, or store raw samples, use the methods of the field `raw`, and send
    `squash(raw)` to the environment. Ratios of densities and KL are the same for both. Prefer raw
    samples where they can be stored: close to the bounds (|raw| > 8) a float32 action no longer
    determines its raw sample, and the likeliest of those that round to it is meant.
    """

    raw: Normal  # [..., D]
    low: jax.Array  # [..., D]
    high: jax.Array  # [..., D]

    def squash(self, raw: jax.Array) -> jax.Array:
        """The action of a raw sample, never outside the box."""
        # (1 + tanh u) / 2 is the logistic function of 2u, which keeps its digits close to `low`.
        action = self.low + (self.high - self.low) * jax.nn.sigmoid(2 * raw)
        return jnp.clip(action, self.low, self.high)

    def unsquash(self, action: jax.Array) -> jax.Array:
        """The raw sample of an action; those at or beyond the boundary count as close to it."""
        smallest = jnp.finfo(self.raw.mean.dtype).eps
        fraction = jnp.clip(self._fraction(action), smallest, 1 - smallest)
        return 0.5 * (jnp.log(fraction) - jnp.log1p(-fraction))

    def log_jacobian(self, raw: jax.Array) -> jax.Array:
        """log |d action / d raw|, summed over the coordinates, `[...]`; finite for any `raw`."""
        log_slope = jax.nn.log_sigmoid(2 * raw) + jax.nn.log_sigmoid(-2 * raw)
        return jnp.sum(jnp.log(2 * (self.high - self.low)) + log_slope, axis=-1)

    def sample(self, key: jax.Array) -> jax.Array:
        return self.squash(self.raw.sample(key))

    def log_prob(self, action: jax.Array) -> jax.Array:
        raw, mean = self.unsquash(action), jax.lax.stop_gradient(self.raw.mean)
        smallest, fraction = jnp.finfo(raw.dtype).eps, self._fraction(action)
        # Of all raw samples beyond an end the likeliest: the mean, if it lies there, too.
        likeliest = jnp.where(fraction <= smallest, jnp.minimum(raw, mean), raw)
        likeliest = jnp.where(fraction >= 1 - smallest, jnp.maximum(raw, mean), likeliest)
        return self.raw.log_prob(likeliest) - self.log_jacobian(raw)

    def _fraction(self, action: jax.Array) -> jax.Array:
        """Where in the box an action lies: 0 at `low`, 1 at `high`."""
        return (action - self.low) / (self.high - self.low)

    def entropy(self) -> jax.Array:
        """The entropy of the **raw** sample: that of the action has no closed form.

        The action's entropy is this plus E[log_jacobian(raw)], so one sample estimates it.
        """
        return self.raw.entropy()

    def kl(self, other: Self) -> jax.Array:
        """Exact, given that both have the same box: one bijection changes no divergence."""
        return self.raw.kl(other.raw)

    def mode(self) -> jax.Array:
        """The squashed mean, which is the median of the action, not the peak of its density."""
        return self.squash(self.raw.mean)

    def describe(self) -> dict[str, jax.Array]:
        """ "mean" is the median, as for `mode`."""
        return {name: self.squash(x) for name, x in self.raw.describe().items()}


@struct.dataclass
class PartlyFixedPolicy:
    """A policy over a box some of whose coordinates are held at fixed values.

    Those are not decided, so they count neither in the probability of an action nor in entropy and
    divergence; the others are as they would be alone, since coordinates are independent.
    """

    policy: SquashedNormal  # over [..., D]
    free: jax.Array  # bool [..., D]; where `kl` compares two, this one's
    fixed: jax.Array  # [..., D], the values of the coordinates that are not free

    def sample(self, key: jax.Array) -> jax.Array:
        return jnp.where(self.free, self.policy.sample(key), self.fixed)

    def log_prob(self, action: jax.Array) -> jax.Array:
        return self._sum(_coordinates(self.policy).log_prob(action[..., None]))

    def entropy(self) -> jax.Array:
        return self._sum(_coordinates(self.policy).entropy())

    def kl(self, other: Self) -> jax.Array:
        return self._sum(_coordinates(self.policy).kl(_coordinates(other.policy)))

    def mode(self) -> jax.Array:
        return jnp.where(self.free, self.policy.mode(), self.fixed)

    def describe(self) -> dict[str, jax.Array]:
        parts = self.policy.describe()
        return {name: jnp.where(self.free, x, self.fixed) for name, x in parts.items()}

    def _sum(self, terms: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(self.free, terms, 0.0), axis=-1)


def _coordinates(policy: Coordinates) -> Coordinates:
    """Each of the D coordinates by itself: batch axes `[..., D]` over actions `[1]`."""
    return jax.tree.map(lambda x: x[..., None], policy)


@struct.dataclass
class ClippedNormal:
    """A Normal whose samples are clipped: for actions that are bounded on some sides only.

    The probability beyond a bound lies on it, so a clipped action has that probability and any
    other its density (Fujita & Maeda 2018, "Clipped Action Policy Gradient", eq. 5). A bound that
    is infinite does not clip.
    """

    raw: Normal  # [..., D]
    low: jax.Array  # [..., D]
    high: jax.Array  # [..., D]

    def sample(self, key: jax.Array) -> jax.Array:
        return jnp.clip(self.raw.sample(key), self.low, self.high)

    def log_prob(self, action: jax.Array) -> jax.Array:
        inside = _coordinates(self.raw).log_prob(action[..., None])
        below, above = action <= self.low, action >= self.high
        log_mass = lambda end, on_it, sign: jax.scipy.stats.norm.logcdf(
            sign * (jnp.where(on_it, end, self.raw.mean) - self.raw.mean) / self.raw.scale
        )  # the mean in place of an end that is not met, as the gradient at infinity is nan
        log_p = jnp.where(below, log_mass(self.low, below, 1.0), inside)
        return jnp.sum(jnp.where(above, log_mass(self.high, above, -1.0), log_p), axis=-1)

    def entropy(self) -> jax.Array:
        """The entropy of the **raw** sample, as for `SquashedNormal`."""
        return self.raw.entropy()

    def kl(self, other: Self) -> jax.Array:
        """KL of the raw samples, an upper bound: clipping forgets."""
        return self.raw.kl(other.raw)

    def mode(self) -> jax.Array:
        """The clipped mean, which is the median of the action."""
        return jnp.clip(self.raw.mean, self.low, self.high)

    def describe(self) -> dict[str, jax.Array]:
        return {name: jnp.clip(x, self.low, self.high) for name, x in self.raw.describe().items()}
