"""One sample after the other, other coordinates, and the choice among several models."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.bases import Grid, Polynomial
from jaxrl.dynamics.planning import plan_objectives, stimulation
from jaxrl.dynamics.state_space import channels, move
from jaxrl.dynamics.state_space.field_posterior import Prior, prior_deviations
from jaxrl.dynamics.state_space.filter import Record, filter_states, predict
from jaxrl.dynamics.state_space.model import step
from jaxrl.dynamics.state_space.online import candidates, choice, coordinates
from jaxrl.dynamics.state_space.online.choice import Choice
from tests.jaxrl.dynamics.state_space.models import random_model, simulate

PRIOR = Prior(weights=0.3)
BUMPS = Grid(per_axis=4, half_width=2.5)


def exactly_observed_model(field=BUMPS):
    model, params = random_model(field, counts=(False, False))
    return model, params._replace(
        matrix=jnp.eye(2), offset=jnp.zeros(2), log_noise=jnp.full(2, np.log(1e-3))
    )


def candidate_of(model, params):
    fresh = candidates.begin(model, PRIOR, jax.random.key(0))
    return fresh._replace(posterior=fresh.posterior._replace(params=params))


def add_samples(model, candidate, record: Record):
    return jax.jit(
        lambda c, r: jax.lax.scan(
            lambda c, x: (candidates.add_sample(model, c, x, "extended"), c.expected), c, r
        )
    )(candidate, record)


@pytest.mark.slow
def test_samples_one_by_one_are_a_regression_where_states_are_seen():
    """Parameters, their covariance and the nats that are gained, in closed form."""
    model, truth = exactly_observed_model()
    record = simulate(model, truth, 80)
    start = truth._replace(weights=0 * truth.weights, transition=0 * truth.transition)
    after, _ = add_samples(model, candidate_of(model, start), record)
    y, u = np.asarray(record.y, np.float64), np.asarray(record.u)
    rows = jax.vmap(partial(move.regressors, model, start))(*map(jnp.asarray, (y[:-1], u[:-1])))
    x = np.asarray(rows, np.float64)
    deviation = np.asarray(prior_deviations(model, start, PRIOR)[2:], np.float64).reshape(-1, 2)
    prior_move = np.asarray(move.parameters(model, start).move, np.float64)
    covariance = np.asarray(after.posterior.root @ after.posterior.root.T)
    nats = 0.0
    for i in range(2):
        noise = np.exp(2 * float(truth.log_process[i])) + 2e-6
        precision = x.T @ x / noise + np.diag(deviation[:, i] ** -2)
        target = (y[1:] - y[:-1])[:, i] - x @ prior_move[:, i]
        expected = prior_move[:, i] + np.linalg.solve(precision, x.T @ target / noise)
        np.testing.assert_allclose(
            move.parameters(model, after.posterior.params).move[:, i], expected, atol=0.01
        )
        np.testing.assert_allclose(
            covariance[i::2, i::2], np.linalg.inv(precision), rtol=0.02, atol=2e-4
        )
        nats += 0.5 * np.linalg.slogdet(precision * np.outer(deviation[:, i], deviation[:, i]))[1]
    assert after.posterior.information == pytest.approx(nats, rel=0.01)


@pytest.mark.slow
def test_a_missing_sample_teaches_nothing():
    model, truth = random_model(BUMPS)
    before = candidate_of(model, truth)
    record = simulate(model, truth, 3)
    after, _ = add_samples(model, before, record._replace(observed=jnp.zeros((3, 5), bool)))
    np.testing.assert_allclose(after.posterior.root, before.posterior.root, atol=1e-6)
    np.testing.assert_allclose(after.posterior.params.weights, truth.weights, atol=1e-6)


@pytest.mark.slow
def test_states_expected_are_those_of_the_filter_while_nothing_is_learned():
    """A field without a prior width learns nothing: all stays where it is."""
    model, truth = random_model(BUMPS, missing := (False, True, False, False, True))
    assert any(missing)
    record = simulate(model, truth, 30, missing=0.2)
    still = candidate_of(model, truth)
    still = still._replace(posterior=still.posterior._replace(root=0 * still.posterior.root))
    still = still._replace(expected=candidates.first_belief(truth))
    after, expected = add_samples(model, still, record)
    whole = filter_states(model, truth, record)
    np.testing.assert_allclose(expected.mean, whole.before.mean, atol=1e-4)
    np.testing.assert_allclose(expected.covariance, whole.before.covariance, atol=1e-4)
    last = jax.tree.map(lambda x: x[-1], whole.belief)
    np.testing.assert_allclose(
        after.expected.mean,
        predict(model, truth, last, record.u[-1], "extended")[0].mean,
        atol=1e-4,
    )


@pytest.mark.slow
def test_a_refit_filters_all_samples_again():
    """In padding, too, what is expected next is one step after the last sample."""
    model, truth = random_model(BUMPS)
    record = simulate(model, truth, 60)
    padded = jax.tree.map(lambda x: jnp.concatenate([x, 0 * x[:20]]), record)
    refit = jax.jit(partial(candidates.refit, prior=PRIOR, prediction="extended"))
    after = refit(
        model, candidate_of(model, truth), padded, jnp.array([2, 1]), key=jax.random.key(0)
    )
    params = after.posterior.params
    whole = filter_states(model, params, record)
    last = jax.tree.map(lambda x: x[-1], whole.belief)
    expected, _ = predict(model, params, last, record.u[-1], "extended")
    np.testing.assert_allclose(after.expected.mean, expected.mean, atol=1e-4)
    np.testing.assert_allclose(
        after.regressors, move.regressors(model, params, last.mean, record.u[-1]), atol=1e-4
    )
    assert np.isfinite(after.log_evidence)


@pytest.mark.slow
@pytest.mark.parametrize("effect", ["linear", "mlp", "state_mlp"])
def test_other_coordinates_are_the_same_system(effect):
    """Their states have mean 0 and unit covariance, move alike and are seen alike.

    Exactly, as polynomials are polynomials in any coordinates.
    """
    model, truth = random_model(Polynomial(degree=2, half_width=2.0), effect=effect)
    rng = np.random.default_rng(0)
    if effect != "linear":
        *inner, out = truth.effect_layers
        out = jnp.asarray(rng.normal(0, 0.3, out.shape), jnp.float32)
        truth = truth._replace(effect_layers=(*inner, out))
    spread, centre = np.array([[1.5, 0.0], [0.7, 0.4]]), np.array([0.5, -1.0])
    states = jnp.asarray(rng.normal(size=(300, 2)) @ spread.T + centre, jnp.float32)
    valid = jnp.arange(300) < 280
    deviations = jnp.full((model.num_features + 5, 2), 100.0)
    new_params = coordinates.standardise(model, truth, states, valid, deviations)
    inside = np.asarray(states[:280], np.float64)
    root = np.linalg.cholesky(np.cov(inside.T, bias=True) + 1e-4 * np.eye(2))
    standard_states = jnp.asarray(np.linalg.solve(root, (inside - inside.mean(0)).T).T, jnp.float32)
    np.testing.assert_allclose(standard_states.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(
        channels.mean(model.is_count, new_params, standard_states),
        channels.mean(model.is_count, truth, states[:280]),
        atol=2e-3,
    )
    u = jnp.asarray(rng.normal(size=(280, 2)), jnp.float32)
    ours = jax.vmap(partial(step, model, new_params))(standard_states, u)
    back = np.asarray(ours, np.float64) @ root.T + inside.mean(0)
    np.testing.assert_allclose(
        back, jax.vmap(partial(step, model, truth))(states[:280], u), atol=5e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 1])
def test_plans_of_several_models_are_those_of_the_chosen_one(place):
    models, each = [], []
    for field in (BUMPS, Polynomial(degree=3, half_width=2.0)):
        model, truth = random_model(field)
        models.append(model)
        each.append(candidate_of(model, truth)._replace(log_evidence=jnp.asarray(-1.0)))
    each[place] = each[place]._replace(log_evidence=jnp.asarray(3.0))
    chosen = choice.choose(each)
    assert int(chosen.place) == place
    both = choice.predictive_model(models, chosen)
    alone = choice.predictive_model(
        models[place : place + 1], Choice((each[place],), jnp.zeros((), jnp.int32))
    )
    z, u = jnp.array([0.4, -0.3]), jnp.array([0.2, 0.5])
    np.testing.assert_allclose(both.step(z, u), alone.step(z, u), rtol=1e-5)
    for name in ("predictive_variance", "observation_information", "place", "remaining"):
        np.testing.assert_allclose(getattr(both, name)(z), getattr(alone, name)(z), rtol=1e-5)
    plan = jnp.asarray(np.random.default_rng(2).normal(size=(6, 2)), jnp.float32)
    for objective in ("d_optimal", "a_optimal"):
        for propagate in (False, True):
            config = stimulation.Config(objective=objective, propagate=propagate)
            gain = partial(plan_objectives.plan_gain, config)
            np.testing.assert_allclose(gain(both, plan, z), gain(alone, plan, z), rtol=1e-3)


@pytest.mark.slow
def test_a_candidate_without_marginal_likelihood_is_not_chosen():
    model, truth = random_model(None)
    each = [
        candidate_of(model, truth)._replace(log_evidence=jnp.asarray(x)) for x in (np.nan, -9.0)
    ]
    assert int(choice.choose(each).place) == 1


@pytest.mark.slow
def test_forecasts_of_a_field_that_runs_away_are_finite():
    model, truth = random_model(Polynomial(degree=2, half_width=2.0), counts=(False,) * 5)
    wild = truth._replace(weights=50 + 0 * truth.weights)
    chosen = Choice((candidate_of(model, wild),), jnp.zeros((), jnp.int32))
    record = simulate(model, truth, 20)
    expected = choice.forecast([model], "extended", chosen, record.y, record.u, 30)
    assert np.isfinite(np.asarray(expected)).all()
