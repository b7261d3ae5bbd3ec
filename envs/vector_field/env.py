"""A latent state that drifts along an unknown field, driven by actions and observed with noise.

There is no reward: it is an environment for system identification.
"""

from collections.abc import Callable
from dataclasses import fields as fields_of
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import spaces

from envs.base import Environment, in_32_bits
from envs.vector_field import encoders, higher, landscape, observations
from envs.vector_field.fields import FIELDS, check_dimension, mean_speed
from envs.vector_field.params import Params, cast_params, check, check_shapes, check_speed

Field = str | Callable[[jax.Array], jax.Array]
"""A name of `FIELDS`, or a function that maps one state `[d]` to its velocity `[d]`."""


@struct.dataclass
class State:
    z: jax.Array  # [d], the latent state
    obs: jax.Array  # [n], its observation, drawn once
    time: jax.Array  # int32, steps since the start


class VectorField(Environment):
    """z' = z + dt (f(z) + g(u, z)) + √(q dt) ε seen in `channels` channels.

    * `fields`: one name of `envs.vector_field.fields.FIELDS`, or a function of your own that maps
      one state `[d]` to its velocity `[d]`; or several, of which `Params.field` chooses one: then a
      batch of environments may mix fields in one program. Functions are compared by identity:
      environments share a compilation only if they have the same function object.
    * `dims`: d, dimensions of the latent state; 2 for most named fields, see `fields.DIMENSIONS`.
    * Action: float32 `[num_inputs]`, clipped to ±`Params.action_bound`, NaN taken as 0. `encoder`
      makes it a velocity: identity, linear, mlp with 16 relus, or state_mlp, which depends on the
      state too.
    * Observation: float32 `[channels]`, with `noise` gaussian, poisson (loglinear only) or none.
      `observation` makes its mean: identity (d channels), linear, loglinear (the exponential of
      linear) or mlp with twice 64 relus.
    * Walls: z is clipped to ±`Params.reach`, far beyond where the fields are of interest. A
      constant action can drive the state there (in duffing and van_der_pol; other fields pull it
      back), and beyond the walls Euler steps of this length would soon diverge.
    * Reward: 0. Episodes start at z ~ U(±1) and end by the time limit only, by default never.
      `info["latent"]` is z after the step, also where an episode ended.

    With `with_transition_gradients()` states can be differentiated by actions and earlier states.

    Raises ValueError for unknown names, functions that are not fields, and incompatible arguments.
    """

    _supports_transition_gradients = True
    circular: tuple[int, ...] = ()
    """Components of the state that are angles within ±π."""

    def __init__(
        self,
        fields: Field | tuple[Field, ...] = "limit_cycle",
        observation: str = "linear",
        noise: str = "gaussian",
        channels: int = 20,
        encoder: str = "identity",
        num_inputs: int = 2,
        dims: int = 2,
    ):
        super().__init__()
        fields = (fields,) if isinstance(fields, str) or callable(fields) else tuple(fields)
        if dims < 1:
            raise ValueError(f"dims is {dims}; expected at least 1")
        _check(fields, dims)
        observations.check(observation, noise, channels, dims)
        encoders.check(encoder, num_inputs, dims)
        self.fields = fields
        self.dims = dims
        self.observation = observation
        self.noise = noise
        self.channels = channels
        self.encoder = encoder
        self.num_inputs = num_inputs

    def identity(self) -> dict[str, Any]:
        """All but the default parameters."""
        return {name: value for name, value in vars(self).items() if name != "default_params"}

    @cached_property
    def default_params(self) -> Params:  # pyright: ignore[reportIncompatibleVariableOverride]
        """`params()`, computed when first needed, so that imports stay fast."""
        with jax.ensure_compile_time_eval():  # they outlive the trace that first asks for them
            return self.params()

    def params(
        self, key: jax.Array | None = None, authority: float = 1.0, **changes: Any
    ) -> Params:
        """Fresh weights and landscape from `key` (default: key 0), and the fields in `changes`.

        `action_bound`, unless named, is `authority` times the mean speed of the field within ±2.
        Everything may be traced, so that `vmap` makes a batch; traced values are not checked.

        Raises ValueError for names that `Params` does not have, impossible values, and a field
        that is not finite within ±2 where `action_bound` has to follow from it.
        """
        param_names = [field.name for field in fields_of(Params)]
        unknown = [name for name in changes if name not in param_names]
        if unknown:
            raise ValueError(
                f"params have no {unknown[0]!r}; expected some of {', '.join(param_names)}"
            )
        for name, value in {**changes, "authority": authority}.items():
            check(name, value, len(self.fields))
        key = jax.random.key(0) if key is None else key
        with in_32_bits():
            params = self._jitted_draw(key, authority, changes)
        check_speed(params.action_bound)
        return params

    @partial(jax.jit, static_argnames=("self",))
    def _jitted_draw(self, key: jax.Array, authority: float, changes: dict[str, Any]) -> Params:
        return self.draw_params(key, authority, changes)

    def draw_params(self, key: jax.Array, authority: float, changes: dict[str, Any]) -> Params:
        """Parameters drawn from `key`, but for `changes`; see `params`."""
        landscape_key, emission_key, encoder_key = jax.random.split(key, 3)
        has_landscape, dims = "multi_attractor" in self.fields, self.dims
        if "network" in self.fields:
            network_key = jax.random.fold_in(jax.random.clone(landscape_key), 1)
            changes = {"network": higher.network_weights(network_key, dims), **changes}
        params = Params(
            field=jnp.zeros((), jnp.int32),
            landscape=landscape.draw(landscape_key) if has_landscape else jnp.zeros((0, 0, 2)),
            emission=observations.weights(emission_key, self.observation, self.channels, dims),
            encoder=encoders.weights(encoder_key, self.encoder, self.num_inputs, dims),
            action_bound=1.0,
            network=jnp.zeros((dims, dims)) if "network" in self.fields else (),
        )
        for name, value in changes.items():
            check_shapes(name, value, getattr(params, name))
        params = params.replace(**changes)  # pyright: ignore[reportAttributeAccessIssue]
        if "action_bound" not in changes:
            bound = authority * mean_speed(lambda z: self.velocity(z, params), dims=dims)
            params = params.replace(action_bound=bound)
        return cast_params(params)

    def velocity(self, z: jax.Array, params: Params) -> jax.Array:
        """The drift f alone: `[..., d]` at `z` `[..., d]`, latent units per unit of time."""
        branches = [partial(_drift, field, params) for field in self.fields]
        if len(branches) == 1:
            return branches[0](z)
        return jax.lax.switch(params.field, branches, z)

    def scored_components(self, velocity: jax.Array) -> jax.Array:
        """The components `[..., k]` of a velocity `[..., d]` that are unknown; here all."""
        return velocity

    def wrap_angles(self, z: jax.Array) -> jax.Array:
        """A state `[..., d]` with its angles within ±π; here there are none."""
        return z

    @property
    def angular_channels(self) -> tuple[int, ...]:
        """Channels that are angles and so jump where the state goes round; here there are none."""
        return ()

    def smooth(self, obs: jax.Array) -> jax.Array:
        """Observations `[..., n]` as numbers that do not jump where an angle does; here as is."""
        return obs

    def effect(self, u: jax.Array, z: jax.Array, params: Params) -> jax.Array:
        """g(u, z): the velocity `[d]` that the action `[m]` adds at `z` `[d]`."""
        return encoders.effect(self.encoder, params.encoder, u, z)

    def emission(self, z: jax.Array, params: Params) -> tuple[jax.Array, jax.Array]:
        """Mean and variance, each `[..., n]`, of the observation of `z` `[..., d]`."""
        return observations.emission(
            self.observation,
            self.noise,
            params.emission,
            z,
            params.observation_noise,
            params.bin_width,
        )

    def start(self, chance: jax.Array, params: Params) -> State:
        z_key, obs_key = jax.random.split(chance)
        z = jax.random.uniform(z_key, (self.dims,), minval=-1.0)
        return State(z, self._observe(obs_key, z, params), jnp.zeros((), jnp.int32))

    def transition(
        self, chance: jax.Array, state: State, action: jax.Array, params: Params
    ) -> tuple[State, jax.Array, jax.Array, dict[str, Any]]:
        noise_key, obs_key = jax.random.split(chance)
        u = jnp.clip(action, -params.action_bound, params.action_bound)
        u = jnp.where(jnp.isnan(action), 0.0, u)  # or the state would be NaN until the episode ends
        velocity = self.velocity(state.z, params) + self.effect(u, state.z, params)
        spread = jnp.sqrt(params.process_noise * params.dt)
        z = state.z + params.dt * velocity + spread * jax.random.normal(noise_key, (self.dims,))
        z = jnp.clip(self.wrap_angles(z), -params.reach, params.reach)
        after = State(z, self._observe(obs_key, z, params), state.time + 1)
        info = {"outcome": {}, "latent": z}
        return after, jnp.zeros(()), jnp.zeros((), bool), info

    def move_state(self, key: jax.Array, state: State, z: jax.Array, params: Params) -> State:
        """The state moved to `z` `[d]`, within the walls, and observed there."""
        z = jnp.clip(jnp.asarray(z, jnp.float32), -params.reach, params.reach)
        return State(z, self._observe(key, z, params), state.time)

    def _observe(self, key: jax.Array, z: jax.Array, params: Params) -> jax.Array:
        return observations.draw(key, self.noise, *self.emission(z, params))

    def describe(self, state: State, features: Any, params: Params) -> jax.Array:
        return state.obs

    @property
    def name(self) -> str:
        return "VectorField-v0"

    @property
    def num_actions(self) -> int:
        """Continuous numbers in an action, m."""
        return self.num_inputs

    def action_space(self, params: Params | None = None) -> spaces.Box:
        params = self.default_params if params is None else params
        bound = params.action_bound
        return spaces.Box(-bound, bound, (self.num_inputs,), jnp.float32)

    def observation_space(self, params: Params | None = None) -> spaces.Box:
        least = 0.0 if self.noise == "poisson" else -jnp.inf
        return spaces.Box(least, jnp.inf, (self.channels,), jnp.float32)

    def __repr__(self) -> str:
        switches = ", ".join(f"{k}={v!r}" for k, v in self.identity().items() if k[0] != "_")
        return f"VectorField({switches})"


def _check(fields: tuple[Field, ...], dims: int) -> None:
    """Raises ValueError unless there are fields, each a known name or a function `[d] -> [d]`."""
    own = [field for field in fields if callable(field)]
    unknown = [name for name in fields if not callable(name) and name not in FIELDS]
    if unknown or not fields:
        reason = f"field {unknown[0]!r} is unknown" if unknown else "fields is empty"
        names = ", ".join(FIELDS)
        raise ValueError(f"{reason}; expected one or more of {names}, or functions of your own")
    for name in fields:
        if not callable(name):
            check_dimension(name, dims)
    for field in own:
        output = jax.eval_shape(field, jax.ShapeDtypeStruct((dims,), jnp.float32))
        if getattr(output, "shape", None) != (dims,) or output.dtype != jnp.float32:
            raise ValueError(
                f"field {field!r} returns {output} at one state; expected float32 [{dims}], "
                "as from jnp.stack([dx, dy])"
            )


def _drift(field: Field, params: Params, z: jax.Array) -> jax.Array:
    """The field at `z` `[..., d]`; landscape and network are of one field each."""
    if callable(field):
        return jnp.vectorize(field, signature="(d)->(d)")(z)
    field_weights = {"multi_attractor": params.landscape, "network": params.network}
    return FIELDS[field](z, field_weights[field]) if field in field_weights else FIELDS[field](z)
