"""Convolutions over boards and images: `[..., rows, cols, C] -> [..., D]`, flat."""

import math

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl import linalg
from jaxrl.networks.mlp import Activation, activation_function


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
        for channels in self.features:
            x = nn.Conv(
                channels,
                (self.kernel, self.kernel),
                (self.strides, self.strides),
                self.padding,
                kernel_init=linalg.orthogonal_start(math.sqrt(2)),
            )(x)
            x = nn.LayerNorm(reduction_axes=(-3, -2, -1))(x) if self.layer_norm else x
            x = activate(x)
        return x.reshape(*x.shape[:-3], -1)
