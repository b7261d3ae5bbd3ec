"""Policies that stimulate: which input to give next, so that an unknown field is learned soon.

Without knowledge: nothing, random inputs, or random ones that are held. With knowledge of what has
been learned so far: the input after which the field is least known (`myopic`), or a plan along
which the observations would tell most about the parameters (`planned`).

Axes: d latent dimensions, m inputs, H steps of a plan, N candidates, p parameters.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks, fisher, planning
from jaxrl.due import when
from jaxrl.kalman import Belief
from jaxrl.types import PyTree

Kind = Literal["hold", "myopic", "planned"]
Objective = Literal["d_optimal", "a_optimal", "disagreement"]


@struct.dataclass
class Config:
    """How inputs are chosen."""

    kind: Kind = struct.field(pytree_node=False, default="planned")
    """Random inputs, the one after which least is known, or a plan that tells most."""
    hold_steps: int = 1
    """hold: steps for which a random input stays."""
    at_edge: bool = False
    """hold: in a random direction to the edge of the box, not uniform inside."""
    strength: float = 1.0
    """hold: share of the largest input; 0 for none."""
    lookahead: int = struct.field(pytree_node=False, default=5)
    """myopic: steps for which each candidate is imagined to be held."""
    objective: Objective = struct.field(pytree_node=False, default="d_optimal")
    """planned: fall of the parameters' log-determinant, of their variances' sum, or the variance
    of the field along the way."""
    propagate: bool = struct.field(pytree_node=False, default=False)
    """planned: count how parameters move the later states, which noisy observations then tell."""
    every: int = struct.field(pytree_node=False, default=2)
    """planned: steps between two states at which the information is counted."""
    replan_steps: int = 5
    """planned: steps taken of a plan before the next one is made."""
    action_cost: float = 0.0
    """myopic, planned: price of the squared input, per step."""
    planner: planning.Config = planning.Config(initial_std=1.0, colour=2.5)
    """planned: the search."""


class Outlook(NamedTuple):
    """What a policy may ask: how the state would move, and what that would tell."""

    step: Callable[[jax.Array, jax.Array], jax.Array]
    """`(z [d], u [m]) -> z [d]`, the expected next state."""
    design: Callable[[jax.Array], jax.Array]
    """`z [d] -> [p]` or `[d, p]`: derivative of the next state by the parameters; one row if each
    output has parameters of its own but the same regressors."""
    root: jax.Array
    """S `[p, p]`: S Sᵀ is the covariance of the parameters, in units of the next state's noise."""
    blur: jax.Array
    """Variance with which a next state becomes known, in the same units: 1 if it is observed."""
    told: Callable[[jax.Array], jax.Array]
    """`z [d] -> [d, d]`: what one observation tells of the state, M = HᵀR⁻¹H, in those units."""
    spread: Callable[[jax.Array], jax.Array]
    """`z [d] ->` variance of the field there, in any unit."""


See = Callable[[PyTree], Outlook]


class Known(NamedTuple):
    """What an experimenter knows of an experiment in numbers."""

    dt: jax.Array  # time of a step
    low: jax.Array  # [m] smallest inputs
    high: jax.Array  # [m] largest inputs
    numbers: PyTree  # of the functions that are known
    reach: jax.Array | float = jnp.inf  # walls: no component of the state is ever larger


class Stimulus(NamedTuple):
    """What a policy remembers."""

    held: jax.Array  # [m]
    steps_left: jax.Array  # int32; of the input held, or of the plan in use
    actions: jax.Array  # [H, m] the plan in use
    plan: planning.Plan


class Extras(NamedTuple):
    """What a learner that stimulates keeps of each step, beside the transition."""

    belief: Belief  # of the state that was acted in
    invalid_plans: jax.Array  # int32; plans tried so far whose cost was not finite


class Policy(NamedTuple):
    """`init() -> Stimulus`; `act(knowledge, z [d], stimulus, key) -> (action [m], stimulus)`."""

    init: Callable[[], Stimulus]
    act: Callable[[PyTree, jax.Array, Stimulus, jax.Array], tuple[jax.Array, Stimulus]]


def make(config: Config, see: See, low: jax.Array, high: jax.Array) -> Policy:
    """A policy for inputs between `low` and `high` `[m]`.

    `see(knowledge)` must take all that is traced from `knowledge`.

    Raises:
      ValueError: sizes that do not fit together, before anything is compiled.
    """
    check(config)

    def init() -> Stimulus:
        nothing = jnp.zeros_like(low)
        plan = planning.first_plan(config.planner, low, high)
        return Stimulus(nothing, jnp.zeros((), jnp.int32), jnp.zeros_like(plan.mean), plan)

    def hold(knowledge: PyTree, z: jax.Array, stimulus: Stimulus, key: jax.Array):
        del knowledge, z
        due = stimulus.steps_left <= 0
        fresh = random_input(config, key, low, high)
        held = jnp.where(due, fresh, stimulus.held)
        left = jnp.where(due, config.hold_steps, stimulus.steps_left) - 1
        return held, stimulus._replace(held=held, steps_left=left)

    def myopic(knowledge: PyTree, z: jax.Array, stimulus: Stimulus, key: jax.Array):
        del key
        return least_known(config, see(knowledge), z, low, high), stimulus

    def planned(knowledge: PyTree, z: jax.Array, stimulus: Stimulus, key: jax.Array):
        def search(operands):
            config, knowledge, z, plan, low, high, key = operands
            search_key, later_key = jax.random.split(key)
            cost = partial(plan_cost, config, see(knowledge), z)
            best, _, plan = planning.icem(cost, config.planner, plan, low, high, search_key)
            return best, planning.advanced(plan, config.replan_steps - 1, low, high, later_key)

        due = stimulus.steps_left <= 0
        operands = (config, knowledge, z, stimulus.plan, low, high, key)
        actions, plan = when(due, search, operands, (stimulus.actions, stimulus.plan))
        left = jnp.where(due, config.replan_steps, stimulus.steps_left) - 1
        after = Stimulus(stimulus.held, left, jnp.roll(actions, -1, axis=0), plan)
        return actions[0], after

    return Policy(init, {"hold": hold, "myopic": myopic, "planned": planned}[config.kind])


def random_input(config: Config, key: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    """Uniform in the box, or in a random direction to its edge; `[m]`."""
    inside_key, edge_key = jax.random.split(key)
    inside = jax.random.uniform(inside_key, low.shape, minval=-1.0)
    direction = jax.random.normal(edge_key, low.shape)
    at_edge = direction / jnp.max(jnp.abs(direction))
    unit = config.strength * jnp.where(config.at_edge, at_edge, inside)
    return (low + high) / 2 + unit * (high - low) / 2


def least_known(
    config: Config, outlook: Outlook, z: jax.Array, low: jax.Array, high: jax.Array
) -> jax.Array:
    """The candidate `[m]` that, held for `lookahead` steps, leads where least is known."""
    centre, half = (low + high)[None] / 2, (high - low)[None] / 2
    candidates = centre + directions(len(low)) * half  # [N, m]

    def end(u: jax.Array) -> jax.Array:
        after = z
        for _ in range(config.lookahead):  # a loop of so few small steps costs more than they do
            after = outlook.step(after, u)
        return after

    ends = jax.vmap(end)(candidates)  # [N, d]
    price = config.action_cost * config.lookahead * jnp.sum(candidates**2, axis=1)
    return candidates[jnp.argmax(jax.vmap(outlook.spread)(ends) - price)]


def directions(num_inputs: int) -> jax.Array:
    """Nothing, and sixteen directions to the edge of the unit box and half as far: `[33, m]`."""
    if num_inputs == 1:
        return jnp.linspace(-1.0, 1.0, 17)[:, None]  # the half-way ones are among them
    if num_inputs == 2:
        angle = jnp.arange(16) * (2 * jnp.pi / 16)
        rays = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    else:
        rays = jax.random.normal(jax.random.key(0), (16, num_inputs))
    rays = rays / jnp.max(jnp.abs(rays), axis=1, keepdims=True)
    return jnp.concatenate([jnp.zeros((1, num_inputs)), rays, rays / 2])


def plan_cost(config: Config, outlook: Outlook, z: jax.Array, plans: jax.Array) -> jax.Array:
    """Cost `[N]` of plans `[N, H, m]` from state `z [d]`: minus what they tell, and their price."""
    tells = jax.vmap(partial(information, config, outlook), in_axes=(0, None))(plans, z)
    return config.action_cost * jnp.sum(plans**2, axis=(1, 2)) - tells


def path(outlook: Outlook, z: jax.Array, actions: jax.Array) -> jax.Array:
    """The states `[H + 1, d]` that are expected, from `z`, with the actions `[H, m]`."""

    def step(z: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
        after = outlook.step(z, u)
        return after, after

    _, later = jax.lax.scan(step, z, actions)
    return jnp.concatenate([z[None], later])


def information(config: Config, outlook: Outlook, actions: jax.Array, z: jax.Array) -> jax.Array:
    """What the plan `actions` `[H, m]` from `z` `[d]` would tell; a scalar, never negative."""
    states = path(outlook, z, actions)
    if config.objective == "disagreement":
        return jnp.sum(jax.vmap(outlook.spread)(states[1:]))
    if config.propagate:
        return information_of_later_states(config, outlook, actions, states)
    counted = states[config.every :: config.every]  # the first state is the same for all plans
    design = jax.vmap(outlook.design)(counted)
    gram = fisher.kernel(design, outlook.root)
    outputs = len(z) if design.ndim == 2 else 1
    if config.objective == "d_optimal":
        return fisher.d_gain(gram, 1 / outlook.blur, outputs)
    squared = fisher.squared_kernel(design, outlook.root)
    return fisher.a_gain(gram, squared, 1 / outlook.blur, outputs)


def information_of_later_states(
    config: Config, outlook: Outlook, actions: jax.Array, states: jax.Array
) -> jax.Array:
    """The same, told by noisy observations of `states` `[H + 1, d]`, which parameters also move."""
    before, after = states[:-1], states[1:]
    design = jax.vmap(outlook.design)(before)
    transitions = jax.vmap(jax.jacfwd(outlook.step))(before, actions)  # [H, d, d]
    moved = fisher.propagated(transitions, 1.0)  # the design holds the time step
    told = jax.vmap(outlook.told)(after)
    seen = fisher.seen(fisher.kernel(design, outlook.root), moved, told)
    if config.objective == "d_optimal":
        return fisher.d_gain(seen)
    squared = fisher.squared_kernel(design, outlook.root)
    return fisher.a_gain(seen, fisher.seen(squared, moved, told))


def check(config: Config) -> None:
    """Raises ValueError for what does not fit together."""
    for name, known in (("kind", Kind), ("objective", Objective)):
        if getattr(config, name) not in get_args(known):
            raise ValueError(
                f"policy {name} {getattr(config, name)!r} is unknown: use one of "
                f"{', '.join(get_args(known))}"
            )
    planning.check(config.planner)
    horizon = config.planner.horizon
    steps = ("hold_steps", "lookahead", "every", "replan_steps")
    checks.fields("policy ", config, *steps, least=1)
    checks.fields("policy ", config, "strength", "action_cost", least=0.0)
    if config.kind != "planned":
        return
    if isinstance(config.replan_steps, int) and config.replan_steps > horizon:
        raise ValueError(
            f"policy replan_steps is {config.replan_steps}, expected at most the planned "
            f"horizon={horizon}: plan further ahead or more often"
        )
    if config.every > horizon:
        raise ValueError(
            f"policy every is {config.every}, expected at most the planned horizon={horizon}"
        )
