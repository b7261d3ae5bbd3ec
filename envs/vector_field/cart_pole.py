"""A cart with a pole on a circular track: a real nonlinear system of four latent dimensions."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces

from envs.arguments import check_name
from envs.base import Environment

OBSERVATIONS = {"full": 6, "no_velocities": 4, "angles": 2}
START = 0.05  # half-width of the box that the first state is drawn from


@struct.dataclass
class State:
    track_angle: jax.Array  # φ within ±π, where on the circle the cart is
    speed: jax.Array  # m/s along the track
    pole_angle: jax.Array  # θ within ±π, 0 is upright
    pole_speed: jax.Array  # θ', rad/s
    time: jax.Array  # int32, steps since the start


@struct.dataclass
class Params:
    """Metres, kilograms, seconds."""

    dt: float = 0.005
    """Time of a step."""
    gravity: float = 9.8
    cart_mass: float = 1.0
    pole_mass: float = 0.1
    half_length: float = 1.0
    """From the hinge to the centre of mass of the pole, a uniform rod."""
    force: float = 30.0
    """Force at an action of 1."""
    cart_friction: float = 0.05
    """Force per speed of the cart."""
    pole_friction: float = 0.01
    """Torque per angular speed of the pole."""
    track_length: float = 4.8
    """Circumference of the track."""
    max_steps_in_episode: int = 2**30
    """Steps after which an episode is truncated."""


class CircularCartPole(Environment):
    """A cart-pole without limits: the track is a circle, and the pole can rotate fully.

    The curvature of the track exerts no force: the cart moves as on a straight one, φ = x / radius.

    * Action: float32 `[1]`, clipped to ±1, NaN taken as 0; times `Params.force`, along the track.
    * Observation, by name: full `[sin φ, cos φ, φ', sin θ, cos θ, θ']`, no_velocities the same
      without φ' and θ', angles `[φ, θ]` within ±π.
    * Reward: cos θ, 1 while the pole stands. Episodes start near upright and at rest, and end by
      the time limit only, by default never.

    With `with_transition_gradients()` states can be differentiated by actions and earlier states.

    Raises ValueError for unknown observations.
    """

    _supports_transition_gradients = True

    def __init__(self, observation: str = "full"):
        super().__init__()
        check_name("observation", observation, OBSERVATIONS)
        self.observation = observation

    @property
    def default_params(self) -> Params:
        return Params()

    def start(self, chance: jax.Array, params: Params) -> State:
        track, speed, pole, pole_speed = jax.random.uniform(
            chance, (4,), minval=-START, maxval=START
        )
        return State(track, speed, pole, pole_speed, jnp.zeros((), jnp.int32))

    def transition(
        self, chance: jax.Array, state: State, action: jax.Array, params: Params
    ) -> tuple[State, jax.Array, jax.Array, dict[str, Any]]:
        push = params.force * jnp.nan_to_num(jnp.clip(action[0], -1.0, 1.0))
        after = euler_step(state, push, params)
        return after, jnp.cos(after.pole_angle), jnp.zeros((), bool), {"outcome": {}}

    def describe(self, state: State, features: Any, params: Params) -> jax.Array:
        track, pole = state.track_angle, state.pole_angle
        track_speed = state.speed * (2 * math.pi / params.track_length)
        return jnp.stack(
            {
                "full": [*circle(track), track_speed, *circle(pole), state.pole_speed],
                "no_velocities": circle(track) + circle(pole),
                "angles": [track, pole],
            }[self.observation]
        )

    @property
    def name(self) -> str:
        return "CircularCartPole-v0"

    @property
    def num_actions(self) -> int:
        """Continuous numbers in an action."""
        return 1

    def action_space(self, params: Params | None = None) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (1,), jnp.float32)

    def observation_space(self, params: Params | None = None) -> spaces.Box:
        most = {"full": jnp.inf, "no_velocities": 1.0, "angles": math.pi}[self.observation]
        return spaces.Box(-most, most, (OBSERVATIONS[self.observation],), jnp.float32)


def euler_step(state: State, push: jax.Array, params: Params) -> State:
    """A step of semi-implicit Euler, pushed by `push` newton: new speeds from the old state, new
    angles from the new speeds."""
    cart, pole = accelerations(state.speed, state.pole_angle, state.pole_speed, push, params)
    speed = state.speed + params.dt * cart
    pole_speed = state.pole_speed + params.dt * pole
    radius = params.track_length / (2 * math.pi)
    return State(
        wrap_angle(state.track_angle + params.dt * speed / radius),
        speed,
        wrap_angle(state.pole_angle + params.dt * pole_speed),
        pole_speed,
        state.time + 1,
    )


def accelerations(
    speed: jax.Array, angle: jax.Array, angle_speed: jax.Array, push: jax.Array, params: Params
) -> tuple[jax.Array, jax.Array]:
    """x'' in m/s² of the cart and θ'' in rad/s² of the pole, pushed by `push` newton.

    The equations of Barto, Sutton & Anderson (1983), but for the cart's friction, which grows with
    its speed here and so stays smooth:

        M x'' + m l (θ'' cos θ - θ'² sin θ) = F - μ x'
        m l x'' cos θ + 4/3 m l² θ'' = m g l sin θ - ν θ'
    """
    mass = params.cart_mass + params.pole_mass
    length, moment = params.half_length, params.pole_mass * params.half_length
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    drive = (push - params.cart_friction * speed + moment * angle_speed**2 * sine) / mass
    torque = params.gravity * sine - params.pole_friction * angle_speed / moment - drive * cosine
    pole = torque / (length * (4 / 3 - params.pole_mass * cosine**2 / mass))
    return drive - moment * pole * cosine / mass, pole


def circle(angle: jax.Array) -> list[jax.Array]:
    """An angle as a point of the unit circle, which does not jump."""
    return [jnp.sin(angle), jnp.cos(angle)]


def wrap_angle(angle: jax.Array) -> jax.Array:
    """The same angle within ±π, so that a long run loses no precision."""
    return (angle + math.pi) % (2 * math.pi) - math.pi
