"""Random network distillation against its two networks and Adam written out in NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.planning import distillation
from jaxrl.dynamics.planning.distillation import Config

SMALL = Config(width=5, outputs=3, learning_rate=0.05, batch=4, remembered=6)


def network_outputs(network, z: np.ndarray) -> np.ndarray:
    inner, bias, outer = (np.asarray(x, np.float64) for x in network)
    return np.tanh(z @ inner + bias) @ outer


def errors(state, z: np.ndarray) -> np.ndarray:
    return np.mean(
        (network_outputs(state.params, z) - network_outputs(state.target, z)) ** 2, axis=-1
    )


def test_novelty_is_the_error_about_the_fixed_network():
    state = distillation.init(jax.random.key(0), SMALL, 2)
    z = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)
    novelty = jax.jit(distillation.novelty)(state, z)
    np.testing.assert_allclose(novelty, errors(state, z), rtol=1e-4)
    assert novelty.min() > 0


def test_a_visit_is_a_step_of_adam_on_new_and_remembered_states():
    """Backpropagated by hand; the batch is the newest state and rows of the memory."""
    state, z = distillation.init(jax.random.key(1), SMALL, 2), np.zeros((9, 2), np.float32)
    z[:] = np.random.default_rng(1).normal(size=z.shape)
    moments = [(np.zeros(x.shape), np.zeros(x.shape)) for x in state.params]
    learn = jax.jit(distillation.learn, static_argnums=0)
    for t, visit in enumerate(z):
        key = jax.random.key(10 + t)
        after = learn(SMALL, state, visit, jax.random.clone(key))
        num_stored = min(t + 1, SMALL.remembered)
        memory = np.asarray(after.seen)
        expected_memory = [z[s] for s in range(t + 1) if s > t - SMALL.remembered]
        assert {tuple(x) for x in memory[:num_stored]} == {tuple(x) for x in expected_memory}
        rows = np.asarray(jax.random.randint(key, (3,), 0, num_stored))
        batch = np.concatenate([visit[None], memory[rows]]).astype(np.float64)
        inner, bias, outer = (np.asarray(x, np.float64) for x in state.params)
        hidden = np.tanh(batch @ inner + bias)
        miss = 2 * (hidden @ outer - network_outputs(state.target, batch)) / (4 * 3)
        back = (miss @ outer.T) * (1 - hidden**2)
        slopes = (batch.T @ back, back.sum(axis=0), hidden.T @ miss)
        for i, (slope, before) in enumerate(zip(slopes, (inner, bias, outer), strict=True)):
            first, second = moments[i]
            moments[i] = (0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2)
            mean, square = (
                moments[i][0] / (1 - 0.9 ** (t + 1)),
                moments[i][1] / (1 - 0.999 ** (t + 1)),
            )
            step = 0.05 * mean / (np.sqrt(square) + 1e-8)
            np.testing.assert_allclose(after.params[i], before - step, rtol=2e-3, atol=2e-5)
        np.testing.assert_array_equal(after.target.inner, state.target.inner)
        state = after
    assert state.count == 9


def test_visited_states_are_less_new_than_others():
    """After two turns on a circle on the left, it is known and the right is not."""
    config = Config()
    angle = np.linspace(0, 4 * np.pi, 800)
    circle: Any = np.stack([np.cos(angle) - 1.5, np.sin(angle)], axis=1).astype(np.float32)
    state = distillation.init(jax.random.key(2), config, 2)
    initial_novelty = distillation.novelty(state, circle)
    visit = jax.jit(distillation.learn_path, static_argnums=0)
    state = visit(config, state, jnp.asarray(circle), jax.random.key(3))
    circle_novelty = np.asarray(distillation.novelty(state, circle))
    mirrored: Any = circle * np.array([-1, 1], np.float32)
    mirrored_novelty = np.asarray(distillation.novelty(state, mirrored))
    assert circle_novelty.mean() < 0.05 * np.asarray(initial_novelty).mean()
    assert mirrored_novelty.mean() > 5 * circle_novelty.mean()


def test_the_same_key_draws_the_same_networks_and_no_novelty_is_none():
    one, same, other = (distillation.init(jax.random.key(k), SMALL, 3) for k in (0, 0, 1))
    jax.tree.map(np.testing.assert_array_equal, one, same)
    assert np.abs(one.target.inner - other.target.inner).max() > 0.1
    assert distillation.novelty_of(()) is None
