"""Recognition networks: amortised filters, Gaussian beliefs of the latent state.

q(z_t | y_1..t, u_1..t-1) = N(mean, diag variance). The recurrent state of a network is its `carry`.
Written for one time and one stream; `encode` takes T consecutive times and equals T single calls.

Letters: n channels, m action dimensions, d latent dimensions, W width.
"""

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.networks.mlp import MLP

SMALLEST = 1e-6
"""Added to every learned variance."""


class Readout(nn.Module):
    """Mean and variance of the latent state, each through layers of its own.

    The variance is initially softplus(-3) = 0.049 for any input.
    """

    latent: int
    """d."""
    features: tuple[int, ...] = (16,)
    """Width of each layer; may be empty."""

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`(mean [..., d], variance [..., d])` from `[..., W]`."""
        mean = nn.Dense(self.latent, name="mean")(MLP(self.features, name="mean_torso")(x))
        flat = nn.Dense(
            self.latent,
            kernel_init=nn.initializers.zeros,
            bias_init=nn.initializers.constant(-3.0),
            name="variance",
        )
        raw = flat(MLP(self.features, name="variance_torso")(x))
        return mean, nn.softplus(raw) + SMALLEST


class MLPRecognition(nn.Module):
    """Memoryless: dense layers on y_t and u_{t-1}. Its carry is empty."""

    latent: int
    """d."""
    hidden: tuple[int, ...] = (16,)
    """Width of each layer."""
    counts: bool = False
    """Observations are counts and enter as log(1 + y)."""
    y_scale: float = 1.0
    """Observations are divided by it first."""

    def setup(self):
        self.readout = Readout(self.latent, self.hidden)

    def initial(self) -> tuple:
        """The carry before the first observation."""
        return ()

    def __call__(
        self, carry: tuple, y: jax.Array, before: jax.Array
    ) -> tuple[tuple, jax.Array, jax.Array]:
        """`(carry, mean [d], variance [d])` from y `[n]` and the action `[m]` that led there."""
        return carry, *self.readout(inputs(y, before, self.counts, self.y_scale))

    def encode(
        self, carry: tuple, y: jax.Array, before: jax.Array, valid: jax.Array
    ) -> tuple[tuple, jax.Array, jax.Array]:
        """As `GRURecognition.encode`."""
        return self(carry, y, before)


class GRURecognition(nn.Module):
    """A gated recurrent unit (Cho et al. 2014) on y_t and u_{t-1}, and a readout of its state."""

    latent: int
    """d."""
    hidden: int = 16
    """W, size of the recurrent state."""
    features: tuple[int, ...] = (16,)
    """Width of each layer of the readout."""
    counts: bool = False
    """Observations are counts and enter as log(1 + y)."""
    y_scale: float = 1.0
    """Observations are divided by it first."""

    def setup(self):
        self.incoming = nn.Dense(3 * self.hidden)
        start = nn.initializers.lecun_normal()
        self.recurrent = self.param("recurrent", start, (self.hidden, 3 * self.hidden))
        self.bias = self.param("bias", nn.initializers.zeros, (self.hidden,))
        self.readout = Readout(self.latent, self.features)

    def initial(self) -> jax.Array:
        """The carry before the first observation, zeros `[W]`."""
        return jnp.zeros(self.hidden)

    def __call__(
        self, carry: jax.Array, y: jax.Array, before: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """`(carry [W], mean [d], variance [d])` from y `[n]` and the action `[m]` before it."""
        incoming = self.incoming(inputs(y, before, self.counts, self.y_scale))
        carry = gated(carry, incoming, self.recurrent, self.bias)
        return carry, *self.readout(carry)

    def encode(
        self, carry: jax.Array, y: jax.Array, before: jax.Array, valid: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """T times in a row; where `valid` is false the carry stays as it was.

        Args:
          carry: `[W]`, before the first of them.
          y: `[T, n]`.
          before: `[T, m]`, the action before each observation; zeros where there was none.
          valid: bool `[T]`, false in padding.

        Returns:
          `(carry [W], mean [T, d], variance [T, d])`.
        """
        # What does not depend on the carry is computed for all times at once, outside the loop.
        incoming = self.incoming(inputs(y, before, self.counts, self.y_scale))
        recurrent, bias = self.recurrent, self.bias

        def step(carry: jax.Array, now: tuple) -> tuple[jax.Array, jax.Array]:
            incoming, valid = now
            carry = jnp.where(valid, gated(carry, incoming, recurrent, bias), carry)
            return carry, carry

        # Unrolled by 5: with gradients on a CPU twice as fast as by 1, and as by all T.
        carry, carries = jax.lax.scan(step, carry, (incoming, valid), unroll=5)
        return carry, *self.readout(carries)


def gated(
    carry: jax.Array, incoming: jax.Array, recurrent: jax.Array, bias: jax.Array
) -> jax.Array:
    """One step of the unit, `[W]`: h' = (1 - u) tanh(x_c + r (h R_c + bias)) + u h.

    The gates are r, u = sigmoid(x_ru + h R_ru), for what comes in x `[3 W]` and R `[W, 3 W]`.
    """
    width = carry.shape[-1]
    own = carry @ recurrent
    gates = nn.sigmoid(incoming[: 2 * width] + own[: 2 * width])
    reset, update = gates[:width], gates[width:]
    candidate = jnp.tanh(incoming[2 * width :] + reset * (own[2 * width :] + bias))
    return (1 - update) * candidate + update * carry


def inputs(y: jax.Array, before: jax.Array, counts: bool, y_scale: float) -> jax.Array:
    """`[..., n + m]` from observations `[..., n]` and the actions before them `[..., m]`."""
    y = y / y_scale
    return jnp.concatenate([jnp.log1p(y) if counts else y, before], axis=-1)
