"""Many online experiments in one program: every policy on every field.

Policies that differ only in numbers, such as how long a random input is held, share one compiled
body; the others have one each. Within a seed all policies have the same world, initial state and
random numbers.

Axes: F fields, P policies of a group, G points of the grid along each axis, d latent dimensions.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from envs.vector_field import VectorField
from envs.vector_field.params import Params
from jaxrl import loop
from jaxrl.dynamics import stimulation
from jaxrl.loop import TrainState
from jaxrl.types import PyTree, Transition
from train.vector_field.learners import Learner
from train.vector_field.reach import POINTS, cells, grid_points, reachable

TRAIL = 1_000
"""Number of newest latent states that are kept for pictures."""
NUMBERS = ("hold_steps", "at_edge", "strength")
"""Fields in which policies may differ and still share one compiled body."""


class Group(NamedTuple):
    """Policies that share one compiled body."""

    policies: tuple[str, ...]
    base: stimulation.Config
    numbers: dict[str, jax.Array]  # [P] each of `NUMBERS`


class Sample(NamedTuple):
    """What is recorded of one step."""

    y: jax.Array  # [n] observed
    u: jax.Array  # [m] the input given then
    z: jax.Array  # [d] the true latent state
    belief: jax.Array  # [learned dimensions] where the learner took the state to be


class Experiment(NamedTuple):
    """One online experiment in progress."""

    train: TrainState  # of the loop with one environment; its agent is held elsewhere
    trail: jax.Array  # [TRAIL, d] newest latent states, the newest last
    visited: jax.Array  # [G, G] bool
    recent: Sample | tuple[()] = ()  # [R, ...] newest samples, the newest last


def groups(policies: dict[str, stimulation.Config]) -> list[Group]:
    """Groups policies that share one compiled body: all that only hold random inputs."""
    held = tuple(name for name, policy in policies.items() if policy.kind == "hold")
    together = [held, *[(name,) for name in policies if name not in held]]
    return [
        Group(
            names,
            policies[names[0]],
            {n: jnp.array([getattr(policies[name], n) for name in names]) for n in NUMBERS},
        )
        for names in together
        if names
    ]


def in_order(policies: dict[str, stimulation.Config], found: dict[str, Any], axis: int = 0) -> Any:
    """Trees of the groups, by the first policy of each, joined in the order of the policies.

    `axis` is that of the policies in each leaf.
    """
    made = groups(policies)
    names = [name for group in made for name in group.policies]
    order = jnp.array([names.index(name) for name in policies])
    trees = [found[group.policies[0]] for group in made]
    return jax.tree.map(lambda *x: jnp.take(jnp.concatenate(x, axis), order, axis), *trees)


class Laboratory(NamedTuple):
    """Runs the experiments of one seed; its trees have leading axes `[F]` or `[P, F]`."""

    init: Callable[[jax.Array], tuple[PyTree, PyTree]]
    """`key -> (agents, rest)`, dicts by the first policy of each group, and the reachable cells."""
    advance: Callable[[PyTree, PyTree], tuple[PyTree, PyTree, dict[str, jax.Array]]]
    """`(agents, rest) -> (agents, rest, scores)` after `Setting.samples` steps; each score is
    `[F, policies]`, in the order of the policies."""


class Setting(NamedTuple):
    """What all experiments of a laboratory share."""

    env: VectorField
    worlds: Callable[[jax.Array], Params]  # key -> parameters of the environment, [F, ...]
    learner: Learner
    policies: tuple[str, ...]
    groups: list[Group]
    box: float  # the field is scored within ± this
    samples: int  # steps of one `Laboratory.advance`
    keep: int  # R, newest samples that an experiment holds


def make(
    env: VectorField,
    worlds: Callable[[jax.Array], Params],
    learner: Learner,
    policies: dict[str, stimulation.Config],
    box: float,
    samples: int,
    keep: int = 0,
) -> Laboratory:
    """Experiments that advance by `samples` at a time; arguments as `Setting` describes them."""
    keep = max(keep, samples)
    setting = Setting(env, worlds, learner, tuple(policies), groups(policies), box, samples, keep)
    return Laboratory(partial(begin_all, setting), partial(advance_all, setting))


def begin_all(setting: Setting, key: jax.Array) -> tuple[PyTree, PyTree]:
    """`Laboratory.init`."""
    world_key, reach_key, start_key = jax.random.split(key, 3)
    params, fields = setting.worlds(world_key), len(setting.env.fields)
    find = partial(reachable, setting.env, box=setting.box)
    within = jax.vmap(lambda p, k: find(p, key=k))(params, jax.random.split(reach_key, fields))
    agents, experiments = {}, {}
    for group in setting.groups:
        keys = jax.random.split(jax.random.clone(start_key), fields)  # alike for all policies
        made = for_all(setting, begin, group, False, False)(group.numbers, params, keys)
        agents[group.policies[0]], experiments[group.policies[0]] = made
    return agents, (experiments, within)


def advance_all(
    setting: Setting, agents: PyTree, rest: PyTree
) -> tuple[PyTree, PyTree, dict[str, jax.Array]]:
    """`Laboratory.advance`."""
    experiments, within = rest
    agents, experiments, found = dict(agents), dict(experiments), {}
    for group in setting.groups:
        name = group.policies[0]
        run = for_all(setting, advance, group, True, True, False)
        agents[name], experiments[name], scored = run(
            group.numbers, agents[name], experiments[name], within
        )
        for i, policy in enumerate(group.policies):
            found[policy] = {measure: x[i] for measure, x in scored.items()}  # each [F]
    in_order = [found[name] for name in setting.policies]
    by_measure = {m: jnp.stack([x[m] for x in in_order], axis=1) for m in in_order[0]}
    return agents, (experiments, within), by_measure


def for_all(setting: Setting, body: Callable, group: Group, *by_policy: bool) -> Callable:
    """`body` for all policies of a group on all fields: `(numbers, ...)` -> `[P, F]`.

    `by_policy` says for each further argument whether it is `[P, F, ...]`, or `[F, ...]`, the same
    for all policies. Both axes are flattened into one for `vmap`, as jaxlib has fast matrix
    products only for arrays of few axes (see `compiled.compiler_options`).
    """
    size = len(group.policies), len(setting.env.fields)
    apart = lambda x: x.reshape(*size, *x.shape[1:])
    joined = lambda x: x.reshape(size[0] * size[1], *x.shape[2:])
    repeated = lambda x: joined(jnp.broadcast_to(x[None], (size[0], *x.shape)))

    def run(numbers: dict, *rest):
        each = {name: jnp.repeat(x, size[1]) for name, x in numbers.items()}
        flat = (
            jax.tree.map(joined if own else repeated, x)
            for own, x in zip(by_policy, rest, strict=True)
        )
        return jax.tree.map(apart, jax.vmap(partial(body, setting, group.base))(each, *flat))

    return run


def loop_of(setting: Setting, policy: stimulation.Config, params: Params) -> loop.Loop:
    """A loop of one environment and one learner, with an update after each step.

    Its measures also hold `seen`: y, u and belief of the step.
    """
    agent = setting.learner.make(policy, params)

    def update(state: PyTree, rollout: Transition, key: jax.Array) -> tuple[PyTree, dict]:
        after, measures = agent.update(state, rollout, key)
        seen = rollout.obs, rollout.action, rollout.extras.belief.mean
        return after, measures | {"seen": jax.tree.map(lambda x: x[0, 0], seen)}

    return loop.make_loop(setting.env, params, agent._replace(update=update), loop.Config(1, 1))


def begin(
    setting: Setting, base: stimulation.Config, numbers: dict, params: Params, key: jax.Array
) -> tuple[PyTree, Experiment]:
    """`(agent, experiment)` before the first step."""
    state = loop_of(setting, replace(base, **numbers), params).init(key)
    trail = jnp.broadcast_to(state.env.z, (TRAIL, 2))
    visited = jnp.zeros((POINTS, POINTS), bool)
    recent = jax.tree.map(
        lambda x: jnp.zeros((setting.keep, *x.shape)), sampled_shapes(setting, base, numbers, state)
    )
    return state.agent, Experiment(state._replace(agent=()), trail, visited, recent)


def sampled_shapes(
    setting: Setting, base: stimulation.Config, numbers: dict, state: TrainState
) -> Sample:
    """The shapes of a sample."""
    update = loop_of(setting, replace(base, **numbers), setting.learner.world(state.agent)).update
    y, u, belief = jax.eval_shape(update, state)[1].agent["seen"]
    return Sample(y, u, jax.eval_shape(lambda: state.env.z[0]), belief)


def advance(
    setting: Setting,
    base: stimulation.Config,
    numbers: dict,
    agent: PyTree,
    experiment: Experiment,
    within: jax.Array,
) -> tuple[PyTree, Experiment, dict[str, jax.Array]]:
    """`samples` steps of one experiment, and the scores of its learner after them."""
    world = setting.learner.world(agent)
    update = loop_of(setting, replace(base, **numbers), world).update

    def step(state: TrainState, _):
        after, metrics = update(state)
        measures = dict(metrics.agent)
        y, u, belief = measures.pop("seen")
        return after, (after.env.z[0], Sample(y, u, state.env.z[0], belief), measures)

    state = experiment.train._replace(agent=agent)
    state, (path, samples, metrics) = jax.lax.scan(step, state, length=setting.samples)
    visited = experiment.visited | cells(path, setting.box)
    trail = jnp.concatenate([experiment.trail, path])[-TRAIL:]
    newest_of = lambda old, new: jnp.concatenate([old, new])[-setting.keep :]
    recent = jax.tree.map(newest_of, experiment.recent, samples)
    after = Experiment(state._replace(agent=()), trail, visited, recent)
    newest = {name: x[-1] for name, x in metrics.items()}
    return state.agent, after, scores(setting, state.agent, visited, within) | newest


def scores(
    setting: Setting, agent: PyTree, visited: jax.Array, within: jax.Array
) -> dict[str, jax.Array]:
    """The scores of one learner; `visited` and `within` (reachable cells) are bool `[G, G]`."""
    points = grid_points(setting.box)
    true = setting.env.velocity(points, setting.learner.world(agent))
    learned = setting.learner.velocity(agent, points)
    everywhere = jnp.ones_like(within)
    return {
        "error": relative_error(learned, true, everywhere),
        "reachable_error": relative_error(learned, true, within),
        "coverage": jnp.sum(visited & within) / jnp.sum(within),
    }


def relative_error(learned: jax.Array, true: jax.Array, where: jax.Array) -> jax.Array:
    """√(Σ|learned - true|² / Σ|true|²) over the points `where` `[G, G]`; a field of 0 has 1."""
    missed = jnp.sum(jnp.sum((learned - true) ** 2, axis=-1) * where)
    return jnp.sqrt(missed / jnp.sum(jnp.sum(true**2, axis=-1) * where))
