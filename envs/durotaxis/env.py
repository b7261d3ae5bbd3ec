"""Durotaxis as an environment: a colony that moves up a stiffness gradient by growth and death."""

from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import jraph
import numpy as np
from gymnax.environments import spaces

from envs.arguments import check_name, is_traced
from envs.base import Environment, select
from envs.durotaxis import actions, marking, parents, rules, substrate
from envs.durotaxis.graph import observation, pairwise
from envs.durotaxis.graph.features import Features
from envs.durotaxis.rewards import registry
from envs.durotaxis.rewards.facts import Ending, Step, ending_of, farthest, is_terminated
from envs.durotaxis.rules import Growth
from envs.durotaxis.state import Params, State
from envs.durotaxis.substrate import Law, Number

Ground = Literal["linear", "exponential", "random"]
GROUNDS: tuple[str, ...] = get_args(Ground)
OBSERVATIONS = ("full", "local")
RECOVERY = 1  # folded into the key of a step where a colony begins again
GOAL_SLACK = 0.5  # px before the margin that children are clipped to, so rounding cannot matter
LEAST_WIDTH = 20  # px; below it the goal lies within a few steps of any founder


class Durotaxis(Environment):
    """A colony of up to `capacity` nodes (C) whose goal is the right edge of its ground.

    At every step some nodes are deleted and each of the others has one child, at a distance that
    grows with the stiffness under its parent: `directed`, all in one direction, or `isotropic`, in
    random directions. Nodes never move.

    * Action: see `envs.durotaxis.actions` for its three forms.
    * Observation: a padded `jraph.GraphsTuple`, see `envs.durotaxis.graph.observation`; `local`
      leaves out the features that need all pairs of nodes (hull and centrality), which are then 0.
    * Reward: the sum of the components of `reward_set`, see `envs.durotaxis.rewards.registry`;
      they are in `info["components"]`, float32 `[K]`, in the order of `component_names`.
    * End: too many nodes (`crowded`), none left (`empty`), the centroid moving left for too long
      (`retreated`), or a node at the right edge (`arrived`), which is success; where several hold,
      the first of these. `info["outcome"]` says which one, and how far the colony came.
    * Deletion: `forest` or `tree`, see `envs.durotaxis.parents`.
    * Recovery: with `recovery_nodes` above 0 an empty colony begins again with so many nodes around
      the old centroid, at most `Params.max_recoveries` times an episode.
    * Ground: `linear` (m = 0.05 per px, b = 1), `exponential` (likewise), `random`, drawn for
      every episode; or any `Params.law` or measured `Params.field`.

    Raises ValueError for unknown names; `check` checks the numbers in `Params`.
    """

    version = "0.2.1"  # 0.2.1: rounding does not decide which child is a success

    def __init__(
        self,
        capacity: int = 128,
        num_founders: int = 5,
        ground: str = "linear",
        spawning: str = "directed",
        action: str = "global",
        reward_set: str = "distance",
        observation: str = "full",
        deletion: str = "forest",
        recovery_nodes: int = 0,
    ):
        super().__init__()
        check_name("ground", ground, GROUNDS)
        check_name("spawning", spawning, actions.SPAWNINGS)
        check_name("action", action, actions.FORMS)
        check_name("reward_set", reward_set, registry.SETS)
        check_name("observation", observation, OBSERVATIONS)
        check_name("deletion", deletion, parents.DELETIONS)
        if not 1 <= num_founders <= capacity:
            raise ValueError(
                f"num_founders is {num_founders}; expected 1 to {capacity}, the capacity"
            )
        if not 0 <= recovery_nodes <= capacity:
            raise ValueError(
                f"recovery_nodes is {recovery_nodes}; expected 0 to {capacity}, the capacity"
            )
        self.capacity = capacity
        self.num_founders = num_founders
        self.ground = ground
        self.spawning = spawning
        self.action = action
        self.reward_set = reward_set
        self.observation = observation
        self.deletion = deletion
        self.recovery_nodes = recovery_nodes

    def identity(self) -> dict[str, Any]:
        """All but the default parameters; linear and exponential ground differ in numbers only."""
        shapes = {k: v for k, v in vars(self).items() if k != "default_params"}
        return shapes | {"ground": self.ground == "random"}

    @cached_property
    def default_params(self) -> Params:  # pyright: ignore[reportIncompatibleVariableOverride]
        law = Law(exponential=np.bool_(self.ground == "exponential"), slope=0.05, base=1.0)
        return Params(
            law=law,
            weights=registry.weights_of(self.reward_set),
            spawn=actions.FIXED[self.spawning],
        )

    def check(self, params: Params) -> None:
        """Raises ValueError for out-of-range or inconsistent numbers; host code.

        Traced numbers cannot be checked and pass.
        """
        if not is_traced(params.width) and params.width < LEAST_WIDTH:
            raise ValueError(f"width is {params.width:g}; expected at least {LEAST_WIDTH} px")
        if not is_traced((params.law, params.width, params.height)):
            substrate.check(params.law, params.width, params.height, params.field)
        registry.check(self.reward_set, params.weights)
        threshold = params.threshold_nodes
        if not (is_traced(threshold) or self.num_founders <= threshold <= self.capacity):
            raise ValueError(
                f"threshold_nodes is {params.threshold_nodes:g}; expected {self.num_founders}, the "
                f"founders, to {self.capacity}, the capacity: raise the capacity with it"
            )
        for name in actions.names(self.action, self.spawning):
            low, high = getattr(params.bounds, name)
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise ValueError(f"bounds of {name} are {low} and {high}; expected low below high")

    def chances(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Only isotropic spawning makes a step random."""
        return (key, key) if self.spawning == "directed" else tuple(jax.random.split(key))

    def start(self, chance: jax.Array, params: Params) -> State:
        place_key, law = chance, jax.tree.map(jnp.asarray, params.law)
        if self.ground == "random":
            place_key, law_key = jax.random.split(chance)
            law = substrate.random_law(law_key, params.ranges)
        size = params.width, params.height
        zero = jnp.zeros((), jnp.int32)
        return State(
            colony=rules.founders(place_key, self.capacity, self.num_founders, *size),
            law=jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype != bool else x, law),
            time=zero,
            left_moves=zero,
            milestones=jnp.zeros(4, bool),
            marks=marking.no_marks(self.capacity) if self.reward_set == "state_machine" else (),
            earned=jnp.zeros(len(self.component_names)),
            recoveries=zero if self.recovery_nodes else (),
        )

    def transition(
        self, chance: jax.Array, state: State, action: Any, params: Params
    ) -> tuple[State, jax.Array, jax.Array, dict[str, Any]]:
        growth = self.growth(chance, state, action, params)
        colony = state.colony
        before = marking.mean(rules.alive(colony), colony.x)
        moves_left = marking.mean(growth.survives, colony.x, growth.child_x) < before
        left_moves = jnp.where(moves_left & (growth.num_nodes > 0), state.left_moves + 1, 0)
        recovers = self.recovers(state, growth, params)
        ending = ending_of(
            crowded=growth.num_nodes > params.threshold_nodes,
            empty=(growth.num_nodes == 0) & ~recovers,
            retreated=left_moves >= params.left_moves_limit,
            arrived=farthest(growth) >= goal(params.width),
        )
        step = self.step_of(state, growth, ending, params)
        if self.recovery_nodes:
            step = step._replace(recovered=recovers, recovery_price=params.recovery_price)
        components = params.weights.components(step)
        after = State(
            colony=rules.next_colony(growth, state.time + 1),
            law=state.law,
            time=state.time + 1,
            left_moves=left_moves,
            milestones=state.milestones | registry.milestones_reached(growth, params.width),
            marks=marking.inherit(step.marks, growth) if step.marks else (),
            earned=state.earned + components,
        )
        if self.recovery_nodes:
            after = self.recover(chance, state, after, recovers, params)
        info = {"outcome": self.outcome(after, growth, ending, params), "components": components}
        return after, jnp.sum(components), is_terminated(ending), info

    def growth(self, chance: jax.Array, state: State, action: Any, params: Params) -> Growth:
        """The effect of an action on the colony, before its slots are compacted."""
        colony, size = state.colony, (params.width, params.height)
        decision = actions.read(
            self.action, self.spawning, action, colony, params.bounds, params.spawn
        )
        spawn = decision.spawn
        intensity = substrate.intensity(state.law, params.field, colony.x, colony.y, *size)
        if self.spawning == "directed":
            child = rules.directed_children(
                colony, intensity, spawn.gamma, spawn.alpha, spawn.noise, spawn.theta, *size
            )
        else:
            # one row for each of the three, or the compiler computes them one by one
            normals = jax.random.normal(chance, (3, self.capacity)).T
            child = rules.isotropic_children(
                normals, colony, intensity, spawn.gamma, spawn.alpha, spawn.noise, *size
            )
        return rules.grow(colony, decision.deleted, *child, self.deletion)

    def recovers(self, state: State, growth: Growth, params: Params) -> jax.Array:
        """Whether the colony is empty after a step and may begin again, a bool scalar."""
        if isinstance(state.recoveries, tuple):
            return jnp.zeros((), bool)
        return (growth.num_nodes == 0) & (state.recoveries < params.max_recoveries)

    def recover(
        self, chance: jax.Array, before: State, after: State, recovers: jax.Array, params: Params
    ) -> State:
        """The state after a step, with a new colony if it `recovers`."""
        key = jax.random.fold_in(chance, RECOVERY)
        size = params.width, params.height
        new_colony = rules.recover_colony(
            key, before.colony, self.recovery_nodes, after.time, *size
        )
        return replace(
            after,
            colony=select(recovers, new_colony, after.colony),
            recoveries=jnp.asarray(before.recoveries, jnp.int32) + recovers,
        )

    def step_of(self, state: State, growth: Growth, ending: Ending, params: Params) -> Step:
        """The facts that rewards are computed from."""
        marks = state.marks
        if isinstance(marks, marking.Marks):
            x, y = state.colony.x, state.colony.y
            intensity = substrate.intensity(
                state.law, params.field, x, y, params.width, params.height
            )
            marks = marking.update_marks(
                marks, state.colony, intensity, state.time, params.critical_nodes
            )
        return Step(
            growth=growth,
            law=state.law,
            field=params.field,
            width=params.width,
            height=params.height,
            time=state.time,
            critical_nodes=params.critical_nodes,
            delay=params.delay,
            delta_intensity=params.delta_intensity,
            max_steps=params.max_steps_in_episode,
            milestones=state.milestones,
            ending=ending,
            marks=marks,
        )

    def outcome(
        self, after: State, growth: Growth, ending: Ending, params: Params
    ) -> dict[str, jax.Array]:
        """The episode so far: how it ended, if it did; where the colony is; what it earned."""
        earned = dict(zip(self.component_names, after.earned, strict=True))
        num_nodes, reach = growth.num_nodes, farthest(growth)
        if self.recovery_nodes:
            # only a colony that begins again has cells or places that its growth has not
            colony = after.colony
            num_nodes = jnp.maximum(num_nodes, colony.num_nodes)
            reach = jnp.maximum(reach, jnp.max(colony.x, where=rules.alive(colony), initial=0.0))
        return {
            **ending._asdict(),
            "num_nodes": num_nodes,
            "progress": jnp.minimum(jnp.maximum(reach, 0) / goal(params.width), 1.0),
            **({"recoveries": jnp.asarray(after.recoveries)} if self.recovery_nodes else {}),
            **{f"reward_{name}": value for name, value in earned.items()},
        }

    def features(self, state: State, params: Params) -> Features:
        return pairwise.colony_features(state.colony, self.is_full)

    def initial_features(self, state: State, params: Params) -> Features:
        return pairwise.initial_colony_features(state.colony, self.num_founders, self.is_full)

    def describe(self, state: State, features: Features, params: Params) -> jraph.GraphsTuple:
        size = params.width, params.height
        return observation.describe(
            state.colony, features, state.time, state.law, params.field, *size, self.is_full
        )

    @property
    def is_full(self) -> bool:
        return self.observation == "full"

    @property
    def component_names(self) -> tuple[str, ...]:
        """Names of the K components of the reward."""
        return registry.SETS[self.reward_set].NAMES

    @property
    def name(self) -> str:
        return "Durotaxis-v0"

    @property
    def num_actions(self) -> int:
        """Continuous numbers in an action."""
        return len(actions.names(self.action, self.spawning))

    def action_space(self, params: Params | None = None) -> spaces.Space:  # pyright: ignore
        bounds = (params or self.default_params).bounds
        return actions.space(self.action, self.spawning, bounds, self.capacity)

    def observation_space(self, params: Params | None = None) -> spaces.Dict:
        """Unbounded, as a measured field may have any stiffness."""
        shapes = observation.shapes(self.capacity)
        return spaces.Dict(
            {
                name: spaces.Box(-jnp.inf, jnp.inf, leaf.shape, leaf.dtype)
                if jnp.issubdtype(leaf.dtype, jnp.inexact)
                else spaces.Box(0, self.capacity + 1, leaf.shape, leaf.dtype)
                for name, leaf in shapes._asdict().items()
            }
        )


def goal(width: Number) -> jax.Array:
    """The x that a node must reach, px."""
    return width - rules.margin(width) - GOAL_SLACK
