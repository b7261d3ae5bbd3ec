"""Scores of learned vector fields: field error, forecasts of held-out data.

Axes: F fields, P policies, S seeds, T steps of a held-out episode, K steps ahead, n channels.
"""

import time
from collections import Counter
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich import box
from rich.table import Table

from envs.vector_field import VectorField
from jaxrl.dynamics.latent_scores import k_step_r2
from jaxrl.types import AgentState
from train.host.compilation import ahead_of_time
from train.host.scoring import scores
from train.host.training import Evaluation, TrainedAgents
from train.vector_field.config import Config
from train.vector_field.experiment import policy_groups
from train.vector_field.experiment.field_errors import fields_at, relative_error
from train.vector_field.experiment.held_out import AHEAD, SKIPPED, held_out_pair
from train.vector_field.experiment.reach import scored_points
from train.vector_field.factories import policy
from train.vector_field.learners.learner import Learner

SCORE = "field_error"
"""Of the first policy, the mean over the fields."""


def evaluate(
    config: Config,
    learner: Learner,
    env: VectorField,
    in_turns: bool,
    *trained: *TrainedAgents,
) -> Evaluation:
    """The final field errors and forecasts of every seed, policy and field.

    `in_turns` as of `experiments.Setting`.
    """
    agents, _, keys = trained
    started = time.perf_counter()
    measures_of = partial(final_measures, config, learner, env, in_turns)
    measures_of = ahead_of_time.trace(measures_of, agents[0], keys[0], name="scores").compile()

    def measure(agent: AgentState, key: jax.Array) -> dict[str, Any]:
        policy_measures = jax.device_get(measures_of(agent, key))
        error = float(np.mean(policy_measures[config.policies[0]]["error"]))
        policy_lists = {
            n: {k: v.tolist() for k, v in policy_measures[n].items()} for n in config.policies
        }
        for measures in policy_lists.values():
            if "basis" in measures:
                measures["basis"] = [learner.bases[place] for place in measures["basis"]]
        return {SCORE: error, **policy_lists}

    return scores.evaluate_by_measure(
        *trained,
        SCORE,
        measure,
        scores_table,
        compile_seconds=time.perf_counter() - started,
        fields=list(config.env.fields),
        policies=list(config.policies),
    )


def final_measures(
    config: Config,
    learner: Learner,
    env: VectorField,
    in_turns: bool,
    agents: dict[str, Any],
    key: jax.Array,
) -> dict[str, dict[str, jax.Array]]:
    """Measures of each policy, `[F, ...]`: error, cosine, r2 and r2_free `[F, K + 1]`."""
    names = {n: policy(config, n) for n in config.policies}
    fields = len(config.env.fields)
    keys = jax.random.split(key, fields)  # the same episodes for all policies
    policy_measures = {}
    body = lambda _, agent, key: experiment_measures(config, learner, env, agent, key)
    for group in policy_groups.groups(names):
        run = policy_groups.map_group(body, group, (True, False), fields, in_turns)
        group_measures = run(agents[group.policies[0]], jax.random.clone(keys))
        for i, name in enumerate(group.policies):
            policy_measures[name] = {measure: x[i] for measure, x in group_measures.items()}
    return policy_measures


def experiment_measures(
    config: Config, learner: Learner, env: VectorField, agent: AgentState, key: jax.Array
) -> dict[str, jax.Array]:
    """The measures of one experiment."""
    params, points = learner.world(agent), scored_points(config.box, env.dims)
    learned, true = fields_at(env, learner, agent, points)
    inner = jnp.sum(true * learned, axis=-1)
    sizes = jnp.linalg.norm(true, axis=-1) * jnp.linalg.norm(learned, axis=-1)
    everywhere = jnp.ones(points.shape[:-1])
    measures = {
        "error": relative_error(learned, true, everywhere),
        "cosine": jnp.mean(inner / jnp.maximum(sizes, 1e-9)),
    }
    if learner.bases:
        measures["basis"] = learner.basis(agent)
    episodes = held_out_pair(env, params, key)
    for name, (obs, actions) in zip(("r2", "r2_free"), episodes, strict=True):
        expected = learner.forecast(agent, obs, actions, AHEAD)
        expected, obs = env.smooth(expected), env.smooth(obs)
        measures[name] = forecast_r2(expected[SKIPPED:], obs[SKIPPED:])
    return measures


def forecast_r2(expected: jax.Array, obs: jax.Array) -> jax.Array:
    """R² `[K + 1]` of forecasts k steps ahead, `expected` `[T, K + 1, n]`, against `obs` `[T, n]`.

    Every k uses the same forecasts: those with K observations after them.
    """
    steps, ahead = expected.shape[0], expected.shape[1] - 1
    starts = jnp.arange(steps - ahead)[:, None]
    truth = obs[starts + jnp.arange(ahead + 1)[None]]  # [T - K, K + 1, n]
    return k_step_r2(expected[: steps - ahead], truth)


def scores_table(content: dict[str, Any]) -> Table:
    """A row for each field and policy: means over the seeds."""
    caption = (
        "error: of the field, relative to it, 1 for a field of 0; R²: of observations so many "
        "steps ahead, with stimulation and without (free, 10), in held-out episodes; means over "
        "the seeds"
    )
    shows_basis = "basis" in content["seeds"][0][content["policies"][0]]
    if shows_basis:
        caption += "; basis: the likeliest, of most seeds"
    table = Table(title="learned vector fields", caption=caption, box=box.SIMPLE_HEAD, padding=0)
    for heading, names in (("field", content["fields"]), ("policy", content["policies"])):
        table.add_column(heading, min_width=max(map(len, names)))
    for heading in ("error", "± sd", "cosine", "R² 10", "R² 30", "R² free"):
        table.add_column(heading, justify="right")
    if shows_basis:
        table.add_column("basis")
    for f, field in enumerate(content["fields"]):
        for name in content["policies"]:
            seed_rows = [row[name] for row in content["seeds"]]
            basis_counts = Counter(x["basis"][f] for x in seed_rows) if shows_basis else Counter()
            basis = [most for most, _ in basis_counts.most_common(1)]
            table.add_row(field, name, *summary(seed_rows, f), *basis)
        table.add_section()
    return table


def summary(measures: list[dict[str, Any]], f: int) -> list[str]:
    """The numbers of one policy on field `f`, over seeds; no deviation of a single one."""
    values_of = lambda name: np.array([row[name][f] for row in measures])  # [S] or [S, K + 1]
    r2, free = values_of("r2").mean(axis=0), values_of("r2_free").mean(axis=0)
    error, cosine = values_of("error"), values_of("cosine").mean()
    numbers = [f"{number:.3f}" for number in (cosine, r2[10], r2[30], free[10])]
    return [f"{error.mean():.3f}", deviation_text(error, 3), *numbers]


def deviation_text(values: np.ndarray, digits: int) -> str:
    """The standard deviation of what values `[S]` are a sample of; empty for a single one.

    Squares are summed and divided by S - 1, as divided by S they would be too small.
    """
    return f"{values.std(ddof=1):,.{digits}f}" if len(values) > 1 else ""
