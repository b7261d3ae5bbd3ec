"""Convolutions over boards and images: `[..., rows, cols, C] -> [..., D]`, flat."""

import math

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl.networks.mlp import Activation, activation_function
from jaxrl.numerics import linalg


class Conv(nn.Module):
    """Convolutional layers, an activation after each, then flat.

    A dense layer on top makes the usual torso: `nn.Sequential((Conv(), MLP((128,))))`.
    Observations of any type, bool and uint8 included, are converted to float32, unscaled.
    """

    features: tuple[int, ...] = (32, 64)
    """Channels of each layer."""
    kernel: int = 3
    """Rows and columns that one output sees of its input."""
    strides: int = 1
    """Rows and columns between two outputs."""
    padding: str = "SAME"
    """SAME pads with zeros so that stride 1 keeps the size of the board; VALID does not pad."""
    activation: Activation = "relu"
    """One of relu, tanh, elu, silu, gelu."""
    layer_norm: bool = False
    """Normalise over all channels and cells before each activation (Ba et al. 2016)."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        activate = activation_function(self.activation)
        if jnp.ndim(x) < 3:
            raise ValueError(
                f"Conv observes [rows, cols, channels], not {list(jnp.shape(x))}: use MLP for "
                "vectors, or add axes to the observation"
            )
        x = jnp.asarray(x, jnp.float32)
        for i, channels in enumerate(self.features):
            layer = Convolution(channels, self.kernel, self.strides, self.padding, name=f"Conv_{i}")
            shape, x = x.shape[-3:-1], layer(x)
            if 0 in x.shape[-3:-1]:
                raise ValueError(
                    f"Conv leaves nothing of {shape[0]} rows and {shape[1]} columns by a kernel of "
                    f"{self.kernel}: use padding SAME, a smaller kernel or fewer layers"
                )
            x = nn.LayerNorm(reduction_axes=(-3, -2, -1))(x) if self.layer_norm else x
            x = activate(x)
        return x.reshape(*x.shape[:-3], -1)


class Convolution(nn.Module):
    """One convolution, `[..., rows, cols, C] -> [..., rows', cols', features]`.

    The parameters are those of `nn.Conv`. It is computed as one matrix product with the patches
    that the kernel sees: XLA's own convolution, and still more its gradient, is several times
    slower on CPUs for boards of this size.
    """

    features: int
    """Channels of the output."""
    kernel: int
    """Rows and columns of the kernel."""
    strides: int
    """Rows and columns between two outputs."""
    padding: str
    """SAME or VALID, as XLA defines them."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        size, start = self.kernel, linalg.orthogonal_start(math.sqrt(2))
        shape = (size, size, x.shape[-1], self.features)
        kernel = self.param("kernel", start, shape, jnp.float32)
        bias = self.param("bias", nn.initializers.zeros, (self.features,), jnp.float32)
        window, strides = (size, size), (self.strides, self.strides)
        pads = jax.lax.padtype_to_pads(x.shape[-3:-1], window, strides, self.padding)
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [*pads, (0, 0)])
        rows, cols = (max(0, (n - size) // self.strides + 1) for n in x.shape[-3:-1])
        reach = lambda i, count: slice(i, i + self.strides * count, self.strides)
        patches = [
            x[..., reach(i, rows), reach(j, cols), :][..., :rows, :cols, :]
            for i in range(size)
            for j in range(size)
        ]
        out = jnp.concatenate(patches, axis=-1) @ kernel.reshape(-1, self.features)
        return out + bias.reshape((1,) * (out.ndim - 1) + bias.shape)
