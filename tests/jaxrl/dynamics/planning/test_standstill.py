"""When a state stands still, beside the same rule in plain Python."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.planning import standstill
from jaxrl.dynamics.planning.standstill import Config

CONFIG = Config(window=6.0, radius=0.3, random_steps=4)


def path() -> tuple[np.ndarray, np.ndarray]:
    """Places that move, rest and move again, `[T, 2]`, and where plans were followed, `[T]`."""
    rng = np.random.default_rng(0)
    moving = np.cumsum(rng.normal(size=(20, 2)), axis=0)
    resting = moving[-1] + 0.1 * rng.normal(size=(40, 2))
    is_planned = np.ones(80, bool)
    is_planned[[0, 1, 2, 33]] = False
    return np.concatenate([moving, resting, resting[-1] + moving]), is_planned


def plain_watch(config: Config, places: np.ndarray, is_planned: np.ndarray) -> list[int]:
    """Random steps that are left after each place."""
    mean, variance, steps, left, lefts = np.zeros(2), 0.0, 0, 0, []
    for z, planned in zip(places, is_planned, strict=True):
        if steps == 0:
            mean, variance = z.copy(), 0.0
        else:
            mean = mean + (z - mean) / config.window
            variance += (np.mean((z - mean) ** 2) - variance) / config.window
        if planned and steps >= config.window and variance < config.radius**2:
            left = config.random_steps
        else:
            left = max(left - 1, 0)
        steps = steps + 1 if planned and left == 0 else 0
        lefts.append(left)
    return lefts


def watch_all(
    config: Config, places: np.ndarray, is_planned: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Random steps that are left after each place, and whether they begin there."""

    def step(before, sample):
        after, begins = standstill.watch(config, before, *sample)
        return after, (after.random_left, begins)

    samples = jnp.asarray(places, jnp.float32), jnp.asarray(is_planned)
    _, (left, begins) = jax.lax.scan(step, standstill.begin(2), samples)
    return np.asarray(left), np.asarray(begins)


def test_inputs_are_random_for_a_while_after_the_state_has_rested():
    places, is_planned = path()
    left, begins = watch_all(CONFIG, places, is_planned)
    np.testing.assert_array_equal(begins, left == CONFIG.random_steps)
    assert left.tolist() == plain_watch(CONFIG, places, is_planned)
    assert (left[:20] == 0).all()  # while it moves
    assert (left[20:60] > 0).any()


def test_without_random_steps_it_never_happens():
    places, is_planned = path()
    never = CONFIG.replace(random_steps=0)  # pyright: ignore
    left, begins = watch_all(never, places, is_planned)
    assert not left.any()
    assert not begins.any()
