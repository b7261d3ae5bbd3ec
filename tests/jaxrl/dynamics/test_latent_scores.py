"""Scores of a learned latent model: formulas in loops, and a model that is known to be right."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics import latent_scores


def test_r2_channel_by_channel():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(30, 3, 4)) + 5
    prediction = truth + rng.normal(scale=0.5, size=truth.shape)
    prediction[:, 2] = truth[:, 2].mean(axis=0)
    expected = []
    for k in range(3):
        shares = []
        for c in range(4):
            y, guess = truth[:, k, c], prediction[:, k, c]
            shares.append(1 - sum((y - guess) ** 2) / sum((y - y.mean()) ** 2))
        expected.append(np.mean(shares))
    r2 = latent_scores.k_step_r2(jnp.asarray(prediction), jnp.asarray(truth))
    np.testing.assert_allclose(r2, expected, atol=1e-4)
    assert abs(float(r2[2])) < 1e-4
    with pytest.raises(ValueError, match="expected one shape"):
        latent_scores.k_step_r2(jnp.zeros((2, 3, 4)), jnp.zeros((2, 3, 1)))


def test_r2_of_what_counts_is_that_of_the_rest_removed():
    rng = np.random.default_rng(2)
    truth, prediction = rng.normal(size=(2, 40, 3, 4))
    counted = np.broadcast_to(rng.uniform(size=(40, 1, 4)) > 0.4, truth.shape).copy()
    counted[..., 3] = False  # a channel that was never observed
    expected = []
    for c in range(3):
        is_counted = counted[:, 0, c]
        pair = (jnp.asarray(x[is_counted][..., c : c + 1]) for x in (prediction, truth))
        expected.append(latent_scores.k_step_r2(*pair))
    r2 = latent_scores.k_step_r2(*map(jnp.asarray, (prediction, truth, counted)))
    np.testing.assert_allclose(r2, np.mean(expected, axis=0), rtol=1e-4)
    everything = latent_scores.k_step_r2(prediction, truth, jnp.ones(truth.shape, bool))
    np.testing.assert_allclose(everything, latent_scores.k_step_r2(prediction, truth), rtol=1e-5)


def test_r2_has_no_unit():
    """Recordings in volts score as they do in microvolts."""
    rng = np.random.default_rng(3)
    truth, prediction = rng.normal(size=(2, 200, 3, 2))
    expected = 1 - ((truth - prediction) ** 2).sum(0) / ((truth - truth.mean(0)) ** 2).sum(0)
    for unit in (1e-30, 1e-19, 1e-6, 1e-3, 1.0, 1e6, 1e19, 1e30):
        pair = (jnp.asarray(unit * x, jnp.float32) for x in (prediction, truth))
        r2 = latent_scores.k_step_r2(*pair)
        np.testing.assert_allclose(r2, expected.mean(-1), rtol=1e-4, err_msg=str(unit))


def test_a_channel_that_stays_the_same_has_no_r2():
    """A unit may be silent in held-out episodes; where all are there is none at all."""
    rng = np.random.default_rng(4)
    truth, prediction = rng.normal(size=(2, 50, 2, 3)).astype(np.float32)
    truth[:, 0, 1], truth[:, 1] = 0.1, 0
    r2 = latent_scores.k_step_r2(jnp.asarray(prediction), jnp.asarray(truth))
    others = [jnp.asarray(x[:, :1, ::2]) for x in (prediction, truth)]
    np.testing.assert_allclose(r2[0], latent_scores.k_step_r2(*others)[0], rtol=1e-5)
    assert np.isnan(r2[1])


def test_a_field_in_other_coordinates_is_brought_back():
    """Learned z' = R z + t shows the same, and moves as R times the true velocity."""
    rng = np.random.default_rng(1)
    turn, shift = rng.normal(size=(2, 2)), rng.normal(size=2)
    matrix, offset = rng.normal(size=(10, 2)), rng.normal(size=10)
    true_matrix, true_offset = matrix @ turn, offset + matrix @ shift
    alignment = latent_scores.affine_alignment(
        *(jnp.asarray(x, jnp.float32) for x in (matrix, offset, true_matrix, true_offset))
    )
    np.testing.assert_allclose(alignment[0], turn, atol=1e-4)
    np.testing.assert_allclose(alignment[1], shift, atol=1e-4)
    true_field = lambda z: np.stack([np.sin(z[..., 1]), z[..., 0] ** 2], axis=-1)
    learned_field = lambda z: jnp.asarray(
        true_field((np.asarray(z) - shift) @ np.linalg.inv(turn).T) @ turn.T, jnp.float32
    )
    z = rng.normal(size=(4, 3, 2))
    aligned_field = latent_scores.aligned_velocity(learned_field, *alignment)
    np.testing.assert_allclose(
        aligned_field(jnp.asarray(z, jnp.float32)), true_field(z), rtol=1e-3, atol=1e-3
    )
