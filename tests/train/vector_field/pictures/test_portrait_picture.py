"""Pictures of phase portraits in one, two and more dimensions."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.dynamics.phase_portrait.attractors import Effort
from jaxrl.dynamics.phase_portrait.kinds import kind_of
from jaxrl.dynamics.phase_portrait.portrait import portrait_of
from tests.train.images import saved_figures, size_alone, words_fit
from train.vector_field.data.step_time import StepTime
from train.vector_field.pictures import portrait_picture
from train.vector_field.pictures.portrait_panels import displacement_on, plane_of

LITTLE = Effort(orbits=24, window=512, settling=512, starts=128)


def well(z, u):
    return z + 0.1 * (z - z**3 + u)


def cycle(z, u):
    growth = u[0] - jnp.sum(z[:2] ** 2)
    plane = jnp.stack([growth * z[0] - 3 * z[1], 3 * z[0] + growth * z[1]])
    return z + 0.1 * jnp.concatenate([plane, -z[2:]])


def trajectories_in(d: int) -> np.ndarray:
    """Two trajectories `[2, T, d]`."""
    return np.random.default_rng(0).uniform(-1.4, 1.4, (2, 60, d))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("step", "d", "inputs", "heading"),
    [
        (well, 1, [[0.0]], "two stable points; one unstable point"),
        (well, 1, [[-1.0], [0.0], [1.0]], "input held at -1\none stable point"),
        (cycle, 2, [[1.0]], "one limit cycle, period "),
        (cycle, 2, [[-1.0], [1.0]], "input held at -1\none stable spiral"),
        (cycle, 4, [[1.0]], "one limit cycle, period "),
    ],
)
def test_a_panel_for_each_portrait(step, d, inputs, heading, tmp_path: Path):
    trajectories = trajectories_in(d)
    portraits = [portrait_of(step, trajectories.reshape(-1, d), u, LITTLE) for u in inputs]
    broken = [trajectories[0], np.concatenate([trajectories[1], np.full((3, d), np.nan)])]
    with saved_figures() as figures:
        path = tmp_path / "portrait.png"
        portrait_picture.draw(path, step, broken, portraits, StepTime(0.05, "s"))
    assert min(size_alone(path)) >= 300
    (figure,) = figures
    assert words_fit(figure)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert len(titles) == len(inputs)
    assert titles[0].startswith(heading)
    assert ("s; " in titles[-1] and "steps = " in titles[-1]) == bool(portraits[-1].cycles)
    limits = {axes.get_xlim() for axes in figure.axes}
    assert len(limits) == 1
    kinds = {point.kind for portrait in portraits for point in portrait.fixed_points}
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert kinds <= legend
    for axes, portrait in zip(figure.axes, portraits, strict=True):
        marks = [np.ravel(line.get_xdata()) for line in axes.lines if line.get_zorder() == 6]
        assert sum(map(len, marks)) == len(portrait.fixed_points)


def test_every_kind_has_a_marker():
    pairs = [0.5, 1.0, 1.5, 0.5j, 1j, 1.5j]
    kinds = {kind_of(np.array([x], complex)) for x in pairs[:3]}
    for x in pairs:
        for y in pairs[:3]:
            eigenvalues = [x, np.conj(x), y] if np.imag(x) else [x, y]
            kinds.add(kind_of(np.array(eigenvalues, complex)))
    kinds |= {kind_of(np.array([x, np.conj(x)])) for x in pairs[3:]}
    assert kinds == set(portrait_picture.MARKERS)
    for kind in kinds:
        assert portrait_picture.marker_of(kind, None).get_label() == kind


def test_the_plane_of_most_variance():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    states = 3 + rng.normal(size=(500, 4)) * [5, 3, 0.5, 0.1] @ axes.T
    plane = plane_of(states)
    np.testing.assert_allclose(np.abs(plane.axes @ axes), np.eye(2, 4), atol=0.05)
    points = rng.normal(size=(7, 2))
    step = lambda z, u: z + jnp.asarray(axes[:, 0], z.dtype)
    field = displacement_on(step, plane, points, np.zeros(0))
    np.testing.assert_allclose(field, np.tile(plane.axes @ axes[:, 0], (7, 1)), atol=1e-5)


def test_durations():
    assert portrait_picture.duration(StepTime(), 16.63) == "16.6 steps"
    assert portrait_picture.duration(StepTime(0.05, "s"), 16.63) == "16.6 steps = 0.832 s"
    assert portrait_picture.duration(StepTime(0.05, ""), 16.63) == "16.6 steps = 0.832"


def test_nothing_to_draw_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="expected a portrait or more"):
        portrait_picture.draw(tmp_path / "x.png", well, [*trajectories_in(1)], [])


def test_states_are_counted_from_0_as_inputs_are():
    assert plane_of(np.eye(2)).names == ("state 0", "state 1")
