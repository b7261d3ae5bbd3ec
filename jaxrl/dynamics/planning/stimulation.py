"""Stimulation policies: experiment design that chooses inputs to learn an unknown field quickly.

Without a model: no input, random inputs, or random inputs that are held (`hold`). With the model
learned so far: the input that leads to the largest predictive variance (`myopic`), or the plan
that is best for one or several objectives (`planned`, see `plan_objectives`).

Axes: d latent dimensions, m inputs, H steps of a plan, N candidates.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.planning import icem
from jaxrl.dynamics.planning.plan_objectives import plan_cost
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.planning.stimulation_config import Config, check_config
from jaxrl.numerics.batched_cond import cond_any
from jaxrl.types import PyTree

ModelOf = Callable[[PyTree], PredictiveModel]


class Constants(NamedTuple):
    """The known numbers of an experiment."""

    dt: jax.Array  # time of a step
    low: jax.Array  # [m] smallest inputs
    high: jax.Array  # [m] largest inputs
    numbers: PyTree  # parameters of the known functions
    reach: jax.Array | float = jnp.inf  # walls: no component of the state is ever larger


class Stimulus(NamedTuple):
    """The state of a policy."""

    held: jax.Array  # [m]
    steps_left: jax.Array  # int32; of the input held, or of the plan in use
    actions: jax.Array  # [H, m] the plan in use
    plan: icem.Plan


class Extras(NamedTuple):
    """What an agent with such a policy stores of each step, beside the transition."""

    belief: Belief  # of the state that was acted in
    invalid_plans: jax.Array  # int32; plans tried so far whose cost was not finite


class Policy(NamedTuple):
    """`init() -> Stimulus`; `act(knowledge, z [d], stimulus, key) -> (action [m], stimulus)`."""

    init: Callable[[], Stimulus]
    act: Callable[[PyTree, jax.Array, Stimulus, jax.Array], tuple[jax.Array, Stimulus]]


def make(config: Config, model_of: ModelOf, low: jax.Array, high: jax.Array) -> Policy:
    """A policy for inputs between `low` and `high` `[m]`.

    `model_of(knowledge)` must take every traced value from `knowledge`.

    Raises:
      ValueError: settings that do not fit together, before anything is compiled.
    """
    check_config(config)

    def init() -> Stimulus:
        zeros = jnp.zeros_like(low)
        plan = icem.first_plan(config.planner, low, high)
        return Stimulus(zeros, jnp.zeros((), jnp.int32), jnp.zeros_like(plan.mean), plan)

    def hold(knowledge: PyTree, z: jax.Array, stimulus: Stimulus, key: jax.Array):
        del knowledge, z
        is_due = stimulus.steps_left <= 0
        new_input = random_input(config, key, low, high)
        held_input = jnp.where(is_due, new_input, stimulus.held)
        steps_left = jnp.where(is_due, config.hold_steps, stimulus.steps_left) - 1
        return held_input, stimulus._replace(held=held_input, steps_left=steps_left)

    def myopic(knowledge: PyTree, z: jax.Array, stimulus: Stimulus, key: jax.Array):
        del key
        return myopic_input(config, model_of(knowledge), z, low, high), stimulus

    def follow_plan(knowledge: PyTree, z: jax.Array, stimulus: Stimulus, key: jax.Array):
        def search(operands):
            config, knowledge, z, plan, low, high, key = operands
            search_key, later_key = jax.random.split(key)
            cost = partial(plan_cost, config, model_of(knowledge), z)
            best, _, plan = icem.icem(cost, config.planner, plan, low, high, search_key)
            return best, icem.advance(plan, config.replan_steps - 1, low, high, later_key)

        is_due = stimulus.steps_left <= 0
        operands = (config, knowledge, z, stimulus.plan, low, high, key)
        actions, plan = cond_any(is_due, search, operands, (stimulus.actions, stimulus.plan))
        steps_left = jnp.where(is_due, config.replan_steps, stimulus.steps_left) - 1
        new_stimulus = Stimulus(stimulus.held, steps_left, jnp.roll(actions, -1, axis=0), plan)
        return actions[0], new_stimulus

    return Policy(init, {"hold": hold, "myopic": myopic, "planned": follow_plan}[config.kind])


def random_input(config: Config, key: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    """Uniform in the box, or in a random direction from its centre to its edge; `[m]`.

    A strength below 1 takes a share of that, and of none, the input of the box next to 0, the rest.
    """
    inside_key, edge_key = jax.random.split(key)
    centre = (low + high) / 2
    inside = jax.random.uniform(inside_key, low.shape, centre.dtype, minval=-1.0)
    direction = jax.random.normal(edge_key, low.shape, centre.dtype)
    at_edge = direction / jnp.max(jnp.abs(direction), initial=0.0)  # there may be no input
    drawn = centre + jnp.where(config.at_edge, at_edge, inside) * (high - low) / 2
    none = jnp.clip(jnp.zeros_like(centre), low, high)  # the centre of a box from 0 on is an input
    return config.strength * drawn + (1 - config.strength) * none


def myopic_input(
    config: Config, model: PredictiveModel, z: jax.Array, low: jax.Array, high: jax.Array
) -> jax.Array:
    """The candidate `[m]` that, held for `lookahead` steps, leads to the largest variance.

    The predictive variance of the field at the state reached, less the cost of the inputs.
    """
    centre, half = (low + high)[None] / 2, (high - low)[None] / 2
    candidates = centre + directions(len(low)).astype(centre.dtype) * half  # [N, m]

    def end(u: jax.Array) -> jax.Array:
        after = z
        for _ in range(config.lookahead):  # unrolled: a loop would cost more than its steps
            after = model.step(after, u)
        return after

    ends = jax.vmap(end)(candidates)  # [N, d]
    cost = config.action_cost * config.lookahead * jnp.sum(candidates**2, axis=1)
    return candidates[jnp.argmax(jax.vmap(model.predictive_variance)(ends) - cost)]


def directions(num_inputs: int) -> jax.Array:
    """Zero, and sixteen directions to the edge of the unit box and halfway: `[33, m]`.

    Of a single input, where there are only two directions, 17 even steps from -1 to 1: `[17, 1]`.
    Without inputs there is one candidate, of none: `[1, 0]`.
    """
    if num_inputs == 0:
        return jnp.zeros((1, 0))
    if num_inputs == 1:
        return jnp.linspace(-1.0, 1.0, 17)[:, None]
    if num_inputs == 2:
        angle = jnp.arange(16) * (2 * jnp.pi / 16)
        rays = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    else:
        rays = jax.random.normal(jax.random.key(0), (16, num_inputs))
    rays = rays / jnp.max(jnp.abs(rays), axis=1, keepdims=True)
    return jnp.concatenate([jnp.zeros((1, num_inputs)), rays, rays / 2])
