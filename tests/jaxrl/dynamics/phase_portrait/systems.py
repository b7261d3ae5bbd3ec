"""Maps whose phase portraits are known."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.phase_portrait.attractors import Effort

Map = Callable[[jax.Array, jax.Array], jax.Array]
LITTLE = Effort(orbits=48, window=1024, settling=512, starts=256)


def runge_kutta(velocity: Map, dt: float) -> Map:
    """A step of the classical method of order four."""

    def step(z: jax.Array, u: jax.Array) -> jax.Array:
        a = velocity(z, u)
        b = velocity(z + dt / 2 * a, u)
        c = velocity(z + dt / 2 * b, u)
        d = velocity(z + dt * c, u)
        return z + dt / 6 * (a + 2 * b + 2 * c + d)

    return step


def van_der_pol(z: jax.Array, u: jax.Array) -> jax.Array:
    return jnp.stack([z[1], (1 - z[0] ** 2) * z[1] - z[0]])


def fitzhugh_nagumo(z: jax.Array, u: jax.Array) -> jax.Array:
    return jnp.stack([z[0] - z[0] ** 3 / 3 - z[1] + u[0], 0.08 * (z[0] + 0.7 - 0.8 * z[1])])


def lorenz(z: jax.Array, u: jax.Array) -> jax.Array:
    x, y, height = z
    return jnp.stack([10 * (y - x), x * (28 - height) - y, x * y - 8 / 3 * height])


def stuart_landau(z: jax.Array, u: jax.Array) -> jax.Array:
    """The exact flow of r' = growth r (1 - r²) over a step, for u = (growth, period in steps)."""
    gain, angle = jnp.exp(2 * u[0]), 2 * np.pi / u[1]
    scale = jnp.sqrt(gain / (1 + jnp.sum(z**2) * (gain - 1)))
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return scale * jnp.stack([cos * z[0] - sin * z[1], sin * z[0] + cos * z[1]])


def disc(count: int, radius: float, seed: int = 0) -> np.ndarray:
    """States `[count, 2]` drawn evenly from a disc."""
    rng = np.random.default_rng(seed)
    r, angle = radius * np.sqrt(rng.uniform(size=count)), rng.uniform(0, 2 * np.pi, count)
    return np.stack([r * np.cos(angle), r * np.sin(angle)], -1)
