"""The sequence VAE and its parts against plain NumPy and SciPy."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxrl.dynamics import rbf, sequence_elbo
from jaxrl.dynamics.bases import Fourier
from jaxrl.dynamics.networks import decoder
from jaxrl.dynamics.networks.decoder import SMALLEST, Decoder, raw_variance
from jaxrl.dynamics.networks.fields import (
    ActionEffect,
    FourierField,
    LinearField,
    MLPField,
    RBFField,
)
from jaxrl.dynamics.networks.latent import SequenceVAE, Window
from jaxrl.dynamics.networks.recognition import GRURecognition, LSTMRecognition, MLPRecognition
from jaxrl.dynamics.rbf import Grid
from jaxrl.dynamics.sequence_elbo import Config
from jaxrl.numerics import linalg

T, CHANNELS, ACTIONS = 5, 4, 3
Y: Any = np.random.default_rng(0).poisson(3.0, (T, CHANNELS)).astype(np.float32)
BEFORE: Any = np.random.default_rng(1).normal(size=(T, ACTIONS)).astype(np.float32)
WINDOW = Window(Y, BEFORE, jnp.ones(T, bool))
MODEL = SequenceVAE(
    GRURecognition(2, hidden=6, features=(4,), counts=True, y_scale=2.0),
    RBFField(Grid(per_axis=5)),
    ActionEffect(2, "linear"),
    Decoder(2, CHANNELS, "loglinear", "poisson", bin_width=0.5),
)
STATEFUL = replace(
    MODEL,
    recognition=LSTMRecognition(2, hidden=6, features=(4,)),
    effect=ActionEffect(2, "state_mlp"),
    members=2,
)
GAUSSIAN = replace(
    MODEL,
    recognition=MLPRecognition(2),
    effect=ActionEffect(2, "mlp"),
    decoder=Decoder(2, CHANNELS, variance=0.2),
    members=3,
    process_variance=0.7,
)


@partial(jax.jit, static_argnums=0)
def new(model, key):
    return model.init(key, ACTIONS)


@pytest.fixture(scope="module")
def fresh():
    """Parameters of `GAUSSIAN` at the start."""
    return new(GAUSSIAN, jax.random.key(1))


@pytest.fixture(scope="module")
def params():
    """Parameters of `MODEL`, away from the zeros that some of them start with."""
    leaves, tree = jax.tree.flatten(new(MODEL, jax.random.key(0)))
    rng = np.random.default_rng(2)
    return tree.unflatten([x + 0.2 * rng.normal(size=x.shape).astype(np.float32) for x in leaves])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def filter_by_hand(params, y, before):
    """A gated recurrent unit and its readout, a time after another: mean, variance `[T, d]`."""
    p = jax.tree.map(np.asarray, params["recognition"]["params"])
    dense = lambda layer, x: x @ layer["kernel"] + layer["bias"]
    heads = p["readout"]
    relu = lambda torso, x: np.maximum(dense(heads[torso]["Dense_0"], x), 0)
    h, rows = np.zeros(6), []
    for t in range(len(y)):
        x = dense(p["incoming"], np.concatenate([np.log1p(y[t] / 2.0), before[t]]))
        own = h @ p["recurrent"]
        reset, update = sigmoid(x[:6] + own[:6]), sigmoid(x[6:12] + own[6:12])
        candidate = np.tanh(x[12:] + reset * (own[12:] + p["bias"]))
        h = (1 - update) * candidate + update * h
        raw = dense(heads["variance"], relu("variance_torso", h))
        rows.append((dense(heads["mean"], relu("mean_torso", h)), np.logaddexp(raw, 0) + 1e-6))
    return (np.stack(column) for column in zip(*rows, strict=True))


@pytest.mark.slow
def test_the_filter_step_by_step_and_all_at_once(params):
    """Alike, also after padding, which the filter does not remember; and only the past counts."""
    mean, variance = filter_by_hand(params, WINDOW.y, WINDOW.before)
    encode = jax.jit(MODEL.encode)
    end, belief = encode(params, MODEL.initial_carry(), WINDOW)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(belief.variance, variance, rtol=1e-4, atol=1e-5)

    carry, step = MODEL.initial_carry(), jax.jit(MODEL.step)
    for t in range(T):
        carry, *now = step(params, carry, WINDOW.y[t], WINDOW.before[t])
        np.testing.assert_allclose(now, [mean[t], variance[t]], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(carry, end, rtol=1e-5, atol=1e-6)

    shift = partial(jnp.roll, shift=2, axis=0)
    padded = Window(shift(Y), shift(BEFORE), jnp.arange(T) >= 2)
    _, late = encode(params, MODEL.initial_carry(), padded)
    np.testing.assert_allclose(late.mean[2:], mean[:-2], rtol=1e-4, atol=1e-5)


def away_from_zeros(model, seed):
    leaves, tree = jax.tree.flatten(new(model, jax.random.key(seed)))
    rng = np.random.default_rng(seed)
    return tree.unflatten([x + 0.2 * rng.normal(size=x.shape).astype(np.float32) for x in leaves])


@pytest.mark.slow
def test_long_short_term_memory_by_hand():
    """Step by step and all at once, and padding changes neither cell nor output."""
    params = away_from_zeros(STATEFUL, 5)
    p = jax.tree.map(np.asarray, params["recognition"]["params"])
    heads, cell, h, means = p["readout"], np.zeros(6), np.zeros(6), []
    dense = lambda layer, x: x @ layer["kernel"] + layer["bias"]
    for t in range(T):
        x = dense(p["incoming"], np.concatenate([Y[t], BEFORE[t]])) + h @ p["recurrent"]
        enter, keep, candidate, leave = np.split(x, 4)
        cell = sigmoid(keep) * cell + sigmoid(enter) * np.tanh(candidate)
        h = sigmoid(leave) * np.tanh(cell)
        torso = np.maximum(dense(heads["mean_torso"]["Dense_0"], h), 0)
        means.append(dense(heads["mean"], torso))
    (end, output), belief = jax.jit(STATEFUL.encode)(params, STATEFUL.initial_carry(), WINDOW)
    np.testing.assert_allclose(belief.mean, means, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose((end, output), (cell, h), rtol=1e-4, atol=1e-5)
    carry, step = STATEFUL.initial_carry(), jax.jit(STATEFUL.step)
    for t in range(T):
        carry, mean, _ = step(params, carry, Y[t], BEFORE[t])
        np.testing.assert_allclose(mean, means[t], rtol=1e-4, atol=1e-5)
    padded = WINDOW._replace(valid=jnp.arange(T) < 3)
    (early, _), _ = jax.jit(STATEFUL.encode)(params, STATEFUL.initial_carry(), padded)
    shorter = Window(Y[:3], BEFORE[:3], jnp.ones(3, bool))
    (stopped, _), _ = jax.jit(STATEFUL.encode)(params, STATEFUL.initial_carry(), shorter)
    np.testing.assert_allclose(early, stopped, rtol=1e-5, atol=1e-6)
    fresh = new(STATEFUL, jax.random.key(0))["recognition"]["params"]["incoming"]["bias"]
    np.testing.assert_array_equal(fresh, [0] * 6 + [1] * 6 + [0] * 12)


@pytest.mark.slow
def test_an_effect_that_depends_on_the_state_by_hand():
    """h(u, z) - h(0, z), nothing without an action; and it is what the bound is trained with."""
    params = away_from_zeros(STATEFUL, 6)
    p = jax.tree.map(np.asarray, params["effect"]["params"])
    z: Any = np.random.default_rng(4).normal(size=(T, 2)).astype(np.float32)

    def h(u, z):
        hidden = np.concatenate([u, z]) @ p["Dense_0"]["kernel"] + p["Dense_0"]["bias"]
        return np.maximum(hidden, 0) @ p["velocity"]["kernel"]

    expected = [h(u, x) - h(0 * u, x) for u, x in zip(BEFORE, z, strict=True)]
    pushes = STATEFUL.push(params, BEFORE, z)
    np.testing.assert_allclose(pushes, expected, rtol=1e-4, atol=1e-5)
    assert np.abs(pushes - STATEFUL.push(params, BEFORE, z + 1)).max() > 0.01
    np.testing.assert_array_equal(STATEFUL.push(params, 0 * BEFORE, z), np.zeros((T, 2)))

    config = Config(samples=2, k_steps=2, masking=True)
    _, slope = gradients(STATEFUL, params, WINDOW, config)
    assert all(np.isfinite(x).all() and np.any(x) for x in jax.tree.leaves(slope))
    draws = sequence_elbo.draw(jax.random.key(4), config, T, 2)
    _, belief = STATEFUL.encode(params, STATEFUL.initial_carry(), WINDOW)
    dynamics = sequence_elbo.Dynamics(
        partial(STATEFUL.velocity, params),
        jnp.asarray(BEFORE[1:]),
        STATEFUL.noise(params),
        partial(STATEFUL.push, params),
    )
    sample = np.asarray(
        belief.mean[None] + jnp.sqrt(belief.variance)[None] * draws.sample
    )  # [S, T, d]
    means = sequence_elbo.rollout_means(draws.steps, jnp.asarray(sample), dynamics, config)
    for s, t in ((0, 0), (1, 2), (1, T - 1)):
        u = BEFORE[t + 1] if t + 1 < T else np.zeros(ACTIONS)  # beyond the window nothing
        drift = np.asarray(STATEFUL.velocity(params, sample[s, t])) + (
            h(u, sample[s, t]) - h(0 * u, sample[s, t])
        )
        np.testing.assert_allclose(means[0, s, t], sample[s, t] + 0.1 * drift, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_new_model_is_as_unsure_as_it_was_asked_to_be(fresh):
    carry, belief = jax.jit(GAUSSIAN.encode)(fresh, GAUSSIAN.initial_carry(), WINDOW)
    assert carry == ()
    assert belief.mean.shape == (T, 2)
    np.testing.assert_allclose(belief.variance, np.log1p(np.exp(-3.0)), rtol=1e-4)
    np.testing.assert_allclose(GAUSSIAN.noise(fresh), 0.7, rtol=1e-5)
    np.testing.assert_allclose(GAUSSIAN.emission(fresh, jnp.zeros(2))[1], 0.2, rtol=1e-5)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_an_rbf_field_is_its_weights_times_the_features(dims, key):
    grid = Grid(per_axis=4, dims=dims)
    field: Any = RBFField(grid)
    z = 2 * jax.random.normal(jax.random.key(1), (3, 6, dims))
    start = jax.jit(field.init)(key, z)
    weights = start["params"]["weights"]
    assert weights.shape == (4**dims, dims)
    assert float(jnp.std(weights)) < 0.2
    expected = jnp.matmul(rbf.features(grid, z), weights)
    np.testing.assert_allclose(jax.jit(field.apply)(start, z), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "field",
    [LinearField(2), MLPField(2), RBFField(Grid(5)), FourierField(Fourier(9))],
    ids=lambda f: type(f).__name__,
)
def test_fields_start_small_and_treat_points_alike(field, key):
    z = jax.random.normal(jax.random.key(1), (3, 6, 2))
    start = jax.jit(field.init)(key, z[0, 0])
    apply = jax.jit(field.apply)
    all_at_once = apply(start, z)
    np.testing.assert_allclose(all_at_once[1, 2], apply(start, z[1, 2]), rtol=1e-5, atol=1e-6)
    assert float(jnp.max(jnp.abs(all_at_once))) < 1.0


def test_effects_of_actions(key):
    action = jnp.array([0.5, -2.0, 1.0])
    assert ActionEffect(3).apply({}, action) is action
    linear = ActionEffect(2, "linear").init_with_output(key, action)[0]
    assert linear.shape == (2,)
    with pytest.raises(ValueError, match="actions have 3 numbers and the latent state 2"):
        ActionEffect(2).apply({}, action)
    with pytest.raises(ValueError, match="effect 'cubic' is unknown"):
        ActionEffect(2, "cubic").apply({}, action)  # pyright: ignore[reportArgumentType]


def test_what_is_observed_and_how_likely_it_is(params, fresh):
    """Poisson counts with an exponential rate, and Gaussian noise, against SciPy."""
    z: Any = np.random.default_rng(3).normal(size=(T, 2)).astype(np.float32)
    many: Any = 1e4 * z
    matrix, offset = (np.asarray(params["decoder"][x]) for x in ("matrix", "offset"))
    mean, variance = MODEL.emission(params, z)
    rate = 0.5 * np.exp(z @ matrix.T + offset)
    np.testing.assert_allclose(mean, rate, rtol=1e-4)
    np.testing.assert_array_equal(variance, mean)
    expected = stats.poisson.logpmf(Y, rate).sum(axis=1)
    np.testing.assert_allclose(MODEL.log_prob(params, z, Y), expected, rtol=1e-4)
    assert np.isfinite(MODEL.log_prob(params, many, Y)).all()

    decoder = {"matrix": jnp.asarray(matrix), "offset": jnp.asarray(offset)}
    start = {**fresh, "decoder": decoder}
    start["noise"] = jnp.arange(CHANNELS) - 1.0
    spread = np.log1p(np.exp(np.arange(CHANNELS) - 1.0)) + 1e-6
    mean, variance = GAUSSIAN.emission(start, z)
    np.testing.assert_allclose(mean, z @ matrix.T + offset, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(variance, np.tile(spread, (T, 1)), rtol=1e-5)
    expected = stats.norm.logpdf(Y, mean, np.sqrt(spread)).sum(axis=1)
    np.testing.assert_allclose(GAUSSIAN.log_prob(start, z, Y), expected, rtol=1e-4)


def test_a_variance_is_softplus_of_its_parameter():
    for variance in (1e-5, 0.3, 1e4):
        start = np.logaddexp(0, raw_variance(variance)) + SMALLEST
        np.testing.assert_allclose(start, variance, rtol=1e-9)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: replace(MODEL, field=LinearField(3)), r"latent dimensions \[2, 3\]"),
        (lambda: replace(MODEL, held=("decoders",)), "held"),
        (lambda: Decoder(2, 5, "identity").init(jax.random.key(0), jnp.zeros(2)), "not 5 channels"),
        (
            lambda: Decoder(2, 5, "linear", "poisson").init(jax.random.key(0), jnp.zeros(2)),
            "choose loglinear or mlp",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


@partial(jax.jit, static_argnums=0)
def gradients(model, params, window, config):
    loss = lambda params: model.loss(
        params, window, model.initial_carry(), jax.random.key(4), config
    )
    return jax.value_and_grad(loss, has_aux=True)(params)


@jax.jit
def bound_of_parts(params, config):
    _, belief = MODEL.encode(params, MODEL.initial_carry(), WINDOW)
    dynamics = sequence_elbo.Dynamics(
        partial(MODEL.velocity, params),
        MODEL.push(params, WINDOW.before[1:], WINDOW.y[1:]),  # the first one led to the first time
        MODEL.noise(params),
    )
    draws = sequence_elbo.draw(jax.random.key(4), config, T, 2)
    log_prob = partial(MODEL.log_prob, params)
    y, _, valid, _ = WINDOW
    return sequence_elbo.negative_elbo(draws, y, valid, belief, dynamics, log_prob, config)[0]


def test_the_loss_is_the_bound_of_what_the_parts_say(params):
    """Gradients of every part are finite; a window of nothing but padding teaches nothing."""
    config = Config(samples=3, k_steps=2, masking=True)
    (loss, metrics), slope = gradients(MODEL, params, WINDOW, config)
    np.testing.assert_allclose(loss, bound_of_parts(params, config), rtol=1e-5)
    assert all(np.isfinite(x) for x in metrics.values())
    assert all(np.isfinite(x).all() and np.any(x) for x in jax.tree.leaves(slope))

    empty = WINDOW._replace(valid=jnp.zeros(T, bool))
    (loss, _), slope = gradients(MODEL, params, empty, config)
    assert loss == 0
    assert not any(np.any(x) for x in jax.tree.leaves(slope))


@pytest.mark.slow
def test_further_members_teach_only_their_own_field_and_held_parts_stay(fresh):
    config = Config(samples=3, k_steps=2, masking=True)
    (loss, metrics), slope = gradients(GAUSSIAN, fresh, WINDOW, config)
    first = {**fresh, "field": jax.tree.map(lambda x: x[:1], fresh["field"])}
    one_member = replace(GAUSSIAN, members=1, held=("decoder", "process"))
    (single_loss, _), slope_alone = gradients(one_member, first, WINDOW, config)
    np.testing.assert_allclose(loss, single_loss + 2 * metrics["members"], rtol=1e-5)

    own = slope.pop("field")
    slope["field"] = jax.tree.map(lambda x: x[:1], own)
    for name in one_member.held:
        assert any(np.any(x) for x in jax.tree.leaves(slope.pop(name)))
        assert not any(np.any(x) for x in jax.tree.leaves(slope_alone.pop(name)))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6), slope, slope_alone)
    assert all(np.any(x[m]) for x in jax.tree.leaves(own) for m in (1, 2))

    z = jnp.ones((4, 2))
    velocities = GAUSSIAN.velocities(fresh, z)
    np.testing.assert_allclose(velocities[0], GAUSSIAN.velocity(fresh, z), rtol=1e-5, atol=1e-7)
    assert velocities.shape == (3, 4, 2)
    assert float(jnp.max(jnp.std(velocities, axis=0))) > 0.01


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
def test_the_sum_on_accelerators_is_the_product(leading: tuple[int, ...], key):
    z_key, matrix_key = jax.random.split(key)
    z, matrix = jax.random.normal(z_key, (*leading, 2)), jax.random.normal(matrix_key, (4, 2))
    with_slopes = lambda multiply: jax.value_and_grad(
        lambda z, matrix: jnp.sum(jnp.sin(multiply(z, matrix))), (0, 1)
    )
    sum_out = lambda z, matrix: linalg.sum_of_terms(z, matrix.T)
    sums, products = (with_slopes(x) for x in (sum_out, decoder.product))
    for a, b in zip(*map(jax.tree.leaves, (sums(z, matrix), products(z, matrix))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    traced = jax.jit(products).trace(z, matrix)
    text = {x: traced.lower(lowering_platforms=(x,)).as_text() for x in ("cpu", "cuda", "tpu")}
    assert [name for name, x in text.items() if "dot_general" in x] == ["cpu"]
