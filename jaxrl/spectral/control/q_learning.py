"""Tabular Q-learning (Watkins & Dayan 1992), with shaped rewards and exploration by options.

An observation is the int32 index of a state. Axes: S states, A actions, O options.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks
from jaxrl.checks import Positive, Share
from jaxrl.spectral.control.options import Options, no_options
from jaxrl.types import Agent, Metrics, Transition


@struct.dataclass
class Config:
    """Numbers are leaves, so `vmap` over configs is a sweep."""

    learning_rate: Positive = 0.1
    """α, the step size towards the target."""
    discount: Share = 0.99
    """γ, the discount per step."""
    epsilon: Share = 0.05
    """Probability of exploring at a step that is not inside an option."""
    option_share: Share = 1.0
    """Share of explorations that start an option, where one can start; the others take one random
    action. Unused without options."""
    initial_value: float = 0.0
    """Initial Q; optimistic where it is above the true values."""
    shaping_weight: float = 0.1
    """Reward per unit of potential."""


class State(NamedTuple):
    """Potential and options are constant, but part of the state so that `vmap` can map them."""

    q: jax.Array  # [S, A] float32
    potential: jax.Array  # [S] float32; higher is closer to the goal
    options: Options  # O policies, possibly none


NO_OPTION = -1  # the memory of an agent that follows no option


def make(
    config: Config,
    num_states: int,
    num_actions: int,
    potential: jax.Array | None = None,
    options: Options | None = None,
    greedy: bool = False,
) -> Agent:
    """A learner with one table of values for all N environments.

    Args:
      config: its numbers may be traced.
      num_states: S, at least 1.
      num_actions: A, at least 1.
      potential: Φ `[S]` of the shaping, which adds `shaping_weight * shaping(Φ, …)` to rewards.
      options: policies that exploration follows until they or the episode end. Values are of
        actions only and are updated at every step, also inside options.
      greedy: whether `act` always takes the best action and ignores options.

    Raises ValueError for a number out of range, a size below 1 or a wrong shape; in `init`, for an
    observation that is no index.
    """
    checks.config_of(Config, config)
    check_arguments(num_states, num_actions, potential, options)

    def init(key: jax.Array, obs: jax.Array) -> State:
        del key  # nothing is drawn: ties are broken while acting
        if jnp.shape(obs) != () or not jnp.issubdtype(jnp.result_type(obs), jnp.integer):
            raise ValueError(
                f"q_learning got an observation of shape {jnp.shape(obs)} and type "
                f"{jnp.result_type(obs)}, expected the index of a state: use observation='index'"
            )
        q = jnp.full((num_states, num_actions), config.initial_value, jnp.float32)
        potential_array = (
            jnp.zeros(num_states) if potential is None else jnp.asarray(potential, jnp.float32)
        )
        return State(q, potential_array, no_options(num_states) if options is None else options)

    def update(state: State, rollout: Transition, key: jax.Array) -> tuple[State, Metrics]:
        del key  # nothing to draw
        q, error = learn(state.q, state.potential, rollout, config)
        return state._replace(q=q), {"td_error": error}

    def act(state: State, option: jax.Array, obs: jax.Array, key: jax.Array):
        return choose(config, greedy, state, option, obs, key)

    def explain(state: State, option: jax.Array, obs: jax.Array):
        del option
        q = state.q[obs]
        return {"q": q, "value": jnp.max(q)}

    return Agent(init, lambda: jnp.full((), NO_OPTION, jnp.int32), act, update, explain)


def choose(
    config: Config, greedy: bool, state: State, option: jax.Array, obs: jax.Array, key: jax.Array
) -> tuple[jax.Array, jax.Array, tuple]:
    """`(action, option, ())` by ε-greedy exploration with options; ties are broken at random."""
    explores, starts, which_option, which_action = jax.random.uniform(key, (4,))
    q = state.q[obs]  # [A]
    is_random = False if greedy else explores < config.epsilon
    action = sample_allowed((q == jnp.max(q)) | is_random, which_action)
    if greedy or len(state.options.policy) == 0:
        return action, option, ()
    wants_option = is_random & (starts < config.option_share)
    option = next_option(state.options, option, obs, wants_option, which_option)
    option_action = state.options.policy[option, obs].astype(jnp.int32)
    return jnp.where(option == NO_OPTION, action, option_action), option, ()


def learn(
    q: jax.Array, potential: jax.Array, rollout: Transition, config: Config
) -> tuple[jax.Array, jax.Array]:
    """Q after `rollout [T, N]`, `[S, A]`, and the mean |error| of its steps.

    Steps are applied in sequence, the N environments of a step at once; errors of the same action
    in the same state are averaged, so that a stable step size stays stable for any N. N = 1 is the
    textbook rule.
    """

    def step(q: jax.Array, transition: Transition) -> tuple[jax.Array, jax.Array]:
        error = td_error(q, potential, transition, config)  # [N]
        entry = (transition.obs, transition.action)
        count = jnp.zeros_like(q).at[entry].add(1.0)[entry]  # [N]
        return q.at[entry].add(config.learning_rate * error / count), jnp.mean(jnp.abs(error))

    q, errors = jax.lax.scan(step, q, rollout)
    return q, jnp.mean(errors)


def td_error(
    q: jax.Array, potential: jax.Array, transition: Transition, config: Config
) -> jax.Array:
    """r + w F + γ maxₐ Q(s', a) - Q(s, a), `[N]`; no bootstrap where the episode terminated."""
    shaping_reward = shaping(
        potential, transition.obs, transition.next_obs, transition.terminated, config.discount
    )
    future = jnp.where(transition.terminated, 0.0, jnp.max(q[transition.next_obs], axis=-1))
    target = transition.reward + config.shaping_weight * shaping_reward + config.discount * future
    return target - q[transition.obs, transition.action]


def shaping(
    potential: jax.Array,
    obs: jax.Array,
    next_obs: jax.Array,
    terminated: jax.Array,
    discount: float | jax.Array,
) -> jax.Array:
    """F = γ Φ(s') - Φ(s), with Φ = 0 after the end (Ng, Harada & Russell 1999): `[...]`.

    Its discounted sum over a terminated episode is -Φ of the first state for any policy, so optimal
    policies stay optimal. A truncated episode keeps Φ(s') of its last state.

    Learning with it equals learning without it from Q = w Φ instead of 0 (Wiewiora 2003). So a
    negative Φ makes untried actions look worse than standing still: compensate with an
    `initial_value` of w |min Φ|, or with a negative reward per step.
    """
    next_potential = jnp.where(terminated, 0.0, potential[next_obs])
    return discount * next_potential - potential[obs]


def next_option(
    options: Options, option: jax.Array, obs: jax.Array, wants_option: jax.Array, which: jax.Array
) -> jax.Array:
    """The option to follow in `obs`: the present one until it ends, then possibly a new one.

    If `wants_option` (bool), a uniformly random one of the options that can run here; `NO_OPTION`
    if not or if there is none. `which` is uniform in [0, 1).
    """
    can_run = ~options.terminates[:, obs]  # [O]
    continues = (option != NO_OPTION) & can_run[option]
    new_option = jnp.where(
        wants_option & jnp.any(can_run), sample_allowed(can_run, which), NO_OPTION
    )
    return jnp.where(continues, option, new_option)


def sample_allowed(allowed: jax.Array, which: jax.Array) -> jax.Array:
    """One of the indices where `allowed [A]` is true, int32, each equally likely.

    `which` is uniform in [0, 1). 0 if none is allowed.
    """
    order = jnp.cumsum(allowed)  # 1 for the first that is allowed, 2 for the second
    return jnp.argmax(order > jnp.floor(which * order[-1])).astype(jnp.int32)


def check_arguments(
    num_states: int, num_actions: int, potential: jax.Array | None, options: Options | None
) -> None:
    """Raises ValueError for sizes below 1, and for tables whose size is not S."""
    for name, size in (("num_states", num_states), ("num_actions", num_actions)):
        if size < 1:
            raise ValueError(f"q_learning {name} is {size}, expected at least 1: raise it")
    if potential is not None and jnp.shape(potential) != (num_states,):
        raise ValueError(
            f"potential has shape {jnp.shape(potential)}, expected {(num_states,)}: one number per "
            "state"
        )
    if options is not None:
        shapes = [table.shape for table in options]
        if shapes[0] != shapes[1] or shapes[0][1:] != (num_states,):
            raise ValueError(
                f"options have shapes {shapes[0]} and {shapes[1]}, expected [O, {num_states}] "
                "twice: an action and an end per option and state"
            )
