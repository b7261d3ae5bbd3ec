"""The table of learned fields as a terminal shows it, and R² of forecasts."""

import math
import statistics
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from train.vector_field.experiment import scores

FIELDS = ["double_limit_cycle", "duffing"]


def measures(*bases: str) -> dict[str, Any]:
    """The measures of one seed and policy on both fields, with R² up to 30 steps ahead."""
    r2 = np.full((2, 31), 0.5).tolist()
    numbers: dict[str, Any] = {"error": [0.25, 0.5], "cosine": [0.9, 0.8], "r2": r2, "r2_free": r2}
    return numbers | ({"basis": list(bases)} if bases else {})


def table_lines(seeds: list[dict[str, Any]]) -> list[str]:
    """The lines of the table on a terminal of 80 columns."""
    console = Console(width=80)
    content = {"fields": FIELDS, "policies": ["d_optimal"], "seeds": seeds}
    with console.capture() as captured:
        console.print(scores.scores_table(content))
    return captured.get().splitlines()


def test_names_stay_whole_in_80_columns_and_the_basis_of_most_seeds_is_named():
    waves, cubic = "fourier + linear", "polynomial"
    lines = table_lines([{"d_optimal": measures(waves, x)} for x in (cubic, "bumps", cubic)])
    assert max(map(len, lines)) <= 80
    first = next(i for i, line in enumerate(lines) if "double_limit_cycle d_optimal" in line)
    assert "fourier +" in lines[first]
    assert "linear" in lines[first + 1]
    (of_duffing,) = (line for line in lines if "duffing" in line)
    assert of_duffing.split()[-1] == cubic
    assert of_duffing.split()[2:4] == ["0.500", "0.000"]


def test_no_basis_is_named_where_there_is_no_choice():
    assert not any("basis" in line for line in table_lines([{"d_optimal": measures()}]))


def test_deviations_are_those_of_a_sample_and_a_single_seed_has_none():
    errors = [0.1, 0.4, 0.25]
    seeds = [{"d_optimal": measures() | {"error": [x, 0.5]}} for x in errors]
    (line,) = (line for line in table_lines(seeds) if "double_limit_cycle" in line)
    assert line.split()[2:5] == ["0.250", f"{statistics.stdev(errors):.3f}", "0.900"]
    (line,) = (line for line in table_lines(seeds[:1]) if "double_limit_cycle" in line)
    assert line.split()[2:4] == ["0.100", "0.900"]


def test_forecasts_are_compared_with_what_was_seen_so_many_steps_later():
    rng = np.random.default_rng(1)
    obs, ahead = rng.normal(size=(12, 2)), 3
    expected = rng.normal(size=(12, ahead + 1, 2))
    for t in range(12 - ahead):
        expected[t, 0] = obs[t]
        expected[t, 2] = obs[t + 2] + 0.1
    r2 = jax.jit(scores.forecast_r2)(*(jnp.asarray(x, jnp.float32) for x in (expected, obs)))
    assert r2.shape == (4,)
    for k in range(ahead + 1):
        shares = []
        for c in range(2):
            truth = [obs[t + k, c] for t in range(9)]
            miss = sum((obs[t + k, c] - expected[t, k, c]) ** 2 for t in range(9))
            shares.append(1 - miss / sum((y - np.mean(truth)) ** 2 for y in truth))
        np.testing.assert_allclose(r2[k], np.mean(shares), rtol=1e-4, atol=1e-5)
    assert math.isclose(r2[0], 1, abs_tol=1e-5)
