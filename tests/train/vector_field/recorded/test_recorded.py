"""Fitting recorded data: what is refused, and a fit that foretells, also through gaps."""

import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bench import traced_numbers
from jaxrl.dynamics import rbf, sequence_elbo
from tests.train.images import assert_drawn
from train.host.compilation import ahead_of_time
from train.host.plain_config import numbers
from train.host.scoring.scores import read_evaluation
from train.vector_field import program
from train.vector_field.config import Budget, Config, Dynamics, Model
from train.vector_field.data import recordings
from train.vector_field.data.files import loading
from train.vector_field.factories import make_model
from train.vector_field.pictures import series, vae_pictures
from train.vector_field.presets import PRESETS
from train.vector_field.program import PROGRAM
from train.vector_field.recorded import baselines, vae_fit
from train.vector_field.training import make_training

STEPS = 400


def damped_rotation(steps: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A damped rotation that inputs keep going, seen in four channels: `y`, `u`."""
    rng = np.random.default_rng(0)
    u = np.repeat(rng.uniform(-1, 1, (steps // 10 + 1, 2)), 10, axis=0)[:steps]
    z, observations = np.zeros(2), []
    loadings = rng.normal(size=(4, 2))
    for action in u:
        observations.append(loadings @ z + noise * rng.normal(size=4))
        z = z + 0.1 * (np.array([[-0.5, -2.0], [2.0, -0.5]]) @ z + 2 * action)
    return np.array(observations), u


def config_with_data(path, *more, **arrays) -> Config:
    """The configuration of a small fit to arrays in a file."""
    np.savez(path, **arrays)
    default = PRESETS["vector_field"].config
    return replace(
        default,
        learner="sequence_vae",
        data=(str(path), *map(str, more)),
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


Y, U = damped_rotation(STEPS, 0.1)
RNG = np.random.default_rng(1)
HOLE = np.where(np.arange(STEPS)[:, None] == 7, np.inf, Y)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": Y}, "no array 'u'"),
        ({"y": HOLE, "u": U}, "y in .* has 4 infinite values; mark them as missing"),
        ({"y": Y, "u": np.where(U > 0.9, np.nan, U)}, "u in .* must be known at every step"),
        ({"y": np.nan * Y, "u": U}, "y in .* has no values"),
        ({"y": Y[None, None], "u": U}, r"y in .* has shape \(1, 1, 400, 4\)"),
        ({"y": Y.T, "u": U.T}, "as many steps of both, T in .*: transpose what has time along"),
        ({"y": Y, "u": U[:, 0][:-1]}, "as many steps of both"),
        ({"y": Y[None], "u": U}, r"have shapes \(1, 400, 4\) and \(400, 2\); expected as many"),
        ({"y": Y, "u": U[:-1]}, "as many steps of both"),
        ({"y": Y.astype(complex), "u": U}, "complex128; expected real"),
        ({"y": Y[:150], "u": U[:150]}, "only 30 steps in a row"),
        ({"y": 0 * Y, "u": U}, "y is constant in every channel of the training data"),
        ({"y": 1e30 * Y, "u": U}, "y in .* has values up to [0-9.]+e.(29|30|31); .* divide by"),
        ({"y": Y, "u": 1e30 * U}, "u in .* has values up to [0-9.]+e.(29|30|31); .* divide by"),
        ({"y": 1e-30 * Y, "u": U}, "y in .* varies by .*e-30; .* divide by"),
        ({"y": 1e-3 * Y + 1e6, "u": U}, "which float32 cannot hold: subtract its mean"),
        ({"y": Y.astype(object), "u": U}, "y holds object; expected real numbers"),
        ({"y": Y > 9, "u": U}, "y is constant in every channel of the training data"),
        ({"y": Y[:0], "u": U[:0]}, r"y in .* has shape \(0, 4\)"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path, arrays, message):
    config = config_with_data(tmp_path / "data.npz", **arrays)
    with pytest.raises(ValueError, match=message) as error:
        make_training(config)
    assert "\n" not in str(error.value)


def test_counts_must_be_whole(tmp_path):
    config = config_with_data(tmp_path / "data.npz", y=Y, u=U)
    env = replace(config.env, observation="loglinear", noise="poisson")
    with pytest.raises(ValueError, match="not counts"):
        make_training(replace(config, env=env))


def test_a_configuration_from_when_there_was_one_file():
    assert Config(data="FILE.npz").data == ("FILE.npz",)  # pyright: ignore[reportArgumentType]
    assert Config(data="").data == ()  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("spoilt", [slice(0, -20), slice(-80, None)])
def test_data_that_never_change_in_one_part_are_refused(tmp_path, spoilt):
    """Before they are learned from: there would be nothing to learn, or nothing to be scored."""
    y = Y.copy()
    y[spoilt] = y[0]
    with pytest.raises(ValueError, match=r"y (is constant|has no values) in .* choose another"):
        make_training(config_with_data(tmp_path / "data.npz", y=y, u=U))


@pytest.mark.parametrize("reason", [MemoryError("no room"), ValueError("shapes\ndiffer")])
def test_a_simple_model_that_fails_takes_no_score_with_it(reason, monkeypatch, caplog, tmp_path):
    """Neither in `eval.json` nor in the picture."""

    def fail(*_):
        raise reason

    monkeypatch.setattr(baselines, "r2", fail)
    data = recordings.join_episodes([(Y, U)])
    simple = vae_fit.simple_r2(data, data, 2)
    reason_in_one_line = " ".join(str(reason).split())
    assert f"cannot be fitted ({type(reason).__name__}: {reason_in_one_line})" in caplog.text
    lists = {name: np.asarray(x).tolist() for name, x in simple.items()}
    row = {"seed": 0, "r2": [0.5] * 31}
    about = {"step_time": 0.1, "time_unit": "s"}
    assert vae_fit.table({"baselines": lists, "seeds": [row], **about}).row_count == 4
    arrays = {f"r2_{name}": simple[name] for name in baselines.NAMES}
    axis = np.linspace(-1, 1, 25)
    arrays |= {"r2": np.full((1, 31), 0.5), "axis": axis, "field": np.ones((25, 25, 2))}
    config = replace(PRESETS["vector_field"].config, run=Budget(num_seeds=1))
    vae_pictures.draw(tmp_path / "recorded.png", config, RNG.normal(size=(90, 2)), arrays)
    assert_drawn(tmp_path / "recorded.png")


def test_pictures_show_the_longest_episode_that_was_held_out():
    """The last of them: an aborted trial after it has no forecast to be shown."""
    data = recordings.join_episodes([(Y[:n], U[:n]) for n in (300, 90, 120, 120, 5)])
    assert series.shown_part(data, data.episodes(slice(2, None))) == (-2, slice(0, 120))
    whole = recordings.join_episodes([(Y, U)])
    held_out = whole.cut(slice(None), slice(320, STEPS), np.array([80]))
    assert series.shown_part(whole, held_out) == (-1, slice(320, STEPS))


@pytest.mark.slow
def test_a_latent_state_of_one_dimension_is_drawn(tmp_path):
    """Its velocity against it, the same as the model's at each point by itself."""
    config = config_with_data(tmp_path / "line.npz", y=Y[:120], u=U[:120])
    data = loading.load(config.data)
    grid = replace(config.model.grid, dims=1)
    config = vae_fit.match_data_sizes(
        replace(config, model=replace(config.model, grid=grid, recognition="mlp")), data
    )
    model = make_model(config)
    params = model.init(jax.random.key(0), data.u.shape[-1])
    arrays = vae_pictures.learned_arrays(config, model, vae_fit.Fit(params, ()), data)
    assert arrays["states"].shape == (1, 120, 1)
    assert arrays["field"].shape == (25, 1)
    for place, velocity in zip(arrays["axis"], arrays["field"], strict=True):
        at_point = model.velocity(params, jnp.array([place], jnp.float32))
        np.testing.assert_allclose(velocity, at_point, rtol=1e-5, atol=1e-7)
    arrays |= {"r2": np.full((1, 31), 0.5), **{f"r2_{x}": np.zeros(31) for x in baselines.NAMES}}
    vae_pictures.draw(tmp_path / "recorded.png", config, arrays["states"][0], arrays)
    assert_drawn(tmp_path / "recorded.png")


@pytest.mark.slow
def test_a_fit_foretells_what_it_has_not_seen(tmp_path):
    """Against the mean, whose R² is 0, from two files of unequal length, one with a gap."""
    y, u = damped_rotation(2 * STEPS, 0.1)
    gap = y.copy()
    gap[100:110] = gap[300:340, 2] = np.nan
    np.savez(tmp_path / "second.npz", y=y[:200], u=u[:200])
    config = config_with_data(tmp_path / "first.npz", tmp_path / "second.npz", y=gap, u=u)
    config = replace(config, run=replace(config.run, directory=str(tmp_path / "run")))
    result = program.train(config)
    evaluation = read_evaluation(result.directory)
    assert evaluation
    assert evaluation["seeds"][0]["r2"][1] > 0.5
    assert evaluation["baselines"]["linear_gaussian"][10] > 0.8  # the truth is of this kind
    assert (result.directory / "recorded.png").stat().st_size > 10_000
    with np.load(result.directory / "recorded.npz") as arrays:
        assert arrays["states"].shape == arrays["variances"].shape == (2, len(y), 2)
        np.testing.assert_array_equal(arrays["lengths"], [len(y), 200])
        assert np.isnan(arrays["states"][1, 200:]).all()
        assert np.isfinite(arrays["states"][0]).all()
        np.testing.assert_allclose(arrays["r2"][0], evaluation["seeds"][0]["r2"], atol=1e-4)
        for name in baselines.NAMES:
            of_simple = np.array(evaluation["baselines"][name], float)
            np.testing.assert_allclose(arrays[f"r2_{name}"], of_simple, atol=1e-4)
        now = (
            arrays["states"] @ arrays["decoder"].T + arrays["offset"]
        )  # what the filter makes of y
        np.testing.assert_allclose(arrays["forecasts"][:, :, 0], now, atol=1e-3)
        gap_errors = now[0, 100:110] - y[100:110]  # in the gap, which it has not seen
        assert np.square(gap_errors).mean() < 0.5 * np.square(y - y.mean(0)).mean()
        assert arrays["field"].shape == (len(arrays["axis"]), len(arrays["axis"]), 2)
    assert jnp.isfinite(result.state.agent.params["process"]).all()


@pytest.mark.slow
def test_data_are_no_constants_of_the_program(tmp_path):
    config = config_with_data(tmp_path / "wide.npz", y=np.tile(Y, (1, 32)), u=U)
    model = replace(config.model, recognition="mlp", field="linear")
    training = make_training(replace(config, model=model))
    state = jax.eval_shape(training.init, jax.random.key(0))
    traced = ahead_of_time.trace(training.update, state)
    assert sum(x.size for x in traced.arrays) > 32 * Y.size
    literals = re.findall(r'dense<"([^"]*)">', traced.program.lower().as_text())  # in hexadecimals
    assert max(map(len, literals), default=0) < 2 * ahead_of_time.LARGE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "name"), [("state_space", "state_space.prior"), ("sequence_vae", "env.dt")]
)
def test_numbers_of_fits_may_be_traced_as_sweeps_do(tmp_path, learner, name):
    config = config_with_data(tmp_path / "data.npz", y=Y, u=U)
    dynamics = Dynamics(dims=1, field="linear", prior=0.3, steps=25)
    config = replace(config, learner=learner, state_space=dynamics)
    assert name in numbers(config)
    assert traced_numbers.is_traceable(PROGRAM, config, name)
