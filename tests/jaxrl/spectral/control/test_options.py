"""Eigen-options against value iteration in plain NumPy, and where they lead in real mazes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.grid.layouts import from_free
from envs.grid.mazes import layout_by_name
from envs.grid.tables import Dynamics, dynamics, transition_matrix
from jaxrl.spectral.control.options import Options, eigenoptions, no_options
from jaxrl.spectral.laplacian import published_eigensystem


def solve(feature: np.ndarray, tables: Dynamics, discount: float) -> np.ndarray:
    """Q `[S, A]` of climbing one feature, an outcome at a time, in float64."""
    value = np.zeros(len(feature))
    while True:
        q = np.zeros(tables.successor.shape[:2])
        for state, action, slot in np.ndindex(tables.successor.shape):
            after = tables.successor[state, action, slot]
            reward = feature[after] - feature[state]
            chance = float(tables.probability[state, action, slot])
            q[state, action] += chance * (reward + discount * value[after])
        better = np.maximum(q.max(1), 0)
        if np.abs(better - value).max() < 1e-10:
            return q
        value = better


def numpy_options(features: np.ndarray, tables: Dynamics, discount: float = 0.9) -> Options:
    """The options of float64 features, as NumPy arrays."""
    successor, probability = map(jnp.asarray, tables)
    options = eigenoptions(jnp.asarray(features, jnp.float32), successor, probability, discount)
    return jax.tree.map(np.asarray, options)


def walk(options: Options, which: int, state: int, tables: Dynamics) -> list[int]:
    """The states an option leads through, in a maze without chance."""
    path = [state]
    while not options.terminates[which, path[-1]]:
        action = options.policy[which, path[-1]]
        path.append(int(tables.successor[path[-1], action, 0]))
        assert len(path) <= len(tables.successor), "it never ends"
    return path


def true_features(tables: Dynamics, count: int) -> np.ndarray:
    return published_eigensystem(transition_matrix(tables), 0.9).vectors[:, :count]


@pytest.mark.parametrize(("wind", "discount"), [(0.0, 0.9), (0.3, 0.8)])
def test_options_are_the_best_policies(wind: float, discount: float):
    layout = from_free(np.array([[1, 1, 1, 1], [1, 0, 0, 1], [1, 1, 1, 1]], bool))
    tables = dynamics(layout, wind)
    features = np.random.default_rng(0).normal(size=(layout.num_states, 4))
    options = numpy_options(features, tables, discount)
    assert options.policy.shape == options.terminates.shape == (6, layout.num_states)
    signed_features = [sign * features[:, i] for i in (1, 2, 3) for sign in (1, -1)]
    for option, feature in enumerate(signed_features):
        q = solve(feature, tables, discount)
        chosen = q[np.arange(len(q)), options.policy[option]]
        np.testing.assert_allclose(chosen, q.max(1), atol=1e-4)
        np.testing.assert_array_equal(options.terminates[option], q.max(1) < 1e-4)


def test_options_of_a_corridor_walk_to_its_ends():
    """φ₂ is a cosine with its extremes at the ends, φ₃ has them at both ends and in the middle."""
    tables = dynamics(from_free(np.ones((1, 21), bool)))
    features = true_features(tables, 3)  # vectors begin with a positive entry
    options = numpy_options(features, tables)
    for start in range(21):
        assert walk(options, 0, start, tables) == list(range(start, -1, -1))
        assert walk(options, 1, start, tables) == list(range(start, 21))
        assert walk(options, 3, start, tables)[-1] == 10
        if start != 10:
            assert walk(options, 2, start, tables)[-1] == (0 if start < 10 else 20)


def test_options_of_four_rooms_arrive_where_the_eigenvector_is_largest():
    tables = dynamics(layout_by_name("GridRoom-4"))
    features = true_features(tables, 4)
    options = numpy_options(features, tables)
    for option, feature in enumerate([features[:, 1], -features[:, 1]]):
        ends = {walk(options, option, start, tables)[-1] for start in range(len(features))}
        assert ends == {int(np.argmax(feature))}
    for option, feature in enumerate([features[:, 3], -features[:, 3]], start=4):
        for start in range(len(features)):
            path = walk(options, option, start, tables)
            assert feature[path[-1]] >= feature[path[0]]
            assert feature[path[-1]] >= feature[tables.successor[path[-1]]].max() - 1e-6


def test_a_collapsed_feature_makes_options_that_never_start():
    tables = dynamics(from_free(np.ones((2, 3), bool)))
    assert np.all(numpy_options(np.ones((6, 2)), tables).terminates)
    assert [table.shape for table in no_options(6)] == [(0, 6), (0, 6)]


def test_what_does_not_suit_is_refused():
    successor, probability = map(jnp.asarray, dynamics(from_free(np.ones((2, 3), bool))))
    features = jnp.zeros((6, 3))
    with pytest.raises(ValueError, match="discount is 1"):
        eigenoptions(features, successor, probability, discount=1.0)
    with pytest.raises(ValueError, match="d >= 2"):
        eigenoptions(features[:, :1], successor, probability)
    with pytest.raises(ValueError, match="expected \\[S, A, K\\] with S = 5"):
        eigenoptions(features[:5], successor, probability)
    with pytest.raises(ValueError, match="successor and probability have shapes"):
        eigenoptions(features, successor, probability[:, :2])
