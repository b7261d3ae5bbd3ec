"""What experiments record can be fitted as recorded data."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from envs.vector_field.fields import FIELDS, check_dimension
from jaxrl.dynamics import rbf
from tests.train.vector_field.presets import EXPERIMENTS
from train.host.compilation.cpu_kernels import compiler_options
from train.host.training import Training
from train.vector_field.config import CART_POLE, Model
from train.vector_field.data import recordings
from train.vector_field.data.files import loading
from train.vector_field.presets import PRESETS
from train.vector_field.training import make_training

ALL_POLICIES = ("off", "random", "hold5", "bang5", "myopic", "d_optimal", "a_optimal")


def fields_in(dimension: int) -> tuple[str, ...]:
    """The named fields that exist in so many dimensions."""

    def exists(name: str) -> bool:
        try:
            check_dimension(name, dimension)
        except ValueError:
            return False
        return True

    return tuple(filter(exists, FIELDS))


def compiled_update(training: Training, state: Any):
    """The update of a training, with the compiler's options that a run would choose."""
    traced = jax.jit(training.update).trace(state)
    return traced.lower().compile(compiler_options(traced.jaxpr.jaxpr))


@pytest.mark.slow
@pytest.mark.parametrize("preset", EXPERIMENTS)
def test_what_any_experiment_records_can_be_fitted(preset, tmp_path):
    """All files of a run at once, and each by itself, on every field and by every policy."""
    config = PRESETS[preset].config
    if config.learner == "bayesian" and config.env.fields != (CART_POLE,):
        config = replace(config, env=replace(config.env, fields=fields_in(config.env.dimension)))
    small = replace(config.bayesian, grid=replace(config.bayesian.grid, per_axis=4))
    config = replace(
        config,
        bayesian=small,
        policies=ALL_POLICIES if preset == "seen" else ("myopic", "random", "off"),
        model=Model(grid=rbf.Grid(per_axis=4, half_width=3.0), hidden=4),
        run=replace(config.run, num_seeds=1),
    )
    # Records two updates of every experiment.
    training = make_training(config)
    assert training.samples
    state, pieces = jax.jit(training.init)(jax.random.key(0)), []
    update, samples = compiled_update(training, state), jax.jit(training.samples)
    for _ in range(2):  # each of 50 samples
        state, _ = update(state)
        pieces.append(jax.device_get(samples(state)))
    newest = {name: [x[name][:, :, -50:] for x in pieces] for name in pieces[0]}
    whole = {name: np.concatenate(x, axis=2)[None] for name, x in newest.items()}
    fields = config.env.fields
    paths = recordings.write_experiments(tmp_path, whole, [0], config.policies, fields)
    assert len(paths) == len(fields) * len(config.policies)
    # One update of a fit to all files together.
    observed = config.env if config.env.noise != "none" else replace(config.env, noise="gaussian")
    if observed.dimension > 2:  # the latent plane of the fit is not the state itself
        observed = replace(observed, observation="linear")
    linear = replace(config.state_space, dims=2, field="linear", prior=0.3, steps=1)
    fit = replace(config, env=observed, vae=replace(config.vae, window=10), state_space=linear)
    together = make_training(replace(fit, data=tuple(map(str, paths))))
    start = jax.jit(together.init)(jax.random.key(0))
    _, metrics = compiled_update(together, start)(start)
    assert np.isfinite(jax.tree.leaves(metrics.agent)).all()
    for path in paths:
        assert loading.load(str(path)).is_complete


@pytest.mark.slow
def test_recordings_of_random_inputs_are_the_same_with_any_learner():
    """Which `bench.vector_field_baselines` takes for granted."""
    learner_samples = []
    for learner in ("bayesian", "sequence_vae"):
        config = PRESETS["vector_field"].config
        config = replace(
            config,
            learner=learner,
            policies=("bang5", "random"),
            model=Model(grid=rbf.Grid(per_axis=4, half_width=3.0), hidden=4),
            bayesian=replace(config.bayesian, grid=replace(config.bayesian.grid, per_axis=4)),
            run=replace(config.run, num_seeds=1, chunk_steps=50),
        )
        training = make_training(config)
        assert training.samples
        state, _ = jax.jit(training.update)(jax.jit(training.init)(jax.random.key(0)))
        learner_samples.append(jax.device_get(jax.jit(training.samples)(state)))
    for name in ("y", "u", "z"):
        np.testing.assert_array_equal(learner_samples[0][name], learner_samples[1][name])
