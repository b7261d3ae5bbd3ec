"""Expected information against a posterior updated datum by datum, and plans that are better."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics import posterior, rbf
from jaxrl.dynamics.planning import icem, next_inputs, plan_objectives
from jaxrl.dynamics.planning.input_limits import Limits, violations
from jaxrl.dynamics.planning.next_inputs import Question
from jaxrl.dynamics.planning.predictive_model import PredictiveModel

GRID, DT, NOISE = rbf.Grid(per_axis=6, half_width=2.5), 0.2, 2.0


@pytest.fixture(scope="module")
def question():
    """A slow drift to the middle; the left half of the plane is known well already."""
    field_belief = posterior.prior(36, 2, 50.0, 0.01)
    for z in np.random.default_rng(0).uniform(-2, 2, (200, 2)):
        z = jnp.asarray([-abs(z[0]), z[1]], jnp.float32)
        field_belief = posterior.update(field_belief, DT * rbf.features(GRID, z), jnp.zeros(2))
    model = PredictiveModel(
        step=lambda z, u: z + DT * (u - 0.3 * z),
        design=lambda z: DT * rbf.features(GRID, z),
        root=field_belief.root,
        relative_noise=jnp.asarray(NOISE),
        observation_information=lambda z: jnp.eye(2),
        predictive_variance=lambda z: posterior.predictive_variance(
            field_belief, rbf.features(GRID, z)
        ),
    )
    bound = jnp.ones(2)
    return Question(
        model, jnp.zeros(2), jnp.zeros(2), Limits(-bound, bound, 0.5, 4.0, DT)
    ), field_belief


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("steps", [12, 60])  # fewer than parameters, and more
def test_nats_are_what_a_posterior_gains(question, steps):
    (model, z, *_), field_belief = question
    plan = jnp.asarray(np.random.default_rng(1).uniform(-1, 1, (steps, 2)), jnp.float32)
    nats = jax.jit(partial(next_inputs.nats, model))(z, plan)
    after, nats_before = field_belief, float(field_belief.information)
    for u in plan:
        after = posterior.update(after, model.design(z), jnp.zeros(2), NOISE)
        z = model.step(z, u)
    np.testing.assert_allclose(nats, float(after.information) - nats_before, rtol=1e-3)


@pytest.mark.slow
def test_many_plans_are_weighed_in_parts(question, monkeypatch):
    (model, z, *_), _ = question
    plans = np.random.default_rng(2).uniform(-1, 1, (7, 9, 2)).astype(np.float32)
    expected = [float(jax.jit(partial(next_inputs.nats, model))(z, plan)) for plan in plans]
    for most in (1, 3 * 9 * 2 * 36, 10**9):
        monkeypatch.setattr(next_inputs, "MOST_NUMBERS", most)
        gains = jax.jit(partial(next_inputs.nats_of_all, model))(z, plans)
        np.testing.assert_allclose(gains, expected, rtol=1e-4)


@pytest.mark.slow
def test_the_best_plan_is_better_than_chance_and_within_the_limits(question):
    (question, _), steps, hold = question, 20, 4
    config = icem.Config(horizon=5, candidates=48, elites=8, iterations=5, initial_std=1.0)
    search = jax.jit(lambda key: next_inputs.best(question, config, hold, steps, key))
    draw = jax.jit(lambda key: next_inputs.random(question, 200, hold, steps, key))
    plan, others = search(jax.random.key(0)), draw(jax.random.key(1))
    assert others.shape == (200, steps, 2)
    nats = jax.jit(partial(next_inputs.nats, question.model, question.z))
    random_nats = np.asarray(jax.vmap(nats)(others))
    assert nats(plan) > random_nats.max()
    assert nats(plan) > nats(jnp.zeros((steps, 2)))
    for one in (plan, *others[:20]):
        for beyond in violations(question.limits, question.before, one).values():
            assert beyond <= 1e-5
    path = plan_objectives.path(question.model, question.z, plan)
    assert path[-1, 0] > 0.5  # to the right, of which nothing is known
