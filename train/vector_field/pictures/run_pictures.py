"""Pictures of a run of `train.vector_field`, and the arrays they are drawn from.

Axes: S seeds, P policies, F fields, G points of the grid along each axis, T newest states. Every
picture is a PNG, written whole or not at all.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.types import AgentState
from train.host.files import metrics_file, whole_files
from train.host.scoring import scores
from train.vector_field.config import Config
from train.vector_field.data.step_time import StepTime
from train.vector_field.experiment import policy_groups, run_record
from train.vector_field.experiment.reach import grid_points, project
from train.vector_field.factories import make_env, make_learner, policies_of
from train.vector_field.pictures import curves, maps, series

SETTLING = 20
"""Samples in which a filter finds the state, before those that are shown."""


class Traces(NamedTuple):
    """States and cells that experiments visited."""

    trails: np.ndarray  # [S, P, F, T, d], newest latent states
    visited: np.ndarray  # [S, P, F, G, G] bool, of the cells; [S, P, F, Q] of reachable states
    reachable: np.ndarray  # [S, F, G, G] bool; in more than two dimensions states [S, F, Q, d]


def traces_of(config: Config, state: Any) -> Traces:
    """The traces in a final `training.State`, of one seed or several."""
    several = config.run.num_seeds > 1
    with_seed_axis = lambda x: np.asarray(x) if several else np.asarray(x)[None]
    group_experiments = state.experiments.items()
    trails, visited = (
        join_groups(
            config,
            {name: with_seed_axis(getattr(x, field)) for name, x in group_experiments},
            axis=1,
        )
        for field in ("trail", "visited")
    )
    return Traces(trails, visited, with_seed_axis(state.reachable))


def join_groups(config: Config, group_arrays: dict[str, np.ndarray], axis: int) -> np.ndarray:
    """The arrays of the groups joined along `axis`, in the order of the policies."""
    return np.asarray(policy_groups.join_groups(policies_of(config), group_arrays, axis))


def draw_all(
    directory: Path,
    config: Config,
    agents: list[AgentState],
    traces: Traces,
    simple: dict[str, Any] | None = None,
) -> list[Path]:
    """Writes four pictures and `experiments.npz` into a run directory; returns the paths.

    `simple` is what `experiment_baselines.load_or_measure` returned.
    """
    arrays, evaluation = directory / "experiments.npz", scores.read_evaluation(directory)
    learned, true, deviation = learned_fields(config, agents)
    whole_files.write_arrays(arrays, {**traces._asdict(), "learned": learned, "true": true})
    paths = draw_maps(directory, config, learned[0], true[0], deviation, traces)
    paths.append(directory / "errors.png")
    curves.errors(paths[-1], config, metrics_file.read_metrics(directory))
    if evaluation:
        paths.append(directory / "forecasts.png")
        curves.forecasts(paths[-1], evaluation, simple)
    return [arrays, *paths]


def draw_channels(
    directory: Path, config: Config, agents: list[AgentState], samples: dict[str, np.ndarray]
) -> Path | None:
    """Writes `channels.png` of the first seed, first policy and first field: its newest samples and
    what the learner, as it is at the end, forecasts of them; None for too few samples.

    `samples` are those of `recordings.write_experiments`, `[S, P, F, T, ...]`.
    """
    observed, inputs = (samples[name][0, 0, 0] for name in ("y", "u"))
    sample_counts = run_record.samples_taken(directory, config)
    if sample_counts is not None:
        observed, inputs = observed[: sample_counts[0, 0, 0]], inputs[: sample_counts[0, 0, 0]]
    begin = max(0, len(observed) - series.STEPS - SETTLING)
    observed, inputs = observed[begin:], inputs[begin:]
    if len(observed) <= SETTLING + series.AHEAD:
        return None
    name = config.policies[0]
    expected = forecasts_of(config, agents[0], name, 0, observed, inputs)
    field = config.env.fields[0].replace("_", " ")
    path = directory / "channels.png"
    series.channels(
        path,
        observed[SETTLING:],
        expected[SETTLING:],
        inputs[SETTLING:],
        StepTime(config.env.dt, ""),
        f"Channels and forecasts: {name} on {field}, seed {config.run.seed}",
        begin=begin + SETTLING,
        circular=make_env(config).angular_channels,
    )
    return path


def forecasts_of(
    config: Config,
    agents: AgentState,
    policy: str,
    field: int,
    observed: np.ndarray,
    inputs: np.ndarray,
) -> np.ndarray:
    """`[T, K + 1, n]`: what the learner of one seed, policy and field forecasts of `observed`
    `[T, n]` with the `inputs` `[T, m]`, up to K = `series.AHEAD` steps later."""
    agent = policy_groups.select_experiment(policies_of(config), agents, policy, field)
    return np.asarray(_forecast(config)(agent, jnp.asarray(observed), jnp.asarray(inputs)))


@lru_cache(maxsize=1)
def _forecast(config: Config) -> Any:
    """Compiled once for all experiments of a run."""
    return jax.jit(partial(make_learner(config).forecast, steps=series.AHEAD))


def draw_maps(
    directory: Path,
    config: Config,
    learned: np.ndarray,
    true: np.ndarray,
    deviation: np.ndarray,
    traces: Traces,
) -> list[Path]:
    """`fields.png` and `information.png` of the first seed; shapes as in `learned_fields`."""
    count = config.run.num_seeds
    seed_label = f"seed {config.run.seed}" + f", the first of {count}" * (count > 1)
    planar = config.env.dimension == 2
    if not planar:
        seed_label += f"; the plane of coordinates {config.plane[0]} and {config.plane[1]}"
    places = {name: config.policies.index(name) for name in compared_policies(config.policies)}
    select_policies = lambda x: {name: x[place] for name, place in places.items()}
    trails = select_policies(np.asarray(project(traces.trails[0], config.plane)))
    maps.fields(
        directory / "fields.png",
        config.env.fields,
        true,
        select_policies(learned),
        trails,
        config.box,
        f"True and learned fields: {seed_label}",
        maps.error_name(config.env.dimension),
    )
    maps.information(
        directory / "information.png",
        config.env.fields,
        select_policies(deviation),
        trails,
        traces.reachable[0] if planar else None,
        config.box,
        f"What is still uncertain: {seed_label}",
    )
    return [directory / "fields.png", directory / "information.png"]


def compared_policies(policies: Sequence[str]) -> list[str]:
    """The first policy, and its baseline: the last one other than `off`."""
    active = [name for name in policies if name != "off"] or list(policies)
    return list(dict.fromkeys([policies[0], active[-1]]))


def learned_fields(
    config: Config, agents: list[AgentState]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(learned [S, P, F, G, G, 2], true [S, F, G, G, 2], deviation [P, F, G, G])` on the grid.

    `deviation` is the standard deviation of a component of the learned velocity, first seed.
    """
    learner, plane = make_learner(config), config.plane
    points = grid_points(config.box, config.env.dimension, plane)
    map_agents = lambda body: jax.jit(jax.vmap(jax.vmap(body)))  # policies and fields
    velocity = map_agents(lambda agent: project(learner.velocity(agent, points), plane))

    @map_agents
    def deviation(agent: AgentState) -> jax.Array:
        variance = partial(learner.uncertainty, agent)
        return jnp.sqrt(jax.vmap(jax.vmap(variance))(points))

    def evaluate_groups(body, agent: dict[str, AgentState]) -> np.ndarray:
        return join_groups(config, {name: np.asarray(body(x)) for name, x in agent.items()}, axis=0)

    learned = np.stack([evaluate_groups(velocity, agent) for agent in agents])
    return learned, true_fields(config, agents), evaluate_groups(deviation, agents[0])


def true_fields(config: Config, agents: list[AgentState]) -> np.ndarray:
    """`[S, F, G, G, 2]` on the grid; all policies of a seed have the same."""
    env, learner = make_env(config), make_learner(config)
    points = grid_points(config.box, config.env.dimension, config.plane)
    field_of = lambda agent: project(env.velocity(points, learner.world(agent)), config.plane)
    true_field = jax.jit(jax.vmap(jax.vmap(field_of)))  # policies and fields
    return np.stack([np.asarray(true_field(next(iter(agent.values()))))[0] for agent in agents])
