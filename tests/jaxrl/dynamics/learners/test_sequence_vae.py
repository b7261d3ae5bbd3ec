"""The sequence VAE's agent, against plain lists, sums and filters in NumPy."""

from dataclasses import replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from jaxrl.dynamics.bases import Fourier
from jaxrl.dynamics.learners import sequence_vae
from jaxrl.dynamics.learners.sequence_vae import Step
from jaxrl.dynamics.networks import latent_filter, latent_information
from jaxrl.dynamics.networks.fields import FourierField, LinearField, MLPField, RBFField
from jaxrl.dynamics.networks.latent import SequenceVAE
from jaxrl.dynamics.planning import stimulation
from jaxrl.replay import uniform
from tests.jaxrl.dynamics.learners.sequence_vae_parts import (
    CHANNELS,
    CONFIG,
    DT,
    ELBO,
    GRID,
    KNOWN,
    MODEL,
    D,
    W,
    single,
)


@partial(jax.jit, static_argnums=0)
def new(model: SequenceVAE):
    """Parameters, away from the zeros and the small numbers that some start with."""
    params_key, key = jax.random.split(jax.random.key(0))
    flat, restore = ravel_pytree(model.init(params_key, D))
    return restore(flat + 0.3 * jax.random.normal(key, flat.shape))


PARAMS = new(MODEL)


# How the state is known.

SEEN = np.random.default_rng(1).normal(size=(9, CHANNELS))


@partial(jax.jit, static_argnums=0)
def beliefs(manager: str, observations: jax.Array):
    """`(mean [T, d], variance [T, d], actions [T, m])` while nothing is learned."""
    policy = stimulation.Config(kind="hold")
    config = replace(CONFIG, state=manager, policy=policy)  # type: ignore
    agent = sequence_vae.make(config, MODEL, KNOWN)
    state = agent.init(jax.random.key(1), observations[0])._replace(params=PARAMS)

    def step(carry, obs):
        memory, key = carry
        key, act_key = jax.random.split(key)
        action, memory, (belief, _) = agent.act(state, memory, obs, act_key)
        return (memory, key), (belief.mean, jnp.diagonal(belief.covariance), action)

    return jax.lax.scan(step, (agent.memory(), jax.random.key(2)), observations)[1]


def test_the_filter_goes_on_as_a_window_would_that_holds_everything():
    carried, recomputed = (beliefs(manager, single(SEEN)) for manager in ("carry", "window"))
    np.testing.assert_array_equal(carried[2], recomputed[2])  # the actions
    for expected, window in zip(carried[:2], recomputed[:2], strict=True):
        np.testing.assert_allclose(expected[:W], window[:W], atol=1e-6)
    assert (np.abs(carried[0][W:] - recomputed[0][W:]).max(axis=1) > 1e-4).all()
    first = np.zeros_like(SEEN)
    first[0] = 1.0
    unchanged, changed = (beliefs("window", single(SEEN + d)) for d in (0.0, first))
    assert np.abs(unchanged[0][:W] - changed[0][:W]).max() > 1e-3
    np.testing.assert_array_equal(unchanged[0][W:], changed[0][W:])  # the first is forgotten


def test_prediction_alone_knows_the_first_observation_and_the_inputs():
    mean, _, actions = beliefs("predict", single(SEEN))
    other = beliefs("predict", single(np.concatenate([SEEN[:1], SEEN[1:] + 3])))
    chex.assert_trees_all_equal(other[0], mean)
    np.testing.assert_allclose(mean[0], beliefs("carry", single(SEEN))[0][0], atol=1e-6)
    effect = PARAMS["effect"]["params"]["velocity"]
    z = np.asarray(mean[0], np.float64)
    for t in range(8):
        push = actions[t] @ effect["kernel"] + effect["bias"]
        z = z + DT * (bumps(z) @ PARAMS["field"]["params"]["weights"][0] + push)
        np.testing.assert_allclose(mean[t + 1], z, rtol=1e-4, atol=1e-5)


def bumps(z: np.ndarray) -> np.ndarray:
    """`[..., C]`."""
    distance = np.sum((np.asarray(z)[..., None, :] - np.asarray(GRID.centres())) ** 2, axis=-1)
    return np.exp(-distance / (2 * GRID.width**2))


# What is remembered.


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("steps", [3, 9, 27])  # less than a window; some; more than the capacity
def test_windows_of_memory_are_the_newest_and_any_older_ones(steps):
    config = replace(CONFIG, older_windows=40)
    memory = uniform.init(Step(jnp.zeros(1), jnp.zeros(1)), config.capacity, 1)
    number = jnp.arange(1.0, steps + 1)
    for row in number:
        row = row.reshape(1, 1, 1)
        memory = uniform.add(memory, Step(row, 100 + row))
    windows = jax.jit(partial(sequence_vae.draw_windows, config))(memory, jax.random.key(0))
    assert windows.y.shape == windows.before.shape == (41, W, 1)
    listed = list(range(1, steps + 1))[-config.capacity :]
    valid = np.asarray(windows.valid)
    newest = np.asarray(windows.y[0, valid[0], 0]).tolist()
    assert newest == listed[-W:]
    np.testing.assert_array_equal(valid[0], [False] * (W - len(newest)) + [True] * len(newest))
    starts = set()
    for y, before, counts in zip(
        windows.y[1:, :, 0], windows.before[1:, :, 0], valid[1:], strict=True
    ):
        y, before = np.asarray(y[counts]), np.asarray(before[counts])
        begin = listed.index(int(y[0]))
        assert y.tolist() == listed[begin : begin + W]
        assert len(y) == min(W, steps)
        np.testing.assert_array_equal(before, y + 100)
        starts.add(begin)
    assert len(starts) >= min(len(listed) - W + 1, 8)


# What was told.


@pytest.mark.slow
@pytest.mark.parametrize("steps", [4, 9])
def test_the_count_is_a_sum_over_the_newest_steps(steps):
    """Along the states as one filter, begun anew with the oldest of them, sees them.

    In units of the noise that was expected, though what a step tells is blurred by the model's.
    """
    rng = np.random.default_rng(3)
    y, u = rng.normal(size=(steps, 1, CHANNELS)), rng.normal(size=(steps, 1, D))
    example = Step(jnp.zeros(CHANNELS), jnp.zeros(D))
    memory = uniform.init(example, CONFIG.capacity, 1)
    memory = uniform.add(memory, Step(single(y), single(u)))
    count = jax.jit(partial(sequence_vae.recompute_information, CONFIG, MODEL))
    information = count((PARAMS, KNOWN, memory))
    first = latent_information.prior(MODEL, PARAMS, KNOWN, CONFIG.prior_speed, CONFIG.noise)
    at_centre = bumps(np.zeros(D))
    variance = 0.5**2 / np.sum(at_centre**2) / (CONFIG.noise * DT)
    np.testing.assert_allclose(first.covariance, variance * np.eye(16), rtol=1e-5)
    precision, carry, step = np.eye(16) / variance, MODEL.initial_carry(), jax.jit(MODEL.step)
    blur = np.mean(np.logaddexp(PARAMS["process"], 0)) / CONFIG.noise
    for obs, before in zip(y[-6:, 0], u[-6:, 0], strict=True):
        carry, mean, _ = step(PARAMS, carry, single(obs), single(before))
        precision = precision + np.outer(bumps(mean), bumps(mean)) * DT**2 / blur
    np.testing.assert_allclose(
        information.covariance, np.linalg.inv(precision), rtol=1e-3, atol=1e-4 * variance
    )
    np.testing.assert_array_equal(information.mean, first.mean)
    assert information.rate / information.shape == pytest.approx(CONFIG.noise * DT)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "field",
    [RBFField(GRID), FourierField(Fourier(9, D)), MLPField(D, hidden=(5,)), LinearField(D)],
    ids=["rbf", "fourier", "mlp", "linear"],
)
def test_designs_are_finite_differences_by_the_parameters(field):
    model = replace(MODEL, field=field, members=2)
    z, keys = jnp.array([0.4, -0.7]), jax.random.split(jax.random.key(4), 2)
    params = {"field": jax.jit(jax.vmap(field.init, (0, None)))(keys, z)}
    params["effect"] = PARAMS["effect"]
    design = np.asarray(jax.jit(partial(latent_information.design, model))(params, KNOWN, z))
    flat, restore = ravel_pytree(jax.tree.map(lambda x: x[0], params["field"]))

    @jax.jit
    @jax.vmap
    def next_state(change):
        member_field = restore(flat + change)
        fields = jax.tree.map(
            lambda x, all_: jnp.stack([x, all_[1]]), member_field, params["field"]
        )
        changed = {**params, "field": fields}
        return latent_filter.next_state(model, changed, KNOWN, jnp.ones(D), z)

    changes = 0.01 * jnp.eye(len(flat))
    slopes = np.asarray(next_state(changes) - next_state(-changes)).T / 0.02  # [d, p]
    if design.ndim == 1:  # each output has parameters of its own
        design = np.stack([np.ravel(np.outer(design, unit)) for unit in np.eye(D)])
    np.testing.assert_allclose(design, slopes, atol=1e-4)
    assert np.abs(slopes).max() > 0.02


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window": 2}, "window is 2, expected more than elbo.k_steps=2"),
        ({"capacity": 4}, "capacity is 4, expected at least window=5 steps"),
        ({"older_windows": -1}, "older_windows is -1, expected a number at least 0"),
        ({"gradient_steps": 0}, "gradient_steps is 0, expected a number at least 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0, expected a number above 0.0"),
        ({"recount_steps": 0}, "recount_steps is 0, expected a number at least 1"),
        ({"schedule": "sudden"}, "schedule is sudden, expected none or linear or cyclic"),
        ({"elbo": replace(ELBO, samples=0)}, "samples"),
        ({"state": "memory"}, "state"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_does_not_fit_together_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        sequence_vae.make(replace(CONFIG, **changes), MODEL, KNOWN)
