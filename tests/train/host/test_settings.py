"""Budgets: in updates, in episodes, and how much of them is used up."""

import pytest

from jaxrl import checks
from train.host.training import MAY_CHANGE, Config, PlayConfig


@pytest.mark.parametrize(
    ("total", "chunk", "per_update", "updates", "chunk_updates"),
    [(100, 20, 10, 10, 2), (101, 24, 10, 11, 2), (1, 1, 64, 1, 1), (128, 100, 64, 2, 2)],
)
def test_steps_become_whole_updates(total, chunk, per_update, updates, chunk_updates):
    config = Config(total_steps=total, chunk_steps=chunk)
    assert config.total_updates(per_update) == updates
    assert config.chunk_updates(per_update) == chunk_updates


@pytest.mark.parametrize(
    ("config", "updates", "episodes", "fraction"),
    [
        (Config(total_steps=100), 5, [90], 0.5),
        (Config(total_steps=100), 20, [], 1.0),
        (Config(total_steps=95), 5, [0], 0.5),
        (PlayConfig(total_steps=100), 5, [90, 7], 0.5),
        (PlayConfig(total_steps=100, max_episodes=10), 5, [90, 7], 0.7),
        (PlayConfig(total_steps=100, max_episodes=10), 5, [3, 7], 0.5),
        (PlayConfig(total_steps=100, max_episodes=10), 5, [11, 12], 1.0),
    ],
)
def test_a_run_ends_with_its_first_budget(config, updates, episodes, fraction):
    assert config.fraction_done(updates, episodes, 10) == pytest.approx(fraction)


def test_games_are_evaluated_if_wanted():
    assert Config().evaluates
    assert PlayConfig(evaluation_games=1).evaluates
    assert not PlayConfig(evaluation_games=0).evaluates


@pytest.mark.parametrize(
    ("kind", "field", "least"),
    [
        (Config, "seed", 0),
        (Config, "chunk_steps", 1),
        (Config, "checkpoint_every", 1),
        (PlayConfig, "total_steps", 1),
        (PlayConfig, "evaluation_games", 0),
    ],
)
def test_a_field_below_its_least_value_is_refused(kind, field: str, least: int):
    checks.config(kind(**{field: least}))
    with pytest.raises(ValueError, match=f"^{field} is {least - 1}, expected .* at least {least}"):
        checks.config(kind(**{field: least - 1}))


def test_the_last_seed_fits_into_32_bits():
    assert Config(seed=2**31 - 2, num_seeds=2).seeds == [2**31 - 2, 2**31 - 1]
    with pytest.raises(ValueError, match=r"seed must be below 2\*\*31; got 2147483647 and 2 seeds"):
        Config(seed=2**31 - 1, num_seeds=2)


def test_what_may_change_is_a_field():
    fields = {f"run.{name}" for name in PlayConfig.__dataclass_fields__}
    assert fields >= MAY_CHANGE
