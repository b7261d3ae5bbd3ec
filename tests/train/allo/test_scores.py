"""Scores of eigenvectors that are known exactly, and the truth that they are held against."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.spectral import laplacian
from jaxrl.spectral.learning import allo
from train.allo import problem, scores
from train.allo.config import PRESETS, Config
from train.allo.maze import Maze
from train.allo.problem import Problem
from train.allo.training import make_problem
from train.host.compilation import memory

S, D = 12, 4


def problem_of(maze: str, **env) -> Problem:
    config = Config()
    return make_problem(replace(config, env=replace(config.env, maze=maze, **env)))


def random_law(seed: int) -> np.ndarray:
    """A law of pairs without symmetry, `[S, S]`."""
    weights = np.random.default_rng(seed).random((S, S)) ** 2
    return weights / weights.sum()


def scores_of(features, values, law, truth) -> dict:
    as_learned = jnp.asarray(features, jnp.float32), jnp.asarray(values, jnp.float32)
    return scores.seed_scores(*as_learned, jnp.asarray(law, jnp.float32), truth)


def test_exact_eigenvectors_of_the_true_law_have_all_there_is():
    law = random_law(0)
    exact = laplacian.eigensystem(law)
    truth = scores.truth_of(exact, D)
    scaled = exact.vectors[:, :D] * [3.0, -1.0, 0.8, -2.0]  # neither sign nor length counts
    measures = scores_of(scaled, exact.values[:D], law, truth)
    for name in ("similarity", "ceiling", "near_similarity", "near_ceiling", "cosine"):
        assert measures[name] == pytest.approx(1, abs=2e-4)
    assert (measures["eigenvalues_within"], measures["collapsed"]) == (D, 0)
    assert measures["eigenvalue_error"] < 1e-5
    assert (len(measures["cosines"]), len(measures["eigenvalues"])) == (D, D)


def test_exact_eigenvectors_of_the_data_reach_their_ceiling():
    """Which is the mean |cos| to the true ones, as all eigenvalues differ."""
    law = random_law(0)
    exact = laplacian.eigensystem(law)
    data = 0.8 * law + 0.2 * random_law(1)
    best = laplacian.eigensystem(data)
    truth = scores.truth_of(exact, D)
    measures = scores_of(best.vectors[:, :D], best.values[:D], data, truth)
    v, q = (np.sqrt(exact.weight)[:, None] * x.vectors[:, :D] for x in (exact, best))
    cosines = np.abs(np.sum(v * q, axis=0)) / np.linalg.norm(q, axis=0)
    assert 0.3 < cosines.mean() < 0.99
    np.testing.assert_allclose(measures["cosines"], cosines, atol=1e-4)
    for name in ("similarity", "ceiling", "cosine"):
        assert measures[name] == pytest.approx(cosines.mean(), abs=1e-4)
    error = np.abs(best.values[:D] - exact.values[:D])
    assert measures["eigenvalue_error"] == pytest.approx(error.max(), abs=1e-5)
    within = error <= 0.02 * exact.values[:D] + 0.001
    assert measures["eigenvalues_within"] == np.count_nonzero(within)


def test_collapse_and_states_that_data_lack():
    law = random_law(0)
    truth = scores.truth_of(laplacian.eigensystem(law), D)
    partial_law = law.copy()
    partial_law[5], partial_law[:, 5] = 0.0, 0.0
    measures = scores_of(np.ones((S, D)), np.zeros(D), partial_law / partial_law.sum(), truth)
    assert measures["collapsed"] == D - 1
    assert measures["cosines"] == pytest.approx([1.0, 0, 0, 0], abs=1e-5)
    assert measures["similarity"] == pytest.approx(1 / D, abs=1e-5)
    assert 0 < measures["ceiling"] < 1
    assert measures["never_left"] == 1
    all_of_them = scores.truth_of(laplacian.eigensystem(law), S)  # more than the data have
    vectors = laplacian.eigensystem(partial_law, missing="drop").vectors
    features, pairs = np.pad(vectors, ((0, 0), (0, 1))), partial_law / partial_law.sum()
    whole = scores_of(features, np.zeros(S), pairs, all_of_them)
    assert whole["similarity"] == pytest.approx(whole["ceiling"], abs=1e-4)
    assert 0 < whole["ceiling"] < 1
    assert "no recorded transition leaves: 1 with seed 3" in caption_of([{"seed": 3, **measures}])
    assert "no recorded transition" not in caption_of([{"seed": 3, **measures, "never_left": 0}])


def caption_of(rows: list[dict]) -> str:
    return str(scores.scores_table(rows, D).caption)


def test_the_table_has_a_row_for_each_seed_and_one_for_their_mean():
    truth = scores.truth_of(laplacian.eigensystem(random_law(0)), D)
    row = {"seed": 3, **scores_of(np.ones((S, D)), np.zeros(D), random_law(0), truth)}
    assert scores.scores_table([row], D).row_count == 1
    table = scores.scores_table([row, {**row, "seed": 4, "similarity": 0.75}], D)
    columns = [list(column.cells) for column in table.columns]
    assert columns[0] == ["3", "4", "mean"]
    assert columns[1] == ["0.2500", "0.7500", "0.5000"]


# Truth.


def test_equal_eigenvalues_form_groups():
    """GridRoomSym-4 looks the same from two sides; components 5 to 8 differ by 0.0013 alone."""
    truth = problem_of("GridRoomSym-4").truth
    np.testing.assert_array_equal(truth.group, [0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7])
    np.testing.assert_array_equal(truth.near_group, [0, 1, 1, 2, 3, 3, 3, 3, 4, 4, 4])
    np.testing.assert_array_equal(truth.column_group[:11], truth.group)
    assert np.all(np.asarray(truth.column_group)[11:] == -1)


@pytest.mark.slow
def test_a_group_that_is_cut_keeps_its_columns():
    """In GridMaze-11 components 10 to 12 are equal: two of them may be any of that space."""
    truth = problem_of("GridMaze-11").truth
    last = truth.group[-1]
    np.testing.assert_array_equal(np.flatnonzero(truth.group == last), [9, 10])
    np.testing.assert_array_equal(np.flatnonzero(truth.column_group == last), [9, 10, 11])
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    features = np.array(truth.vectors[:, :11])
    features[:, 9:] = np.asarray(truth.vectors)[:, 9:12] @ turn[:, :2]
    similarities = scores.similarities(jnp.asarray(features), truth)
    assert similarities["similarity"] == pytest.approx(1, abs=2e-4)
    assert similarities["cosines"][9:].max() < 0.95
    features[:, 10] = truth.vectors[:, 12]  # of the next eigenvalue
    similarities = scores.similarities(jnp.asarray(features), truth)
    assert similarities["similarity"] == pytest.approx(10 / 11, abs=2e-4)


PRINTED = {
    "GridMaze-9": ".1582 .3083 .4899 .6613 .7529 .7777 .8266 .8613 .8768 .8796",
    "GridRoom-4": ".0490 .0576 .1122 .3905 .4420 .4531 .4585 .4787 .4917 .5209",
    "GridRoom-16": ".0016 .0063 .0139 .0242 .0367 .0511 .0663 .0832 .1007 .1161",
}


@pytest.mark.parametrize("maze", PRINTED)
def test_published_eigenvalues_are_those_in_print(maze):
    published = problem_of(maze).published
    assert published is not None
    assert published[0] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(published[1:], np.array(PRINTED[maze].split(), float), atol=5.1e-5)


def test_the_truth_of_a_path_in_closed_form():
    """GridMaze-17 is a path of 87 cells: μ = (1 + cos(k π / 87)) / 2 and λ = 1 - E[μ^offset]."""
    steps, discount = 20, 0.9
    mu = (1 + np.cos(np.arange(11) * np.pi / 87)) / 2
    value = np.ones(11)
    for left in range(1, steps + 1):
        total = sum(discount**k for k in range(left))
        for k in range(left):
            value -= discount**k / total * mu ** (k + 1) / steps
    truth = problem_of("GridMaze-17", walk_steps=steps).truth
    np.testing.assert_allclose(truth.values, value, atol=1e-6)
    np.testing.assert_allclose(truth.weight, 1 / 87, rtol=1e-5)


def test_wind_has_no_published_eigenvalues():
    windy = problem_of("GridMaze-9", wind=0.3)
    assert windy.published is None
    weight = np.asarray(windy.truth.weight)
    right = windy.layout.cells[:, 1] == 7
    assert weight[right].mean() > 1.2 * weight[~right].mean()
    inner = np.asarray(windy.truth.vectors).T @ (weight[:, None] * np.asarray(windy.truth.vectors))
    np.testing.assert_allclose(inner, np.eye(len(inner)), atol=1e-5)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("wind", [0.0, 0.2])
def test_large_mazes_have_the_truth_of_small_ones(wind, monkeypatch):
    """The same maze solved by either method; each true vector up to its sign."""
    dense = problem_of("corridors-200-seed3", wind=wind)
    monkeypatch.setattr(problem, "DENSE", 100)
    few = problem_of("corridors-200-seed3", wind=wind)
    assert few.truth.vectors.shape == dense.truth.vectors.shape
    np.testing.assert_allclose(few.truth.values, dense.truth.values, atol=1e-7)
    np.testing.assert_array_equal(few.truth.group, dense.truth.group)
    np.testing.assert_array_equal(few.truth.near_column_group, dense.truth.near_column_group)
    np.testing.assert_allclose(few.truth.vectors, dense.truth.vectors, atol=1e-4)
    if wind:
        assert few.published is None
    else:
        assert few.published is not None
        assert dense.published is not None
        np.testing.assert_allclose(few.published, dense.published, atol=1e-11)


def test_most_of_very_many_eigenvectors_are_refused(monkeypatch):
    monkeypatch.setattr(problem, "DENSE", 20)
    monkeypatch.setattr(problem, "DENSE_AT_MOST", 100)
    message = r"num_features is 11 in a maze of 104 states; expected at most 7, as"
    with pytest.raises(ValueError, match=message):
        problem_of("GridRoom-4")
    of_features = lambda d: problem.make_problem(Maze(), "coordinates", allo.Config(num_features=d))
    assert of_features(7).truth.vectors.shape[1] >= 7, "as many as are said to be allowed"
    with pytest.raises(ValueError, match=r"num_features is 8 .* at most 7"):
        of_features(8)


def test_an_exact_expectation_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 500_000)
    message = (
        r"692,224 bytes \(692 kB\) for 104 states and 2 seeds, "
        r"and 500 kB are free: .* sampled"
    )
    with pytest.raises(ValueError, match=message):  # 8 matrices of 104² float32, twice
        problem.make_problem(Maze(), "coordinates", PRESETS["allo"].config.agent, 2)
    problem.make_problem(Maze(), "coordinates", PRESETS["allo"].config.agent)
    problem.make_problem(Maze(), "coordinates", PRESETS["sampled"].config.agent, 2)


def test_without_ceiling_above_its_limit():
    truth = scores.truth_of(laplacian.eigensystem(random_law(0)), D)
    measures = scores.seed_scores(jnp.ones((S, D)), jnp.zeros(D), None, truth)
    assert "ceiling" not in measures
    assert measures["eigenvalues_within"] >= 0
    rows = [{"seed": seed, **measures} for seed in (3, 4)]
    assert "No ceiling: it is computed for up to 3,000 numbered states" in caption_of(rows)
    assert scores.scores_table(rows, D).row_count == 3
