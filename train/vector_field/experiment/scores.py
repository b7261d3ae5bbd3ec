"""Scores of learned vector fields: field error, forecasts of held-out data, samples needed.

Axes: F fields, P policies, S seeds, U rows of the record, T steps of a held-out episode, K steps
ahead, n channels.
"""

import math
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich import box
from rich.table import Table

from envs.vector_field import VectorField
from envs.vector_field.params import Params
from jaxrl.dynamics.latent_scores import k_step_r2
from jaxrl.dynamics.planning import stimulation
from jaxrl.types import AgentState
from train.host.compilation import ahead_of_time
from train.host.files.metrics_file import read_metrics
from train.host.scoring import scores
from train.host.training import Evaluation, TrainedAgents
from train.vector_field.config import Config
from train.vector_field.experiment import policy_groups
from train.vector_field.experiment.field_errors import fields_at, relative_error
from train.vector_field.experiment.reach import scored_points
from train.vector_field.factories import policy
from train.vector_field.learners import Learner

SCORE = "field_error"
"""Of the first policy, the mean over the fields."""
HELD_OUT_STEPS, AHEAD = 500, 30
"""T and K."""
SKIPPED = 20
"""First steps of a held-out episode, not scored: the state estimate has to settle first."""
Episode = tuple[jax.Array, jax.Array]
"""Observations `[T, n]` and the inputs after them `[T, m]`."""


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


def held_out_pair(env: VectorField, params: Params, key: jax.Array) -> tuple[Episode, Episode]:
    """Two held-out episodes, with stimulation and without."""
    driven_key, free_key = jax.random.split(key)
    return held_out_episode(env, params, 1.0, driven_key), held_out_episode(
        env, params, 0.0, free_key
    )


def held_out_episode(env: VectorField, params: Params, strength: float, key: jax.Array) -> Episode:
    """`(obs [T, n], actions [T, m])` of an episode with random inputs, held for 20 steps."""
    bound = jnp.broadcast_to(params.action_bound, (env.num_inputs,))
    hold_policy = stimulation.Config(kind="hold", hold_steps=20, at_edge=True, strength=strength)
    driver = stimulation.make(hold_policy, lambda nothing: nothing, -bound, bound)  # type: ignore
    reset_key, key = jax.random.split(key)

    def step(carry, _):
        obs, state, stimulus, key = carry
        key, act_key, step_key = jax.random.split(key, 3)
        action, stimulus = driver.act((), state.z, stimulus, act_key)
        after, state, *_ = env.step(step_key, state, action, params)
        return (after, state, stimulus, key), (obs, action)

    initial_carry = (*env.reset(reset_key, params), driver.init(), key)
    return jax.lax.scan(step, initial_carry, length=HELD_OUT_STEPS)[1]


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


def error_curves(
    rows: Sequence[dict[str, Any]], config: Config, measure: str = "error"
) -> tuple[np.ndarray, np.ndarray]:
    """`(samples [U], values [S, U, F, P])` of a measure in the record; NaN where it has none.

    Where the row of a seed is lost, those of the others are left out.
    """
    counts = Counter(row["steps"] for row in rows)
    whole_rows = [row for row in rows if counts[row["steps"]] == config.run.num_seeds]
    by_seed = {
        seed: [row for row in whole_rows if row["seed"] == seed] for seed in config.run.seeds
    }
    steps = np.array([row["steps"] for row in by_seed[config.run.seed]])
    rows_of_seeds = [[row["agent"][measure] for row in by_seed[s]] for s in config.run.seeds]
    return steps, np.array(rows_of_seeds, float)


def comparisons(rows: list[dict[str, Any]], config: Config, at: int) -> list[dict[str, Any]]:
    """How many times fewer samples each policy needs than each baseline after `at`, by field.

    For every ordered pair of different policies: the median over seeds of `samples_ratio`, and its
    interval. A baseline that stopped earlier, or of a run that ended earlier, counts to there.
    """
    steps, errors = error_curves(rows, config)
    ends = np.broadcast_to(steps[-1], np.swapaxes(errors[:, -1], 1, 2).shape)  # [S, P, F]
    ends = np.minimum(stops(rows, config) if config.stop_gain else ends, at)
    pairs = []
    for f, field in enumerate(config.env.fields):
        for p, name in enumerate(config.policies):
            for b, baseline in enumerate(config.policies):
                if p != b:
                    ratio = samples_ratio(
                        steps, errors[:, :, f, p], errors[:, :, f, b], ends[:, b, f]
                    )
                    median, low, high = median_interval(ratio)
                    pair = {"field": field, "policy": name, "baseline": baseline}
                    pairs.append({**pair, "ratio": median, "low": low, "high": high})
    return pairs


def comparison_tables(directory: Path, config: Config) -> list[Table]:
    """A table for each field: how many times fewer samples a row's policy needs than a column's."""
    pairs = comparisons(read_metrics(directory), config, at=config.run.total_steps)
    tables = []
    for field in config.env.fields:
        caption = (
            "median over seeds, and its interval: the samples of the column over those after "
            "which the row's error is first as low as the column's at the end"
        )
        title = f"{field}: times fewer samples"
        table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for heading in ("", *config.policies):
            table.add_column(heading, justify="right")
        field_pairs = [x for x in pairs if x["field"] == field]
        for name in config.policies:
            row = {x["baseline"]: x for x in field_pairs if x["policy"] == name}
            table.add_row(name, *(_cell(row.get(other)) for other in config.policies))
        tables.append(table)
    return tables


def _cell(pair: dict[str, Any] | None) -> str:
    """How many times fewer samples and the interval below; 0 is an error that is never as low."""
    if pair is None:
        return ""
    ratio, low, high = (
        f"{pair[name]:.1f}" if pair[name] else "never" for name in ("ratio", "low", "high")
    )
    return ratio if low == high else f"{ratio}\n{low}–{high}"


def stops(rows: Sequence[dict[str, Any]], config: Config) -> np.ndarray:
    """`[S, P, F]`: samples of each experiment, until it stopped or to the end of the record."""
    steps, values = error_curves(rows, config, "stopped_at")
    last = np.where(values[:, -1] > 0, values[:, -1], steps[-1])  # [S, F, P]
    return np.swapaxes(last, 1, 2).astype(int)


def samples_taken(directory: Path, config: Config) -> np.ndarray | None:
    """`[S, P, F]`, as `stops`, from the record of a run; None where experiments cannot stop."""
    return stops(read_metrics(directory), config) if config.stop_gain else None


def stops_table(rows: list[dict[str, Any]], config: Config) -> Table:
    """A row for each field and policy: after how many samples it gained too little."""
    _, stop_steps = error_curves(rows, config, "stopped_at")
    counts, num_seeds = stops(rows, config), len(config.run.seeds)
    caption = f"an experiment stops when it gains less than {config.stop_gain:g} nats a sample"
    table = Table(title="samples taken", caption=caption)
    for heading in ("field", "policy", "samples", "± sd", "stopped"):
        table.add_column(heading, justify="left" if heading in ("field", "policy") else "right")
    for f, field in enumerate(config.env.fields):
        for p, name in enumerate(config.policies):
            samples = counts[:, p, f]
            share = f"{int((stop_steps[:, -1, f, p] > 0).sum())} of {num_seeds}"
            numbers = f"{samples.mean():,.0f}", deviation_text(samples, 0)
            table.add_row(field, name, *numbers, share)
        table.add_section()
    return table


def invalid_plans(rows: list[dict[str, Any]], config: Config) -> dict[str, int]:
    """The number of plans of a run whose cost was not finite, by policy; without zeros."""
    _, values = error_curves(rows, config, "invalid_plans")  # counted since the start
    counts = values[:, -1].sum(axis=(0, 1)).astype(int)
    return {name: int(n) for name, n in zip(config.policies, counts, strict=True) if n}


def samples_ratio(
    steps: np.ndarray, errors: np.ndarray, baseline: np.ndarray, at: np.ndarray | int
) -> np.ndarray:
    """How many times fewer samples than `at` reach the error of the baseline after `at`, `[S]`.

    `errors` and `baseline` `[S, U]` at `steps` `[U]`; `at` is one number or `[S]`, and the last
    step where that is less. For each seed `at` divided by the number of samples after which the
    error is first as low; 0 if it never is. As curves are noisy and may cross early, even a
    baseline compared with itself may get more than 1.
    """
    ends = np.searchsorted(steps, np.minimum(at, steps[-1]))
    ends = np.broadcast_to(ends, len(baseline))
    target = np.take_along_axis(baseline, ends[:, None], axis=1)
    reached = errors <= target
    first = steps[np.argmax(reached, axis=1)]
    return np.where(reached.any(axis=1), steps[ends] / first, 0.0)


def median_interval(values: np.ndarray) -> tuple[float, float, float]:
    """`(median, low, high)`: `low` and `high` are two of the values, an interval of the median.

    With six values or more its confidence is at least 95 % for any distribution, as the number of
    values below the median is binomial. With fewer it spans all values.
    """
    ordered, count = np.sort(values), len(values)
    below = np.cumsum([math.comb(count, k) for k in range(count)]) / 2**count
    drop = max((k + 1 for k in range(count // 2) if 2 * below[k] <= 0.05), default=0)
    inner = ordered[drop - 1 : count - drop + 1] if drop else ordered
    return float(np.median(values)), float(inner[0]), float(inner[-1])
