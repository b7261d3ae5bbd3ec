"""Many online experiments in one program: every policy on every field.

Policies that differ only in numbers, such as how long a random input is held, share one compiled
body; the others have one each. Within a seed all policies have the same world, initial state and
random numbers.

Axes: F fields, P policies of a group, G points of the grid along each axis, d latent dimensions, Q
states that a controller can reach; places are the grid's cells `[G, G]`, or these states `[Q]`.
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
from jaxrl.dynamics.planning import stimulation
from jaxrl.loop import TrainState
from jaxrl.types import PyTree, Transition
from train.vector_field.experiment import stopping
from train.vector_field.experiment.reach import reachable, scored_points, visits
from train.vector_field.experiment.stopping import StopRule, Watch
from train.vector_field.learners import Learner

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
    visited: jax.Array  # bool, of the places
    recent: Sample | tuple[()] = ()  # [R, ...] newest samples, the newest last
    watch: Watch | tuple[()] = ()  # only where experiments may stop


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
    stop: StopRule | None = None  # None: experiments last as long as the run
    goal: tuple[float, ...] = ()  # of some policy, in coordinates of the state; empty: none


def make(
    env: VectorField,
    worlds: Callable[[jax.Array], Params],
    learner: Learner,
    policies: dict[str, stimulation.Config],
    box: float,
    samples: int,
    keep: int = 0,
    stop: StopRule | None = None,
    goal: tuple[float, ...] = (),
) -> Laboratory:
    """Experiments that advance by `samples` at a time; arguments as `Setting` describes them."""
    names, grouped = tuple(policies), groups(policies)
    keep = max(keep, samples)
    setting = Setting(
        env, worlds, learner, names, grouped, box, samples, keep, stop=stop, goal=goal
    )
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
        made = for_all(setting, begin, group, False, False, False)(
            group.numbers, params, within, keys
        )
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
    setting: Setting,
    base: stimulation.Config,
    numbers: dict,
    params: Params,
    within: jax.Array,
    key: jax.Array,
) -> tuple[PyTree, Experiment]:
    """`(agent, experiment)` before the first step."""
    state = loop_of(setting, replace(base, **numbers), params).init(key)
    trail = jnp.broadcast_to(state.env.z, (TRAIL, setting.env.dims))
    visited = jnp.zeros(within.shape[: 2 if setting.env.dims == 2 else 1], bool)
    sample, measures = shapes_of_step(setting, base, numbers, state)
    recent = jax.tree.map(lambda x: jnp.zeros((setting.keep, *x.shape)), sample)
    watch = ()
    if setting.stop is not None:
        if setting.goal:
            measures["goal_distance"] = jax.eval_shape(lambda: jnp.zeros(()))
        watch = stopping.begun(measures)
    return state.agent, Experiment(state._replace(agent=()), trail, visited, recent, watch)


def shapes_of_step(
    setting: Setting, base: stimulation.Config, numbers: dict, state: TrainState
) -> tuple[Sample, dict]:
    """The shapes of a sample, and of what a learner measures."""
    update = loop_of(setting, replace(base, **numbers), setting.learner.world(state.agent)).update
    measures = dict(jax.eval_shape(update, state)[1].agent)
    y, u, belief = measures.pop("seen")
    return Sample(y, u, jax.eval_shape(lambda: state.env.z[0]), belief), measures


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

    before = experiment.train._replace(agent=agent)
    state, (path, samples, metrics) = jax.lax.scan(step, before, length=setting.samples)
    visited = experiment.visited | visits(path, setting.box, within)
    trail = jnp.concatenate([experiment.trail, path])[-TRAIL:]
    newest_of = lambda old, new: jnp.concatenate([old, new])[-setting.keep :]
    recent = jax.tree.map(newest_of, experiment.recent, samples)
    newest = {name: x[-1] for name, x in metrics.items()}
    if setting.goal:
        newest["goal_distance"] = mean_distance(setting.goal, path)
    after = Experiment(state._replace(agent=()), trail, visited, recent, experiment.watch)
    learned = state.agent
    if setting.stop is not None:
        agents = agent, learned
        learned, after, newest = unless_stopped(
            setting, setting.stop, agents, experiment, after, newest
        )
    return learned, after, scores(setting, learned, after.visited, within) | newest


def mean_distance(goal: tuple[float, ...], path: jax.Array) -> jax.Array:
    """Mean distance of the states `[T, d]` from a goal."""
    towards = stimulation.Config(kind="planned", objective="goal", goal=goal)
    return jnp.mean(stimulation.distances(towards, path))


def unless_stopped(
    setting: Setting,
    rule: StopRule,
    agents: tuple[PyTree, PyTree],
    before: Experiment,
    after: Experiment,
    measures: dict[str, jax.Array],
) -> tuple[PyTree, Experiment, dict[str, jax.Array]]:
    """Agent, experiment and measures after some samples, or, but for the key, as they were if it
    had stopped.

    `agents` are that before and that after. Of an experiment that has stopped nothing is recorded
    but zeros.
    """
    assert isinstance(before.watch, Watch)
    agent, learned = agents
    goes_on, newest = before.watch.goes_on, setting.samples
    gain = setting.learner.information(learned) - setting.learner.information(agent)
    watch = stopping.watched(rule, before.watch, gain, newest, measures)
    recent = jax.tree.map(lambda x: x.at[-newest:].multiply(goes_on.astype(x.dtype)), after.recent)
    key = after.train.key  # which goes on: a key is used once, whatever comes of it
    bare = lambda x: x._replace(recent=(), watch=(), train=x.train._replace(key=()))
    learned, stayed = stopping.kept(goes_on, (learned, bare(after)), (agent, bare(before)))
    train = stayed.train._replace(key=key)
    stopped = {"stopped_at": watch.stopped_at.astype(jnp.float32)}
    stayed = stayed._replace(recent=recent, watch=watch, train=train)
    return learned, stayed, measures | watch.measures | stopped


def scores(
    setting: Setting, agent: PyTree, visited: jax.Array, within: jax.Array
) -> dict[str, jax.Array]:
    """The scores of one learner. Of the places `visited` is bool, and `within` is where a
    controller can come: bool `[G, G]`, or states `[Q, d]`."""
    points = scored_points(setting.box, setting.env.dims)
    both = partial(fields_at, setting.env, setting.learner, agent)
    learned, true = both(points)
    if setting.env.dims == 2:
        return {
            "error": relative_error(learned, true, jnp.ones_like(within)),
            "reachable_error": relative_error(learned, true, within),
            "coverage": jnp.sum(visited & within) / jnp.sum(within),
        }
    everywhere = jnp.ones(len(within))
    return {
        "error": relative_error(learned, true, everywhere),
        "reachable_error": relative_error(*both(within), everywhere),
        "coverage": jnp.mean(visited),
    }


def fields_at(
    env: VectorField, learner: Learner, agent: PyTree, points: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The learned and the true field at `points` `[..., d]`, in the components that are scored."""
    true = env.velocity(points, learner.world(agent))
    return env.scored(learner.velocity(agent, points)), env.scored(true)


def relative_error(learned: jax.Array, true: jax.Array, where: jax.Array) -> jax.Array:
    """√(Σ|learned - true|² / Σ|true|²) over the points `where`; a field of 0 has 1."""
    missed = jnp.sum(jnp.sum((learned - true) ** 2, axis=-1) * where)
    return jnp.sqrt(missed / jnp.sum(jnp.sum(true**2, axis=-1) * where))
