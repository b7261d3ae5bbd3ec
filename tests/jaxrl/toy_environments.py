"""Environments of one idea each, whose optimal values are known in closed form.

After Andy Jones, "Debugging RL, without the agonizing pain" (2021): each one isolates one thing
that a learner may get wrong, and the first that fails says which. All have the step signature of
`jaxrl.types.Environment`; their `params` are empty, so pass `()`.

`observations()` lists every observation `[S, D]` an agent can meet, and `optimal_q(discount)`
the optimal action values there, `[S, A]`; `optimal_value(discount)` is their maximum, `[S]`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.types import where_tree


class State(NamedTuple):
    """What an episode is: which of the environment's few situations, and its clock."""

    place: jax.Array  # int32; a row of `observations()`
    time: jax.Array  # int32; steps since the reset


class Toy:
    """Reset, automatic reset and the observation; a subclass says where it starts and leads."""

    num_places: int = 1
    num_actions: int = 2
    action_size: int = 0  # of a continuous action; 0 for discrete ones

    def start(self, key: jax.Array) -> jax.Array:
        """The place an episode starts in."""
        del key
        return jnp.zeros((), jnp.int32)

    def advance(
        self, state: State, action: jax.Array
    ) -> tuple[jax.Array, jax.Array | float, jax.Array | bool, jax.Array | bool]:
        """`(next place, reward, terminated, truncated)`; all deterministic."""
        raise NotImplementedError

    def optimal_q(self, discount: float) -> jax.Array:
        """Optimal action values `[S, A]`."""
        raise NotImplementedError

    def optimal_value(self, discount: float) -> jax.Array:
        """Optimal values `[S]`."""
        return jnp.max(self.optimal_q(discount), axis=-1)

    def observations(self) -> jax.Array:
        """`[S, S]`: one-hot, so that even a linear network can hold any table of values."""
        return jnp.eye(self.num_places, dtype=jnp.float32)

    def reset(self, key: jax.Array, params) -> tuple[jax.Array, State]:
        del params
        state = State(self.start(key), jnp.zeros((), jnp.int32))
        return self.observations()[state.place], state

    def step(self, key: jax.Array, state: State, action: jax.Array, params):
        """Consumes `key` for the reset, the only random thing here."""
        place, reward, *ending = self.advance(state, action)
        terminated, truncated = (jnp.asarray(x, bool) for x in ending)
        after = State(place, state.time + 1)
        final_observation = self.observations()[place]
        fresh = self.reset(key, params)
        obs, after = where_tree(terminated | truncated, fresh, (final_observation, after))
        info = {"final_observation": final_observation}
        return obs, after, jnp.asarray(reward, jnp.float32), terminated, truncated, info


@dataclass(frozen=True)
class ConstantReward(Toy):
    """One step, reward 1: does the value learn a constant? V = 1."""

    def advance(self, state, action):
        return state.place, 1.0, True, False

    def optimal_q(self, discount):
        return jnp.ones((1, 2))


@dataclass(frozen=True)
class ObservationReward(Toy):
    """One step, reward -1 or 1 as observed: does the observation reach the value?"""

    num_places: int = 2

    def start(self, key):
        return jax.random.randint(key, (), 0, 2)

    def advance(self, state, action):
        return state.place, 2.0 * state.place - 1.0, True, False

    def optimal_q(self, discount):
        return jnp.array([[-1.0, -1.0], [1.0, 1.0]])


@dataclass(frozen=True)
class DelayedReward(Toy):
    """Two steps, reward 0 then 1: is the successor discounted? V = discount, then 1."""

    num_places: int = 2

    def advance(self, state, action):
        is_late = state.place == 1
        return jnp.ones((), jnp.int32), jnp.where(is_late, 1.0, 0.0), is_late, False

    def optimal_q(self, discount):
        return jnp.array([[discount, discount], [1.0, 1.0]])


@dataclass(frozen=True)
class ActionReward(Toy):
    """One step, action 0 costs 1 and action 1 pays 1: does the policy learn?"""

    def advance(self, state, action):
        return state.place, jnp.where(action == 1, 1.0, -1.0), True, False

    def optimal_q(self, discount):
        return jnp.array([[-1.0, 1.0]])


@dataclass(frozen=True)
class ActionObservationReward(Toy):
    """One step, 1 for the action that names the observation, else -1: do both play together?"""

    num_places: int = 2

    def start(self, key):
        return jax.random.randint(key, (), 0, 2)

    def advance(self, state, action):
        return state.place, jnp.where(action == state.place, 1.0, -1.0), True, False

    def optimal_q(self, discount):
        return jnp.array([[1.0, -1.0], [-1.0, 1.0]])


@dataclass(frozen=True)
class TruncatedStream(Toy):
    """Reward 1 for ever, cut by an unseen clock: V = 1 / (1 - discount) if, and only if,
    truncation bootstraps. A learner that takes it for death says (1 - discount^k) / (1 - discount)
    for k between 1 and `length`.
    """

    length: int = 4

    def advance(self, state, action):
        return state.place, 1.0, False, state.time + 1 >= self.length

    def optimal_q(self, discount):
        return jnp.full((1, 2), 1 / (1 - discount))


@dataclass(frozen=True)
class TerminatedStream(Toy):
    """Reward 1 at each of `length` steps, then death; the step is seen.

    V = (1 - discount^(length - t)) / (1 - discount) at step t.
    """

    length: int = 4

    @property
    def num_places(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.length

    def advance(self, state, action):
        last = self.length - 1
        return jnp.minimum(state.place + 1, last), 1.0, state.place == last, False

    def optimal_q(self, discount):
        value = (1 - discount ** (self.length - jnp.arange(self.length))) / (1 - discount)
        return jnp.stack([value, value], axis=-1)


@dataclass(frozen=True)
class TruncatedClimb(Toy):
    """From a poor place (reward 0) to a rich one (reward 1 for ever), cut by an unseen clock.

    V = discount / (1 - discount), then 1 / (1 - discount). The reset leads back to the poor
    place, so a learner that bootstraps from the reset observation instead of the true successor
    undervalues both.
    """

    num_places: int = 2
    length: int = 3

    def advance(self, state, action):
        reward = jnp.where(state.place == 1, 1.0, 0.0)
        return jnp.ones((), jnp.int32), reward, False, state.time + 1 >= self.length

    def optimal_q(self, discount):
        value = jnp.array([discount, 1.0]) / (1 - discount)
        return jnp.stack([value, value], axis=-1)


@dataclass(frozen=True)
class TargetAction(Toy):
    """One step, a continuous action `[1]`, reward -(action - target)²; the target depends on the
    observation. A Normal policy with mean m and scale s has the value -(m - target)² - s².
    """

    num_places: int = 2
    num_actions: int = 0
    action_size: int = 1
    targets: tuple[float, float] = (-0.5, 0.25)

    def start(self, key):
        return jax.random.randint(key, (), 0, 2)

    def advance(self, state, action):
        target = jnp.array(self.targets)[state.place]
        return state.place, -jnp.square(action[0] - target), True, False

    def optimal_q(self, discount):
        raise NotImplementedError("the actions are continuous; see optimal_value")

    def optimal_value(self, discount):
        return jnp.zeros(self.num_places)

    def optimal_action(self) -> jax.Array:
        """The best action in each place, `[S, 1]`."""
        return jnp.array(self.targets)[:, None]


DISCRETE = (
    ConstantReward(),
    ObservationReward(),
    DelayedReward(),
    ActionReward(),
    ActionObservationReward(),
    TruncatedStream(),
    TerminatedStream(),
    TruncatedClimb(),
)
