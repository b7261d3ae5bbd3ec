"""Any environment on gymnax's interface, paid for a potential of what it shows, and for arriving.

Axes: d features, P numbers of a place.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import environment

from envs.base import Environment


class Sight(NamedTuple):
    """What tasks know of an observation."""

    features: jax.Array  # [..., d] of the eigenvectors
    place: jax.Array  # [..., P] the observation itself, its numbers scaled


class Pay(NamedTuple):
    """The numbers of a task. Φ is `direction` times the features, less the distances to `goal`."""

    goal: Sight
    direction: jax.Array  # float32 [d]
    feature_weights: jax.Array  # float32 [d], of squared differences to the goal
    place_weight: jax.Array  # float32, the same
    radius: jax.Array  # float32, how near the goal's place an episode ends; negative: never
    weight: jax.Array  # float32, reward per unit of Φ
    discount: jax.Array  # float32, γ of the reward γ Φ(s') - Φ(s)


def potential_of(sight: Sight, pay: Pay) -> jax.Array:
    """Φ of one observation."""
    squares = lambda x, y, weights: jnp.sum(weights * jnp.square(x - y))
    own = squares(sight.features, pay.goal.features, pay.feature_weights)
    line = squares(sight.place, pay.goal.place, pay.place_weight)
    return jnp.sum(sight.features * pay.direction) - jnp.sqrt(own) - jnp.sqrt(line)


@struct.dataclass
class State:
    env: Any  # of the environment itself
    obs: Any
    potential: jax.Array  # float32, Φ of it
    start_potential: jax.Array  # float32, Φ where the episode began
    time: jax.Array  # int32


@struct.dataclass
class Params:
    env: Any  # of the environment itself
    pay: Pay
    max_steps_in_episode: Any


class GuidedEnvironment(Environment):
    """`env` with the rewards weight (γ Φ(s') - Φ(s)), and 1 for arriving at the goal.

    Where there is a goal Φ is 0 once an episode has terminated, by arriving or otherwise, so that
    with γ of the learner the best policy is that of the goal alone (Ng, Harada & Russell 1999).
    Outcome: `arrived`; `climbed`, how much higher Φ is than where the episode began; and `way`,
    which is 1, as Φ of an option spans 1 and nobody knows how high the highest place is.
    """

    def __init__(self, env: environment.Environment, look: Callable[[Any], Sight]):
        super().__init__()
        self.env, self.look = env, look

    def start(self, chance: jax.Array, params: Params) -> State:
        obs, inner = self.env.reset(chance, params.env)
        potential = potential_of(self.look(obs), params.pay)
        return State(inner, obs, potential, potential, jnp.zeros((), jnp.int32))

    def transition(
        self, chance: jax.Array, state: State, action: Any, params: Params
    ) -> tuple[State, jax.Array, jax.Array, dict[str, Any]]:
        obs, inner, _, terminated, _ = self.env.step_env(chance, state.env, action, params.env)
        sight, pay = self.look(obs), params.pay
        potential = potential_of(sight, pay)
        arrived = jnp.linalg.norm(sight.place - pay.goal.place) <= pay.radius
        has_ended = jnp.asarray(terminated, bool) | arrived
        after = jnp.where(has_ended & (pay.radius >= 0), 0.0, potential)
        reward = arrived + pay.weight * (pay.discount * after - state.potential)
        climbed, way = potential - state.start_potential, jnp.ones(())
        outcome = {"arrived": arrived, "climbed": climbed, "way": way}
        state = State(inner, obs, potential, state.start_potential, state.time + 1)
        return state, reward, has_ended, {"outcome": outcome}

    def describe(self, state: State, features: Any, params: Params) -> Any:
        return state.obs

    def is_truncated(self, state: State, params: Params) -> jax.Array:
        is_late = state.time >= params.max_steps_in_episode
        return is_late | self.env.is_truncated(state.env, params.env)

    @property
    def name(self) -> str:
        return f"Guided({self.env.name})"
