"""The sparse solver against the dense one, and against cosines where the maze is an open square."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import block_diag

from envs.grid import layouts, mazes, tables
from jaxrl.spectral import laplacian, sparse_laplacian

COUNT = 32


def windy(name: str, wind: float = 0.3) -> sparse.csr_array:
    return tables.sparse_transitions(tables.dynamics(mazes.layout_by_name(name), wind))


def one_way_rooms() -> sparse.csr_array:
    """Two open rooms of 100 cells; a ring of one-way passages joins them at random places."""
    room = open_square(10).toarray()
    P, rng = np.asarray(block_diag(room, room)), np.random.default_rng(1)
    for here, there in zip(rng.permutation(100)[:20], 100 + rng.permutation(100)[:20], strict=True):
        P[here] = 0.5 * P[here] + 0.5 * np.eye(200)[there]
    P[150] = np.eye(200)[3]
    return sparse.csr_array(P)


def open_square(side: int) -> sparse.csr_array:
    free = np.ones((side, side), bool)
    return tables.sparse_transitions(tables.dynamics(layouts.Layout(free)))


CHAINS = {
    "rooms": lambda: windy("GridRoom-16", 0.0),
    "equal eigenvalues": lambda: open_square(15),
    "corridors": lambda: windy("corridors-400-seed1", 0.0),
    "wind": lambda: windy("GridRoom-16"),
    "wind the other way": lambda: windy("corridors-200-seed3", -0.5),
    "one way": one_way_rooms,
    "five equal parts": lambda: sparse.csr_array(block_diag(*5 * [open_square(7).toarray()])),
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize(("steps", "discount"), [(50, 0.9), (7, 0.0), (20, 1.0)])
def test_the_few_smallest_are_those_of_the_dense_solver(kind, steps, discount):
    P = CHAINS[kind]()
    size = sparse_laplacian.num_states(P)
    start = np.full(size, 1 / size)
    exact = laplacian.eigensystem(laplacian.sampled_pairs(P.toarray(), start, steps, discount))
    eigensystem, mu = sparse_laplacian.eigensystem(P, start, steps, discount, COUNT)
    np.testing.assert_allclose(eigensystem.values, exact.values[:COUNT], atol=1e-11)
    np.testing.assert_allclose(eigensystem.weight, exact.weight, atol=1e-14)
    inner = eigensystem.vectors.T @ (eigensystem.weight[:, None] * eigensystem.vectors)
    np.testing.assert_allclose(inner, np.eye(COUNT), atol=1e-9)
    # Each eigenspace that is complete lies in the span of the same columns of the other.
    group = laplacian.groups(exact.values)
    for one in range(group[COUNT]):
        columns = np.flatnonzero(group == one)
        both = exact.vectors[:, columns].T @ (
            exact.weight[:, None] * eigensystem.vectors[:, columns]
        )
        assert np.linalg.svd(both, compute_uv=False).min() > 1 - 1e-7
    if mu is not None:
        np.testing.assert_allclose(mu, np.linalg.eigvalsh(P.toarray())[::-1][:COUNT], atol=1e-12)


def test_only_symmetric_walks_have_an_eigenvalue_of_one_step():
    start = np.full(271, 1 / 271)
    assert sparse_laplacian.eigensystem(windy("GridRoom-16", 0.0), start, 9, 0.9, 5)[1] is not None
    assert sparse_laplacian.eigensystem(windy("GridRoom-16"), start, 9, 0.9, 5)[1] is None


@pytest.mark.parametrize("side", [40, pytest.param(100, marks=pytest.mark.slow)])
def test_an_open_square_has_the_cosines_of_a_path(side):
    """Bumping into a wall is staying: μ of a path is cos(k π / n), of a square the mean of two."""
    steps = 50
    start = np.full(side**2, side**-2.0)
    eigensystem, mu = sparse_laplacian.eigensystem(open_square(side), start, steps, 0.9, COUNT)
    path_cosines = np.cos(np.pi * np.arange(side) / side)
    exact = np.sort((path_cosines[:, None] + path_cosines[None, :]).ravel() / 2)[::-1][:COUNT]
    assert mu is not None
    np.testing.assert_allclose(mu, exact, atol=1e-13)
    values = np.zeros(COUNT)
    for steps_left in range(1, steps + 1):  # λ = 1 - E[μ^k], a sum over starts and offsets
        chances = 0.9 ** np.arange(steps_left) / np.sum(0.9 ** np.arange(steps_left))
        values += sum(p * (1 - exact ** (k + 1)) for k, p in enumerate(chances)) / steps
    np.testing.assert_allclose(eigensystem.values, values, atol=1e-11)
    assert (
        np.linalg.norm(open_square(side) @ eigensystem.vectors - eigensystem.vectors * mu)
        < 1e-8 * side
    )


def test_copies_of_an_eigenvalue_are_all_found():
    """Lanczos iterations see one copy of a repeated eigenvalue in each start vector."""
    values = np.repeat([5.0, 4.0, 3.0, 2.0, 1.0], [6, 1, 7, 4, 82])
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(100, 100)))[0]
    matrix = turn * values @ turn.T
    largest_values, vectors = sparse_laplacian.largest_eigenpairs(lambda x: matrix @ x, 100, 16)
    np.testing.assert_allclose(largest_values, values[:16], atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * largest_values, atol=1e-10)


@pytest.mark.parametrize(
    ("P", "start", "count", "message"),
    [
        (np.ones((3, 2)), np.ones(3) / 3, 1, "shapes"),
        (np.eye(9), np.ones(8) / 8, 1, "shapes"),
        (np.eye(9), np.ones(9) / 9, 6, "count is 6, expected 1 to 4 of 9"),
        (2 * np.eye(9), np.ones(9) / 9, 2, "off by 1"),
        (np.eye(9)[[1, 2, 3, 4, 5, 6, 7, 8, 8]], np.eye(9)[8], 2, "8 states never begin a pair"),
    ],
)
def test_what_is_no_walk_is_refused(P, start, count, message):
    with pytest.raises(ValueError, match=message) as caught:
        sparse_laplacian.eigensystem(sparse.csr_array(P), start, 5, 0.9, count)
    assert "\n" not in str(caught.value)
