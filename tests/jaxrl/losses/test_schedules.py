"""Linear schedules, against the lines that they draw."""

import jax.numpy as jnp
import numpy as np

from jaxrl.losses import schedules


def test_linear_goes_from_start_to_end_and_stays():
    done = jnp.array([0, 1, 2, 4, 9], jnp.int32)
    np.testing.assert_allclose(
        schedules.linear(1.0, 0.2, done, 4), [1.0, 0.8, 0.6, 0.2, 0.2], rtol=1e-6
    )
    np.testing.assert_array_equal(schedules.linear(1.0, 0.2, done, jnp.inf), 1.0)
    np.testing.assert_allclose(schedules.linear(1.0, 0.2, done, 0), 0.2, rtol=1e-6)
    np.testing.assert_allclose(schedules.linear(1.0, 0.2, done[0], jnp.int32(0)), 0.2, rtol=1e-6)


def test_decay_falls_from_one_to_zero_and_stays():
    done = jnp.array([0, 1, 2, 4, 9], jnp.int32)
    np.testing.assert_array_equal(schedules.decay(done, 4.0), [1.0, 0.75, 0.5, 0.0, 0.0])
    np.testing.assert_array_equal(schedules.decay(done, jnp.inf), 1.0)
