"""Stimulation policies: experiment design that chooses inputs to learn an unknown field quickly.

Without a model: no input, random inputs, or random inputs that are held (`hold`). With the model
learned so far: the input that leads to the largest predictive variance (`myopic`), or the plan
that is best for one or several objectives (`planned`): expected information of its observations
about the parameters, distance from a goal, novelty of its states.

Axes: d latent dimensions, m inputs, H steps of a plan, N candidates, p parameters.
"""

from collections.abc import Callable
from functools import partial, reduce
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, NonNegative
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.planning import distillation, fisher, icem
from jaxrl.numerics import linalg
from jaxrl.numerics.batched_cond import cond_any
from jaxrl.types import PyTree

Kind = Literal["hold", "myopic", "planned"]
OBJECTIVES = ("d_optimal", "a_optimal", "disagreement", "goal", "rnd")


@struct.dataclass
class Weights:
    """Of the objectives of a plan, whose units differ; each counts where the policy names it."""

    d_optimal: NonNegative = 1.0
    """Of D-optimality, in nats (times 2)."""
    a_optimal: NonNegative = 1.0
    """Of A-optimality."""
    disagreement: NonNegative = 1.0
    """Of the sum of the field's predictive variances along the path."""
    goal: NonNegative = 1.0
    """Of the sum of the distances from the goal along the path, which is a cost."""
    rnd: NonNegative = 1.0
    """Of the sum of the novelties along the path."""


@struct.dataclass
class Config:
    """How inputs are chosen."""

    kind: Kind = struct.field(pytree_node=False, default="planned")
    """Random inputs, the input of largest predictive variance, or the most informative plan."""
    hold_steps: Count = 1
    """hold: steps for which a random input is held."""
    at_edge: bool = False
    """hold: draw inputs on the edge of the box, in a random direction, not uniformly inside."""
    strength: NonNegative = 1.0
    """hold: share of the largest input; 0 for none."""
    lookahead: Count = struct.field(pytree_node=False, default=5)
    """myopic: steps ahead that are predicted, each candidate being held."""
    objective: str = struct.field(pytree_node=False, default="d_optimal")
    """planned: d_optimal (decrease of the log-determinant of the parameters' covariance), a_optimal
    (of its trace), disagreement (predictive variance of the field along the path), goal (nearness
    to a goal) or rnd (novelty, by random network distillation); several joined by +, weighted."""
    weights: Weights = Weights()
    """planned: how much each objective counts."""
    goal: tuple[float, ...] = (0.0,)
    """goal: where the state should be, or, for a sequence VAE, what should be observed; a number
    for each component, or one for all."""
    rnd: distillation.Config = distillation.Config()
    """rnd: the networks."""
    propagate: bool = struct.field(pytree_node=False, default=False)
    """planned: include the effect of the parameters on later states, observed with noise."""
    every: Count = struct.field(pytree_node=False, default=2)
    """planned: steps between two states whose information is counted, from that after so many steps
    on and not later than the plan's last; `propagate` counts all of them."""
    replan_steps: Count = 5
    """planned: steps taken of a plan before the next one is made."""
    action_cost: NonNegative = 0.0
    """myopic, planned: cost of the squared input, per step."""
    planner: icem.Config = icem.Config(initial_std=1.0, colour=2.5)
    """planned: the search."""

    @property
    def objectives(self) -> tuple[str, ...]:
        """Objectives of a plan; empty for other kinds."""
        return tuple(self.objective.split("+")) if self.kind == "planned" else ()


class PredictiveModel(NamedTuple):
    """What a policy needs of a model: predicted states, and how informative they would be."""

    step: Callable[[jax.Array, jax.Array], jax.Array]
    """`(z [d], u [m]) -> z [d]`, the expected next state."""
    design: Callable[[jax.Array], jax.Array]
    """`z [d] -> [p]` or `[d, p]`: derivative of the next state by the parameters; one row if each
    output has parameters of its own but the same regressors."""
    root: jax.Array
    """S `[p, p]`: S Sᵀ is the covariance of the parameters, in units of the next state's noise."""
    relative_noise: jax.Array
    """Variance with which a next state is observed, in the same units: 1 if exactly, since then
    only the noise of the step, their unit, hides where the field led."""
    observation_information: Callable[[jax.Array], jax.Array]
    """`z [d] -> [d, d]`: information of one observation, M = HᵀR⁻¹H, in those units."""
    predictive_variance: Callable[[jax.Array], jax.Array]
    """`z [d] ->` predictive variance of the field there, in any unit."""
    novelty: Callable[[jax.Array], jax.Array] | None = None
    """`z [d] ->` how new the state is; needed for the objective rnd."""
    place: Callable[[jax.Array], jax.Array] = lambda z: z
    """`z [d] -> [k]`: the coordinates in which a goal is given."""
    input_design: Callable[[jax.Array, jax.Array], jax.Array] | None = None
    """`(z [d], u [m]) ->` what an input adds to `design`, if its effect is uncertain, too."""
    remaining: Callable[[jax.Array], jax.Array] | None = None
    """`z [d] -> [d, d]`: I - K H, the share of a predicted state's error that its observation
    leaves; then `observation_information` is that of an innovation. None: all of it."""


def design_of(model: PredictiveModel, z: jax.Array, u: jax.Array) -> jax.Array:
    """Derivative of the next state after `z` `[d]` with the input `u` `[m]` by the parameters."""
    if model.input_design is None:
        return model.design(z)
    return model.design(z) + model.input_design(z, u)


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
    """Uniform in the box, or in a random direction to its edge; `[m]`."""
    inside_key, edge_key = jax.random.split(key)
    centre = (low + high) / 2
    inside = jax.random.uniform(inside_key, low.shape, centre.dtype, minval=-1.0)
    direction = jax.random.normal(edge_key, low.shape, centre.dtype)
    at_edge = direction / jnp.max(jnp.abs(direction))
    unit = config.strength * jnp.where(config.at_edge, at_edge, inside)
    return centre + unit * (high - low) / 2


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
    """Zero, and sixteen directions to the edge of the unit box and halfway: `[33, m]`."""
    if num_inputs == 1:
        return jnp.linspace(-1.0, 1.0, 17)[:, None]  # the half-way ones are among them
    if num_inputs == 2:
        angle = jnp.arange(16) * (2 * jnp.pi / 16)
        rays = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    else:
        rays = jax.random.normal(jax.random.key(0), (16, num_inputs))
    rays = rays / jnp.max(jnp.abs(rays), axis=1, keepdims=True)
    return jnp.concatenate([jnp.zeros((1, num_inputs)), rays, rays / 2])


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
        return -jnp.sum(distances(config, jax.vmap(model.place)(states[1:])))
    if name == "rnd":
        if model.novelty is None:
            raise ValueError("the objective rnd needs a model that knows how new a state is")
        return jnp.sum(jax.vmap(model.novelty)(states[1:]))
    return information(config, name, model, actions, states)


def distances(config: Config, places: jax.Array) -> jax.Array:
    """`[T]`: how far from the goal `places` `[T, k]` are."""
    goal = jnp.broadcast_to(jnp.stack([jnp.asarray(x) for x in config.goal]), places.shape[-1:])
    square = jnp.sum((places - goal[None]) ** 2, axis=-1)
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


def check_config(config: Config) -> None:
    """Raises ValueError for unknown names and out-of-range or inconsistent settings."""
    checks.config(config)
    icem.check_config(config.planner)
    horizon = config.planner.horizon
    if config.kind != "planned":
        return
    check_objectives(config.objectives)
    if isinstance(config.replan_steps, int) and config.replan_steps > horizon:
        raise ValueError(
            f"replan_steps is {config.replan_steps}, expected at most the planned "
            f"horizon={horizon}: plan further ahead or more often"
        )
    if config.every > horizon:
        raise ValueError(f"every is {config.every}, expected at most the planned horizon={horizon}")


def check_objectives(names: tuple[str, ...]) -> None:
    """Raises ValueError unless every name is known and given once."""
    if not {*names} <= {*OBJECTIVES} or len({*names}) < len(names):
        raise ValueError(
            f"objective is {'+'.join(names)}, expected some of {', '.join(OBJECTIVES)}, each once, "
            "joined by +"
        )


def check_goal(config: Config, components: int) -> None:
    """Raises ValueError for a goal of another number of components than `components` or 1."""
    if "goal" in config.objectives and len(config.goal) not in (1, components):
        raise ValueError(
            f"goal has {len(config.goal)} numbers, expected {components}, one for each component, "
            "or one for all"
        )
