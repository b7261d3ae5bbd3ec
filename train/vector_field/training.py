"""The training of a configuration of vector fields: every policy experiments on every field."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.vector_field import VectorField
from envs.vector_field.params import Params
from jaxrl.loop import LoopMetrics
from jaxrl.types import AgentState
from train.host import device_presets
from train.host.files import snapshots
from train.host.program import Run
from train.host.training import Latest, Quotient, Score, Training
from train.vector_field.config import SAMPLES_PER_UPDATE, Config
from train.vector_field.config_checks import check
from train.vector_field.experiment import scores
from train.vector_field.experiment.laboratory import Laboratory
from train.vector_field.experiment.laboratory import make as make_laboratory
from train.vector_field.experiment.policy_groups import join_groups
from train.vector_field.experiment.reach import grid_points, project
from train.vector_field.experiment.stopping import StopRule
from train.vector_field.factories import learns_observation, make_env, make_learner, policies_of
from train.vector_field.learners.learner import Learner
from train.vector_field.recorded import dynamics_fit, vae_fit

MEASURES = (
    *("error", "reachable_error", "coverage", "information"),
    *("process_noise", "invalid_plans", "elbo", "reconstruction", "divergence"),
    *("goal_distance", "stopped_at", "fits", "kind"),
)
"""What a learner of each field and policy measures."""
COUNTED = ("invalid_plans", "fits", "kind")
"""Of these counts since the start, and the place of what is chosen: a row has the latest."""
STOPPED = "all_stopped"
"""1 once every experiment of a seed has stopped."""


class State(NamedTuple):
    """Experiments side by side, with their learners in a field of their own."""

    agent: dict[str, AgentState]  # by the first policy of each group, [P, F, ...]
    experiments: dict[str, Any]  # the same with `experiments.Experiment`
    reachable: jax.Array  # bool [F, G, G]; in more than two dimensions states [F, Q, d]
    key: jax.Array
    updates: jax.Array  # int32


def make_training(config: Config) -> Training:
    """The training of a configuration; raises ValueError, in one line, for an invalid one."""
    check(config)
    if config.data:
        fits = dynamics_fit if config.learner == "state_space" else vae_fit
        return fits.make_training(config)
    return make_experiments(config)


def make_experiments(config: Config) -> Training:
    """The training of experiments with a simulated world."""
    env = make_env(config)
    learner = make_learner(config)
    in_turns = not device_presets.on_accelerator()
    laboratory = laboratory_of(config, env, learner, in_turns)

    # Functions that are compiled; they keep learners apart from the rest of the experiments.
    def init(key: jax.Array) -> State:
        begin_key, key = jax.random.split(key)
        agents, (running, reachable) = laboratory.init(begin_key)
        return State(agents, running, reachable, key, jnp.zeros((), jnp.int32))

    def update(state: State) -> tuple[State, LoopMetrics]:
        progress = state.experiments, state.reachable
        agents, (running, reachable), scored = laboratory.advance(state.agent, progress)
        measures = of_rows(scored)
        measures[scores.SCORE] = jnp.mean(scored["error"][:, 0])
        if config.stop_gain:
            measures[STOPPED] = jnp.all(scored["stopped_at"] > 0).astype(jnp.float32)
        state = State(agents, running, reachable, state.key, state.updates + 1)
        return state, LoopMetrics(jnp.zeros((), jnp.int32), {}, measures)

    pairs = [f"{f.replace('_', ' ')}: {p}" for f in config.env.fields for p in config.policies]
    return Training(
        init=init,
        update=update,
        evaluate=lambda *trained: scores.evaluate(config, learner, env, in_turns, *trained),
        snapshot=lambda state: field_snapshot(config, learner, state),
        samples=lambda state: samples(config, state),
        steps_per_update=SAMPLES_PER_UPDATE,
        unit="samples",
        score=Score(scores.SCORE, lower_is_better=True, labels=dict.fromkeys(MEASURES, pairs)),
        converged_metric=STOPPED if config.stop_gain else "",
        budget_shapes_learning=config.learner == "state_space",  # which has room for all samples
    )


def laboratory_of(config: Config, env: VectorField, learner: Learner, in_turns: bool) -> Laboratory:
    """The experiments of one seed."""
    return make_laboratory(
        env,
        partial(worlds, config),
        learner,
        policies_of(config),
        config.box,
        SAMPLES_PER_UPDATE,
        keep=config.run.chunk_updates(SAMPLES_PER_UPDATE) * SAMPLES_PER_UPDATE,
        stop=stop_rule(config),
        goal=goal_of(config),
        in_turns=in_turns,
    )


def of_rows(scored: dict[str, jax.Array]) -> dict[str, Any]:
    """Measures `[F, P]`, such that a row of several updates has what they say of all of them."""
    measures: dict[str, Any] = {k: Latest(x) if k in COUNTED else x for k, x in scored.items()}
    if "stopped_at" in scored:
        measures["stopped_at"] = of_stopped(scored["stopped_at"])
    return measures


def of_stopped(stopped_at: jax.Array) -> Quotient:
    """`stopped_at` `[F, P]` as a row of several updates has it: without those before the stop.

    It is 0 in those, so that a mean over all would be no number of samples at all.
    """
    whole = (stopped_at > 0).astype(jnp.float32)
    return Quotient(stopped_at[..., None], whole[..., None])


def field_snapshot(config: Config, learner: Learner, state: State) -> dict[str, jax.Array]:
    """The learned field on the grid, `velocity` `[P, F, G, G, 2]`, and the standard deviation of a
    component of it, `deviation` `[P, F, G, G]`; policies in their order."""
    points = grid_points(config.box, config.env.dimension, config.plane)
    look = partial(agent_snapshot, learner, points=points, plane=config.plane)
    group_fields = {name: jax.vmap(jax.vmap(look))(agent) for name, agent in state.agent.items()}
    velocity, deviation = join_groups(policies_of(config), group_fields)
    return {"velocity": velocity, "deviation": deviation}


def agent_snapshot(
    learner: Learner, agent: AgentState, points: jax.Array, plane: tuple[int, int]
) -> tuple[jax.Array, jax.Array]:
    """The field `[G, G, 2]` of one learner at `points` `[G, G, d]`, projected on the `plane`, and
    its standard deviation `[G, G]`."""
    variance = jax.vmap(jax.vmap(partial(learner.uncertainty, agent)))(points)
    return project(learner.velocity(agent, points), plane), jnp.sqrt(variance)


def stop_rule(config: Config) -> StopRule | None:
    """When experiments stop; None: never before the run ends."""
    if not config.stop_gain:
        return None
    return StopRule(config.stop_gain, config.stop_over)


def goal_of(config: Config) -> tuple[float, ...]:
    """The goal of the policies that have one, in coordinates of the state; empty if none has."""
    chosen = policies_of(config).values()
    if learns_observation(config):  # its goal is in the channels
        return ()
    return next((x.goal for x in chosen if "goal" in x.objectives), ())


def samples(config: Config, state: State) -> dict[str, jax.Array]:
    """The newest samples of all experiments, `[P, F, R, ...]`; policies in their order."""
    group_samples = {name: experiment.recent for name, experiment in state.experiments.items()}
    return join_groups(policies_of(config), group_samples)._asdict()


def samples_of(run: Run) -> dict[str, np.ndarray] | None:
    """All that the experiments of a run recorded, `[S, P, F, T, ...]`; None if it kept nothing."""
    axis = 3  # of time, behind seeds, policies and fields
    return snapshots.samples(run.directory, run.updates, SAMPLES_PER_UPDATE, axis)


def worlds(config: Config, key: jax.Array) -> Params:
    """The parameters of one world for each field, `[F, ...]`, each with its own random weights."""
    env, world = make_env(config), config.env

    def one(key: jax.Array, index: jax.Array):
        numbers = {
            name: getattr(world, name)
            for name in ("dt", "process_noise", "observation_noise", "bin_width")
        }
        return env.params(key, world.authority, field=index, **numbers)

    count = len(world.fields)
    return jax.vmap(one)(jax.random.split(key, count), jnp.arange(count))
