"""Fields in more than two dimensions, and a cart-pole written as a field, in plain NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.vector_field import CircularCartPole, VectorField, cart_pole, fields, higher
from envs.vector_field.cart_pole_field import CartPoleField

RNG = np.random.default_rng(0)
LORENZ = jax.jit(higher.lorenz)


def points(dims: int) -> Any:
    return RNG.uniform(-2, 2, (3, 5, dims)).astype(np.float32)


def test_the_attractor_of_lorenz_in_its_own_units():
    z = points(3)
    x, y, height = 12.0 * z[..., 0], 12.0 * z[..., 1], 12.0 * z[..., 2] + 25
    own = np.stack([10 * (y - x), x * (28 - height) - y, x * y - 8 / 3 * height], axis=-1)
    np.testing.assert_allclose(LORENZ(z), 0.05 * own / 12, rtol=1e-4, atol=1e-5)
    wing = 72**0.5 / 12
    still = jnp.array([[wing, wing, 2 / 12], [-wing, -wing, 2 / 12], [0, 0, -25 / 12]])
    np.testing.assert_allclose(LORENZ(still), 0, atol=1e-5)


def test_an_orbit_of_lorenz_stays_within_the_box_and_visits_both_wings():
    def step(z, _):
        z = z + 0.1 * higher.lorenz(z)
        return z, z

    _, path = jax.jit(lambda z: jax.lax.scan(step, z, length=6_000))(jnp.array([0.5, 0.5, 0.0]))
    assert np.abs(path[500:]).max() < 2.5
    assert 0.2 < (path[500:, 0] > 0).mean() < 0.8


def test_a_cycle_on_a_saddle_comes_back_to_it():
    z = points(3)
    x, y, w = z[..., 0], z[..., 1], z[..., 2]
    plane = fields.limit_cycle(z[..., :2])
    expected = np.concatenate([plane, 0.2 * (x**2 - y**2 - w)[..., None]], axis=-1)
    np.testing.assert_allclose(jax.jit(higher.saddle_cycle)(z), expected, rtol=1e-4, atol=1e-5)


def test_coupled_cycles_one_oscillator_at_a_time():
    z = points(8)
    velocity = np.asarray(jax.jit(higher.coupled_cycles)(z))
    for k in range(4):
        x, y = z[..., 2 * k], z[..., 2 * k + 1]
        turn = (1 + k / 2) * (-1) ** k
        pull = 1 - x**2 - y**2
        after = (2 * k + 2) % 8
        dx = x * pull - turn * y + 0.5 * (z[..., after] - x)
        dy = y * pull + turn * x + 0.5 * (z[..., after + 1] - y)
        np.testing.assert_allclose(velocity[..., 2 * k], 0.1 * dx, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(velocity[..., 2 * k + 1], 0.1 * dy, rtol=1e-4, atol=1e-5)


def test_a_network_is_drawn_for_each_world():
    env = VectorField("network", channels=3, encoder="linear", num_inputs=2, dims=5)
    one, other = env.params(jax.random.key(0)), env.params(jax.random.key(1))
    weights, others = np.asarray(one.network), np.asarray(other.network)
    assert weights.shape == (5, 5)
    assert np.abs(weights - others).max() > 0.1
    z = points(5)
    expected = 0.3 * (np.tanh(z) @ weights.T - z)
    np.testing.assert_allclose(jax.jit(env.velocity)(z, one), expected, rtol=1e-4, atol=1e-5)
    deviation = np.std(higher.network_weights(jax.random.key(2), 400))
    np.testing.assert_allclose(deviation, 2 / 20, rtol=0.02)


def test_the_state_moves_in_all_dimensions():
    env = VectorField("lorenz", "identity", "none", 3, num_inputs=3, dims=3)
    params: Any = env.params()
    samples = np.random.default_rng(0).uniform(-2, 2, (4_096, 3)).astype(np.float32)
    speed = np.linalg.norm(LORENZ(samples), axis=-1).mean()
    np.testing.assert_allclose(params.action_bound, speed, rtol=1e-4)
    quiet = params.replace(process_noise=0.0)
    _, state = env.reset(jax.random.key(0), quiet)
    assert state.z.shape == (3,)
    u = jnp.array([0.1, -0.2, 0.05])
    obs, after, *_ = env.step(jax.random.key(1), state, u, quiet)
    expected = state.z + 0.1 * (LORENZ(state.z) + u)
    np.testing.assert_allclose(obs, expected, rtol=1e-5)
    np.testing.assert_array_equal(obs, after.z)


@pytest.mark.parametrize(
    ("name", "dims", "message"),
    [
        ("lorenz", 2, "dimension is 2, but the field 'lorenz' needs 3"),
        ("limit_cycle", 3, "dimension is 3, but the field 'limit_cycle' needs 2"),
        ("coupled_cycles", 5, "needs an even number above 2"),
        ("coupled_cycles", 2, "needs an even number above 2"),
        ("network", 0, "dims is 0; expected at least 1"),
    ],
)
def test_a_field_has_its_dimensions(name, dims, message):
    with pytest.raises(ValueError, match=message):
        VectorField(name, dims=dims, num_inputs=max(dims, 1))


# The cart-pole.

CART = CartPoleField("full", "gaussian")
NUMBERS = CART.params(authority=0.5, process_noise=1e-12)


def wrap_angle(angle):
    return (angle + np.pi) % (2 * np.pi) - np.pi


def cart_state(z: np.ndarray) -> cart_pole.State:
    radius = 4.8 / (2 * np.pi)
    return cart_pole.State(z[0], 4 * z[1] * radius, z[2], 4 * z[3], jnp.zeros((), jnp.int32))


def test_a_step_of_the_field_is_four_of_the_cart_pole():
    """The force is held, and the angles go round."""
    env, numbers = CircularCartPole(), cart_pole.Params(dt=0.005)
    step = jax.jit(CART.step)
    for z in RNG.uniform(-3, 3, (4, 4)).astype(np.float32):
        u = np.float32(RNG.uniform(-0.5, 0.5))
        state = cart_state(z)
        for _ in range(4):
            _, state, *_ = env.step(jax.random.key(0), state, jnp.array([u]), numbers)
        _, begin = CART.reset(jax.random.key(0), NUMBERS)
        _, next_state, *_ = step(
            jax.random.key(1), begin.replace(z=jnp.asarray(z)), jnp.array([u]), NUMBERS
        )
        radius = 4.8 / (2 * np.pi)
        expected = [state.track_angle, state.speed / radius / 4]
        expected += [state.pole_angle, state.pole_speed / 4]
        miss = np.asarray(next_state.z) - np.array(expected)
        miss[[0, 2]] = wrap_angle(miss[[0, 2]])
        np.testing.assert_allclose(miss, 0, atol=2e-4)
        assert np.abs(np.asarray(next_state.z)[[0, 2]]).max() <= np.pi + 1e-5


def test_accelerations_are_those_of_the_equations_of_motion():
    """In the limit of short steps; without force, and what a force adds."""
    env = CartPoleField(substeps=1)
    params = env.params(dt=1e-3)
    velocity, effect = jax.jit(env.velocity), jax.jit(env.effect)
    accelerations = jax.jit(cart_pole.accelerations)
    for z in RNG.uniform(-2, 2, (5, 4)).astype(np.float32):
        state, numbers, u = cart_state(z), cart_pole.Params(), 0.3
        rates = []
        for push in (0.0, 30 * u):
            cart, pole = accelerations(
                state.speed, state.pole_angle, state.pole_speed, jnp.asarray(push), numbers
            )
            rates.append(np.array([cart / (4.8 / (2 * np.pi)) / 4, pole / 4]))
        drift_rates = env.scored_components(velocity(jnp.asarray(z), params))
        np.testing.assert_allclose(drift_rates, rates[0], rtol=0.02, atol=0.02)
        effect_rates = env.scored_components(effect(jnp.array([u]), jnp.asarray(z), params))
        np.testing.assert_allclose(effect_rates, rates[1] - rates[0], rtol=0.02, atol=0.02)


def test_what_is_observed_of_a_cart_pole():
    z = np.array([0.3, -0.5, 2.0, 0.7], np.float32)
    circles = [np.sin(0.3), np.cos(0.3), -0.5, np.sin(2.0), np.cos(2.0), 0.7]
    mean, variance = CART.emission(jnp.asarray(z), NUMBERS)
    np.testing.assert_allclose(mean, circles, rtol=1e-5)
    np.testing.assert_allclose(variance, [0.01] * 6, rtol=1e-5)
    blind = CartPoleField("no_velocities")
    mean, variance = blind.emission(jnp.asarray(z), NUMBERS)
    np.testing.assert_allclose(mean, [circles[i] for i in (0, 1, 3, 4)], rtol=1e-5)
    assert not variance.any()
    assert blind.channels == 4
    identity_env = CartPoleField()
    np.testing.assert_array_equal(identity_env.emission(jnp.asarray(z), NUMBERS)[0], z)
    np.testing.assert_allclose(identity_env.smooth(jnp.asarray(z)), circles, rtol=1e-5)
    np.testing.assert_array_equal(CART.smooth(mean), mean)
    assert CartPoleField() == CartPoleField()
    assert CartPoleField() != CART
    with pytest.raises(ValueError, match="a cart-pole has no observation 'linear'"):
        CartPoleField("linear")
    np.testing.assert_allclose(NUMBERS.action_bound, 0.5)
    np.testing.assert_allclose(NUMBERS.dt, 0.02)
    assert CART.params(authority=3.0).action_bound == 1
