"""Vector fields in more than two dimensions, as plain functions like those of `fields`.

`lorenz` and `saddle_cycle` have three dimensions, `coupled_cycles` any even number, `network` any.
"""

import jax
import jax.numpy as jnp

LORENZ_LENGTH, LORENZ_HEIGHT = 12.0, 25.0
"""A unit of z in Lorenz' own units, and where its third coordinate has its origin there: the
attractor lies within about ±2."""


def lorenz(
    z: jax.Array,
    *,
    prandtl: float = 10.0,
    rayleigh: float = 28.0,
    aspect: float = 8 / 3,
    scale: float = 0.05,
) -> jax.Array:
    """The attractor of Lorenz (1963): Ẋ = σ (Y - X), Ẏ = X (ρ - Z) - Y, Ż = X Y - β Z.

    In units of 12, with Z shifted by 25; `scale` slows it down. `prandtl` is σ, `rayleigh` ρ and
    `aspect` β. `[..., 3]` like `z`.
    """
    x, y, height = (LORENZ_LENGTH * z[..., i] for i in range(3))
    height = height + LORENZ_HEIGHT
    velocity = [prandtl * (y - x), x * (rayleigh - height) - y, x * y - aspect * height]
    return scale / LORENZ_LENGTH * jnp.stack(velocity, axis=-1)


def saddle_cycle(
    z: jax.Array,
    *,
    radius_squared: float = 1.0,
    spin: float = 1.0,
    return_rate: float = 2.0,
    scale: float = 0.1,
) -> jax.Array:
    """A limit cycle on a saddle: in x and y that of `limit_cycle`, and ẇ = κ (x² - y² - w).

    `return_rate` is κ, how fast the third coordinate w returns to the saddle.
    """
    x, y, w = (z[..., i] for i in range(3))
    pull = radius_squared - (x**2 + y**2)
    velocity = [x * pull - spin * y, y * pull + spin * x, return_rate * (x**2 - y**2 - w)]
    return scale * jnp.stack(velocity, axis=-1)


def coupled_cycles(
    z: jax.Array,
    *,
    radius_squared: float = 1.0,
    spin: float = 1.0,
    coupling: float = 0.5,
    scale: float = 0.1,
) -> jax.Array:
    """A ring of limit cycles, each with two of the `[..., d]` coordinates and drawn to the next.

    Oscillator k has the rotation ω (1 + k/2) in turn left and right, and c (z_{k+1} - z_k) is added
    to its velocity; `spin` is ω and `coupling` c.
    """
    pairs = z.reshape(*z.shape[:-1], -1, 2)
    x, y = pairs[..., 0], pairs[..., 1]
    index = jnp.arange(x.shape[-1])
    turn = spin * (1 + index / 2) * jnp.where(index % 2 == 0, 1.0, -1.0)
    turn = jnp.broadcast_to(turn, x.shape)
    pull = radius_squared - (x**2 + y**2)
    cycle_velocity = jnp.stack([x * pull - turn * y, y * pull + turn * x], axis=-1)
    coupling_velocity = coupling * (jnp.roll(pairs, -1, axis=-2) - pairs)
    return scale * (cycle_velocity + coupling_velocity).reshape(z.shape)


def network(
    z: jax.Array, weights: jax.Array, *, leak: float = 1.0, scale: float = 0.3
) -> jax.Array:
    """A recurrent network of random `weights` J `[d, d]`: ż = J tanh(z) - λ z, with λ the `leak`.

    After Sompolinsky, Crisanti & Sommers (1988).
    """
    return scale * (jnp.matmul(jnp.tanh(z), weights.T, precision="highest") - leak * z)


def network_weights(key: jax.Array, dims: int, gain: float = 2.0) -> jax.Array:
    """J `[d, d]`: independent N(0, gain²/d). Above a gain of 1 it does not come to rest."""
    return gain / dims**0.5 * jax.random.normal(key, (dims, dims))
