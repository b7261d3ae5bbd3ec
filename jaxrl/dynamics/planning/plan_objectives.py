"""What plans are good for: information about the parameters, nearness to a goal, novelty.

Axes: d latent dimensions, m inputs, H steps of a plan, N candidates, p parameters.
"""

from collections.abc import Callable
from functools import partial, reduce

import jax
import jax.numpy as jnp

from jaxrl.dynamics.planning import fisher
from jaxrl.dynamics.planning.predictive_model import PredictiveModel, design_of
from jaxrl.dynamics.planning.stimulation_config import Config
from jaxrl.numerics import linalg


def plan_cost(config: Config, model: PredictiveModel, z: jax.Array, plans: jax.Array) -> jax.Array:
    """Cost `[N]` of plans `[N, H, m]` from state `z [d]`: action cost minus what is gained."""
    gain = jax.vmap(partial(plan_gain, config, model), in_axes=(0, None))(plans, z)
    return config.action_cost * jnp.sum(plans**2, axis=(1, 2)) - gain


def path(model: PredictiveModel, z: jax.Array, actions: jax.Array) -> jax.Array:
    """The expected states `[H + 1, d]` from `z` with the actions `[H, m]`, `z` first."""

    def step(z: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
        after = model.step(z, u)
        return after, after

    # on accelerators a round of a loop takes longer than its arithmetic
    roll_out = lambda unroll: lambda z, actions: jax.lax.scan(step, z, actions, unroll=unroll)[1]
    later_states = jax.lax.platform_dependent(z, actions, cpu=roll_out(1), default=roll_out(True))
    return jnp.concatenate([z[None], later_states])


def plan_gain(
    config: Config, model: PredictiveModel, actions: jax.Array, z: jax.Array
) -> jax.Array:
    """Weighted sum of the objectives of the plan `actions` `[H, m]` from `z` `[d]`; a scalar."""
    states = path(model, z, actions)
    parts = [
        getattr(config.weights, name) * objective(config, name, model, actions, states)
        for name in config.objectives
    ]
    return reduce(jnp.add, parts)


def objective(
    config: Config, name: str, model: PredictiveModel, actions: jax.Array, states: jax.Array
) -> jax.Array:
    """One objective of the path `states` `[H + 1, d]`, to be maximised; a scalar.

    Raises ValueError for rnd with a model that does not know how new a state is.
    """
    if name == "disagreement":
        return jnp.sum(jax.vmap(model.predictive_variance)(states[1:]))
    if name == "goal":
        return -jnp.sum(distances(config, jax.vmap(model.place)(states[1:]), model.wrap))
    if name == "rnd":
        if model.novelty is None:
            raise ValueError("the objective rnd needs a model that knows how new a state is")
        return jnp.sum(jax.vmap(model.novelty)(states[1:]))
    return information(config, name, model, actions, states)


def distances(
    config: Config,
    places: jax.Array,
    wrap: Callable[[jax.Array], jax.Array] = lambda difference: difference,
) -> jax.Array:
    """`[T]`: how far from the goal `places` `[T, k]` are; `wrap` as of a `PredictiveModel`."""
    goal = jnp.broadcast_to(jnp.stack([jnp.asarray(x) for x in config.goal]), places.shape[-1:])
    square = jnp.sum(wrap(places - goal[None]) ** 2, axis=-1)
    return jnp.sqrt(square)


def information(
    config: Config, name: str, model: PredictiveModel, actions: jax.Array, states: jax.Array
) -> jax.Array:
    """Expected information of a plan, by D- or A-optimality, as `name` says; at least 0."""
    if config.propagate:
        return information_of_later_states(name, model, actions, states)
    counted = slice(config.every, None, config.every)  # the first state is the same for all plans
    inputs = jnp.concatenate([actions, jnp.zeros_like(actions[:1])])  # none after the plan
    design = jax.vmap(partial(design_of, model))(states[counted], inputs[counted])
    gram = fisher.kernel(design, model.root)
    outputs = states.shape[1] if design.ndim == 2 else 1
    if name == "d_optimal":
        return fisher.d_gain(gram, 1 / model.relative_noise, outputs)
    squared = fisher.squared_kernel(design, model.root)
    return fisher.a_gain(gram, squared, 1 / model.relative_noise, outputs)


def information_of_later_states(
    name: str, model: PredictiveModel, actions: jax.Array, states: jax.Array
) -> jax.Array:
    """Expected information of noisy observations of `states` `[H + 1, d]`, by their sensitivity."""
    before, after = states[:-1], states[1:]
    design = jax.vmap(partial(design_of, model))(before, actions)
    transitions = jax.vmap(jax.jacfwd(model.step))(before, actions)  # [H, d, d]
    if model.remaining is not None:  # an error that was seen is corrected before it moves on
        transitions = linalg.matmul(transitions, jax.vmap(model.remaining)(before))
    propagation = fisher.propagation_matrix(transitions, 1.0)  # the design holds the time step
    observation_information = jax.vmap(model.observation_information)(after)
    gram = fisher.observation_kernel(
        fisher.kernel(design, model.root), propagation, observation_information
    )
    if name == "d_optimal":
        return fisher.d_gain(gram)
    squared = fisher.squared_kernel(design, model.root)
    return fisher.a_gain(
        gram, fisher.observation_kernel(squared, propagation, observation_information)
    )
