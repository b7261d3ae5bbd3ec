"""The table of learned fields as a terminal shows it."""

from typing import Any

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
