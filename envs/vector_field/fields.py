"""Vector fields: the unknown dynamics to be learned; here those in the plane.

Each is a plain function of `z` `[..., 2]` that returns the velocity `[..., 2]`, latent units per
unit of time. Those in more dimensions are in `higher`. All other parameters are numbers, which may
be traced. `scale` multiplies the whole field; with its defaults the mean speed within ±2 is
below 1, and the largest at most 2.2.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from envs.vector_field import higher
from envs.vector_field.landscape import multi_attractor, radius_of


def limit_cycle(
    z: jax.Array, *, radius_squared: float = 1.0, spin: float = 1.0, scale: float = 0.1
) -> jax.Array:
    """One attracting circle: ẋ = x (R² - r²) - ω y, ẏ = y (R² - r²) + ω x.

    On the circle of `radius_squared` R² the speed is `scale` |ω| R. The default scale makes the
    largest speed within ±2 equal to 2.
    """
    x, y = z[..., 0], z[..., 1]
    pull = radius_squared - (x**2 + y**2)
    return scale * jnp.stack([x * pull - spin * y, y * pull + spin * x], axis=-1)


def double_limit_cycle(
    z: jax.Array, *, radius: float = 1.0, spin: float = 1.0, scale: float = 0.1761
) -> jax.Array:
    """Rotation that reverses: ẋ = x (R - r) - ω y (2R - r), ẏ = y (R - r) + ω x (2R - r).

    The circle r = R attracts; beyond r = 2R the rotation is reversed. The default scale makes
    the largest speed within ±2 equal to 1.
    """
    x, y = z[..., 0], z[..., 1]
    r = radius_of(z)
    pull, turn = radius - r, spin * (2 * radius - r)
    return scale * jnp.stack([x * pull - y * turn, y * pull + x * turn], axis=-1)


def van_der_pol(
    z: jax.Array, *, damping: float = 1.0, stiffness: float = 1.0, scale: float = 0.26
) -> jax.Array:
    """The oscillator of van der Pol: ẋ = y, ẏ = μ (1 - x²) y - k x, with an attracting cycle."""
    x, y = z[..., 0], z[..., 1]
    return scale * jnp.stack([y, damping * (1 - x**2) * y - stiffness * x], axis=-1)


def duffing(
    z: jax.Array,
    *,
    damping: float = -0.5,
    linear: float = -1.0,
    cubic: float = 0.5,
    scale: float = 0.5,
) -> jax.Array:
    """Duffing's oscillator: ẋ = y, ẏ = a y - x (b + c x²).

    `damping` is a, `linear` b and `cubic` c. By default it has two wells, at x = ±√2, and a saddle
    between them.
    """
    x, y = z[..., 0], z[..., 1]
    return scale * jnp.stack([y, damping * y - x * (linear + cubic * x**2)], axis=-1)


def snowman(
    z: jax.Array,
    *,
    radius: float = 1.0,
    spin: float = 1.0,
    steepness: float = 10.0,
    scale: float = 0.22,
) -> jax.Array:
    """Two limit cycles side by side, of centres (±R, 0) and radius R, with opposite rotations.

    Left and right are blended by σ(∓β x) where they meet; `steepness` is β.
    """
    centre = jnp.broadcast_to(radius * jnp.array([1.0, 0.0]), z.shape)
    share = jax.nn.sigmoid(steepness * z[..., :1])
    right = limit_cycle(z - centre, radius_squared=radius**2, spin=spin, scale=scale)
    left = limit_cycle(z + centre, radius_squared=radius**2, spin=-spin, scale=scale)
    return share * right + (1 - share) * left


FIELDS: dict[str, Callable[..., jax.Array]] = {
    "limit_cycle": limit_cycle,
    "double_limit_cycle": double_limit_cycle,
    "multi_attractor": multi_attractor,  # takes its landscape too
    "duffing": duffing,
    "van_der_pol": van_der_pol,
    "snowman": snowman,
    "lorenz": higher.lorenz,
    "saddle_cycle": higher.saddle_cycle,
    "coupled_cycles": higher.coupled_cycles,
    "network": higher.network,  # takes its weights too
}
DIMENSIONS = {"lorenz": (3,), "saddle_cycle": (3,), "coupled_cycles": "even", "network": "any"}
"""Of the fields that are not in the plane."""
SPEED_POINTS = 4_096


def check_dimension(name: str, dims: int) -> None:
    """Raises ValueError for a named field that does not exist in `dims` dimensions."""
    allowed = DIMENSIONS.get(name, (2,))
    fits = dims % 2 == 0 and dims > 2 if allowed == "even" else allowed == "any" or dims in allowed
    if not fits:
        expected_dims = "an even number above 2" if allowed == "even" else allowed[0]
        raise ValueError(f"dimension is {dims}, but the field {name!r} needs {expected_dims}")


def mean_speed(
    f: Callable[[jax.Array], jax.Array],
    half_width: float = 2.0,
    per_axis: int = 40,
    dims: int = 2,
) -> jax.Array:
    """Mean |f| over the box ±`half_width`: the unit of `authority`. Returns a float32 scalar.

    `f` maps `[..., d]` to as many velocities. In the plane the points are a grid with its ends,
    otherwise 4,096 points drawn once and for all; `per_axis` is of the plane.
    """
    if dims != 2:
        points = np.random.default_rng(0).uniform(-half_width, half_width, (SPEED_POINTS, dims))
        return jnp.mean(jnp.linalg.norm(f(jnp.asarray(points, jnp.float32)), axis=-1))
    axis = jnp.linspace(-half_width, half_width, per_axis)
    grid = jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1)
    return jnp.mean(jnp.linalg.norm(f(grid), axis=-1))
