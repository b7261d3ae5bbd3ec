"""Fits of which some parts are known: these stay, and the others reach the largest likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.state_space.filter import filter_states
from jaxrl.dynamics.state_space.fitting import fit
from jaxrl.dynamics.state_space.fitting.objective import Objective, ahead_loss
from tests.jaxrl.dynamics.state_space.models import random_model, simulate

KNOWN = ("matrix", "offset", "log_noise")


@pytest.mark.slow
def test_what_is_known_stays_and_the_rest_is_at_least_as_likely_as_the_truth():
    model, truth = random_model()
    record = simulate(model, truth, 200)
    episodes = jax.tree.map(lambda x: x[None], record)
    config = fit.Config(
        steps=150,
        windows=1,
        window=200,
        learning_rate=0.05,
        objective=Objective(ahead_steps=0, prior=10.0),
        known=KNOWN,
    )
    start = truth._replace(
        transition=-0.5 * jnp.eye(2), effect=jnp.zeros_like(truth.effect), log_process=jnp.zeros(2)
    )

    @jax.jit
    def run(initial_fit: fit.Fit) -> fit.Fit:
        step = lambda i, f: fit.gradient_step(config, model, f, episodes, jax.random.key(i))[0]
        return jax.lax.fori_loop(0, config.steps, step, initial_fit)

    fitted = run(fit.init(config, start)).params
    for name in KNOWN:
        np.testing.assert_array_equal(getattr(fitted, name), getattr(truth, name))
    likelihood = lambda params: float(filter_states(model, params, record).log_likelihood.sum())
    assert likelihood(start) < likelihood(truth) - 5
    assert likelihood(fitted) > likelihood(truth) - 0.5  # the maximum is above it


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("length", [1, 7, 40, 2, 6, 12, 15, 16])
def test_steps_ahead_are_compared_with_the_same_steps(length):
    """Nothing but the logarithm of a noise of 0.01 is left, in windows of any length."""
    model, params = random_model()
    low = lambda x: jnp.full_like(x, jnp.log(1e-4))
    params = params._replace(
        log_process=low(params.log_process),
        first_log_deviation=low(params.first_log_deviation),
        log_noise=jnp.full_like(params.log_noise, jnp.log(0.01)),
    )
    window = simulate(model, params, length)
    states = filter_states(model, params, window)
    losses, count = ahead_loss(Objective(), model, params, window, states, jax.random.key(0))
    steps = min(10, max(length - 6, 1)) if length > 1 else 0
    assert count == 5 * steps
    # squared normal errors are 1 on average, within five of their deviations
    error = float(losses) / max(int(count), 1) - np.log(0.01) - 0.5
    assert length == 1 or abs(error) < 0.2 + 5 * np.sqrt(0.5 / int(count))


def test_what_is_known_must_be_a_part():
    _, params = random_model()
    with pytest.raises(ValueError, match="known has C; expected some of transition, drift"):
        fit.init(fit.Config(known=("C",)), params)
