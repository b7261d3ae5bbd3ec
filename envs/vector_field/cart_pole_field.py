"""The cart with a pole on a circular track as a system under study: its state has a velocity.

A step of `CircularCartPole` is a map of states; here it is written as a field and the effect of a
force, so that whatever learns a `VectorField` learns this system.
"""

import math

import jax
import jax.numpy as jnp

from envs.vector_field import cart_pole
from envs.vector_field.env import VectorField
from envs.vector_field.params import Params, cast_params

SPEED = 4.0
"""Unit of both angular speeds, rad/s: so all components of the state have about the same range."""
OBSERVATIONS = {"identity": 4, "full": 6, "no_velocities": 4}
"""Channels of each."""


class CartPoleField(VectorField):
    """z' = z + dt (f(z) + g(u, z)) + √(q dt) ε with z = (φ, φ'/4, θ, θ'/4), of `CircularCartPole`.

    * State: angle of the cart on its circle and of the pole in rad within ±π, upright 0, and their
      speeds in units of 4 rad/s, which are held within ±`Params.reach`. Episodes start at U(±1).
    * Action: float32 `[1]` within ±`Params.action_bound`, by default the authority, at most 1; the
      force is 30 N times it.
    * Field: f is what a step of `dt` without force does, over dt, and g what the force adds. A step
      has `substeps` of the simulation, so f is the velocity but for terms of order dt.
    * Observation: identity, the state; full `[sin φ, cos φ, φ'/4, sin θ, cos θ, θ'/4]`;
      no_velocities, the sines and cosines alone. `noise` is gaussian or none.
    * `scored_components` are the two accelerations: that angles change by their speeds is no
      discovery.

    Raises ValueError for unknown names, and for less than one substep.
    """

    circular = (0, 2)

    def __init__(self, observation: str = "identity", noise: str = "none", substeps: int = 4):
        if observation not in OBSERVATIONS or noise not in ("gaussian", "none") or substeps < 1:
            raise ValueError(
                f"a cart-pole has no observation {observation!r} with noise {noise!r} in "
                f"{substeps} substeps; expected {', '.join(OBSERVATIONS)}, gaussian or none, and "
                "at least 1"
            )
        channels = OBSERVATIONS[observation]
        super().__init__(_zero_field, "identity", noise, 4, "linear", 1, 4)
        self.fields, self.observation, self.channels = ("cart_pole",), observation, channels
        self.substeps = substeps

    def draw_params(self, key: jax.Array, authority: jax.Array | float, changes: dict) -> Params:
        """Nothing is drawn from `key`."""
        bound = jnp.minimum(jnp.asarray(authority, jnp.float32), 1.0)
        settings = {"dt": 0.02, "action_bound": bound, **changes}
        placeholders = {
            "field": 0,
            "landscape": jnp.zeros((0, 0, 2)),
            "emission": (),
            "encoder": (),
        }
        return cast_params(Params(**{**placeholders, **settings}))

    def velocity(self, z: jax.Array, params: Params) -> jax.Array:
        """f at `z` `[..., 4]`, in its units per second."""
        return self.wrap_angles(self._next_state(z, jnp.zeros(()), params) - z) / params.dt

    def scored_components(self, velocity: jax.Array) -> jax.Array:
        """The accelerations of cart and pole, `[..., 2]`."""
        return velocity[..., 1::2]

    def effect(self, u: jax.Array, z: jax.Array, params: Params) -> jax.Array:
        """g(u, z), `[4]`."""
        change = self._next_state(z, u[0], params) - self._next_state(z, jnp.zeros(()), params)
        return self.wrap_angles(change) / params.dt

    def emission(self, z: jax.Array, params: Params) -> tuple[jax.Array, jax.Array]:
        coordinates = z if self.observation == "identity" else circles(z)
        mean = (
            coordinates[..., jnp.array([0, 1, 3, 4])]
            if self.observation == "no_velocities"
            else coordinates
        )
        variance = params.observation_noise if self.noise == "gaussian" else 0.0
        return mean, jnp.full_like(mean, variance)

    def wrap_angles(self, z: jax.Array) -> jax.Array:
        angles = jnp.array(self.circular)
        return z.at[..., angles].set(cart_pole.wrap_angle(z[..., angles]))

    @property
    def angular_channels(self) -> tuple[int, ...]:
        return self.circular if self.observation == "identity" else ()

    def smooth(self, obs: jax.Array) -> jax.Array:
        return circles(obs) if self.observation == "identity" else obs

    @property
    def name(self) -> str:
        return "CartPoleField-v0"

    def __repr__(self) -> str:
        return f"CartPoleField({self.observation!r}, {self.noise!r}, {self.substeps})"

    def _next_state(self, z: jax.Array, u: jax.Array, params: Params) -> jax.Array:
        """The state `[..., 4]` a step after `z` with the action `u`, a scalar, without noise."""
        numbers = cart_pole.Params(dt=params.dt / self.substeps)  # type: ignore
        to_speed = SPEED * numbers.track_length / (2 * math.pi)
        time = jnp.zeros((), jnp.int32)
        track, speed, pole, pole_speed = (z[..., i] for i in range(4))
        state = cart_pole.State(track, speed * to_speed, pole, pole_speed * SPEED, time)
        for _ in range(self.substeps):
            state = cart_pole.euler_step(state, numbers.force * u, numbers)
        parts = (state.track_angle, state.speed / to_speed, state.pole_angle)
        return jnp.stack([*parts, state.pole_speed / SPEED], axis=-1)


def circles(z: jax.Array) -> jax.Array:
    """`[sin φ, cos φ, φ'/4, sin θ, cos θ, θ'/4]` of `z` `[..., 4]`."""
    track, speed, pole, pole_speed = (z[..., i] for i in range(4))
    parts = [*cart_pole.circle(track), speed, *cart_pole.circle(pole), pole_speed]
    return jnp.stack(parts, axis=-1)


def _zero_field(z: jax.Array) -> jax.Array:
    return jnp.zeros_like(z)
