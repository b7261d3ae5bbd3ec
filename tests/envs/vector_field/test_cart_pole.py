"""The cart-pole against Lagrange's equations, solved as a pair in NumPy, and its energy."""

import math
from dataclasses import astuple, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.vector_field.cart_pole import CircularCartPole, Params

NUM_STEPS = 400


def slow_accelerations(speed, angle, angle_speed, push, p):
    """Mass matrix times accelerations equals forces."""
    m, l = p.pole_mass, p.half_length
    masses = [
        [p.cart_mass + m, m * l * math.cos(angle)],
        [m * l * math.cos(angle), 4 / 3 * m * l**2],
    ]
    forces = [
        push - p.cart_friction * speed + m * l * angle_speed**2 * math.sin(angle),
        m * p.gravity * l * math.sin(angle) - p.pole_friction * angle_speed,
    ]
    return np.linalg.solve(masses, forces)


def play(env, params, start, actions):
    """States of all steps, `[T]` each, and what was seen."""
    _, state = env.reset(jax.random.key(0), params)
    names = ("track_angle", "speed", "pole_angle", "pole_speed")
    state = replace(state, **{n: jnp.asarray(v) for n, v in zip(names, start, strict=True)})

    @jax.jit
    def run(state):
        def step(state, action):
            key = jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32))  # chance decides nothing
            obs, state, reward, *_ = env.step(key, state, action[None], params)
            return state, (state, obs, reward)

        return jax.lax.scan(step, state, actions)[1]

    return jax.device_get(run(state))


def test_a_run_is_the_one_of_lagrange():
    """Swings over the top and around the track, with actions beyond the bound."""
    params = Params(cart_mass=0.8, pole_mass=0.3, half_length=0.6)
    actions = np.random.default_rng(0).normal(size=NUM_STEPS).astype(np.float32)
    start = (3.0, 2.0, 0.3, -4.0)
    state, obs, reward = play(CircularCartPole(), params, start, actions)
    phi, speed, theta, turn = start
    for t in range(NUM_STEPS):
        push = 30 * float(np.clip(actions[t], -1, 1))
        cart, pole = slow_accelerations(speed, theta, turn, push, params)
        speed, turn = speed + 0.005 * cart, turn + 0.005 * pole
        phi, theta = phi + 0.005 * speed * 2 * math.pi / 4.8, theta + 0.005 * turn
        circles = [math.sin(phi), math.cos(phi), math.sin(theta), math.cos(theta)]
        np.testing.assert_allclose(obs[t, [0, 1, 3, 4]], circles, atol=2e-3)
        np.testing.assert_allclose(obs[t, [2, 5]], [speed * 2 * math.pi / 4.8, turn], atol=5e-3)
        assert reward[t] == pytest.approx(math.cos(theta), abs=2e-3)
    assert abs(theta) > math.pi or abs(phi) > math.pi  # it did wrap
    assert abs(state.track_angle).max() <= np.float32(math.pi)


def test_energy_changes_by_work_and_friction_alone():
    """The energy by a fine clock: E = ½ M x'² + m l x' θ' cos θ + 2/3 m l² θ'² + m g l cos θ."""
    params = Params(dt=2e-4)
    actions = np.full(5000, 0.1, np.float32)
    state, _, _ = play(CircularCartPole(), params, (0.0, 1.0, 1.0, 2.0), actions)
    x, theta, turn = (
        np.asarray(v, float) for v in (state.speed, state.pole_angle, state.pole_speed)
    )
    energy = 0.55 * x**2 + 0.1 * x * turn * np.cos(theta)
    energy += 0.1 * (2 / 3 * turn**2 + 9.8 * np.cos(theta))
    gained = np.cumsum(2e-4 * (3.0 * x - 0.05 * x**2 - 0.01 * turn**2))
    drift = (energy - energy[0]) - (gained - gained[0])
    assert abs(drift).max() < 0.01 * np.ptp(energy)


@pytest.mark.parametrize("observation", ["no_velocities", "angles"])
def test_parts_of_it_are_seen(observation):
    env = CircularCartPole(observation)
    obs, state = env.reset(jax.random.key(1))
    phi, _, theta, _, _ = astuple(state)
    circles = [jnp.sin(phi), jnp.cos(phi), jnp.sin(theta), jnp.cos(theta)]
    expected = [phi, theta] if observation == "angles" else circles
    np.testing.assert_allclose(obs, np.asarray(expected), rtol=1e-6)
    assert env.observation_space().shape == obs.shape


def test_a_step_can_be_differentiated():
    env = CircularCartPole().with_transition_gradients()
    _, state = env.reset(jax.random.key(1))

    def speed(action):
        return env.step(jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32)), state, action)[1].speed

    weight = slow_accelerations(0.0, float(state.pole_angle), 0.0, 30.0, Params(gravity=0.0))[0]
    np.testing.assert_allclose(jax.grad(speed)(jnp.zeros(1)), 0.005 * weight, rtol=1e-4)


def test_unknown_observation_is_refused():
    with pytest.raises(ValueError, match="observation 'eyes' is unknown; expected one of full"):
        CircularCartPole("eyes")
