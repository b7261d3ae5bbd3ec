"""Fitting recorded data: what is refused, where windows come from, and a fit that foretells."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics import rbf, sequence_elbo
from train.host.scores import read_evaluation
from train.vector_field import program, recorded
from train.vector_field.config import PRESETS, Config, Model
from train.vector_field.training import make_training

STEPS = 400


def turning(steps: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A damped rotation that inputs keep going, seen in four channels: `y`, `u`."""
    rng = np.random.default_rng(0)
    u = np.repeat(rng.uniform(-1, 1, (steps // 10 + 1, 2)), 10, axis=0)[:steps]
    z, seen = np.zeros(2), []
    shown = rng.normal(size=(4, 2))
    for action in u:
        seen.append(shown @ z + noise * rng.normal(size=4))
        z = z + 0.1 * (np.array([[-0.5, -2.0], [2.0, -0.5]]) @ z + 2 * action)
    return np.array(seen), u


def written(path, **arrays) -> Config:
    """The configuration of a small fit to arrays in a file."""
    np.savez(path, **arrays)
    default = PRESETS["vector_field"]
    return replace(
        default,
        data=str(path),
        model=Model(grid=rbf.Grid(per_axis=5, half_width=3.0), hidden=8),
        vae=replace(
            default.vae,
            window=10,
            learning_rate=1e-2,
            elbo=sequence_elbo.Config(samples=1, k_steps=2),
        ),
        batch_size=8,
        run=replace(default.run, num_seeds=1, total_steps=500, chunk_steps=250),
    )


Y, U = turning(STEPS, 0.1)
HOLE = np.where(np.arange(STEPS)[:, None] == 7, np.nan, Y)


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"y": Y}, "no array 'u'"),
        ({"y": HOLE, "u": U}, "y in .* has 4 values that are NaN"),
        ({"y": Y[:, 0], "u": U}, r"y in .* has shape \(400,\)"),
        ({"y": Y, "u": U[:, 0][:-1]}, "as many steps of both"),
        ({"y": Y[None], "u": U}, r"u in .* has shape \(400, 2\)"),
        ({"y": Y, "u": U[:-1]}, "as many steps of both"),
        ({"y": Y.astype(complex), "u": U}, "complex128; expected real"),
        ({"y": Y[:150], "u": U[:150]}, "only 30 steps in a row"),
        ({"y": 0 * Y, "u": U}, "y in .* is constant in every channel"),
        ({"y": 1e30 * Y, "u": U}, "y in .* has values up to [0-9.]+e.(29|30|31); .* divide by"),
        ({"y": Y, "u": 1e30 * U}, "u in .* has values up to [0-9.]+e.(29|30|31); .* divide by"),
        ({"y": 1e-30 * Y, "u": U}, "y in .* varies by .*e-30; .* divide by"),
        ({"y": 1e-3 * Y + 1e6, "u": U}, "less than float32 resolves: subtract the mean"),
        ({"y": Y.astype(object), "u": U}, "y holds object; expected real numbers"),
        ({"y": Y > 0, "u": U}, "y holds bool; expected real numbers"),
        ({"y": Y[:0], "u": U[:0]}, r"y in .* has shape \(0, 4\)"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path, arrays, told):
    config = written(tmp_path / "data.npz", **arrays)
    with pytest.raises(ValueError, match=told) as error:
        make_training(config)
    assert "\n" not in str(error.value)


def test_what_is_no_file_of_arrays_is_refused(tmp_path):
    path = tmp_path / "text.npz"
    path.write_text("y, u")
    for name, told in ((path, "cannot be read"), (tmp_path / "none.npz", "there is no file")):
        with pytest.raises(ValueError, match=told):
            recorded.load(str(name))


def test_counts_must_be_whole(tmp_path):
    config = written(tmp_path / "data.npz", y=Y, u=U)
    env = replace(config.env, observation="loglinear", noise="poisson")
    with pytest.raises(ValueError, match="not counts"):
        make_training(replace(config, env=env))


def test_what_is_unusual_is_named():
    y, u = Y[None].astype(np.float32), U[None].astype(np.float32)
    assert recorded.oddities(recorded.Data(y, u)) == []
    assert recorded.oddities(recorded.Data(y, 0 * u)) == []  # nothing was put in
    still = y.copy()
    still[..., [1, 3]] = 7.0
    (line,) = recorded.oddities(recorded.Data(still, u))
    assert "y is constant in 2 of 4 channels (1, 3, counted from 0)" in line
    (line,) = recorded.oddities(recorded.Data(1e6 * y, u))
    assert line.startswith("y has a standard deviation of")
    assert "rescale" in line
    (line,) = recorded.oddities(recorded.Data(y, 1e-6 * u))
    assert line.startswith("u has a standard deviation of")
    assert "rescale" in line


@pytest.mark.parametrize("episodes", [1, 5])
def test_the_last_part_is_kept_apart(episodes):
    y = np.arange(episodes * 100, dtype=float).reshape(episodes, 100, 1)
    learned, kept = recorded.split(recorded.Data(y, y), 0.2, 10)
    both = np.concatenate([learned.y.ravel(), kept.y.ravel()])
    np.testing.assert_array_equal(both, y.ravel())
    assert kept.y.size == 20 * episodes


def test_windows_are_stretches_with_the_input_before_each_observation():
    """y says where it stands, and so does u: before y there must be the u of one step less."""
    place = np.arange(2 * 30, dtype=np.float32).reshape(2, 30, 1)
    draw = jax.jit(lambda key: recorded.sample(recorded.Data(place, place + 0.5), 6, 2_000, key))
    windows = jax.device_get(draw(jax.random.key(0)))
    y, before = windows.y[..., 0], windows.before[..., 0]
    np.testing.assert_array_equal(np.diff(y, axis=1), 1)
    at_start = y % 30 == 0
    np.testing.assert_array_equal(before[at_start], 0)
    np.testing.assert_array_equal(before[~at_start], y[~at_start] - 0.5)
    assert set(y[:, 0]) == {*range(25), *range(30, 55)}  # every start there is, and no other


@pytest.mark.slow
def test_a_fit_foretells_what_it_has_not_seen(tmp_path):
    """Against the mean, whose R² is 0; the picture is drawn and the score written."""
    y, u = turning(2 * STEPS, 0.1)
    config = written(tmp_path / "data.npz", y=y, u=u)
    config = replace(config, run=replace(config.run, directory=str(tmp_path / "run")))
    result = program.train(config)
    evaluation = read_evaluation(result.directory)
    assert evaluation
    assert evaluation["seeds"][0]["r2"][1] > 0.5
    assert (result.directory / "recorded.png").stat().st_size > 10_000
    with np.load(result.directory / "recorded.npz") as found:
        assert found["states"].shape == (*y.shape[:-1], 2) or found["states"].shape[1:] == (
            len(y),
            2,
        )
        np.testing.assert_allclose(found["r2"][0], evaluation["seeds"][0]["r2"], atol=1e-4)
        now = found["states"] @ found["decoder"].T + found["offset"]  # what the filter makes of y
        np.testing.assert_allclose(found["forecasts"][:, :, 0], now, atol=1e-3)
        seen = y.reshape(now.shape)
        assert np.square(now - seen).mean() < 0.5 * np.square(seen - seen.mean((0, 1))).mean()
        assert found["field"].shape == (len(found["axis"]), len(found["axis"]), 2)
    assert jnp.isfinite(result.state.agent.params["process"]).all()
