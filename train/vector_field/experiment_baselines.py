"""What simple models make of the recordings of experiments, on the episodes held out for scores.

Each is fitted to what one experiment recorded, and forecasts the same held-out episodes as its
learner. The results are kept in `baselines.json` of a run.
Axes: S seeds, P policies, F fields, T samples, n channels, m inputs, K steps ahead.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from jaxrl.numerics.trees import take
from train.host.compilation.compiled import keys_of
from train.host.files.whole_files import finite_or_null, write_whole
from train.host.machine.progress import show_activity
from train.host.program import Run
from train.host.scoring import scores as host_scores
from train.vector_field.data.recordings import Data
from train.vector_field.experiment.held_out import AHEAD, held_out_pair
from train.vector_field.factories import make_env, make_learner
from train.vector_field.recorded import baselines
from train.vector_field.training import samples_of

FILE = "baselines.json"
MEASURES = ("r2", "r2_free")
"""With stimulation, and without."""
SHOWN = (10, 30)
"""Steps ahead in the table."""


def load_or_measure(run: Run) -> dict[str, Any] | None:
    """`{"r2": {baseline: [S, P, F, K + 1]}, "r2_free": ...}`; None without recordings, or where
    experiments may stop.

    Read from the run's directory if they were measured there on the same episodes, else measured
    and written. NaN where nothing is scored.
    """
    about = {"updates": run.updates, "key": evaluation_key(run.directory)}
    previous = read(run.directory)
    if previous and {name: previous.get(name) for name in about} == about:
        return previous
    samples = samples_of(run)
    if samples is None or run.config.stop_gain:  # recordings of unequal lengths
        return None
    with show_activity("fitting simple models to the recordings"):
        measured_r2 = measure_baselines(run, samples, about["key"])
    listed = {
        m: {name: x.tolist() for name, x in by_name.items()} for m, by_name in measured_r2.items()
    }
    content = finite_or_null({**about, **listed})
    write_whole(run.directory / FILE, json.dumps(content) + "\n")
    return content


def evaluation_key(directory: Path) -> int | None:
    """The root of the keys of the newest evaluation; None: that after training."""
    content = host_scores.read_evaluation(directory) or {}
    return content.get("key")


def read(directory: Path) -> dict[str, Any] | None:
    """The content of `baselines.json`; None if there is none that can be read."""
    try:
        content = json.loads((directory / FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    is_whole = isinstance(content, dict) and all(
        isinstance(content.get(m), dict) and set(content[m]) == set(baselines.NAMES)
        for m in MEASURES
    )
    return content if is_whole else None


def measure_baselines(
    run: Run, samples: dict[str, np.ndarray], key: int | None
) -> dict[str, dict[str, np.ndarray]]:
    """Fits the baselines and scores them: R² `[S, P, F, K + 1]` by measure and baseline."""
    tests = held_out_episodes(run, key)
    shape = samples["y"].shape[:3]
    most = baselines.MOST_STEPS
    smooth = lambda y: np.asarray(make_env(run.config).smooth(jnp.asarray(y)))  # as it is scored
    pairs = ((smooth(samples["y"][i]), samples["u"][i]) for i in np.ndindex(*shape))
    training = [baselines.newest(single_episode(y, u), most) for y, u in pairs]
    scaled_data = [baselines.standardise(data, data) for data in training]
    config = run.config
    latent = config.learner == "sequence_vae"
    dims = config.model.grid.dims if latent else config.env.dimension
    dims = min(dims, samples["y"].shape[-1])
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *map(baselines.as_episodes, scaled_data))
    learn = jax.vmap(partial(baselines.fit_episodes, dims=dims))
    params = learn(stacked)
    rows: dict[str, dict[str, list]] = {m: {name: [] for name in baselines.NAMES} for m in MEASURES}
    for i, (s, _, f) in enumerate(np.ndindex(*shape)):
        experiment_params = take(params, i)
        weights, order = baselines.fit_arx(scaled_data[i])
        for measure, (y, u) in zip(MEASURES, (x[s][f] for x in tests), strict=True):
            test = baselines.standardise(single_episode(smooth(y), u), training[i])
            expected = {
                "persistence": baselines.persistence(test, AHEAD),
                "arx": baselines.arx(weights, order, test, AHEAD),
                "linear_gaussian": baselines.linear(experiment_params, test, AHEAD),
            }
            for name, x in expected.items():
                rows[measure][name].append(baselines.forecast_r2(name, test, x))
    return {
        m: {name: np.reshape(x, (*shape, AHEAD + 1)) for name, x in by_name.items()}
        for m, by_name in rows.items()
    }


def single_episode(y: np.ndarray, u: np.ndarray) -> Data:
    """One episode in which nothing is missing."""
    y, u = np.asarray(y, np.float32)[None], np.asarray(u, np.float32)[None]
    return Data(y, u, np.ones(y.shape, bool), np.array([y.shape[1]]))


def held_out_episodes(run: Run, key: int | None) -> tuple[list, list]:
    """The episodes that the learners were scored on, for each of `MEASURES` `[S][F]` of (y, u)."""
    env, learner = make_env(run.config), make_learner(run.config)
    fields = len(run.config.env.fields)
    keys = (
        [keys_of(seed)[1] for seed in run.seeds]
        if key is None
        else host_scores.evaluation_keys(key, run.seeds)
    )
    draw = jax.jit(jax.vmap(partial(held_out_pair, env)))
    test_episodes: tuple[list, list] = ([], [])
    for agent, seed_key in zip(run.agents, keys, strict=True):
        first = take(next(iter(agent.values())), 0)  # of any policy, [F, ...]
        params = jax.vmap(learner.world)(first)
        for by_seed, (y, u) in zip(
            test_episodes, draw(params, jax.random.split(seed_key, fields)), strict=True
        ):
            by_seed.append(list(zip(np.asarray(y), np.asarray(u), strict=True)))
    return test_episodes


def table(run: Run, content: dict[str, Any]) -> Table:
    """R² of each simple model, fitted to the recordings of each policy; means over the seeds."""
    caption = "fitted to what each policy recorded, scored on the same episodes as the learners"
    r2_table = Table(title="R² of simple models, 10 / 30 steps ahead", caption=caption)
    for heading in ("field", "recorded by", *baselines.NAMES.values()):
        r2_table.add_column(
            heading, justify="right" if heading in baselines.NAMES.values() else "left"
        )
    means = [np.mean(np.array(content["r2"][x], float), axis=0) for x in baselines.NAMES]
    for f, field in enumerate(run.config.env.fields):
        for p, policy in enumerate(run.config.policies):
            cells = (" / ".join(f"{mean[p, f, k]:.3f}" for k in SHOWN) for mean in means)
            r2_table.add_row(field, policy, *cells)
        r2_table.add_section()
    return r2_table
