"""Dense layers of fixed random weights, and the encoders that map actions to velocities."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from envs.arguments import check_name

ENCODERS: dict[str, tuple[int, ...] | None] = {
    "identity": None,
    "linear": (),
    "mlp": (16,),
    "state_mlp": (16,),
}
"""Hidden layers of each; None if the velocity is the action itself. `state_mlp` sees the state."""
ENCODER_GAIN = 3**0.5  # on average a velocity is as large as its action
ENCODER_BIAS = 0.1  # the action 0 should have little effect


class Layer(NamedTuple):
    weight: jax.Array  # [outputs, inputs]
    bias: jax.Array  # [outputs]


Layers = tuple[Layer, ...]


def layers(key: jax.Array, sizes: tuple[int, ...], gain: float = 1.0, bias: float = 1.0) -> Layers:
    """Random layers from `sizes[0]` inputs to `sizes[-1]` outputs.

    Last layer: weights U(±`gain`/√inputs) and biases U(±`bias`/√inputs). Before it: weights
    U(±√(6/inputs)), which preserve the size of a signal through relus, and the same biases.
    """
    network = []
    last = len(sizes) - 2
    for i, layer_key in enumerate(jax.random.split(key, last + 1)):
        weight_key, bias_key = jax.random.split(layer_key)
        inputs, outputs = sizes[i : i + 2]
        spread = (gain if i == last else 6**0.5) / inputs**0.5
        weight = jax.random.uniform(weight_key, (outputs, inputs), minval=-spread, maxval=spread)
        spread = bias / inputs**0.5
        network.append(
            Layer(weight, jax.random.uniform(bias_key, (outputs,), minval=-spread, maxval=spread))
        )
    return tuple(network)


def apply(network: Layers, x: jax.Array) -> jax.Array:
    """`x` `[..., inputs]` through the layers, with relus between them: `[..., outputs]`.

    Without layers it is `x` itself.
    """
    for i, layer in enumerate(network):
        x = jax.nn.relu(x) if i else x
        x = jnp.matmul(x, layer.weight.T, precision="highest")
        x = x + jnp.broadcast_to(layer.bias, x.shape)
    return x


def weights(key: jax.Array, encoder: str, num_inputs: int, dims: int) -> Layers:
    """Weights of `encoder` from `num_inputs` m to `dims` d; none for identity."""
    hidden = ENCODERS[encoder]
    if hidden is None:
        return ()
    input_size = num_inputs + dims if encoder == "state_mlp" else num_inputs
    return layers(key, (input_size, *hidden, dims), ENCODER_GAIN, ENCODER_BIAS)


def effect(encoder: str, network: Layers, u: jax.Array, z: jax.Array) -> jax.Array:
    """g(u, z): the velocity `[d]` that the action `u` `[m]` adds at the state `z` `[d]`.

    Only `state_mlp` depends on z: h(u, z) - h(0, z) with h the network. It is 0 without an action,
    as what the state does by itself is the field's.
    """
    if encoder != "state_mlp":
        return apply(network, u)
    velocity_of = lambda u: apply(network, jnp.concatenate([u, z]))
    return velocity_of(u) - velocity_of(jnp.zeros_like(u))


def check(encoder: str, num_inputs: int, dims: int) -> None:
    """Raises ValueError for an unknown encoder, and for inputs that it cannot take."""
    check_name("encoder", encoder, ENCODERS)
    if num_inputs < 1:
        raise ValueError(f"num_inputs is {num_inputs}; expected at least 1")
    if encoder == "identity" and num_inputs != dims:
        raise ValueError(
            f"num_inputs is {num_inputs}, but the encoder 'identity' takes {dims}; "
            "choose encoder 'linear', 'mlp' or 'state_mlp'"
        )
