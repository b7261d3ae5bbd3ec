"""The environment of vector fields: its law of motion, what is seen, and what is refused."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import vector_field
from envs.vector_field import fields, observations
from envs.vector_field.env import State, VectorField

START = np.array([0.6, -0.9], np.float32)


def after_one_step(env, params, action, num: int, seed: int = 0):
    """States and `info` after `num` steps from `START`, each with chances of its own."""
    state = State(jnp.asarray(START), jnp.zeros(env.channels), jnp.zeros((), jnp.int32))
    keys = jax.random.split(jax.random.key(seed), num)
    step = jax.jit(jax.vmap(env.step, (0, None, None, None)))
    _, state, _, _, _, info = step(keys, state, action, params)
    return jax.device_get((state, info))


def layer(weights, index):
    return np.asarray(weights[index].weight, float), np.asarray(weights[index].bias, float)


def test_one_step_drifts_pushes_and_scatters():
    """Mean, covariance and independence over 20,000 steps, with a clipped action of 3 inputs."""
    env = VectorField("duffing", channels=3, encoder="linear", num_inputs=3)
    params = env.params(
        jax.random.key(5), action_bound=0.8, dt=0.2, process_noise=0.3, observation_noise=0.04
    )
    state, info = after_one_step(env, params, jnp.asarray([5.0, -0.1, -5.0]), 20_000)
    weight, bias = layer(params.encoder, 0)
    x, y = START
    drift = 0.5 * np.array([y, -0.5 * y + x - 0.5 * x**3])
    mean = START + 0.2 * (drift + weight @ [0.8, -0.1, -0.8] + bias)
    error = 5 * np.sqrt(0.06 / 20_000)
    np.testing.assert_allclose(state.z.mean(0), mean, atol=error)
    np.testing.assert_array_equal(info["latent"], state.z)
    weight, bias = layer(params.emission, 0)
    residual = state.obs - (state.z @ weight.T + bias)
    joint = np.cov(np.concatenate([state.z, residual], axis=1).T)
    expected = np.diag([0.06, 0.06, 0.04, 0.04, 0.04])
    np.testing.assert_allclose(joint, expected, atol=5 * 0.06 * np.sqrt(2 / 20_000))
    np.testing.assert_allclose(residual.mean(0), 0.0, atol=error)


@pytest.mark.slow
def test_poisson_counts_are_counts():
    """Mean and variance of counts are rate times bin; the process noise is all but switched off."""
    env = VectorField(observation="loglinear", noise="poisson", channels=4)
    params = env.params(process_noise=1e-12, bin_width=0.5)
    state, _ = after_one_step(env, params, jnp.zeros(2), 20_000)
    weight, bias = layer(params.emission, 0)
    rate = 0.5 * np.exp(weight @ state.z[0] + bias)
    mean, variance = jax.jit(env.emission)(state.z[0], params)
    np.testing.assert_allclose(mean, rate, rtol=1e-5)
    np.testing.assert_allclose(variance, rate, rtol=1e-5)
    assert (state.obs.dtype, state.obs.min()) == (np.float32, 0.0)
    assert (state.obs == np.round(state.obs)).all()
    np.testing.assert_allclose(state.obs.mean(0), rate, atol=5 * np.sqrt(rate.max() / 20_000))
    np.testing.assert_allclose(state.obs.var(0), rate, rtol=0.06)
    counts = lambda rate: observations.draw(jax.random.key(0), "poisson", rate, rate).sum()
    jax.eval_shape(jax.grad(counts), rate)  # counts have no slope, but they break no gradient


def test_networks_without_noise_are_seen_through_relus():
    env = VectorField("snowman", observation="mlp", noise="none", channels=5, encoder="mlp")
    params = env.params(jax.random.key(1))
    z = np.random.default_rng(0).normal(size=(2, 3, 2)).astype(np.float32)
    mean, variance = jax.jit(env.emission)(z, params)
    hidden = z
    for index, size in enumerate((64, 64, 5)):
        weight, bias = layer(params.emission, index)
        assert weight.shape[0] == size
        hidden = (np.maximum(hidden, 0.0) if index else hidden) @ weight.T + bias
    np.testing.assert_allclose(mean, hidden, rtol=1e-4, atol=1e-5)
    assert mean.shape == variance.shape == (2, 3, 5)
    assert not variance.any()
    (first, first_bias), (last, last_bias) = layer(params.encoder, 0), layer(params.encoder, 1)
    u = np.array([0.3, -0.2])
    expected_effect = last @ np.maximum(first @ u + first_bias, 0.0) + last_bias
    np.testing.assert_allclose(jax.jit(env.effect)(u, z[0, 0], params), expected_effect, rtol=1e-4)


def test_an_effect_that_depends_on_the_state_needs_an_action():
    env = VectorField("limit_cycle", encoder="state_mlp", num_inputs=3)
    params = env.params(jax.random.key(2))
    (first, bias), (last, last_bias) = layer(params.encoder, 0), layer(params.encoder, 1)
    assert first.shape == (16, 5)
    h = lambda u, z: last @ np.maximum(first @ np.concatenate([u, z]) + bias, 0.0) + last_bias
    u, nothing, rng = np.array([0.3, -0.2, 0.8]), np.zeros(3), np.random.default_rng(0)
    effect, effects = jax.jit(env.effect), []
    for z in rng.normal(size=(4, 2)):
        effects.append(effect(u, z, params))
        np.testing.assert_allclose(effects[-1], h(u, z) - h(nothing, z), rtol=1e-3, atol=1e-5)
        np.testing.assert_array_equal(effect(nothing, z, params), [0, 0])
    assert np.std(effects, axis=0).min() > 0.01


@pytest.mark.slow
def test_a_batch_mixes_fields_in_one_program():
    """Each with its own landscape and an action as strong as its field, by a given authority."""
    env = VectorField(("double_limit_cycle", "multi_attractor", "van_der_pol"))
    axis = np.linspace(-2, 2, 40, dtype=np.float32)
    z = jnp.asarray(np.stack(np.meshgrid(axis, axis), axis=-1))

    @jax.jit
    def play(keys):
        params = jax.vmap(lambda key, i: env.params(key, 0.5, field=i))(keys, jnp.arange(3))
        expected = (
            fields.double_limit_cycle(z),
            fields.multi_attractor(z, params.landscape[1]),
            fields.van_der_pol(z),
        )
        return params, jax.vmap(env.velocity, (None, 0))(z, params), expected

    params, velocity, expected = play(jax.random.split(jax.random.key(3), 3))
    np.testing.assert_allclose(velocity, expected, rtol=1e-5, atol=1e-6)
    speed = np.linalg.norm(velocity, axis=-1).mean(axis=(1, 2))
    np.testing.assert_allclose(params.action_bound, 0.5 * speed, rtol=1e-5)
    assert abs(params.landscape[0] - params.landscape[1]).max() > 0.1


def whirl(z):
    x, y = z  # of one state: a batch would be split along the wrong axis
    return jnp.stack([x * y - y, 2 * x])


def test_a_field_of_ones_own_stands_beside_named_ones():
    env = VectorField((whirl, "duffing"), "identity", "none", channels=2)
    params = env.params()
    z = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 2)), jnp.float32)
    own = np.array([[[x * y - y, 2 * x] for x, y in row] for row in np.asarray(z)])
    velocity = jax.jit(env.velocity)
    np.testing.assert_allclose(velocity(z, params), own, rtol=1e-5)
    second = velocity(z, replace(params, field=jnp.asarray(1)))
    np.testing.assert_allclose(second, fields.duffing(z), rtol=1e-5, atol=1e-6)
    x, y = np.meshgrid(*2 * [np.linspace(-2, 2, 40)])
    assert params.action_bound == pytest.approx(np.hypot(x * y - y, 2 * x).mean(), rel=1e-5)
    assert VectorField(whirl) == VectorField(whirl) != VectorField(lambda z: whirl(z))


def test_slopes_of_a_step_are_those_of_finite_differences():
    env = VectorField("van_der_pol", "loglinear", channels=3, encoder="linear", num_inputs=2)
    params = env.params(jax.random.key(2))
    first = State(jnp.asarray(START), jnp.zeros(3), jnp.zeros((), jnp.int32))
    sloped = env.with_transition_gradients()
    data = jax.random.key_data(jax.random.key(1))

    @jax.jit
    def next_point(state_and_action):
        state = replace(first, z=state_and_action[:2])
        obs, state, *_ = sloped.step(
            jax.random.wrap_key_data(data), state, state_and_action[2:], params
        )
        return jnp.concatenate([state.z, obs])

    point = jnp.asarray([0.4, -1.1, 0.2, -0.3])
    slope = np.asarray(jax.jit(jax.jacrev(next_point))(point))
    step = 1e-2 * np.eye(4, dtype=np.float32)
    differences = [(next_point(point + s) - next_point(point - s)) / 2e-2 for s in step]
    np.testing.assert_allclose(slope, np.transpose(differences), atol=1e-3)
    assert abs(slope).max(axis=0).min() > 0.02  # it depends on everything
    assert sloped != env


def test_episodes_start_afresh_by_the_clock():
    """The latent state reported is the one that ended, the observation that of the new start.

    Also: walls hold what noise would carry beyond them.
    """
    env = VectorField(observation="identity", noise="none", channels=2)
    params = env.params(max_steps_in_episode=1, process_noise=0.5, reach=0.95)
    state, info = after_one_step(env, params, jnp.zeros(2), 4000)
    np.testing.assert_array_equal(info["final_observation"], info["latent"])
    np.testing.assert_array_equal(state.obs, state.z)
    assert info["truncated"].all()
    assert (abs(info["latent"]) <= np.float32(0.95)).all()
    assert 0.2 < (info["latent"][:, 1] == np.float32(-0.95)).mean() < 0.8
    assert (abs(state.z) <= 1).all()
    np.testing.assert_allclose(state.z.var(0), 1 / 3, rtol=0.1)
    correlation = np.corrcoef(state.z.T, info["latent"].T)[:2, 2:]
    assert abs(correlation).max() < 5 / np.sqrt(4000)


def test_weights_are_the_same_where_jax_has_64_bits():
    draw = lambda: VectorField("limit_cycle", channels=3).params(jax.random.key(5))
    expected = jax.tree.leaves(draw())
    with jax.enable_x64(True):
        weights = jax.tree.leaves(draw())
    assert [x.dtype for x in weights] == [x.dtype for x in expected]
    for actual, number in zip(weights, expected, strict=True):
        np.testing.assert_allclose(actual, number, rtol=1e-6)


def test_a_field_that_is_not_finite_has_no_authority():
    """Unless the largest input is given. A point at which it is not finite may be no place of any
    state, as the origin for a division by the radius."""
    env = VectorField(jnp.log, channels=3)
    with pytest.raises(ValueError, match=r"mean speed of the field within ±2, .* is nan"):
        env.params()
    assert env.params(action_bound=0.5).action_bound == 0.5
    axis = np.linspace(-2, 2, 40)
    speed = np.abs(np.hypot(*np.meshgrid(axis, axis)) - 1).mean()
    ring = VectorField(lambda z: z * (1 / jnp.linalg.norm(z) - 1), channels=3)
    np.testing.assert_allclose(ring.params().action_bound, speed, rtol=1e-5)


def test_the_default_field_has_authority_one():
    env = vector_field.env
    default_env, params = envs.make("VectorField-v0")
    assert default_env == env
    axis = np.linspace(-2, 2, 40)
    r = np.hypot(*np.meshgrid(axis, axis))
    speed = np.mean(0.1 * r * np.sqrt((1 - r**2) ** 2 + 1))
    assert params.action_bound == pytest.approx(speed, rel=1e-5)
    assert env.action_space().high == params.action_bound


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"fields": ("duffing", "roessler")},
            "field 'roessler' is unknown; expected one or more of",
        ),
        ({"fields": ()}, "fields is empty"),
        ({"fields": lambda z: z[0]}, r"shape=\(\), dtype=float32\) at one state; expected float32"),
        ({"fields": ("duffing", lambda z: [z[0], z[1]])}, r"as from jnp.stack\(\[dx, dy\]\)"),
        ({"observation": "eyes"}, "observation 'eyes' is unknown"),
        ({"noise": "loud"}, "noise 'loud' is unknown"),
        ({"noise": "poisson"}, "choose observation 'loglinear'"),
        ({"observation": "identity"}, "channels is 20, but the observation 'identity' has 2"),
        ({"channels": 0}, "channels is 0; expected at least 1"),
        ({"encoder": "rnn"}, "encoder 'rnn' is unknown"),
        ({"num_inputs": 3}, "num_inputs is 3, but the encoder 'identity' takes 2"),
        ({"encoder": "linear", "num_inputs": 0}, "num_inputs is 0; expected at least 1"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        VectorField(**arguments)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"dt": 0.0}, "dt is 0.0; expected a number above 0"),
        ({"process_noise": float("nan")}, "process_noise is nan; expected a number above 0"),
        ({"observation_noise": -0.1}, "observation_noise is -0.1"),
        ({"authority": 0}, "authority is 0; expected a number above 0"),
        ({"q": 0.1}, "params have no 'q'; expected some of field, landscape"),
        ({"field": 1}, "field is 1; expected an index from 0 to 0"),
        ({"dt": np.ones(3)}, r"dt has shape \(3,\); expected one number"),
        ({"dt": "0.1"}, "dt is '0.1'; expected a number"),
        ({"authority": None}, "authority is None; expected a number"),
        ({"field": 0j}, "field is 0j; expected a number"),
        ({"landscape": np.ones((40, 40, 2))}, "landscape has shapes"),
    ],
)
def test_bad_numbers_are_refused(numbers, message):
    with pytest.raises(ValueError, match=message):
        VectorField().params(**numbers)
