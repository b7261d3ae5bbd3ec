"""Recognition networks: amortised filters, Gaussian beliefs of the latent state.

q(z_t | y_1..t, u_1..t-1) = N(mean, diag variance). The recurrent state of a network is its `carry`.
Written for one time and one stream; `encode` takes T consecutive times and equals T single calls.

Letters: n channels, m action dimensions, d latent dimensions, W width.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.networks.mlp import MLP
from jaxrl.numerics import linalg

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
        variance_layer = nn.Dense(
            self.latent,
            kernel_init=nn.initializers.zeros,
            bias_init=nn.initializers.constant(-3.0),
            name="variance",
        )
        raw = variance_layer(MLP(self.features, name="variance_torso")(x))
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

    def initial_carry(self) -> tuple:
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
        """Encodes T times in a row, as `Recurrent.encode` does."""
        return self(carry, y, before)


class Recurrent(nn.Module):
    """What recurrent filters share: a unit that takes y_t and u_{t-1}, and a readout of its state.

    A subclass has the layers `incoming` and `readout`, `initial_carry` and `unit`.
    """

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

    def __call__(
        self, carry: Any, y: jax.Array, before: jax.Array
    ) -> tuple[Any, jax.Array, jax.Array]:
        """`(carry, mean [d], variance [d])` from y `[n]` and the action `[m]` before it."""
        carry = self.unit()(carry, self.incoming(inputs(y, before, self.counts, self.y_scale)))
        return carry, *self.readout(output(carry))

    def encode(
        self, carry: Any, y: jax.Array, before: jax.Array, valid: jax.Array
    ) -> tuple[Any, jax.Array, jax.Array]:
        """T times in a row; where `valid` is false the carry stays as it was.

        Args:
          carry: before the first of them.
          y: `[T, n]`.
          before: `[T, m]`, the action before each observation; zeros where there was none.
          valid: bool `[T]`, false in padding.

        Returns:
          `(carry, mean [T, d], variance [T, d])`.
        """
        # What does not depend on the carry is computed for all times at once, outside the loop.
        incoming = self.incoming(inputs(y, before, self.counts, self.y_scale))
        unit = self.unit()

        def step(carry: Any, now: tuple) -> tuple[Any, jax.Array]:
            incoming, valid = now
            after = unit(carry, incoming)
            carry = jax.tree.map(lambda new, old: jnp.where(valid, new, old), after, carry)
            return carry, output(carry)

        # Unrolled by 5: with gradients on a CPU twice as fast as by 1, and as by all T.
        carry, outputs = jax.lax.scan(step, carry, (incoming, valid), unroll=5)
        return carry, *self.readout(outputs)


class GRURecognition(Recurrent):
    """A gated recurrent unit (Cho et al. 2014); its carry is the output `[W]`."""

    def setup(self):
        self.incoming = nn.Dense(3 * self.hidden)
        start = nn.initializers.lecun_normal()
        self.recurrent = self.param("recurrent", start, (self.hidden, 3 * self.hidden))
        self.bias = self.param("bias", nn.initializers.zeros, (self.hidden,))
        self.readout = Readout(self.latent, self.features)

    def initial_carry(self) -> jax.Array:
        """The carry before the first observation, zeros `[W]`."""
        return jnp.zeros(self.hidden)

    def unit(self) -> Callable[[jax.Array, jax.Array], jax.Array]:
        """`(carry, incoming [3 W]) -> carry`."""
        recurrent, bias = self.recurrent, self.bias
        return lambda carry, incoming: gru_step(carry, incoming, recurrent, bias)


class LSTMRecognition(Recurrent):
    """Long short-term memory (Hochreiter & Schmidhuber 1997; forget gates of Gers et al. 2000).

    Its carry is the pair of cell and output, each `[W]`. Biases of forget gates start at 1.
    """

    def setup(self):
        width = self.hidden
        bias = jnp.zeros(4 * width).at[width : 2 * width].set(1.0)
        self.incoming = nn.Dense(4 * width, bias_init=lambda *_: bias)
        self.recurrent = self.param("recurrent", linalg.orthogonal_start(1.0), (width, 4 * width))
        self.readout = Readout(self.latent, self.features)

    def initial_carry(self) -> tuple[jax.Array, jax.Array]:
        """The carry before the first observation, zeros."""
        return jnp.zeros(self.hidden), jnp.zeros(self.hidden)

    def unit(self) -> Callable[[tuple, jax.Array], tuple]:
        """`(carry, incoming [4 W]) -> carry`."""
        recurrent = self.recurrent
        return lambda carry, incoming: lstm_step(carry, incoming, recurrent)


Recognition = MLPRecognition | GRURecognition | LSTMRecognition


def output(carry: Any) -> jax.Array:
    """What the readout sees of a carry, `[W]`: its last array."""
    return jax.tree.leaves(carry)[-1]


def gru_step(
    carry: jax.Array, incoming: jax.Array, recurrent: jax.Array, bias: jax.Array
) -> jax.Array:
    """One step of the unit, `[W]`: h' = (1 - u) tanh(x_c + r (h R_c + bias)) + u h.

    The gates are r, u = sigmoid(x_ru + h R_ru), for what comes in x `[3 W]` and R `[W, 3 W]`.
    """
    width = carry.shape[-1]
    recurrent_input = carry @ recurrent
    gates = nn.sigmoid(incoming[: 2 * width] + recurrent_input[: 2 * width])
    reset, update = gates[:width], gates[width:]
    candidate = jnp.tanh(incoming[2 * width :] + reset * (recurrent_input[2 * width :] + bias))
    return (1 - update) * candidate + update * carry


def lstm_step(
    carry: tuple[jax.Array, jax.Array], incoming: jax.Array, recurrent: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """One step of long short-term memory: cell and output, each `[W]`.

    c' = σ(x_f + h R_f) c + σ(x_i + h R_i) tanh(x_g + h R_g) and h' = σ(x_o + h R_o) tanh c', for
    what comes in x `[4 W]` and R `[W, 4 W]`, in the order i, f, g, o.
    """
    cell, hidden = carry
    input_gate, forget_gate, candidate, output_gate = jnp.split(incoming + hidden @ recurrent, 4)
    cell = nn.sigmoid(forget_gate) * cell + nn.sigmoid(input_gate) * jnp.tanh(candidate)
    return cell, nn.sigmoid(output_gate) * jnp.tanh(cell)


def inputs(y: jax.Array, before: jax.Array, counts: bool, y_scale: float) -> jax.Array:
    """`[..., n + m]` from observations `[..., n]` and the actions before them `[..., m]`."""
    y = y / y_scale
    return jnp.concatenate([jnp.log1p(y) if counts else y, before], axis=-1)
