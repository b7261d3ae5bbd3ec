"""A file of measured stiffness: what a cell of it is, and what is refused."""

import numpy as np
import pytest

from train.durotaxis import config


def written(path, values) -> str:
    np.save(path, values)
    return str(path)


def test_every_cell_is_one_px_which_is_said_once(tmp_path, capsys):
    values = np.random.default_rng(0).random((30, 40))
    path = written(tmp_path / "soft.npy", values)
    for _ in range(2):
        np.testing.assert_array_equal(config.read_field(path), values.astype(np.float32))
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "every cell is one px, so the ground is 40 px wide and 30 px high" in told
    assert "the same everywhere" not in told
    _, params = config.make_env(config.experiment(field_file=path))
    assert (params.width, params.height) == (40.0, 30.0)


def test_flat_ground_is_named(tmp_path, capsys):
    config.read_field(written(tmp_path / "flat.npy", np.full((30, 40), 2.0)))
    assert "it is the same everywhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (-np.ones((9, 9)), "stiffness from -1 to -1; expected none below 0"),
        (np.zeros((9, 9)), "stiffness from 0 to 0; .* some above"),
        (np.full((9, 9), np.nan), "not finite"),
        (np.full((9, 9), 1e30), "beyond 1e.06"),
        (np.ones(9), r"has the shape \(9,\)"),
        (np.array([["a"]]), "expected real numbers"),
    ],
)
def test_other_files_are_refused(tmp_path, values, told):
    with pytest.raises(ValueError, match=told) as caught:
        config.read_field(written(tmp_path / "x.npy", values))
    assert "\n" not in str(caught.value)
